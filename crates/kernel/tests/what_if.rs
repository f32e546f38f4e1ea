//! What if mutexes worked otherwise: handoff, spinning, inheritance, proxies.

mod common;

use common::{events, ideal, of, spin, spinner, times};
use kernel_sim::{
    Acquired, Event, EventKind, Inheritance, Machine, MachineConfig, Policy, Task, TaskId,
};

const MS: u64 = 1_000_000;

/// The inversion: `low` owns the mutex, `high` wants it from 1 ms on, `middle`
/// computes all the time. How long `high` waits.
fn inversion_ns(edit: impl FnOnce(&mut MachineConfig), high: Policy) -> u64 {
    let mut machine = ideal(1, edit);
    let mutex = machine.mutex("mutex");
    machine
        .spawn("low", 19, move |task| async move {
            task.mutex_lock(mutex).await;
            task.run_kernel(10 * MS).await;
            task.mutex_unlock(mutex).await;
            spin(task).await;
        })
        .expect("a valid nice");
    let high = machine
        .spawn_with("high", high.into(), move |task| async move {
            task.sleep(MS).await;
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("good options");
    spinner(&mut machine, "middle", 0);
    machine.run_until(2_000 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    times(&events, high, EventKind::LockAcquire)[0] - MS
}

fn inheriting(inheritance: Inheritance) -> impl FnOnce(&mut MachineConfig) {
    move |config| config.mutex.inheritance = inheritance
}

#[test]
fn inheritance_and_proxies_end_a_priority_inversion() {
    for high in [Policy::Normal { nice: -20 }, Policy::Fifo { priority: 9 }] {
        // 15 of 1039 are low's: 10 ms take some 700 ms.
        let off_ns = inversion_ns(inheriting(Inheritance::Off), high);
        assert!(off_ns > 500 * MS, "{off_ns}");
        // Boosted, or in high's own turns, low has its CPU but for a slice.
        for inheritance in [Inheritance::Priority, Inheritance::Proxy] {
            let ns = inversion_ns(inheriting(inheritance), high);
            assert!(
                (9 * MS..=13 * MS).contains(&ns),
                "{inheritance} {high:?} {ns}"
            );
        }
    }
}

#[test]
fn what_was_inherited_goes_with_the_last_waiter() {
    let mut machine = ideal(1, inheriting(Inheritance::Priority));
    let mutex = machine.mutex("mutex");
    let low = machine
        .spawn("low", 10, move |task| async move {
            task.mutex_lock(mutex).await;
            task.run_kernel(5 * MS).await;
            task.mutex_unlock(mutex).await;
            spin(task).await;
        })
        .expect("a valid nice");
    for nice in [0, -10] {
        machine
            .spawn("waiter", nice, move |task| async move {
                task.sleep(MS).await;
                task.mutex_lock(mutex).await;
                task.run_kernel(MS).await;
                task.mutex_unlock(mutex).await;
            })
            .expect("a valid nice");
    }
    machine.run_until(100 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    let reweights = of(&events, low, EventKind::Reweight);
    let weights: Vec<u64> = reweights.iter().map(|event| event.arg).collect();
    // Whichever came first; in the end its own again.
    assert!(weights.contains(&9548), "{weights:?}");
    assert_eq!(weights.last(), Some(&110));
    let released = times(&events, low, EventKind::LockRelease)[0];
    assert_eq!(reweights.last().map(|event| event.at_ns), Some(released));
    // The more important waiter went first.
    let acquired = |task| times(&events, TaskId(task), EventKind::LockAcquire)[0];
    assert!(acquired(2) < acquired(1));
}

#[test]
fn inheritance_goes_through_chains() {
    let mut machine = ideal(1, inheriting(Inheritance::Priority));
    let [a, b] = ["a", "b"].map(|name| machine.mutex(name));
    let low = machine
        .spawn("low", 19, move |task| async move {
            task.mutex_lock(a).await;
            task.run_kernel(10 * MS).await;
            task.mutex_unlock(a).await;
        })
        .expect("a valid nice");
    machine
        .spawn("middle", 0, move |task| async move {
            task.sleep(MS).await;
            task.mutex_lock(b).await;
            task.mutex_lock(a).await;
            task.mutex_unlock(a).await;
            task.mutex_unlock(b).await;
        })
        .expect("a valid nice");
    machine
        .spawn("high", -20, move |task| async move {
            task.sleep(2 * MS).await;
            task.mutex_lock(b).await;
            task.mutex_unlock(b).await;
        })
        .expect("a valid nice");
    machine.run_until(100 * MS).expect("no rule is broken");
    let reweights = of(&events(&mut machine), low, EventKind::Reweight);
    let weights: Vec<u64> = reweights.iter().map(|event| event.arg).collect();
    assert_eq!(weights, [1024, 88_761, 15]);
}

#[test]
fn a_donor_is_accounted_for_the_owner_and_is_handed_the_mutex() {
    let mut machine = ideal(1, inheriting(Inheritance::Proxy));
    let mutex = machine.mutex("mutex");
    let low = machine
        .spawn("low", 19, move |task| async move {
            task.mutex_lock(mutex).await;
            task.run_kernel(10 * MS).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    let high = machine
        .spawn("high", -20, move |task| async move {
            task.sleep(MS).await;
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    spinner(&mut machine, "middle", 0);
    machine.run_until(100 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    let lent = of(&events, low, EventKind::Donor);
    assert!(!lent.is_empty());
    assert!(lent.iter().all(|event| event.arg == u64::from(high.0)));
    let acquired = of(&events, high, EventKind::LockAcquire)[0];
    assert_eq!(Acquired::from_aux(acquired.aux), Acquired::HandedOff);
    assert!(machine.cpu_time_ns(high) > 8 * MS, "the donor pays");
    assert!(machine.cpu_time_ns(low) < 2 * MS);
}

#[test]
fn a_donor_follows_an_owner_to_its_cpu_and_leaves_one_that_sleeps() {
    for sleeps in [false, true] {
        let mut machine = ideal(2, inheriting(Inheritance::Proxy));
        let mutex = machine.mutex("mutex");
        machine
            .spawn("owner", 10, move |task| async move {
                task.mutex_lock(mutex).await;
                if sleeps {
                    task.sleep(5 * MS).await;
                }
                task.run_kernel(5 * MS).await;
                task.mutex_unlock(mutex).await;
            })
            .expect("a valid nice");
        let waiter = machine
            .spawn("waiter", -10, move |task| async move {
                task.sleep(MS).await;
                task.mutex_lock(mutex).await;
                task.mutex_unlock(mutex).await;
            })
            .expect("a valid nice");
        for nice in [0, 0] {
            spinner(&mut machine, "hog", nice);
        }
        machine.run_until(200 * MS).expect("no rule is broken");
        let got = times(&events(&mut machine), waiter, EventKind::LockAcquire);
        assert_eq!(got.len(), 1);
        // Once it has stopped lending it is an ordinary waiter, and the owner
        // has its own weight of 110 against 1024.
        let lent = got[0] < 20 * MS;
        assert_eq!(lent, !sleeps, "{got:?}");
    }
}

/// Two tasks on a CPU that fight for a mutex; the second one always finds the
/// first one ahead. How the second came by it.
fn ways(machine: &mut Machine) -> (Vec<Event>, TaskId) {
    let mutex = machine.mutex("mutex");
    let greedy = |task: Task| async move {
        loop {
            task.mutex_lock(mutex).await;
            task.run_kernel(100_000).await;
            task.mutex_unlock(mutex).await;
        }
    };
    machine.spawn("greedy", 0, greedy).expect("a valid nice");
    let modest = machine
        .spawn("modest", 0, move |task| async move {
            task.sleep(50_000).await;
            loop {
                task.mutex_lock(mutex).await;
                task.mutex_unlock(mutex).await;
                task.sleep(50_000).await;
            }
        })
        .expect("a valid nice");
    machine.run_until(500 * MS).expect("no rule is broken");
    (events(machine), modest)
}

#[test]
fn without_handoff_nobody_is_handed_a_mutex() {
    for handoff in [true, false] {
        let mut machine = ideal(1, |config| config.mutex.handoff = handoff);
        let (events, modest) = ways(&mut machine);
        let wanted = of(&events, modest, EventKind::LockHandoffWanted);
        assert_eq!(wanted.is_empty(), !handoff);
        let ways = of(&events, modest, EventKind::LockAcquire);
        let handed = |event: &&Event| Acquired::from_aux(event.aux) == Acquired::HandedOff;
        assert_eq!(ways.iter().any(|event| handed(&event)), handoff);
    }
}

#[test]
fn without_spinning_a_waiter_sleeps_although_the_owner_runs() {
    for spinning in [true, false] {
        let mut machine = ideal(2, |config| config.mutex.spinning = spinning);
        let (events, _) = ways(&mut machine);
        let spun = events.iter().any(|event| event.kind == EventKind::LockSpin);
        assert_eq!(spun, spinning);
        let waited = events.iter().any(|event| event.kind == EventKind::LockWait);
        assert!(waited || spinning);
    }
}
