//! What an owner inherits follows from who waits: in every case the checked
//! invariants compare the two after each event.

mod common;

use common::{events, ideal, of, spin, times};
use kernel_sim::{EventKind, Inheritance, Machine, Policy, Task, TaskId, TaskOptions};

const MS: u64 = 1_000_000;

fn inheriting(cpus: u8) -> Machine {
    ideal(cpus, |config| {
        config.mutex.inheritance = Inheritance::Priority;
    })
}

fn fifo(priority: u8) -> TaskOptions {
    TaskOptions::from(Policy::Fifo { priority })
}

/// The weights that a task was given, in order.
fn weights(machine: &mut Machine, task: TaskId) -> Vec<u64> {
    let events = of(&events(machine), task, EventKind::Reweight);
    events.iter().map(|event| event.arg).collect()
}

#[test]
fn an_owner_that_inherits_class_and_weight_leaves_the_fair_queue() {
    let mut machine = inheriting(1);
    let mutex = machine.mutex("mutex");
    let owner = move |task: Task| async move {
        task.mutex_lock(mutex).await;
        task.run_kernel(5 * MS).await;
        task.mutex_unlock(mutex).await;
    };
    let owner = machine.spawn("owner", 10, owner).expect("a valid nice");
    machine.spawn("spinner", 0, spin).expect("a valid nice");
    let waiter = move |task: Task| async move {
        task.sleep(MS / 2).await;
        task.mutex_lock(mutex).await;
        task.mutex_unlock(mutex).await;
    };
    machine
        .spawn_with("waiter", fifo(50), waiter)
        .expect("a valid priority");
    machine.run_until(20 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    let released = times(&events, owner, EventKind::LockRelease);
    let boosted = of(&events, owner, EventKind::Reweight);
    // Nice 10 weighs 110; a real-time task counts as nice 0 here.
    let weights: Vec<u64> = boosted.iter().map(|event| event.arg).collect();
    assert_eq!(weights, [1024, 110]);
    // From then on the spinner does not run: 5 ms less what it had had before.
    assert!(released[0] <= boosted[0].at_ns + 5 * MS);
}

#[test]
fn what_a_spinner_has_lent_ends_with_an_uncontended_unlock() {
    let mut machine = inheriting(2);
    let mutex = machine.mutex("mutex");
    let owner = move |task: Task| async move {
        task.mutex_lock(mutex).await;
        task.run_kernel(2 * MS).await;
        task.mutex_unlock(mutex).await;
        task.run_user(2 * MS).await;
    };
    let owner = machine.spawn("owner", 10, owner).expect("a valid nice");
    // It spins, since the owner runs, and so it never queues.
    let spins = move |task: Task| async move {
        task.run_user(MS).await;
        task.mutex_lock(mutex).await;
        task.mutex_unlock(mutex).await;
    };
    machine.spawn("spins", -5, spins).expect("a valid nice");
    machine.run_until(10 * MS).expect("no rule is broken");
    assert_eq!(weights(&mut machine, owner), [3121, 110]);
}

/// Tasks that take a spinlock for 0.1 ms each, 10 us after one another, by their
/// nice values.
fn spinners<const COUNT: usize>(machine: &mut Machine, nices: [i8; COUNT]) -> [TaskId; COUNT] {
    let lock = machine.spin_lock("lock");
    let mut from_ns = 0;
    nices.map(|nice| {
        let after_ns = from_ns;
        from_ns += 10_000;
        let body = move |task: Task| async move {
            task.run_kernel(after_ns).await;
            task.spin_lock_bh(lock).await;
            task.run_kernel(100_000).await;
            task.spin_unlock_bh(lock).await;
        };
        machine.spawn("task", nice, body).expect("a valid nice")
    })
}

#[test]
fn who_spins_on_a_spinlock_lends_nothing_and_stays_in_line() {
    let mut machine = inheriting(3);
    let tasks = spinners(&mut machine, [10, 5, -20]);
    machine.run_until(MS).expect("no rule is broken");
    let events = events(&mut machine);
    let acquired = tasks.map(|task| times(&events, task, EventKind::LockAcquire));
    assert_eq!(acquired, [[0], [100_000], [200_000]]);
    let changed = tasks.map(|task| times(&events, task, EventKind::Reweight));
    assert_eq!(changed.concat(), []);
}

#[test]
fn a_reniced_spinner_keeps_its_place() {
    let mut machine = inheriting(4);
    let tasks = spinners(&mut machine, [0, 0, 0]);
    let renices = move |task: Task| async move {
        task.run_user(50_000).await;
        task.set_user_nice(tasks[1], 5).expect("a valid nice");
    };
    machine.spawn("renices", 0, renices).expect("a valid nice");
    machine.run_until(MS).expect("no rule is broken");
    let events = events(&mut machine);
    let acquired = tasks.map(|task| times(&events, task, EventKind::LockAcquire));
    assert_eq!(acquired, [[0], [100_000], [200_000]]);
}

#[test]
fn a_waiter_that_becomes_first_of_a_free_mutex_is_woken() {
    let mut machine = inheriting(4);
    let [free, other] = ["free", "other"].map(|name| machine.mutex(name));
    let owner = move |task: Task| async move {
        task.mutex_lock(free).await;
        // In user mode for a while: the others find it off its CPU and queue.
        task.sleep(3 * MS).await;
        task.mutex_unlock(free).await;
        // At this very moment the second waiter becomes the most important.
        task.mutex_lock(other).await;
        task.mutex_unlock(other).await;
    };
    machine.spawn("owner", -10, owner).expect("a valid nice");
    let first = move |task: Task| async move {
        task.sleep(MS).await;
        task.mutex_lock(free).await;
        task.mutex_unlock(free).await;
    };
    let first = machine.spawn("first", 0, first).expect("a valid nice");
    let second = move |task: Task| async move {
        task.mutex_lock(other).await;
        task.sleep(2 * MS).await;
        task.mutex_lock(free).await;
        task.mutex_unlock(free).await;
        task.mutex_unlock(other).await;
    };
    let second = machine.spawn("second", 0, second).expect("a valid nice");
    machine.run_until(10 * MS).expect("no lost wakeup");
    let events = events(&mut machine);
    for waiter in [first, second] {
        let woken = times(&events, waiter, EventKind::Wake);
        assert_eq!(woken.last(), Some(&(3 * MS)));
    }
}

#[test]
fn a_waiter_that_is_reniced_makes_the_whole_chain_more_important() {
    let mut machine = inheriting(4);
    let [outer, inner] = ["outer", "inner"].map(|name| machine.mutex(name));
    let end = move |task: Task| async move {
        task.mutex_lock(inner).await;
        task.sleep(5 * MS).await;
        task.mutex_unlock(inner).await;
    };
    let end = machine.spawn("end", 10, end).expect("a valid nice");
    let middle = move |task: Task| async move {
        task.mutex_lock(outer).await;
        task.sleep(MS).await;
        task.mutex_lock(inner).await;
        task.mutex_unlock(inner).await;
        task.mutex_unlock(outer).await;
    };
    let middle = machine.spawn("middle", 10, middle).expect("a valid nice");
    let waiter = move |task: Task| async move {
        task.sleep(2 * MS).await;
        task.mutex_lock(outer).await;
        task.mutex_unlock(outer).await;
    };
    let waiter = machine.spawn("waiter", 10, waiter).expect("a valid nice");
    let renices = move |task: Task| async move {
        task.sleep(3 * MS).await;
        task.set_user_nice(waiter, -5).expect("a valid nice");
    };
    machine.spawn("renices", 0, renices).expect("a valid nice");
    machine.run_until(10 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    for task in [end, middle] {
        let changes = of(&events, task, EventKind::Reweight);
        let weights: Vec<u64> = changes.iter().map(|event| event.arg).collect();
        assert_eq!(weights, [3121, 110]);
        assert_eq!(changes[0].at_ns, 3 * MS);
    }
}
