//! Reader/writer locks and the plain spinlock: outcomes that follow by hand from
//! the rules.

use kernel_sim::{Acquired, Event, EventKind, Preemption, Task, TaskId};
use std::rc::Rc;

mod common;
use common::{Log, count, events, fault_of, log, machine, with_cpus};

/// Nobody has a lock together with a writer.
fn assert_excluded(events: &[Event], lock: u64) {
    let mut readers: Vec<TaskId> = Vec::new();
    let mut writer = None;
    let mut most_readers = 0;
    for event in events.iter().filter(|event| event.arg == lock) {
        match event.kind {
            EventKind::LockAcquire => {
                assert_eq!((writer, readers.len()), (None, 0), "{event:?}");
                writer = Some(event.task);
            }
            EventKind::ReadAcquire => {
                assert_eq!(writer, None, "{event:?}");
                readers.push(event.task);
                most_readers = most_readers.max(readers.len());
            }
            EventKind::LockRelease => assert_eq!(writer.take(), Some(event.task)),
            EventKind::ReadRelease => readers.retain(|&reader| reader != event.task),
            _ => {}
        }
    }
    assert!(most_readers > 1, "readers never shared it");
}

/// Four CPUs without costs of interrupts: one task each, which starts at its
/// time, holds the lock for 10 µs, and writes down when it got it.
fn meet_at_rwlock(plan: [(bool, u64); 4]) -> Vec<(u64, u64)> {
    let mut machine = machine(|config| {
        config.cpus = 4;
        config.switch_ns = 0;
        config.line_ns = 50;
    });
    let lock = machine.rw_lock("lock");
    let seen: Log = log();
    for (number, (writes, start_ns)) in (0..).zip(plan) {
        let seen = Rc::clone(&seen);
        let body = move |task: Task| async move {
            task.run_kernel(start_ns).await;
            if writes {
                task.write_lock(lock).await;
            } else {
                task.read_lock(lock).await;
            }
            seen.borrow_mut().push((number, task.now_ns()));
            task.run_kernel(10_000).await;
            if writes {
                task.write_unlock(lock).await;
            } else {
                task.read_unlock(lock).await;
            }
        };
        machine.spawn("task", 0, body).expect("a valid nice");
    }
    machine.run_until(900_000).expect("no rule is broken");
    seen.take()
}

#[test]
fn readers_that_wait_get_a_rwlock_together_a_line_apart() {
    let seen = meet_at_rwlock([
        (true, 1_000),
        (false, 2_000),
        (false, 3_000),
        (false, 4_000),
    ]);
    let expected = [(0, 1_000), (1, 11_100), (2, 11_150), (3, 11_200)];
    assert_eq!(seen, expected);
}

#[test]
fn a_reader_queues_behind_a_writer_that_waits_for_readers() {
    let seen = meet_at_rwlock([
        (false, 1_000),
        (true, 2_000),
        (false, 3_000),
        (false, 20_000),
    ]);
    // The last one comes while the writer has it, behind the third.
    let expected = [(0, 1_000), (1, 11_100), (2, 21_200), (3, 21_250)];
    assert_eq!(seen, expected);
}

#[test]
fn a_contended_rwlock_is_never_shared_with_a_writer() {
    let mut machine = with_cpus(6);
    let lock = machine.rw_lock("lock");
    for number in 0..8_u64 {
        let body = move |task: Task| async move {
            for turn in 0_u64.. {
                if (turn + number) % 4 == 0 {
                    task.write_lock(lock).await;
                    task.run_kernel(900).await;
                    task.write_unlock(lock).await;
                } else {
                    task.read_lock(lock).await;
                    task.run_kernel(700 + 10 * number).await;
                    task.read_unlock(lock).await;
                }
                task.run_user(400).await;
            }
        };
        machine.spawn("task", 0, body).expect("a valid nice");
    }
    machine.run_until(50_000_000).expect("no rule is broken");
    assert_excluded(&events(&mut machine), lock.id().0.into());
}

