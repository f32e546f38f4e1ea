//! Policies, slices and affinities: who runs before whom.

mod common;

use common::{events, ideal, machine, of, spin, spinner, times};
use kernel_sim::{
    CpuId, CpuMask, EventKind, Machine, MachineConfig, Policy, Preemption, SliceProtection,
    SpawnError, Task, TaskId, TaskOptions,
};

const MS: u64 = 1_000_000;

fn spawn(machine: &mut Machine, options: impl Into<TaskOptions>) -> TaskId {
    machine
        .spawn_with("task", options.into(), spin)
        .expect("good options")
}

/// A task that sleeps, then runs in user mode for ever.
fn spawn_at(machine: &mut Machine, at_ns: u64, options: impl Into<TaskOptions>) -> TaskId {
    let body = move |task: Task| async move {
        task.sleep(at_ns).await;
        spin(task).await;
    };
    machine
        .spawn_with("late", options.into(), body)
        .expect("good options")
}

/// How long after its wakeup at `at_ns` a task runs.
fn delay_ns(machine: &mut Machine, task: TaskId, at_ns: u64, until_ns: u64) -> Option<u64> {
    machine.run_until(until_ns).expect("no rule is broken");
    let ins = times(&events(machine), task, EventKind::SwitchIn);
    let back = ins.into_iter().find(|&in_ns| in_ns >= at_ns);
    back.map(|in_ns| in_ns - at_ns)
}

#[test]
fn a_real_time_task_runs_at_once_and_until_it_blocks() {
    for preempt in [Preemption::Full, Preemption::Lazy] {
        let mut machine = ideal(1, |config| config.preempt = preempt);
        let real_time = machine
            .spawn_with(
                "rt",
                Policy::Fifo { priority: 1 }.into(),
                |task| async move {
                    task.sleep(300_000).await;
                    task.run_kernel(20 * MS).await;
                },
            )
            .expect("good options");
        let hog = machine
            .spawn("hog", -20, |task| async move {
                task.run_kernel(100 * MS).await;
            })
            .expect("a valid nice");
        machine.run_until(50 * MS).expect("no rule is broken");
        let events = events(&mut machine);
        assert_eq!(times(&events, real_time, EventKind::SwitchIn), [0, 300_000]);
        assert_eq!(times(&events, hog, EventKind::SwitchIn), [0, 20_300_000]);
        assert_eq!(machine.cpu_time_ns(real_time), 20 * MS);
    }
}

