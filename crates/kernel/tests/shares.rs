//! Who gets how much: shares by weight, and nobody waits beyond the bound of
//! the lag.
#![cfg(not(target_arch = "wasm32"))]

mod common;
mod random;

use common::{ideal, machine, spinner};
use kernel_sim::{
    Hrtick, Machine, Policy, Preemption, SpinLock, Starving, Task, TaskId, TaskOptions,
    weight_of_nice,
};
use proptest::collection::vec;
use proptest::prelude::*;
use random::cases;

/// By how much the CPU time of each task differs from its share by weight, in
/// ns, at most.
fn worst_difference_ns(machine: &Machine, tasks: &[(TaskId, i8)]) -> u64 {
    let weight = |nice| u128::from(weight_of_nice(nice).expect("a valid nice"));
    let weights: u128 = tasks.iter().map(|&(_, nice)| weight(nice)).sum();
    let had_ns = |task| u128::from(machine.cpu_time_ns(task));
    let total_ns: u128 = tasks.iter().map(|&(task, _)| had_ns(task)).sum();
    let difference_ns = |&(task, nice): &(TaskId, i8)| {
        let share_ns = total_ns * weight(nice) / weights;
        u64::try_from(share_ns.abs_diff(had_ns(task))).expect("some ms")
    };
    tasks.iter().map(difference_ns).max().unwrap_or(0)
}

/// A machine is looked at in these steps of virtual time.
const STEP_NS: u64 = 100_000;

/// How many steps; a check of 64 CPUs after every event takes its time.
fn steps(cpus: u8) -> u64 {
    if cpus > 8 { 100 } else { 500 }
}

fn hrtick() -> impl Strategy<Value = Hrtick> {
    prop_oneof![Just(Hrtick::Off), Just(Hrtick::On), Just(Hrtick::Repick)]
}

/// By how much a share may be missed beside one slice. With the timer at every
/// deadline by nothing. Otherwise a task may run on to the next tick, and the
/// ones after it are the later for it: two ticks.
fn overrun_ns(hrtick: Hrtick, tick_ns: u64) -> u64 {
    match hrtick {
        Hrtick::Repick => 0,
        Hrtick::On | Hrtick::Off => 2 * tick_ns,
    }
}

/// What a task of a load does over and over.
#[derive(Clone, Copy, Debug)]
struct Load {
    nice: i8,
    slice_ns: Option<u64>,
    user_ns: u64,
    kernel_ns: u64,
    /// A section with preemption off.
    spin_ns: u64,
    sleep_ns: u64,
}

/// The longest section with preemption off, in ns.
const SPIN_MAX_NS: u64 = 100_000;

fn load() -> impl Strategy<Value = Load> {
    let slice_ns = proptest::option::weighted(0.2, 100_000..5_000_000_u64);
    let user_ns = 1..3_000_000_u64;
    let kernel_ns = prop_oneof![Just(0), 0..3_000_000_u64];
    let spin_ns = prop_oneof![Just(0), 0..SPIN_MAX_NS];
    let sleep_ns = prop_oneof![Just(0), 0..2_000_000_u64];
    (-20..=19_i8, slice_ns, user_ns, kernel_ns, spin_ns, sleep_ns).prop_map(
        |(nice, slice_ns, user_ns, kernel_ns, spin_ns, sleep_ns)| Load {
            nice,
            slice_ns,
            user_ns,
            kernel_ns,
            spin_ns,
            sleep_ns,
        },
    )
}

async fn work(task: Task, load: Load, lock: SpinLock) {
    loop {
        task.run_user(load.user_ns).await;
        task.run_kernel(load.kernel_ns).await;
        if load.spin_ns > 0 {
            task.spin_lock_bh(lock).await;
            task.run_kernel(load.spin_ns).await;
            task.spin_unlock_bh(lock).await;
        }
        if load.sleep_ns > 0 {
            task.sleep(load.sleep_ns).await;
        }
    }
}

fn start(machine: &mut Machine, loads: &[Load]) {
    // Each has a lock of its own: spinning would be another one's section.
    for load in loads {
        let (load, lock) = (*load, machine.spin_lock("lock"));
        let options = TaskOptions {
            slice_ns: load.slice_ns,
            ..TaskOptions::from(Policy::Normal { nice: load.nice })
        };
        machine
            .spawn_with("load", options, |task| work(task, load, lock))
            .expect("options that can be");
    }
}

fn preemption() -> impl Strategy<Value = Preemption> {
    prop_oneof![Just(Preemption::Lazy), Just(Preemption::Full)]
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn nobody_waits_beyond_the_bound_of_the_lag(
        cpus in prop_oneof![3 => Just(1), 3 => Just(2), 3 => Just(4), 2 => Just(8), 1 => Just(64)],
        loads_per_cpu in vec(load(), 1..6),
        seed in any::<u64>(),
        hz in prop_oneof![Just(100), Just(250), Just(1000)],
        hrtick in hrtick(),
        preempt in preemption(),
    ) {
        let mut machine = machine(|config| {
            (config.cpus, config.seed, config.hz) = (cpus, seed, hz);
            (config.hrtick, config.preempt) = (hrtick, preempt);
        });
        for _ in 0..cpus {
            start(&mut machine, &loads_per_cpu);
        }
        // The costs of a switch and of a few interrupts are within the section.
        let extra_ns = SPIN_MAX_NS;
        for step in 1..=steps(cpus) {
            prop_assert_eq!(machine.run_until(step * STEP_NS), Ok(()));
            let starving: Vec<Starving> = machine
                .starving()
                .into_iter()
                .filter(|starving| starving.owed_ns > starving.bound_ns + extra_ns)
                .collect();
            prop_assert_eq!(starving, vec![], "at step {}", step);
        }
    }

    #[test]
    fn cpu_time_is_shared_by_weight_within_a_slice(
        nices in vec(-20..=19_i8, 1..10),
        hrtick in hrtick(),
        hz in prop_oneof![Just(100), Just(250), Just(1000_u64)],
        base_slice_ns in 100_000..3_000_000_u64,
        steps_ns in vec(1..400_000_000_u64, 1..6),
    ) {
        let tick_ns = 1_000_000_000 / hz;
        // Where only ticks end slices, one that is shorter is as good as a tick,
        // but its deadlines do not say so and promise nothing.
        let shortest_ns = if hrtick == Hrtick::Off { tick_ns } else { 0 };
        let base_slice_ns = base_slice_ns.max(shortest_ns);
        let bound_ns = base_slice_ns + overrun_ns(hrtick, tick_ns);
        let mut machine = ideal(1, |ideal| {
            ideal.hz = u32::try_from(hz).expect("small");
            (ideal.hrtick, ideal.base_slice_ns) = (hrtick, base_slice_ns);
        });
        let tasks: Vec<(TaskId, i8)> = nices
            .iter()
            .map(|&nice| (spinner(&mut machine, "spinner", nice), nice))
            .collect();
        for step_ns in steps_ns {
            let until_ns = machine.now_ns() + step_ns;
            prop_assert_eq!(machine.run_until(until_ns), Ok(()));
            let worst_ns = worst_difference_ns(&machine, &tasks);
            prop_assert!(worst_ns <= bound_ns, "{} > {}", worst_ns, bound_ns);
        }
    }
}
