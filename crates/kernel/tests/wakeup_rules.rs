//! The rules that were read off a running kernel (scheduler reference, verified,
//! section 4), one test each. W7, the background threads, is in
//! `tests/background.rs`.

mod common;

use common::{events, ideal, machine, of, spin, spinner, times};
use kernel_sim::{
    Event, EventKind, Hrtick, Machine, OutReason, Policy, Preemption, TaskId, TaskOptions,
};

const MS: u64 = 1_000_000;

fn run(machine: &mut Machine, to_ns: u64) -> Vec<Event> {
    machine.run_until(to_ns).expect("no rule is broken");
    events(machine)
}

/// W1: in a convoy every unlock wakes the first waiter, but only the first of
/// these wakeups does anything.
#[test]
fn w1_waking_a_task_that_is_runnable_does_nothing() {
    let mut machine = ideal(1, |_| ());
    let mutex = machine.mutex("mutex");
    let owner = machine
        .spawn("owner", 0, move |task| async move {
            task.mutex_lock(mutex).await;
            // The waiter runs meanwhile, and queues.
            task.sleep(MS).await;
            for _ in 0..5 {
                task.mutex_unlock(mutex).await;
                task.run_kernel(10_000).await;
                task.mutex_lock(mutex).await;
                task.run_kernel(10_000).await;
            }
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    let waiter = machine
        .spawn("waiter", 0, move |task| async move {
            task.sleep(MS / 2).await;
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    let events = run(&mut machine, 2 * MS);
    let releases = times(&events, owner, EventKind::LockRelease);
    assert_eq!(releases.len(), 6);
    let wakes = times(&events, waiter, EventKind::Wake);
    assert_eq!(wakes, [MS / 2, releases[0]]);
    for &at_ns in &releases[1..5] {
        let then: Vec<EventKind> = events
            .iter()
            .filter(|event| event.at_ns == at_ns)
            .map(|event| event.kind)
            .collect();
        // No accounting, no placement, no request: the release alone, and what
        // ends the slow path.
        let expected = [
            EventKind::PreemptOff,
            EventKind::LockRelease,
            EventKind::PreemptOn,
        ];
        assert_eq!(then, expected, "at {at_ns} ns");
    }
}

/// A spinner of nice 0 beside one of nice 10. The heavier one is picked again and
/// again while the lighter works off a slice: 0.7 ms × 1024 / 110 = 6.5 ms.
fn lopsided(hrtick: Hrtick) -> (Vec<Event>, TaskId) {
    let mut machine = ideal(1, |config| config.hrtick = hrtick);
    let heavy = spinner(&mut machine, "heavy", 0);
    spinner(&mut machine, "light", 10);
    (run(&mut machine, 40 * MS), heavy)
}

/// The records of the third stretch of a task on its CPU.
fn third_stretch(events: &[Event], task: TaskId) -> Vec<Event> {
    let from = of(events, task, EventKind::SwitchIn)[2].at_ns;
    let to = times(events, task, EventKind::SwitchOut)
        .into_iter()
        .find(|&at_ns| at_ns > from)
        .expect("it is switched out");
    let within = |event: &&Event| (from..to).contains(&event.at_ns);
    events.iter().filter(within).copied().collect()
}

/// W2: a task that is picked again gets neither protection nor a slice-end timer,
/// so that it is looked at again only at ticks.
#[test]
fn w2_a_repicked_task_runs_on_to_the_next_tick() {
    let (events, heavy) = lopsided(Hrtick::On);
    let stretch = third_stretch(&events, heavy);
    let hrticks = times(&stretch, heavy, EventKind::Hrtick);
    assert_eq!(
        hrticks.len(),
        1,
        "only for the slice it was switched in with"
    );
    let repicks = times(&stretch, heavy, EventKind::Repick);
    assert_eq!(repicks[0], hrticks[0]);
    assert!(repicks.len() >= 4, "{repicks:?}");
    assert!(
        repicks[1..].iter().all(|at_ns| at_ns % MS == 0),
        "{repicks:?}"
    );
}

/// W2's other side: v7.4 sets the timer at a repick as well.
#[test]
fn w2_from_v7_4_a_repicked_task_gets_its_timer() {
    let (events, heavy) = lopsided(Hrtick::Repick);
    let stretch = third_stretch(&events, heavy);
    let hrticks = times(&stretch, heavy, EventKind::Hrtick);
    assert!(hrticks.len() >= 8, "{hrticks:?}");
    let apart = hrticks.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(apart.into_iter().all(|ns| ns == 700_000), "{hrticks:?}");
}

/// W3: a real enqueue arms the timer if none is pending, for the current task.
#[test]
fn w3_an_enqueue_arms_a_timer_that_is_not_pending() {
    let mut machine = ideal(1, |_| ());
    machine
        .spawn("sleeper", 0, |task| async move {
            task.sleep(2_500_000).await;
            task.run_user(10 * MS).await;
        })
        .expect("a valid nice");
    // Alone, it has no timer; its deadlines are renewed at ticks.
    let hog = spinner(&mut machine, "hog", 0);
    let events = run(&mut machine, 4 * MS);
    // The first is the one set for the sleeper's half slice. Then the hog's
    // slices of 0.7 ms began at the ticks of 1 and 2 ms.
    let hrticks = times(&events, hog, EventKind::Hrtick);
    assert_eq!(hrticks, [350_000, 2_700_000]);
}

/// W3: a switch to the only task leaves the former task's timer running.
#[test]
fn w3_a_timer_outlives_the_task_it_was_set_for() {
    let fired = |idles: bool| {
        let mut machine = ideal(1, |_| ());
        let first = machine
            .spawn("first", 0, move |task| async move {
                if idles {
                    task.run_user(400_000).await;
                    task.sleep(20 * MS).await;
                }
                spin(task).await;
            })
            .expect("a valid nice");
        machine
            .spawn("second", 0, |task| async move {
                // Half a slice behind the first it is eligible, and leaves.
                task.run_user(200_000).await;
                task.sleep(50 * MS).await;
            })
            .expect("a valid nice");
        let events = run(&mut machine, MS - 1);
        times(&events, first, EventKind::Hrtick)
    };
    // The second task came in at 0.35 ms, for half a slice, and left at 0.55 ms.
    assert_eq!(fired(false), [350_000, 700_000]);
    assert_eq!(fired(true), [350_000], "going idle at 0.6 ms cancels it");
}

/// W3: waking a sleeper that is still queued is no enqueue, and arms nothing.
#[test]
fn w3_waking_a_delayed_sleeper_arms_nothing() {
    let hrticks_after = |delayed: bool| {
        let mut machine = ideal(1, |_| ());
        machine
            .spawn("sleeper", 0, move |task| async move {
                // After 0.2 ms it has had more than its share, and is delayed.
                task.run_user(if delayed { 200_000 } else { 0 }).await;
                task.sleep(200_000).await;
                spin(task).await;
            })
            .expect("a valid nice");
        let hog = machine
            .spawn("hog", 0, |task| async move {
                task.run_kernel(5 * MS).await;
            })
            .expect("a valid nice");
        let events = run(&mut machine, MS - 1);
        let woken = times(&events, TaskId(0), EventKind::Wake)[0];
        let delays = of(&events, TaskId(0), EventKind::DelayDequeue).len();
        assert_eq!(delays == 1, delayed);
        times(&events, hog, EventKind::Hrtick)
            .iter()
            .filter(|&&at_ns| at_ns > woken)
            .count()
    };
    // The hog was switched in while the delayed sleeper was queued: its own
    // timer fires. Nothing else does.
    assert_eq!(hrticks_after(true), 1);
    assert_eq!(hrticks_after(false), 1);
}

/// W4: whenever the timer fires, the deadline has been reached.
#[test]
fn w4_the_timer_never_fires_before_the_deadline() {
    let mut machine = machine(|_| ());
    for nice in [-19, 0, 3, 10, 10] {
        spinner(&mut machine, "spinner", nice);
    }
    let events = run(&mut machine, 3_000 * MS);
    let mut fired = 0;
    for (index, hrtick) in events.iter().enumerate() {
        if hrtick.kind != EventKind::Hrtick {
            continue;
        }
        fired += 1;
        let renewed = events[index..]
            .iter()
            .take_while(|event| event.at_ns == hrtick.at_ns)
            .any(|event| event.kind == EventKind::Deadline && event.task == hrtick.task);
        assert!(renewed, "at {} ns", hrtick.at_ns);
    }
    assert!(fired > 100);
}

/// W5: the preemption check at a wakeup finishes a delayed dequeue.
#[test]
fn w5_a_wakeup_finishes_delayed_dequeues() {
    let mut machine = ideal(1, |_| ());
    let woken = machine
        .spawn("woken", 0, |task| async move {
            task.sleep(500_000).await;
            spin(task).await;
        })
        .expect("a valid nice");
    let delayed = machine
        .spawn("delayed", 0, |task| async move {
            // v = 0.2 ms against V = 0.1 ms: not eligible.
            task.run_user(200_000).await;
            task.sleep(50 * MS).await;
        })
        .expect("a valid nice");
    spinner(&mut machine, "hog", 0);
    let events = run(&mut machine, MS);
    // At 0.5 ms the hog has v = 0.3 ms and V is 0.25 ms: the hog is not
    // eligible, the delayed sleeper is, and it is picked before the woken task.
    assert_eq!(times(&events, woken, EventKind::Wake), [500_000]);
    assert_eq!(times(&events, delayed, EventKind::FinishDequeue), [500_000]);
}

/// W6: full preemption switches inside the unlock, when the mutex is gone.
#[test]
fn w6_full_preemption_switches_inside_the_unlock() {
    let mut machine = machine(|config| config.preempt = Preemption::Full);
    let mutex = machine.mutex("mutex");
    let low = machine
        .spawn("low", 10, move |task| async move {
            task.mutex_lock(mutex).await;
            task.run_kernel(3 * MS).await;
            task.mutex_unlock(mutex).await;
            task.run_kernel(MS).await;
        })
        .expect("a valid nice");
    let high = machine
        .spawn("high", -10, move |task| async move {
            task.sleep(MS).await;
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    let events = run(&mut machine, 20 * MS);
    let released = times(&events, low, EventKind::LockRelease)[0];
    let outs = of(&events, low, EventKind::SwitchOut);
    let out = outs.iter().find(|out| out.at_ns >= released);
    let out = out.expect("it is switched out");
    assert_eq!(OutReason::from_aux(out.aux), OutReason::Preempted);
    // The wakeup alone lies between the release and the switch.
    assert_eq!(out.at_ns - released, 750);
    assert!(times(&events, high, EventKind::LockAcquire)[0] > out.at_ns);
}

/// W6: a request that comes inside the slow path of the lock is honoured right
/// after the acquisition.
#[test]
fn w6_a_waiter_can_be_switched_out_right_after_it_got_the_mutex() {
    let mut machine = ideal(1, |config| config.switch_ns = 2_000);
    let mutex = machine.mutex("mutex");
    machine
        .spawn("owner", 0, move |task| async move {
            task.mutex_lock(mutex).await;
            let now_ns = task.now_ns();
            task.sleep(2 * MS - now_ns).await;
            task.mutex_unlock(mutex).await;
            task.sleep(50 * MS).await;
        })
        .expect("a valid nice");
    let waiter = machine
        .spawn("waiter", 0, move |task| async move {
            task.sleep(MS).await;
            task.mutex_lock(mutex).await;
            task.run_kernel(MS).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    // The owner is back at 2.002 ms, unlocks and sleeps; the waiter's switch in
    // lasts to 2.004 ms. In between the real-time task wakes up.
    let options = TaskOptions::from(Policy::Fifo { priority: 1 });
    machine
        .spawn_with("real-time", options, |task| async move {
            let now_ns = task.now_ns();
            task.sleep(2_003_000 - now_ns).await;
            task.run_kernel(10_000).await;
        })
        .expect("a valid priority");
    let events = run(&mut machine, 10 * MS);
    let acquired = times(&events, waiter, EventKind::LockAcquire)[0];
    let outs = of(&events, waiter, EventKind::SwitchOut);
    let out = outs.iter().find(|out| out.at_ns >= acquired);
    let out = out.expect("it is switched out");
    assert_eq!(out.at_ns, acquired);
    assert_eq!(OutReason::from_aux(out.aux), OutReason::Preempted);
    assert!(times(&events, waiter, EventKind::LockRelease)[0] > out.at_ns);
}