#[test]
fn trylock_takes_what_is_free_and_contention_can_be_seen() {
    let mut machine = with_cpus(2);
    let lock = machine.rw_lock("lock");
    let holder = move |task: Task| async move {
        assert!(task.write_trylock(lock));
        assert!(!task.rw_lock_contended(lock));
        task.run_kernel(100_000).await;
        assert!(task.rw_lock_contended(lock));
        task.write_unlock(lock).await;
        assert!(!task.write_trylock(lock));
    };
    machine.spawn("holder", 0, holder).expect("a valid nice");
    let reader = move |task: Task| async move {
        task.run_kernel(10_000).await;
        task.read_lock(lock).await;
        task.run_kernel(10_000).await;
        task.read_unlock(lock).await;
    };
    machine.spawn("reader", 0, reader).expect("a valid nice");
    machine.run_until(900_000).expect("no rule is broken");
}

type Body = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn rwlock_fault(body: fn(Task, kernel_sim::RwLock) -> Body) -> String {
    let mut machine = with_cpus(1);
    let lock = machine.rw_lock("pool->lock");
    let task = machine.spawn("culprit", 0, move |task| body(task, lock));
    task.expect("a valid nice");
    fault_of(&mut machine)
}

#[test]
fn misuse_of_a_rwlock_names_task_lock_and_line() {
    let twice = rwlock_fault(|task, lock| {
        Box::pin(async move {
            task.read_lock(lock).await;
            task.write_lock(lock).await;
        })
    });
    let others = rwlock_fault(|task, lock| Box::pin(async move { task.read_unlock(lock).await }));
    let otherwise = rwlock_fault(|task, lock| {
        Box::pin(async move {
            task.read_lock(lock).await;
            task.write_unlock(lock).await;
        })
    });
    let leaves = rwlock_fault(|task, lock| Box::pin(async move { task.read_lock(lock).await }));
    for (text, part) in [
        (&twice, "has already"),
        (&others, "does not share"),
        (&otherwise, "nobody owns"),
        (&leaves, "ends while it holds"),
    ] {
        for part in [part, "culprit", "pool->lock", "rwlocks.rs:"] {
            assert!(text.contains(part), "{text}");
        }
    }
    let sleeps = rwlock_fault(|task, lock| {
        Box::pin(async move {
            task.read_lock(lock).await;
            task.sleep(1).await;
        })
    });
    assert!(sleeps.contains("preemption off"), "{sleeps}");
}

#[test]
fn a_plain_spinlock_goes_round_in_order_two_lines_apart() {
    let mut machine = machine(|config| {
        config.cpus = 3;
        config.switch_ns = 0;
    });
    let lock = machine.plain_spin_lock("class->lock");
    let seen: Log = log();
    for number in 0..3 {
        let seen = Rc::clone(&seen);
        let body = move |task: Task| async move {
            task.run_kernel(1_000 * (number + 1)).await;
            task.spin_lock(lock).await;
            seen.borrow_mut().push((number, task.now_ns()));
            task.run_kernel(10_000).await;
            task.spin_unlock(lock).await;
        };
        machine.spawn("task", 0, body).expect("a valid nice");
    }
    machine.run_until(900_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 1_000), (1, 11_100), (2, 21_200)]);
}

#[test]
fn misuse_of_a_plain_spinlock_is_a_fault() {
    let mut machine = with_cpus(1);
    let lock = machine.plain_spin_lock("class->lock");
    let twice = move |task: Task| async move {
        task.spin_lock(lock).await;
        task.spin_lock(lock).await;
    };
    machine.spawn("culprit", 0, twice).expect("a valid nice");
    let fault = fault_of(&mut machine);
    assert!(fault.contains("spin for ever"), "{fault}");
    assert!(fault.contains("class->lock"), "{fault}");
}

