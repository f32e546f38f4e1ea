//! Why a task does not get on: chains of waits, deadlocks, starvation.

mod common;

use common::{ideal, machine, spin};
use kernel_sim::{Machine, Mutex, Policy, Task, TaskActivity, TaskId};

const MS: u64 = 1_000_000;

/// Takes `first`, computes, and then takes `second` as well.
fn taker(machine: &mut Machine, name: &str, start_ns: u64, first: Mutex, second: Mutex) -> TaskId {
    let body = move |task: Task| async move {
        task.sleep(start_ns).await;
        task.mutex_lock(first).await;
        task.sleep(MS).await;
        task.mutex_lock(second).await;
        task.mutex_unlock(second).await;
        task.mutex_unlock(first).await;
    };
    machine.spawn(name, 0, body).expect("a valid nice")
}

#[test]
fn a_chain_leads_through_the_locks_to_who_can_run() {
    let mut machine = ideal(1, |_| ());
    let [a, b] = ["a", "b"].map(|name| machine.mutex(name));
    let owner = machine
        .spawn("owner", 10, move |task| async move {
            task.mutex_lock(b).await;
            task.sleep(3 * MS).await;
            task.run_kernel(5 * MS).await;
            task.mutex_unlock(b).await;
        })
        .expect("a valid nice");
    let middle = taker(&mut machine, "middle", 100_000, a, b);
    let last = machine
        .spawn("last", 0, move |task| async move {
            task.sleep(2 * MS).await;
            task.mutex_lock(a).await;
            task.mutex_unlock(a).await;
        })
        .expect("a valid nice");
    machine.run_until(2_500_000).expect("no rule is broken");
    let chain = |machine: &Machine, task| {
        let links = machine.wait_chain(task);
        let part = |link: &kernel_sim::WaitLink| (link.task, link.activity, link.since_ns);
        links.iter().map(part).collect::<Vec<_>>()
    };
    let expected = [
        (last, TaskActivity::WaitsFor(a.id()), 2 * MS),
        (middle, TaskActivity::WaitsFor(b.id()), 1_100_000),
        (owner, TaskActivity::Sleeps, 0),
    ];
    assert_eq!(chain(&machine, last), expected);

    // Awake, but another task has its CPU.
    machine
        .spawn_with(
            "rt",
            Policy::Fifo { priority: 1 }.into(),
            |task| async move {
                task.run_user(20 * MS).await;
            },
        )
        .expect("good options");
    machine.run_until(4 * MS).expect("no rule is broken");
    assert_eq!(
        chain(&machine, last)[2],
        (owner, TaskActivity::Queued, 3 * MS)
    );
    machine.run_until(60 * MS).expect("no rule is broken");
    assert_eq!(chain(&machine, last)[0].1, TaskActivity::Ended);
    assert!(machine.stuck().is_empty());
}

#[test]
fn a_spinner_is_a_link_as_well() {
    let mut machine = ideal(2, |_| ());
    let mutex = machine.mutex("mutex");
    let body = move |task: Task| async move {
        task.mutex_lock(mutex).await;
        task.run_kernel(MS).await;
        task.mutex_unlock(mutex).await;
    };
    let tasks = [0, 0].map(|nice| machine.spawn("task", nice, body).expect("a valid nice"));
    machine.run_until(500_000).expect("no rule is broken");
    let chain = machine.wait_chain(tasks[1]);
    assert_eq!(chain[0].activity, TaskActivity::SpinsOn(mutex.id()));
    assert_eq!(chain[1].activity, TaskActivity::Runs);
    assert_eq!(chain.len(), 2);
}

#[test]
fn a_deadlock_is_a_cycle_with_names() {
    for count in [2, 3, 5] {
        let mut machine = machine(|_| ());
        let locks: Vec<Mutex> = (0..count)
            .map(|number| machine.mutex(format!("lock {number}")))
            .collect();
        for number in 0..count {
            let (first, second) = (locks[number], locks[(number + 1) % count]);
            taker(&mut machine, &format!("task {number}"), 0, first, second);
        }
        let fault = machine.run_until(100 * MS).expect_err("it is a deadlock");
        assert!(fault.what.starts_with("deadlock: "), "{fault}");
        for number in 0..count {
            let next = (number + 1) % count;
            let link = format!("task {number} waits for lock {next}, which task {next} owns");
            assert!(fault.what.contains(&link), "{fault}");
        }
        assert!(fault.site.file.ends_with("waits.rs"), "{fault}");
    }
}

