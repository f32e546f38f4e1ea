//! Load balancing on whole machines: when a task moves follows from the
//! reference's algorithm (scheduler reference, verified, section 2, by step).

mod common;

use common::{events, ideal, spin, spinner, times};
use kernel_sim::{CpuMask, EventKind, Machine, Policy, Task, TaskId, TaskOptions};

const MS: u64 = 1_000_000;

fn pinned(cpu: u8, nice: i8) -> TaskOptions {
    TaskOptions {
        cpus_allowed: CpuMask::only(cpu),
        ..TaskOptions::from(Policy::Normal { nice })
    }
}

fn spin_pinned(machine: &mut Machine, cpu: u8, nice: i8) -> TaskId {
    let task = machine.spawn_with("pinned", pinned(cpu, nice), spin);
    task.expect("options that can be")
}

/// A task that occupies a CPU for a time and then ends.
fn occupy(machine: &mut Machine, cpu: u8, ns: u64) {
    let body = move |task: Task| async move { task.run_user(ns).await };
    let task = machine.spawn_with("occupies", pinned(cpu, 0), body);
    task.expect("options that can be");
}

/// When tasks of a run were moved, in ns.
fn moves(machine: &mut Machine, task: TaskId, until_ns: u64) -> Vec<u64> {
    machine.run_until(until_ns).expect("no rule is broken");
    times(&events(machine), task, EventKind::Migrate)
}

#[test]
fn pinned_tasks_stay_however_unequal_the_cpus() {
    // Step 19.1.
    let mut machine = ideal(4, |_| ());
    for cpu in [0, 0, 0, 0, 0, 1, 2, 2] {
        spin_pinned(&mut machine, cpu, 0);
    }
    machine.run_until(5_000 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    let moved = |event: &&kernel_sim::Event| event.kind == EventKind::Migrate;
    assert_eq!(events.iter().filter(moved).count(), 0);
}

#[test]
fn a_waiting_task_is_pulled_within_the_idle_interval_and_two_jiffies() {
    // Steps 14 and 15. The light task has its slice at the start, and the heavy
    // one then owes it nothing for long. At 5 ms the others begin to idle: they
    // pull at once, by a newidle pass, or when 8 ms have passed since the last
    // one (4 CPUs, backed off) and a tick has kicked them.
    let mut at_once = 0;
    for seed in 0..30 {
        let mut machine = ideal(4, |config| config.seed = seed);
        spin_pinned(&mut machine, 0, -20);
        for cpu in 1..4 {
            occupy(&mut machine, cpu, 5 * MS);
        }
        let light = spinner(&mut machine, "light", 19);
        let moves = moves(&mut machine, light, 100 * MS);
        assert_eq!(moves.len(), 1, "seed {seed}: {moves:?}");
        let range = 5 * MS..=(5 + 8 + 2) * MS;
        assert!(range.contains(&moves[0]), "seed {seed}: {moves:?}");
        at_once += u32::from(moves[0] == 5 * MS);
    }
    // The dice let about half of the newidle passes happen, and there are three.
    assert!((15..30).contains(&at_once), "{at_once} of 30");
}

#[test]
fn a_running_task_is_pushed_after_four_passes_in_vain() {
    // Step 12: nothing but the running task may move. From 3 ms on CPU 1 idles
    // and fails every 2 ms (2 CPUs), and a jiffy or two later.
    for seed in 0..10 {
        let mut machine = ideal(2, |config| config.seed = seed);
        let free = spinner(&mut machine, "free", -20);
        occupy(&mut machine, 1, 3 * MS);
        spin_pinned(&mut machine, 0, 19);
        let moves = moves(&mut machine, free, 200 * MS);
        assert_eq!(moves.len(), 1, "seed {seed}: {moves:?}");
        let range = (3 + 3 * 2) * MS..=(3 + 4 * (2 + 2)) * MS;
        assert!(range.contains(&moves[0]), "seed {seed}: {moves:?}");
    }
}

#[test]
fn beside_unblocked_readers_light_tasks_hardly_move() {
    // Item 61. CPU 0 has a reader and three workers, CPU 1 in the end a reader:
    // fully busy, it wants min(72 085 - 71 920, 71 920 - 71 755) = 165, which is
    // one worker of 110. Then 71 975 is less than 117 % of 71 865.
    let mut machine = ideal(2, |_| ());
    let readers = [0, 1].map(|_| spinner(&mut machine, "reader", -19));
    let workers = [0, 1, 2].map(|_| {
        let worker = spinner(&mut machine, "worker", 10);
        occupy(&mut machine, 1, MS);
        worker
    });
    machine.run_until(5_000 * MS).expect("no rule is broken");
    let events = events(&mut machine);
    let moves = |task: TaskId| times(&events, task, EventKind::Migrate).len();
    assert_eq!(readers.map(moves), [0, 0]);
    assert_eq!(workers.map(moves).iter().sum::<usize>(), 1);
}

#[test]
fn the_second_of_two_readers_moves_when_a_failure_has_halved_its_weight() {
    // Loads 143 510 and 110, average 71 810: 71 700 are wanted, and a reader
    // weighs 71 755. The first pass of CPU 1 is 31 ms after its last one (which
    // lies up to 4 ms before the start) and fails; so the second one 31 ms later
    // moves it, or if the waiting one is hot, the third.
    for seed in 0..10 {
        let mut machine = ideal(2, |config| config.seed = seed);
        let first = spinner(&mut machine, "reader", -19);
        spinner(&mut machine, "worker", 10);
        let second = spinner(&mut machine, "reader", -19);
        machine.run_until(200 * MS).expect("no rule is broken");
        let events = events(&mut machine);
        let moves = [first, second].map(|task| times(&events, task, EventKind::Migrate));
        let moves = moves.concat();
        assert_eq!(moves.len(), 1, "seed {seed}: {moves:?}");
        let range = 58 * MS..=93 * MS;
        assert!(range.contains(&moves[0]), "seed {seed}: {moves:?}");
    }
}
