//! Grace periods and reference counts: how long they take, and what they wait
//! for.

use kernel_sim::{Deferred, EventKind, Preemption, Task};
use std::cell::Cell;
use std::rc::Rc;

mod common;
use common::{Log, events, fault_of, log, machine, with_cpus};

/// How long `synchronize_rcu` takes, in tenths of a tick, on a machine with so
/// many spinners.
fn wait_in_tenths(cpus: u8, hz: u32, spinners: u8) -> Vec<u64> {
    let mut machine = machine(|config| {
        config.cpus = cpus;
        config.hz = hz;
    });
    for _ in 0..spinners {
        let spinner = |task: Task| async move {
            loop {
                task.run_user(1_000_000).await;
            }
        };
        machine.spawn("spinner", 0, spinner).expect("a valid nice");
    }
    let tick_ns = 1_000_000_000 / u64::from(hz);
    let seen = log();
    let waits = Rc::clone(&seen);
    let updater = move |task: Task| async move {
        loop {
            task.sleep(12_345_678).await;
            let before_ns = task.now_ns();
            task.synchronize_rcu().await;
            let tenths = (task.now_ns() - before_ns) * 10 / tick_ns;
            waits.borrow_mut().push((0, tenths));
        }
    };
    machine
        .spawn("updater", -10, updater)
        .expect("a valid nice");
    machine.run_until(2_000_000_000).expect("no rule is broken");
    seen.take().into_iter().map(|(_, tenths)| tenths).collect()
}

#[test]
fn a_grace_period_takes_some_jiffies() {
    for hz in [250, 1000] {
        // The busy CPU notices it at one tick and reports at the next one; under
        // the lazy model the woken task waits up to a tick more.
        let busy = wait_in_tenths(1, hz, 1);
        assert!(busy.len() > 40, "{busy:?}");
        assert!(
            busy.iter().all(|tenths| (10..=35).contains(tenths)),
            "{busy:?}"
        );
        // Idle CPUs are found when the thread looks: after 1 or 3 jiffies.
        let jiffies = if hz == 1000 { 3 } else { 1 };
        let range = jiffies * 10..=jiffies * 10 + 11;
        let idle = wait_in_tenths(4, hz, 0);
        assert!(idle.iter().all(|tenths| range.contains(tenths)), "{idle:?}");
    }
}

#[test]
fn it_waits_for_readers_that_were_there_and_not_for_those_that_come() {
    let mut machine = with_cpus(2);
    let reader = |task: Task| async move {
        task.rcu_read_lock();
        task.rcu_read_lock();
        task.run_kernel(5_000_000).await;
        task.rcu_read_unlock().await;
        // Still inside.
        task.run_kernel(15_000_000).await;
        task.rcu_read_unlock().await;
        loop {
            task.rcu_read_lock();
            task.run_kernel(900_000).await;
            task.rcu_read_unlock().await;
            task.run_user(10_000).await;
        }
    };
    machine.spawn("reader", 0, reader).expect("a valid nice");
    let seen: Log = log();
    let waits = Rc::clone(&seen);
    let updater = move |task: Task| async move {
        task.synchronize_rcu().await;
        waits.borrow_mut().push((0, task.now_ns() / 100_000));
    };
    machine.spawn("updater", 0, updater).expect("a valid nice");
    machine.run_until(500_000_000).expect("no rule is broken");
    let (_, tenths_ms) = seen.borrow()[0];
    // The reader is through after 20 ms; a later tick in user mode, or outside
    // of a section, comes by before long.
    assert!((200..=1_500).contains(&tenths_ms), "{tenths_ms}");
}