#[test]
fn spinlocks_taken_crosswise_are_a_deadlock_too() {
    let mut machine = ideal(2, |_| ());
    let locks = ["left", "right"].map(|name| machine.spin_lock(name));
    for (name, first, second) in [("a", 0, 1), ("b", 1, 0)] {
        let body = move |task: Task| async move {
            task.spin_lock_bh(locks[first]).await;
            task.run_kernel(10_000).await;
            task.spin_lock_bh(locks[second]).await;
        };
        machine.spawn(name, 0, body).expect("a valid nice");
    }
    let fault = machine.run_until(MS).expect_err("it is a deadlock");
    let what = "deadlock: b waits for left, which a owns, a waits for right, which b owns";
    assert_eq!(fault.what, what);
}

#[test]
fn a_deadlock_through_a_reader_is_found() {
    let mut machine = ideal(3, |_| ());
    let rw = machine.rw_lock("rw");
    let spin_lock = machine.spin_lock("spin");
    let reader = move |waits: bool| {
        move |task: Task| async move {
            task.read_lock(rw).await;
            task.run_kernel(10_000).await;
            if waits {
                task.spin_lock_bh(spin_lock).await;
            }
            task.run_kernel(50 * MS).await;
        }
    };
    machine
        .spawn("reader", 0, reader(false))
        .expect("a valid nice");
    machine
        .spawn("waiting reader", 0, reader(true))
        .expect("a valid nice");
    let writer = move |task: Task| async move {
        task.spin_lock_bh(spin_lock).await;
        task.run_kernel(20_000).await;
        task.write_lock(rw).await;
    };
    machine.spawn("writer", 0, writer).expect("a valid nice");
    let fault = machine.run_until(MS).expect_err("it is a deadlock");
    let link = "writer waits for rw, which waiting reader owns";
    assert!(fault.what.contains(link), "{fault}");
}

#[test]
fn who_waits_for_an_owner_that_has_gone_for_good_is_stuck() {
    let mut machine = ideal(1, |_| ());
    let mutex = machine.mutex("mutex");
    machine
        .spawn("owner", 0, move |task| async move {
            task.mutex_lock(mutex).await;
            // Nobody ever wakes it.
            core::future::pending::<()>().await;
        })
        .expect("a valid nice");
    let fault = machine
        .run_until(MS)
        .expect_err("it never asks for anything");
    assert!(fault.what.contains("awaits something"), "{fault}");
}

#[test]
fn a_task_that_gets_its_share_does_not_starve() {
    let mut machine = machine(|_| ());
    for nice in [-19, 0, 10, 19] {
        machine.spawn("task", nice, spin).expect("a valid nice");
    }
    for step in 1..=2_000 {
        machine.run_until(step * MS).expect("no rule is broken");
        assert!(machine.starving().is_empty(), "{:?}", machine.starving());
    }
}

#[test]
fn a_task_behind_a_long_section_starves_and_says_so() {
    let mut machine = ideal(1, |_| ());
    let lock = machine.spin_lock("lock");
    machine
        .spawn("hog", 0, move |task| async move {
            task.spin_lock_bh(lock).await;
            task.run_kernel(50 * MS).await;
            task.spin_unlock_bh(lock).await;
            spin(task).await;
        })
        .expect("a valid nice");
    let victim = machine.spawn("victim", 0, spin).expect("a valid nice");
    machine.run_until(20 * MS).expect("no rule is broken");
    let starving = machine.starving();
    assert_eq!(starving.len(), 1);
    // Half of the 20 ms are the victim's; up to the last tick they are accounted.
    assert_eq!(starving[0].task, victim);
    assert_eq!(
        (starving[0].owed_ns, starving[0].bound_ns),
        (10 * MS, 2_700_000)
    );
    machine.run_until(200 * MS).expect("no rule is broken");
    assert!(machine.starving().is_empty());
}