#[test]
fn fifo_goes_by_priority_and_within_one_by_the_order_of_coming() {
    let mut machine = ideal(1, |_| ());
    let mut tasks = Vec::new();
    for (at_ns, priority) in [(1_000, 10), (2_000, 10), (3_000, 50), (4_000, 49)] {
        let body = move |task: Task| async move {
            task.sleep(at_ns).await;
            task.run_user(MS).await;
        };
        let options = Policy::Fifo { priority }.into();
        tasks.push(
            machine
                .spawn_with("rt", options, body)
                .expect("good options"),
        );
    }
    machine.run_until(10 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    let ends: Vec<u64> = tasks
        .iter()
        .map(|&task| times(&events, task, EventKind::Exit)[0])
        .collect();
    // 50 preempts the first; 49 waits for it; the preempted one goes on before
    // the second of its priority.
    let expected = [3_001_000, 4_001_000, 1_003_000, 2_003_000];
    assert_eq!(ends, expected);
}

#[test]
fn a_real_time_task_avoids_a_cpu_with_a_more_important_one() {
    let mut machine = ideal(2, |_| ());
    let high = spawn(&mut machine, Policy::Fifo { priority: 60 });
    let low = spawn_at(&mut machine, MS, Policy::Fifo { priority: 50 });
    let fair = [0; 2].map(|nice| spinner(&mut machine, "fair", nice));
    machine.run_until(100 * MS).expect("no rule is broken");
    for (task, at_least_ns) in [(high, 99 * MS), (low, 98 * MS)] {
        assert!(machine.cpu_time_ns(task) >= at_least_ns);
    }
    let left: u64 = fair.iter().map(|&task| machine.cpu_time_ns(task)).sum();
    assert!(left <= 2 * MS, "{left}");
}

#[test]
fn an_idle_task_has_three_shares_and_gives_way_to_everybody() {
    let mut machine = ideal(1, |_| ());
    let idle = spawn(&mut machine, Policy::Idle);
    spinner(&mut machine, "normal", 0);
    machine.run_until(10_000 * MS).expect("no rule is broken");
    // 3 of 1027, and one slice more or less.
    let (time_ns, share_ns) = (machine.cpu_time_ns(idle), 10_000 * MS * 3 / 1027);
    assert!(time_ns.abs_diff(share_ns) <= MS, "{time_ns} {share_ns}");

    let delay = |running: Policy, woken: Policy| {
        let mut machine = ideal(1, |_| ());
        let task = spawn_at(&mut machine, 5_100_000, woken);
        spawn(&mut machine, running);
        delay_ns(&mut machine, task, 5_100_000, 9 * MS)
    };
    let nice_0 = Policy::Normal { nice: 0 };
    // Whoever is not idle preempts who is, on its way back to user mode; the
    // others wait for the end of the slice that began at the last tick.
    assert_eq!(delay(Policy::Idle, nice_0), Some(0));
    assert_eq!(delay(Policy::Idle, Policy::Batch { nice: 0 }), Some(0));
    assert_eq!(delay(nice_0, nice_0), Some(600_000));
    assert_eq!(delay(nice_0, Policy::Batch { nice: -20 }), Some(600_000));
    assert!(delay(nice_0, Policy::Idle) >= Some(600_000));
}

#[test]
fn a_cpu_with_only_idle_tasks_counts_as_idle_for_a_wakeup() {
    let mut machine = ideal(2, |_| ());
    let late = spawn_at(&mut machine, 20 * MS, Policy::Normal { nice: 0 });
    for policy in [Policy::Normal { nice: 0 }, Policy::Idle] {
        spawn(&mut machine, policy);
    }
    assert_eq!(delay_ns(&mut machine, late, 20 * MS, 30 * MS), Some(0));
}

/// A spinner of nice 0 alone with its deadlines at ticks, and one with a slice of
/// its own that wakes up at 5.1 ms. How long it waits.
fn short_slice_waits_ns(protection: SliceProtection, slice_ns: u64) -> Option<u64> {
    let mut machine = ideal(1, |config| config.protection = protection);
    let short = TaskOptions {
        slice_ns: Some(slice_ns),
        ..TaskOptions::from(Policy::Normal { nice: 0 })
    };
    let task = spawn_at(&mut machine, 5_100_000, short);
    spawn(&mut machine, Policy::Normal { nice: 0 });
    delay_ns(&mut machine, task, 5_100_000, 9 * MS)
}

#[test]
fn a_shorter_slice_preempts_a_protected_task_and_an_equal_one_does_not() {
    for protection in [
        SliceProtection::MinSlice,
        SliceProtection::WhileEligible,
        SliceProtection::WhileEligibleMinSlice,
    ] {
        assert_eq!(short_slice_waits_ns(protection, 100_000), Some(0));
        assert_eq!(short_slice_waits_ns(protection, 700_000), Some(600_000));
    }
}

#[test]
fn a_queued_shorter_slice_limits_the_protection_as_the_version_says() {
    // Both start at v = 0. The long one's half slice lasts 0.35 ms, its full ones
    // 0.7 ms; the short one's slice is 0.2 ms, its first one 0.1 ms.
    let long_runs_ns = |protection| {
        let mut machine = ideal(1, |config| {
            config.protection = protection;
            config.hrtick = kernel_sim::Hrtick::Off;
            config.hz = 10_000;
        });
        let long = spawn(&mut machine, Policy::Normal { nice: 0 });
        let short = TaskOptions {
            slice_ns: Some(200_000),
            ..TaskOptions::from(Policy::Normal { nice: 0 })
        };
        spawn(&mut machine, short);
        machine.run_until(20 * MS).expect("no rule is broken");
        let events = events(&mut machine);
        let ins = times(&events, long, EventKind::SwitchIn);
        let outs = times(&events, long, EventKind::SwitchOut);
        ins.iter()
            .zip(&outs)
            .skip(2)
            .map(|(from_ns, to_ns)| to_ns - from_ns)
            .max()
            .expect("it was switched in more than twice")
    };
    // To the deadline; for one short slice; while it is not ahead of the other.
    let deadline = long_runs_ns(SliceProtection::Deadline);
    let min_slice = long_runs_ns(SliceProtection::MinSlice);
    let eligible = long_runs_ns(SliceProtection::WhileEligible);
    let both = long_runs_ns(SliceProtection::WhileEligibleMinSlice);
    assert!(deadline >= 600_000, "{deadline}");
    assert!(min_slice <= 300_000, "{min_slice}");
    assert!(
        both <= min_slice && eligible <= deadline,
        "{eligible} {both}"
    );
}

#[test]
fn v6_12_ends_slices_at_ticks_and_protects_to_the_deadline() {
    let mut machine = machine(|config| {
        *config = MachineConfig {
            checks: true,
            ..MachineConfig::v6_12()
        };
    });
    let tasks = [0; 2].map(|nice| spinner(&mut machine, "task", nice));
    machine.run_until(100 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    assert!(of(&events, tasks[0], EventKind::Hrtick).is_empty());
    let outs = times(&events, tasks[0], EventKind::SwitchOut);
    // Seen at a tick, and carried out at the end of its interrupt.
    assert!(outs.iter().all(|at_ns| at_ns % MS < 10_000), "{outs:?}");
}

#[test]
fn a_task_stays_on_the_cpus_it_may_use() {
    let mut machine = ideal(4, |_| ());
    let pinned = TaskOptions {
        cpus_allowed: CpuMask::only(3),
        ..TaskOptions::from(Policy::Normal { nice: 0 })
    };
    let tasks = [(); 3].map(|()| spawn(&mut machine, pinned));
    spawn_at(&mut machine, MS, pinned);
    machine.run_until(500 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    assert!(events.iter().all(|event| event.kind != EventKind::Migrate));
    assert!(
        tasks
            .iter()
            .all(|&task| machine.cpu_time_ns(task) > 100 * MS)
    );
    let elsewhere = TaskOptions {
        cpus_allowed: CpuMask::only(4),
        ..pinned
    };
    let refused = machine.spawn_with("nowhere", elsewhere, spin);
    assert_eq!(refused, Err(SpawnError::NoCpu(CpuMask::only(4))));
}

#[test]
fn renicing_changes_the_share_and_keeps_the_lag() {
    let mut machine = ideal(1, |_| ());
    let other = spinner(&mut machine, "other", 0);
    let task = machine
        .spawn("task", 0, move |task| async move {
            task.sleep(1_000 * MS).await;
            task.set_user_nice(other, 10).expect("a valid nice");
            spin(task).await;
        })
        .expect("a valid nice");
    machine.run_until(1_000 * MS).expect("no rule is broken");
    let before_ns = machine.cpu_time_ns(other);
    machine.run_until(11_000 * MS).expect("no rule is broken");
    let share_ns = machine.cpu_time_ns(other) - before_ns;
    // 110 of 1134 of 10 s, and a slice more or less.
    assert!(
        share_ns.abs_diff(10_000 * MS * 110 / 1134) <= MS,
        "{share_ns}"
    );
    let reweights = of(&events(&mut machine), other, EventKind::Reweight);
    assert_eq!(reweights.len(), 1);
    assert_eq!(reweights[0].arg, 110);
    assert!(machine.cpu_time_ns(task) > 9_000 * MS);
}

#[test]
fn a_fork_has_half_a_slice_and_goes_to_an_idle_cpu() {
    let mut machine = ideal(2, |_| ());
    machine
        .spawn("parent", 0, |task| async move {
            task.run_user(100_000).await;
            let options = Policy::Normal { nice: 0 }.into();
            task.spawn("child", options, spin).expect("good options");
            spin(task).await;
        })
        .expect("a valid nice");
    machine.run_until(MS).expect("no rule is broken");
    let child = TaskId(1);
    let events = events(&mut machine);
    let born = &of(&events, child, EventKind::Spawn)[0];
    assert_eq!((born.at_ns, born.cpu), (100_000, CpuId(1)));
    let (v, d) = (
        of(&events, child, EventKind::Vruntime)[0].arg,
        of(&events, child, EventKind::Deadline)[0].arg,
    );
    assert_eq!(d - v, 350_000);
    assert_eq!(times(&events, child, EventKind::SwitchIn), [100_000]);
}

/// How long a woken task waits for a kernel loop that offers to give way.
fn behind_cond_resched_ns(preempt: Preemption, offers: bool) -> Option<u64> {
    let mut machine = ideal(1, |config| config.preempt = preempt);
    let woken = machine
        .spawn("woken", -20, |task| async move {
            task.sleep(5_050_000).await;
            spin(task).await;
        })
        .expect("a valid nice");
    machine
        .spawn("loop", 0, move |task| async move {
            for _ in 0..1_000 {
                task.run_kernel(100_000).await;
                if offers {
                    task.cond_resched().await;
                }
            }
        })
        .expect("a valid nice");
    delay_ns(&mut machine, woken, 5_050_000, 20 * MS)
}

#[test]
fn cond_resched_is_a_preemption_point_where_there_are_no_others() {
    // The request comes with the wakeup or, since the running task is protected,
    // at the latest with the next tick; the loop is asked every 0.1 ms.
    for preempt in [Preemption::None, Preemption::Voluntary] {
        let offered = behind_cond_resched_ns(preempt, true);
        assert!(offered.is_some_and(|ns| ns <= MS), "{preempt} {offered:?}");
        assert_eq!(behind_cond_resched_ns(preempt, false), None, "{preempt}");
    }
    // Under full and lazy it is empty.
    for preempt in [Preemption::Full, Preemption::Lazy] {
        let with = behind_cond_resched_ns(preempt, true);
        assert_eq!(with, behind_cond_resched_ns(preempt, false), "{preempt}");
    }
}

#[test]
fn voluntary_preemption_gives_way_before_a_mutex_and_none_does_not() {
    let delay = |preempt| {
        let mut machine = ideal(1, |config| config.preempt = preempt);
        let mutex = machine.mutex("mutex");
        let woken = spawn_at(&mut machine, 5_050_000, Policy::Normal { nice: -20 });
        machine
            .spawn("loop", 0, move |task| async move {
                loop {
                    task.mutex_lock(mutex).await;
                    task.run_kernel(100_000).await;
                    task.mutex_unlock(mutex).await;
                }
            })
            .expect("a valid nice");
        delay_ns(&mut machine, woken, 5_050_000, 20 * MS)
    };
    assert!(delay(Preemption::Voluntary).is_some_and(|ns| ns <= MS));
    assert_eq!(delay(Preemption::None), None);
}

#[test]
fn machines_and_tasks_that_cannot_be_are_refused() {
    let refused = Machine::new(MachineConfig {
        cpus: 0,
        ..MachineConfig::default()
    });
    let error = refused.err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("cpus is 0; it takes 1 to 64"));
    let mut machine = ideal(1, |_| ());
    for (policy, says) in [
        (
            Policy::Normal { nice: 25 },
            "nice is 25; it takes -20 to 19",
        ),
        (
            Policy::Fifo { priority: 0 },
            "the FIFO priority is 0; it takes 1 to 99",
        ),
    ] {
        let refused = machine.spawn_with("task", policy.into(), spin);
        assert_eq!(refused.map_err(|error| error.to_string()), Err(says.into()));
    }
}