#[test]
fn who_asks_during_a_grace_period_waits_for_the_next_one() {
    let mut machine = with_cpus(2);
    let seen: Log = log();
    for number in 0..2 {
        let waits = Rc::clone(&seen);
        let updater = move |task: Task| async move {
            task.run_kernel(100_000 + number * 1_500_000).await;
            task.synchronize_rcu().await;
            waits.borrow_mut().push((number, task.now_ns() / 1_000_000));
        };
        machine.spawn("updater", 0, updater).expect("a valid nice");
    }
    machine.run_until(50_000_000).expect("no rule is broken");
    // The first begins at 1 ms and ends at 4 ms, when the thread looks; the
    // second goes on from there.
    assert_eq!(*seen.borrow(), [(0, 4), (1, 7)]);
    let kinds: Vec<(EventKind, u64)> = events(&mut machine)
        .iter()
        .filter(|event| matches!(event.kind, EventKind::GraceBegin | EventKind::GraceEnd))
        .map(|event| (event.kind, event.arg))
        .collect();
    let expected = [
        (EventKind::GraceBegin, 1),
        (EventKind::GraceEnd, 1),
        (EventKind::GraceBegin, 2),
        (EventKind::GraceEnd, 2),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn call_rcu_defers_work_and_completions_without_sleeping() {
    let mut machine = with_cpus(1);
    let done = machine.completion("freed");
    let queue = machine.workqueue("free").expect("few tasks");
    let ran_ms = Rc::new(Cell::new(0));
    let ran = Rc::clone(&ran_ms);
    let work = machine.work(queue, "free pages", move |task| {
        let ran = Rc::clone(&ran);
        async move { ran.set(task.now_ns() / 1_000_000) }
    });
    let seen: Log = log();
    let waits = Rc::clone(&seen);
    let updater = move |task: Task| async move {
        task.rcu_read_lock();
        task.call_rcu(Deferred::Complete(done));
        task.call_rcu(Deferred::Queue(work));
        task.rcu_read_unlock().await;
        assert!(task.now_ns() < 10_000);
        task.wait_for_completion(done).await;
        waits.borrow_mut().push((0, task.now_ns() / 1_000_000));
    };
    machine.spawn("updater", 0, updater).expect("a valid nice");
    machine.run_until(50_000_000).expect("no rule is broken");
    // From 1 to 4 ms, and a jiffy more.
    assert_eq!(*seen.borrow(), [(0, 5)]);
    assert_eq!(ran_ms.get(), 5);
}

#[test]
fn without_preemption_only_switches_and_user_mode_count() {
    let run = |preempt| {
        let mut machine = machine(|config| {
            config.cpus = 2;
            config.preempt = preempt;
        });
        let hog = |task: Task| async move {
            task.run_kernel(30_000_000).await;
            loop {
                task.run_user(1_000_000).await;
            }
        };
        machine.spawn("hog", 0, hog).expect("a valid nice");
        let ended_ms = Rc::new(Cell::new(0));
        let ended = Rc::clone(&ended_ms);
        let updater = move |task: Task| async move {
            task.synchronize_rcu().await;
            ended.set(task.now_ns() / 1_000_000);
        };
        machine.spawn("updater", 0, updater).expect("a valid nice");
        machine.run_until(100_000_000).expect("no rule is broken");
        ended_ms.get()
    };
    assert_eq!(run(Preemption::Lazy), 4);
    assert_eq!(run(Preemption::None), 31);
}

type Body = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn misuse(body: fn(Task) -> Body) -> String {
    let mut machine = with_cpus(1);
    machine.spawn("culprit", 0, body).expect("a valid nice");
    let fault = fault_of(&mut machine);
    for part in ["culprit", "rcu.rs:"] {
        assert!(fault.contains(part), "{fault}");
    }
    fault
}

#[test]
fn sleeping_waiting_or_ending_in_a_read_section_is_a_fault() {
    let sleeps = misuse(|task| {
        Box::pin(async move {
            task.rcu_read_lock();
            task.sleep(1).await;
        })
    });
    assert!(sleeps.contains("preemption off"), "{sleeps}");
    let waits = misuse(|task| {
        Box::pin(async move {
            task.rcu_read_lock();
            task.synchronize_rcu().await;
        })
    });
    assert!(waits.contains("in an RCU read section"), "{waits}");
    let ends = misuse(|task| Box::pin(async move { task.rcu_read_lock() }));
    assert!(ends.contains("ends with preemption off"), "{ends}");
    let unbalanced = misuse(|task| Box::pin(async move { task.rcu_read_unlock().await }));
    assert!(unbalanced.contains("without having begun"), "{unbalanced}");
}

#[test]
fn a_killed_reference_comes_to_zero_after_a_grace_period_and_the_last_put() {
    // The holder puts its reference this long after the kill.
    let zero_ms = |put_after_ns: u64| {
        let mut machine = with_cpus(2);
        let gone = machine.completion("pool gone");
        let pool = machine.percpu_ref("pool->ref", Deferred::Complete(gone));
        let seen: Log = log();
        let waits = Rc::clone(&seen);
        let holder = move |task: Task| async move {
            assert!(task.ref_tryget_live(pool));
            task.ref_kill(pool);
            assert!(!task.ref_tryget_live(pool));
            assert!(task.ref_tryget(pool), "there is one still");
            task.ref_put(pool);
            task.sleep(put_after_ns).await;
            task.ref_put(pool);
        };
        machine.spawn("holder", 0, holder).expect("a valid nice");
        let waiter = move |task: Task| async move {
            task.wait_for_completion(gone).await;
            assert!(!task.ref_tryget(pool));
            waits.borrow_mut().push((0, task.now_ns() / 1_000_000));
        };
        machine.spawn("waiter", 0, waiter).expect("a valid nice");
        machine.run_until(100_000_000).expect("no rule is broken");
        let seen = seen.take();
        assert_eq!(seen.len(), 1, "zero is noticed once");
        seen[0].1
    };
    assert_eq!(zero_ms(100_000), 5, "the counts are not added up before");
    assert_eq!(zero_ms(20_000_000), 20);
}

#[test]
fn a_resurrected_reference_outlives_the_grace_period_of_its_kill() {
    let mut machine = with_cpus(1);
    let gone = machine.completion("pool gone");
    let pool = machine.percpu_ref("pool->ref", Deferred::Complete(gone));
    let owner = move |task: Task| async move {
        task.ref_get(pool);
        task.ref_kill(pool);
        task.ref_resurrect(pool);
        task.ref_put(pool);
        task.sleep(20_000_000).await;
        assert!(!task.completion_done(gone));
        assert!(task.ref_tryget_live(pool));
        task.ref_kill(pool);
        task.ref_put(pool);
        task.sleep(20_000_000).await;
        assert!(task.completion_done(gone));
    };
    machine.spawn("owner", 0, owner).expect("a valid nice");
    machine.run_until(100_000_000).expect("no rule is broken");
}

#[test]
fn misuse_of_a_reference_names_task_reference_and_line() {
    let fault = |body: fn(&Task, kernel_sim::PercpuRef)| {
        let mut machine = with_cpus(1);
        let gone = machine.completion("pool gone");
        let pool = machine.percpu_ref("pool->ref", Deferred::Complete(gone));
        let culprit = move |task: Task| async move {
            body(&task, pool);
            task.sleep(20_000_000).await;
            task.ref_get(pool);
        };
        machine.spawn("culprit", 0, culprit).expect("a valid nice");
        let text = fault_of(&mut machine);
        for part in ["culprit", "pool->ref", "rcu.rs:"] {
            assert!(text.contains(part), "{text}");
        }
        text
    };
    let put = fault(|task, pool| task.ref_put(pool));
    assert!(put.contains("that nobody has"), "{put}");
    let killed = fault(|task, pool| {
        task.ref_kill(pool);
        task.ref_kill(pool);
    });
    assert!(killed.contains("killed already"), "{killed}");
    let late = fault(|task, pool| task.ref_kill(pool));
    assert!(late.contains("none being left"), "{late}");
}

#[test]
fn a_second_kill_waits_for_a_grace_period_of_its_own() {
    let mut machine = with_cpus(1);
    let gone = machine.completion("pool gone");
    let pool = machine.percpu_ref("pool->ref", Deferred::Complete(gone));
    let owner = move |task: Task| async move {
        task.ref_get(pool);
        // Its grace period is from 1 to 4 ms.
        task.ref_kill(pool);
        task.ref_resurrect(pool);
        task.sleep(2_000_000).await;
        // The next one is from 4 to 7 ms.
        task.ref_kill(pool);
        task.ref_put(pool);
        task.wait_for_completion(gone).await;
        assert_eq!(task.now_ns() / 1_000_000, 8);
    };
    machine.spawn("owner", 0, owner).expect("a valid nice");
    machine.run_until(100_000_000).expect("no rule is broken");
}
