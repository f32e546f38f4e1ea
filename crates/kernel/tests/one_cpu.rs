//! Conformance on one CPU: whole machines whose outcome follows by hand from
//! the rules.

mod common;

use common::{events, machine, of, spinner as spin};
use kernel_sim::{
    Acquired, Event, EventKind, Hrtick, Machine, OutReason, Preemption, Sink, TaskId,
};

#[test]
fn cpu_time_is_shared_by_weight() {
    let mut machine = machine(|_| ());
    let tasks = [
        (-19, 98.0),
        (0, 1.40),
        (10, 0.150),
        (10, 0.150),
        (10, 0.150),
        (10, 0.150),
    ]
    .map(|(nice, percent)| (spin(&mut machine, "task", nice), percent));
    machine
        .run_until(60_000_000_000)
        .expect("no rule is broken");
    for (task, percent) in tasks {
        let share = machine.cpu_time_ns(task) as f64 / 60_000_000_000.0 * 100.0;
        // One slice more or less is 0.0012 %.
        assert!((share - percent).abs() < 0.02, "{share} {percent}");
    }
}

#[test]
fn a_preempted_owner_is_away_for_nine_or_ten_slices_of_the_spinner() {
    let mut machine = machine(|_| ());
    let owner = spin(&mut machine, "owner", 10);
    spin(&mut machine, "spinner", 0);
    machine.run_until(1_000_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    let outs = of(&events, owner, EventKind::SwitchOut);
    let ins = of(&events, owner, EventKind::SwitchIn);
    // The first slice after a fork is a half one.
    for out in &outs[1..] {
        assert_eq!(OutReason::from_aux(out.aux), OutReason::Preempted);
        let Some(back) = ins.iter().find(|back| back.at_ns > out.at_ns) else {
            continue;
        };
        let away_ns = back.at_ns - out.at_ns;
        // Nine slices, or up to the first tick after it has become eligible
        // (6.516 ms): a spinner that is picked again has no slice-end timer.
        assert!((6_290_000..=7_520_000).contains(&away_ns), "{away_ns}");
    }
    assert!(outs.len() > 100);
}

#[test]
fn slices_end_precisely_with_the_timer_and_at_ticks_without() {
    for (hrtick, range_ns) in [
        (Hrtick::On, 700_000..=705_000),
        (Hrtick::Off, 999_000..=1_002_000),
    ] {
        let mut machine = machine(|config| config.hrtick = hrtick);
        let tasks = [spin(&mut machine, "a", 0), spin(&mut machine, "b", 0)];
        machine.run_until(100_000_000).expect("no rule is broken");
        let events = events(&mut machine);
        let ins = of(&events, tasks[0], EventKind::SwitchIn);
        let outs = of(&events, tasks[0], EventKind::SwitchOut);
        let first_ns = outs[3].at_ns - ins[3].at_ns;
        assert!(range_ns.contains(&first_ns), "{hrtick:?}: {first_ns}");
    }
}

/// A task in a long kernel section, and one that wakes up meanwhile and would
/// preempt it. Returns how long after its wakeup the waking task runs.
fn wakeup_delay_ns(preempt: Preemption, hz: u32) -> u64 {
    let mut machine = machine(|config| {
        config.preempt = preempt;
        config.hz = hz;
        config.hrtick = Hrtick::Off;
        config.base_slice_ns = 100_000;
    });
    let hog = |task: kernel_sim::Task| async move {
        loop {
            task.run_kernel(50_000_000).await;
            task.run_user(1_000).await;
        }
    };
    machine.spawn("hog", 0, hog).expect("a valid nice");
    let sleeper = |task: kernel_sim::Task| async move {
        loop {
            task.sleep(10_300_000).await;
            task.run_user(10_000).await;
        }
    };
    let sleeper = machine
        .spawn("sleeper", -10, sleeper)
        .expect("a valid nice");
    machine.run_until(12_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    let wakes = of(&events, sleeper, EventKind::Wake);
    let after = |event: &&Event| event.at_ns >= wakes[0].at_ns;
    of(&events, sleeper, EventKind::SwitchIn)
        .iter()
        .find(after)
        .map_or(u64::MAX, |back| back.at_ns - wakes[0].at_ns)
}

#[test]
fn a_lazy_request_waits_for_the_tick_and_a_full_one_does_not() {
    assert!(wakeup_delay_ns(Preemption::Full, 1000) < 10_000);
    let lazy_ns = wakeup_delay_ns(Preemption::Lazy, 1000);
    assert!((500_000..=1_010_000).contains(&lazy_ns), "{lazy_ns}");
    assert_eq!(wakeup_delay_ns(Preemption::None, 1000), u64::MAX);
}

/// Two tasks that fight for a mutex over a section with preemption off, and a
/// spinner in between.
fn convoy(preempt: Preemption) -> (Machine, TaskId, TaskId) {
    let mut machine = machine(|config| config.preempt = preempt);
    let mutex = machine.mutex("mutex");
    let stream = machine.spin_lock("stream");
    let body = move |task: kernel_sim::Task| async move {
        loop {
            task.run_kernel(2_000).await;
            task.mutex_lock(mutex).await;
            task.spin_lock_bh(stream).await;
            task.run_kernel(16_000).await;
            task.spin_unlock_bh(stream).await;
            task.run_kernel(1_000).await;
            task.mutex_unlock(mutex).await;
        }
    };
    let low = machine.spawn("low", 10, body).expect("a valid nice");
    let high = machine.spawn("high", -5, body).expect("a valid nice");
    spin(&mut machine, "spinner", 0);
    machine.run_until(2_000_000_000).expect("no rule is broken");
    (machine, low, high)
}

#[test]
fn an_owner_is_preempted_where_the_stream_lock_is_released() {
    let (mut machine, low, _) = convoy(Preemption::Lazy);
    let events = events(&mut machine);
    let mut last = None;
    let mut trapped = 0;
    for event in events.iter().filter(|event| event.task == low) {
        let preempted = event.kind == EventKind::SwitchOut
            && OutReason::from_aux(event.aux) == OutReason::Preempted;
        if preempted && last == Some(EventKind::PreemptOn) {
            trapped += 1;
        }
        if matches!(event.kind, EventKind::PreemptOn | EventKind::LockAcquire) {
            last = Some(event.kind);
        } else if event.kind == EventKind::LockRelease && event.arg == 0 {
            last = None;
        }
    }
    assert!(trapped > 10, "{trapped}");
}

#[test]
fn a_mutex_has_one_owner_and_serves_waiters_in_order() {
    for preempt in [Preemption::Lazy, Preemption::Full, Preemption::None] {
        let (mut machine, ..) = convoy(preempt);
        let mut owner = None;
        let mut queue = Vec::new();
        let mut ways = [0; 4];
        let on_mutex = |event: &&Event| event.arg == 0;
        for event in events(&mut machine).iter().filter(on_mutex) {
            match event.kind {
                EventKind::LockAcquire => {
                    assert_eq!(owner, None, "two owners");
                    owner = Some(event.task);
                    let how = Acquired::from_aux(event.aux);
                    ways[how as usize] += 1;
                    if matches!(how, Acquired::Woken | Acquired::HandedOff) {
                        assert_eq!(queue.remove(0), event.task, "not the first waiter");
                    }
                }
                EventKind::LockRelease => assert_eq!(owner.take(), Some(event.task)),
                EventKind::LockWait => queue.push(event.task),
                _ => {}
            }
        }
        assert!(ways[Acquired::Fast as usize] > 0);
        if preempt != Preemption::None {
            assert!(ways[Acquired::HandedOff as usize] > 0, "{ways:?}");
        }
    }
}

#[test]
fn the_same_program_gives_the_same_trace_and_a_longer_run_begins_alike() {
    let hash_at = |until_ns| {
        let (machine, ..) = convoy(Preemption::Lazy);
        let mut again = convoy(Preemption::Lazy).0;
        assert_eq!(machine.trace_hash(), again.trace_hash());
        again.run_until(until_ns).expect("no rule is broken");
        (machine.trace_hash(), again.trace_hash())
    };
    let (before, after) = hash_at(2_100_000_000);
    assert_ne!(before, after);
    assert_eq!(hash_at(2_000_000_000).1, before);
}

#[test]
fn dropped_records_are_counted_and_hashed_like_kept_ones() {
    let run = |sink| {
        let (mut machine, ..) = convoy(Preemption::Lazy);
        events(&mut machine);
        machine.set_sink(sink);
        let more_ns = machine.now_ns() + 50_000_000;
        machine.run_until(more_ns).expect("no rule is broken");
        let kept = events(&mut machine).len();
        ((machine.event_count(), machine.trace_hash()), kept)
    };
    let (dropped, none) = run(Sink::None);
    let (kept, all) = run(Sink::Keep);
    assert_eq!(dropped, kept);
    assert_eq!(none, 0);
    assert!(all > 100, "{all}");
}

#[test]
fn stepping_in_small_parts_gives_the_same_trace() {
    let run = |step_ns: u64| {
        let mut machine = machine(|_| ());
        spin(&mut machine, "a", 0);
        spin(&mut machine, "b", 3);
        let mut at_ns = 0;
        while at_ns < 50_000_000 {
            at_ns += step_ns;
            machine
                .run_until(at_ns.min(50_000_000))
                .expect("no rule is broken");
        }
        (machine.event_count(), machine.trace_hash())
    };
    assert_eq!(run(50_000_000), run(333));
}

#[test]
fn a_broken_rule_names_task_lock_and_line() {
    let mut machine = machine(|_| ());
    let mutex = machine.mutex("acomp_ctx.mutex");
    let thief = move |task: kernel_sim::Task| async move {
        task.mutex_unlock(mutex).await;
    };
    machine.spawn("thief", 0, thief).expect("a valid nice");
    let fault = machine.run_until(1_000_000).expect_err("not the owner");
    let text = fault.to_string();
    assert!(
        text.contains("thief") && text.contains("acomp_ctx.mutex"),
        "{text}"
    );
    assert!(text.contains("one_cpu.rs:"), "{text}");
}

#[test]
fn sleeping_with_preemption_off_and_leaving_with_a_lock_are_faults() {
    let fault_of = |body: fn(kernel_sim::Task, kernel_sim::SpinLock) -> Body| {
        let mut machine = machine(|_| ());
        let lock = machine.spin_lock("stream");
        machine
            .spawn("task", 0, move |task| body(task, lock))
            .expect("a valid nice");
        machine
            .run_until(1_000_000)
            .expect_err("a rule is broken")
            .what
    };
    let sleeps = fault_of(|task, lock| {
        Box::pin(async move {
            task.spin_lock_bh(lock).await;
            task.sleep(10).await;
        })
    });
    assert!(sleeps.contains("sleeps with preemption off"), "{sleeps}");
    let leaves = fault_of(|task, lock| Box::pin(async move { task.spin_lock_bh(lock).await }));
    assert!(leaves.contains("ends while it holds stream"), "{leaves}");
}

type Body = std::pin::Pin<Box<dyn Future<Output = ()>>>;

#[test]
fn a_nice_of_25_is_refused() {
    let refused = machine(|_| ()).spawn("task", 25, |_| async {});
    assert_eq!(
        refused.expect_err("out of range").to_string(),
        "nice is 25; it takes -20 to 19"
    );
}
