//! Reader/writer locks and the plain spinlock: outcomes that follow by hand from
//! the rules.

use kernel_sim::{Event, EventKind, Task, TaskId};
use std::rc::Rc;

mod common;
use common::{Log, events, fault_of, log, machine, with_cpus};

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