/// Tasks on a CPU each that start at their time, hold the semaphore for so long
/// and write down when they got it. They sleep with it, so nobody spins.
fn meet_at_rwsem(plan: &[(bool, u64, u64)]) -> Vec<(u64, u64)> {
    let mut machine = with_cpus(8);
    let sem = machine.rw_sem("sem");
    let seen: Log = log();
    for (number, &(writes, start_ns, hold_ns)) in (0..).zip(plan) {
        let seen = Rc::clone(&seen);
        let body = move |task: Task| async move {
            task.sleep(start_ns).await;
            if writes {
                task.down_write(sem).await;
            } else {
                task.down_read(sem).await;
            }
            seen.borrow_mut().push((number, task.now_ns() / 1_000_000));
            task.sleep(hold_ns).await;
            if writes {
                task.up_write(sem).await;
            } else {
                task.up_read(sem).await;
            }
        };
        machine.spawn("task", 0, body).expect("a valid nice");
    }
    machine.run_until(500_000_000).expect("no rule is broken");
    assert_excluded(&events(&mut machine), sem.id().0.into());
    seen.take()
}

#[test]
fn a_rwsem_serves_readers_at_the_head_together_and_writers_alone() {
    const MS: u64 = 1_000_000;
    let seen = meet_at_rwsem(&[
        (true, 0, 10 * MS),
        (false, MS, 20 * MS),
        (false, 2 * MS, 5 * MS),
        (true, 3 * MS, 10 * MS),
        (false, 4 * MS, 10 * MS),
        (false, 12 * MS, 10 * MS),
    ]);
    // Both readers before the second writer at 10; it waits for the slower one,
    // and those behind it, though readers have the lock at 12, wait for it.
    let expected = [(0, 0), (1, 10), (2, 10), (3, 30), (4, 40), (5, 40)];
    assert_eq!(seen, expected);
}

