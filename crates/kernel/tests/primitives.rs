//! What tasks wait on: outcomes that follow by hand from the rules.

use kernel_sim::{MachineConfig, Task};
use std::rc::Rc;

mod common;
use common::{Log, fault_of, log, with_cpus};

#[test]
fn a_completion_lets_one_waiter_through_each_time_in_order() {
    let mut machine = with_cpus(1);
    let done = machine.completion("done");
    let seen: Log = log();
    for number in 0..3 {
        let seen = Rc::clone(&seen);
        let waiter = move |task: Task| async move {
            task.run_user(10_000 * (number + 1)).await;
            task.wait_for_completion(done).await;
            seen.borrow_mut().push((number, task.now_ns() / 1_000_000));
        };
        machine.spawn("waiter", 0, waiter).expect("a valid nice");
    }
    let completer = move |task: Task| async move {
        for _ in 0..3 {
            task.sleep(10_000_000).await;
            task.complete(done).await;
        }
    };
    machine
        .spawn("completer", 0, completer)
        .expect("a valid nice");
    machine.run_until(100_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 10), (1, 20), (2, 30)]);
}

#[test]
fn nothing_is_lost_when_complete_comes_first() {
    let mut machine = with_cpus(1);
    let done = machine.completion("done");
    let seen: Log = log();
    let completer = move |task: Task| async move {
        task.complete(done).await;
        task.complete(done).await;
    };
    machine
        .spawn("completer", 0, completer)
        .expect("a valid nice");
    let waits = Rc::clone(&seen);
    let waiter = move |task: Task| async move {
        task.sleep(1_000_000).await;
        for number in 0..2 {
            task.wait_for_completion(done).await;
            waits.borrow_mut().push((number, task.now_ns() / 1_000_000));
        }
        assert!(!task.try_wait_for_completion(done));
        task.wait_for_completion(done).await;
        waits.borrow_mut().push((2, 0));
    };
    machine.spawn("waiter", 0, waiter).expect("a valid nice");
    machine.run_until(50_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 1), (1, 1)], "the third waits for ever");
}

#[test]
fn a_newcomer_may_take_the_turn_of_one_that_is_on_its_way() {
    let mut machine = with_cpus(1);
    let done = machine.completion("done");
    let seen: Log = log();
    let waits = Rc::clone(&seen);
    let waiter = move |task: Task| async move {
        task.wait_for_completion(done).await;
        waits.borrow_mut().push((0, task.now_ns() / 1_000_000));
    };
    machine.spawn("waiter", 0, waiter).expect("a valid nice");
    let completer = move |task: Task| async move {
        task.run_kernel(100_000).await;
        task.complete(done).await;
        assert!(task.try_wait_for_completion(done), "nobody was faster");
        task.sleep(5_000_000).await;
        task.complete(done).await;
    };
    machine
        .spawn("completer", 0, completer)
        .expect("a valid nice");
    machine.run_until(50_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 5)]);
}

#[test]
fn complete_all_lets_everybody_through_until_reinit() {
    let mut machine = with_cpus(2);
    let done = machine.completion("done");
    let seen: Log = log();
    for number in 0..4 {
        let seen = Rc::clone(&seen);
        let waiter = move |task: Task| async move {
            task.wait_for_completion(done).await;
            task.wait_for_completion(done).await;
            seen.borrow_mut().push((number, task.now_ns() / 1_000_000));
        };
        machine.spawn("waiter", 0, waiter).expect("a valid nice");
    }
    let completer = move |task: Task| async move {
        task.sleep(5_000_000).await;
        task.complete_all(done).await;
        task.sleep(1_000_000).await;
        assert!(task.completion_done(done));
        task.reinit_completion(done);
        assert!(!task.completion_done(done));
    };
    machine
        .spawn("completer", 0, completer)
        .expect("a valid nice");
    machine.run_until(50_000_000).expect("no rule is broken");
    assert_eq!(seen.borrow().len(), 4);
    assert!(seen.borrow().iter().all(|&(_, ms)| ms == 5));
}

#[test]
fn waking_from_complete_costs_the_waker_with_preemption_off() {
    let mut machine = with_cpus(2);
    let done = machine.completion("done");
    let waiter = move |task: Task| async move { task.wait_for_completion(done).await };
    machine.spawn("waiter", 0, waiter).expect("a valid nice");
    let costs = log();
    let seen = Rc::clone(&costs);
    let completer = move |task: Task| async move {
        task.run_kernel(100_000).await;
        for number in 0..2 {
            let before_ns = task.now_ns();
            task.complete(done).await;
            seen.borrow_mut().push((number, task.now_ns() - before_ns));
        }
    };
    machine
        .spawn("completer", 0, completer)
        .expect("a valid nice");
    machine.run_until(900_000).expect("no rule is broken");
    let wake_ns = MachineConfig::default().wake_ns;
    assert_eq!(*costs.borrow(), [(0, wake_ns), (1, 0)]);
}

#[test]
fn waiting_with_preemption_off_names_task_completion_and_line() {
    let mut machine = with_cpus(1);
    let done = machine.completion("io done");
    let lock = machine.spin_lock("stream");
    let waiter = move |task: Task| async move {
        task.spin_lock_bh(lock).await;
        task.wait_for_completion(done).await;
    };
    machine.spawn("waiter", 0, waiter).expect("a valid nice");
    let fault = fault_of(&mut machine);
    for part in ["waiter", "io done", "primitives.rs:", "preemption off"] {
        assert!(fault.contains(part), "{fault}");
    }
}
