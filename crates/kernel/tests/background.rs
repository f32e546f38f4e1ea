//! The kernel threads of W7: how often they wake, when, and for how long.

use kernel_sim::{EventKind, Machine, MachineConfig, Task, TaskId};

mod common;
use common::{count, events, machine};

const SECONDS: u64 = 60;

fn run(hz: u32, seed: u64) -> (Machine, Vec<TaskId>) {
    let mut machine = machine(|config| config.hz = hz);
    let threads = machine.spawn_background(seed).expect("few tasks");
    let until_ns = SECONDS * 1_000_000_000;
    machine.run_until(until_ns).expect("no rule is broken");
    (machine, threads)
}

#[test]
fn threads_wake_as_often_as_the_reference_says_right_after_a_tick() {
    for hz in [250, 1000] {
        let (mut machine, threads) = run(hz, 1);
        let tick_ns = 1_000_000_000 / u64::from(hz);
        let events = events(&mut machine);
        let wakeups = threads.iter().map(|&thread| {
            let wakes = events
                .iter()
                .filter(|event| event.task == thread && event.kind == EventKind::Wake);
            // Two that meet are one after the other.
            assert!(wakes.clone().all(|event| event.at_ns % tick_ns <= 110_000));
            wakes.count() as u64
        });
        let per_minute: Vec<u64> = wakeups.collect();
        assert!(
            (28 * 60..=60 * 60).contains(&per_minute[0]),
            "{per_minute:?}"
        );
        assert!((116..=118).contains(&per_minute[1]), "{per_minute:?}");
        assert!((366..=1_364).contains(&per_minute[2]), "{per_minute:?}");
        assert!((150..=210).contains(&per_minute[3]), "{per_minute:?}");
    }
}

#[test]
fn threads_run_for_as_long_as_the_reference_says() {
    let (mut machine, threads) = run(1000, 2);
    let events = events(&mut machine);
    // Each stretch begins with a context switch, which counts as CPU time.
    let switch_ns = MachineConfig::default().switch_ns;
    let ranges = [5_000..=6_000, 7_000..=7_000, 15_000..=20_000, 6_000..=6_000];
    for (&thread, range) in threads.iter().zip(ranges) {
        let wakes = events
            .iter()
            .filter(|event| event.task == thread && event.kind == EventKind::Wake);
        let mean_ns = machine.cpu_time_ns(thread) / wakes.count() as u64;
        let (least_ns, most_ns) = (range.start() + switch_ns, range.end() + switch_ns);
        // Interrupts that hit it, and its very first stretch.
        assert!((least_ns..=most_ns + 200).contains(&mean_ns), "{mean_ns}");
    }
}

#[test]
fn the_seed_decides_when_and_nothing_else_shifts() {
    let hash = |seed| run(1000, seed).0.trace_hash();
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

#[test]
fn a_thread_preempts_a_user_task_after_its_wakeup() {
    let mut machine = machine(|_| ());
    let spinner = |task: Task| async move {
        loop {
            task.run_user(1_000_000).await;
        }
    };
    let spinner = machine.spawn("spinner", 0, spinner).expect("a valid nice");
    machine.spawn_background(5).expect("few tasks");
    machine.run_until(1_000_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    let outs = events
        .iter()
        .filter(|event| event.task == spinner && event.kind == EventKind::SwitchOut);
    let wakes = count(&events, EventKind::Wake);
    assert!(outs.count().abs_diff(wakes) <= 8, "{wakes}");
}