/// A writer that takes the lock over and over, and one that waits for it on the
/// same CPU. Returns how often the first took it while the second waited, and
/// the way in which the second got it.
fn hog_and_waiter(hold_ns: u64) -> (usize, Vec<Acquired>) {
    let mut machine = with_cpus(1);
    let sem = machine.rw_sem("sem");
    let hog = move |task: Task| async move {
        loop {
            task.down_write(sem).await;
            task.run_kernel(hold_ns).await;
            task.up_write(sem).await;
        }
    };
    let hog = machine.spawn("hog", -10, hog).expect("a valid nice");
    let waiter = move |task: Task| async move {
        task.sleep(1_000_000).await;
        task.down_write(sem).await;
        task.up_write(sem).await;
    };
    let waiter = machine.spawn("waiter", 0, waiter).expect("a valid nice");
    machine.run_until(300_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    let at = |task: TaskId, kind: EventKind| {
        let is = move |event: &&Event| event.task == task && event.kind == kind;
        events.iter().filter(is)
    };
    let waits_ns = at(waiter, EventKind::LockWait).map(|event| event.at_ns);
    let gets = at(waiter, EventKind::LockAcquire).map(|event| (event.at_ns, event.aux));
    let (waits_ns, gets): (Vec<u64>, Vec<(u64, u16)>) = (waits_ns.collect(), gets.collect());
    let stolen = at(hog, EventKind::LockAcquire)
        .filter(|event| (waits_ns[0]..gets[0].0).contains(&event.at_ns));
    let ways = gets.iter().map(|&(_, how)| Acquired::from_aux(how));
    (stolen.count(), ways.collect())
}

#[test]
fn a_writer_that_waits_for_long_is_handed_the_rwsem() {
    let (stolen, ways) = hog_and_waiter(100_000);
    assert!(stolen > 10, "{stolen}");
    assert_eq!(ways, [Acquired::HandedOff]);
}

#[test]
fn writers_spin_for_a_running_writer_and_not_for_readers() {
    let spins = |reads: bool| {
        let mut machine = with_cpus(2);
        let sem = machine.rw_sem("sem");
        let owner = move |task: Task| async move {
            if reads {
                task.down_read(sem).await;
                task.run_kernel(500_000).await;
                task.up_read(sem).await;
            } else {
                task.down_write(sem).await;
                task.run_kernel(500_000).await;
                task.up_write(sem).await;
            }
        };
        machine.spawn("owner", 0, owner).expect("a valid nice");
        let writer = move |task: Task| async move {
            task.run_kernel(100_000).await;
            task.down_write(sem).await;
            task.up_write(sem).await;
        };
        machine.spawn("writer", 0, writer).expect("a valid nice");
        machine.run_until(900_000).expect("no rule is broken");
        let events = events(&mut machine);
        let of = |kind| count(&events, kind);
        assert_eq!(of(EventKind::LockRelease), if reads { 1 } else { 2 });
        (of(EventKind::LockSpin), of(EventKind::LockWait))
    };
    assert_eq!(spins(false), (1, 0));
    assert_eq!(spins(true), (0, 1));
}

#[test]
fn a_contended_rwsem_is_never_shared_with_a_writer_nor_forgotten() {
    for preempt in [Preemption::Lazy, Preemption::Full, Preemption::None] {
        let mut machine = machine(|config| {
            config.cpus = 3;
            config.preempt = preempt;
        });
        let sem = machine.rw_sem("sem");
        let seen: Log = log();
        for number in 0..9_u64 {
            let seen = Rc::clone(&seen);
            let body = move |task: Task| async move {
                for turn in 0..300_u64 {
                    if (turn + number) % 4 == 0 {
                        task.down_write(sem).await;
                        task.run_kernel(20_000 + 1_000 * number).await;
                        task.up_write(sem).await;
                    } else {
                        task.down_read(sem).await;
                        task.run_kernel(30_000).await;
                        if turn % 7 == 0 {
                            task.sleep(10_000).await;
                        }
                        task.up_read(sem).await;
                    }
                    task.run_user(5_000 + 700 * number).await;
                }
                seen.borrow_mut().push((number, task.now_ns()));
            };
            let nice = i8::try_from(number).expect("small") - 4;
            machine.spawn("task", nice, body).expect("a valid nice");
        }
        machine.run_until(3_000_000_000).expect("no rule is broken");
        assert_excluded(&events(&mut machine), sem.id().0.into());
        assert_eq!(seen.borrow().len(), 9, "{preempt:?}");
    }
}

#[test]
fn misuse_of_a_rwsem_is_a_fault() {
    let fault = |body: fn(Task, kernel_sim::RwSem) -> Body| {
        let mut machine = with_cpus(1);
        let sem = machine.rw_sem("mmap_lock");
        let task = machine.spawn("culprit", 0, move |task| body(task, sem));
        task.expect("a valid nice");
        let text = fault_of(&mut machine);
        assert!(
            text.contains("culprit") && text.contains("rwlocks.rs:"),
            "{text}"
        );
        assert!(text.contains("mmap_lock"), "{text}");
        text
    };
    let twice = fault(|task, sem| {
        Box::pin(async move {
            task.down_read(sem).await;
            task.down_read(sem).await;
        })
    });
    assert!(twice.contains("has already"), "{twice}");
    let others = fault(|task, sem| Box::pin(async move { task.up_write(sem).await }));
    assert!(others.contains("nobody owns"), "{others}");
    let atomic = fault(|task, sem| {
        Box::pin(async move {
            task.rcu_read_lock();
            task.down_read(sem).await;
        })
    });
    assert!(atomic.contains("in an RCU read section"), "{atomic}");
    let leaves = fault(|task, sem| Box::pin(async move { task.down_write(sem).await }));
    assert!(leaves.contains("ends while it holds"), "{leaves}");
}
