//! Worked cases of load balancing, numbered as in the reference.

use super::*;
use crate::config::MachineConfig;
use crate::policy::{CpuMask, Policy, TaskOptions};

mod moving;
mod rhythm;

const MS: u64 = 1_000_000;
/// A half-life of load tracking in ns.
const HALF_LIFE_NS: u64 = 1 << 25;

/// A machine that has been up for a while, so that nobody is cache-hot yet.
fn kernel(cpus: u8) -> Kernel {
    let mut kernel = Kernel::new(MachineConfig {
        cpus,
        ..MachineConfig::default()
    });
    kernel.now_ns = 10 * MS;
    for cpu in kernel.cpu_ids() {
        kernel.cpu(cpu).idle = true;
    }
    kernel
}

fn spawn(kernel: &mut Kernel, cpu: u8, options: TaskOptions) -> TaskId {
    let task = kernel.new_task("task".to_owned(), options, CpuId(cpu));
    let task = task.expect("options that can be");
    kernel.enqueue(CpuId(cpu), task);
    task
}

/// A task of the fair class, queued on a CPU; it counts with its full weight.
fn queued(kernel: &mut Kernel, cpu: u8, nice: i8) -> TaskId {
    spawn(kernel, cpu, TaskOptions::from(Policy::Normal { nice }))
}

/// One that may run on its CPU only.
fn pinned(kernel: &mut Kernel, cpu: u8, nice: i8) -> TaskId {
    let options = TaskOptions {
        cpus_allowed: CpuMask::only(cpu),
        ..TaskOptions::from(Policy::Normal { nice })
    };
    spawn(kernel, cpu, options)
}

/// A queued task is switched in.
fn run(kernel: &mut Kernel, task: TaskId) {
    let cpu = kernel.task(task).cpu;
    kernel.cpu(cpu).idle = false;
    kernel.cpu(cpu).curr = Some(task);
    kernel.set_donor(cpu, task);
    kernel.track(task);
}

/// Time passes, in which a CPU's task runs.
fn advance(kernel: &mut Kernel, cpu: u8, ns: u64) {
    kernel.now_ns += ns;
    kernel.update_curr(CpuId(cpu));
}

fn group(cpu: u8, kind: GroupType, load: u64, nr: u64) -> Group {
    Group {
        cpu: CpuId(cpu),
        kind,
        load,
        util: 1024,
        nr,
        nr_runnable: nr,
    }
}

#[test]
fn intervals_are_those_of_the_table() {
    // Item 36: busy, first and backed off, then idle, in ms.
    for (hz, cpus, busy_ms, idle_ms) in [
        (1000, 2, [31, 63], [2, 4]),
        (1000, 4, [63, 127], [4, 8]),
        (1000, 8, [127, 255], [8, 16]),
        (1000, 64, [1023, 2047], [64, 128]),
        (250, 8, [124, 252], [8, 16]),
        (250, 2, [28, 60], [4, 4]),
    ] {
        let mut kernel = Kernel::new(MachineConfig {
            hz,
            cpus,
            ..MachineConfig::default()
        });
        for step in 0..2 {
            let ms = |busy| kernel.interval_ns(CpuId(0), busy) / 1_000_000;
            assert_eq!(ms(true), busy_ms[step], "busy, {hz} Hz, {cpus} CPUs");
            assert_eq!(ms(false), idle_ms[step], "idle, {hz} Hz, {cpus} CPUs");
            kernel.note_outcome(CpuId(0), Kind::Busy, Outcome::Balanced);
        }
    }
}

#[test]
fn the_interval_doubles_once_and_any_imbalance_resets_it() {
    let mut kernel = Kernel::new(MachineConfig {
        cpus: 8,
        ..MachineConfig::default()
    });
    let interval = |kernel: &mut Kernel, outcome| {
        kernel.note_outcome(CpuId(3), Kind::Busy, outcome);
        let balance = &kernel.cpu(CpuId(3)).balance;
        (balance.interval_ms, balance.nr_balance_failed)
    };
    assert_eq!(interval(&mut kernel, Outcome::Balanced), (16, 0));
    assert_eq!(interval(&mut kernel, Outcome::Balanced), (16, 0));
    let stuck = Outcome::Unbalanced { moved: 0 };
    assert_eq!(interval(&mut kernel, stuck), (8, 1));
    assert_eq!(interval(&mut kernel, stuck), (8, 2));
    assert_eq!(
        interval(&mut kernel, Outcome::Unbalanced { moved: 3 }),
        (8, 0)
    );
}

#[test]
fn a_group_is_overloaded_by_pressure_and_spare_without() {
    // 117 % of the utilisation or 100 / 117 of the runnable time decide.
    assert_eq!(group_type(2, 1024, 2048), GroupType::Overloaded);
    assert_eq!(group_type(2, 500, 900), GroupType::HasSpare);
    assert_eq!(group_type(1, 1024, 1024), GroupType::FullyBusy);
    assert_eq!(group_type(1, 800, 800), GroupType::HasSpare);
    assert_eq!(group_type(0, 1024, 0), GroupType::HasSpare);
    assert_eq!(group_type(2, 876, 0), GroupType::Overloaded);
    assert_eq!(group_type(2, 875, 0), GroupType::HasSpare);
}

/// Eight CPUs of the published benchmark, where the reader of CPU 0 has been
/// blocked so that its CPU's load is `local`.
fn eight(local: u64) -> Vec<Group> {
    let load = |cpu| if cpu == 0 { local } else { 72_999 };
    let group = |cpu| group(cpu, GroupType::Overloaded, load(cpu), 4);
    (0..8).map(group).collect()
}

#[test]
fn a_blocked_reader_lets_its_cpu_pull_when_it_weighs_too_little() {
    // Step 18: the test passes below 62 392; the imbalance is an eighth.
    let found = |local| find_imbalance(&eight(local), CpuId(0), Kind::Busy);
    assert!(found(62_394).is_none());
    let (imbalance, busiest) = found(62_391).expect("17 % are exceeded");
    assert_eq!(busiest.cpu, CpuId(1));
    // (72 999 - 62 391) / 8 = 1326, the least of the two distances.
    assert_eq!(imbalance, Imbalance::Load(1_326));
}

#[test]
fn a_busy_cpu_with_room_does_not_pull_and_an_idle_one_takes_half() {
    let groups = [
        group(0, GroupType::HasSpare, 0, 0),
        group(1, GroupType::Overloaded, 4096, 4),
    ];
    assert!(find_imbalance(&groups, CpuId(0), Kind::Busy).is_none());
    let found = |kind| find_imbalance(&groups, CpuId(0), kind).map(|found| found.0);
    assert_eq!(found(Kind::Idle), Some(Imbalance::Tasks(2)));
    assert_eq!(found(Kind::NewlyIdle), Some(Imbalance::Tasks(2)));
}

#[test]
fn a_fully_busy_cpu_pulls_from_an_overloaded_one_without_the_percentage() {
    // Step 19.3: loads 2048 and 1024; imbalance min(512, 512).
    let groups = [
        group(0, GroupType::Overloaded, 2048, 2),
        group(1, GroupType::FullyBusy, 1024, 1),
    ];
    let found = find_imbalance(&groups, CpuId(1), Kind::Busy).map(|found| found.0);
    assert_eq!(found, Some(Imbalance::Load(512)));
    assert!(find_imbalance(&groups, CpuId(0), Kind::Busy).is_none());
}

#[test]
fn the_busiest_is_the_first_of_equals_in_the_order_of_the_one_who_looks() {
    let groups = eight(10);
    let busiest = |dst| busiest_group(&groups, CpuId(dst)).map(|group| group.cpu);
    assert_eq!(busiest(0), Some(CpuId(1)));
    assert_eq!(busiest(4), Some(CpuId(5)));
    assert_eq!(
        busiest(7),
        Some(CpuId(1)),
        "CPU 0 comes first but weighs less"
    );
}

#[test]
fn newidle_without_success_is_tried_ever_less_at_a_high_rate() {
    let mut kernel = Kernel::new(MachineConfig {
        cpus: 2,
        ..MachineConfig::default()
    });
    let mut ratio_after = |calls_per_s: u64| {
        kernel.cpu(CpuId(0)).balance = BalanceState {
            newidle_call: 512,
            newidle_success: 0,
            newidle_ratio: 512,
            newidle_stamp_ns: 0,
            ..kernel.cpu(CpuId(0)).balance.clone()
        };
        kernel.now_ns = 0;
        for _ in 0..512 {
            kernel.now_ns += 1_000_000_000 / calls_per_s;
            kernel.note_newidle(CpuId(0), 0);
        }
        kernel.cpu(CpuId(0)).balance.newidle_ratio
    };
    // Step 19.5: the ns for 512 calls, divided by 2^22.
    assert_eq!(ratio_after(128), 953);
    assert_eq!(ratio_after(2_000), 61);
}

#[test]
fn a_delayed_sleeper_keeps_its_load_until_it_really_leaves() {
    // Steps 1 and 19.4, with a reader of 71 755 and a worker of 1024.
    let mut kernel = kernel(2);
    let reader = queued(&mut kernel, 0, -19);
    queued(&mut kernel, 0, 0);
    run(&mut kernel, reader);
    advance(&mut kernel, 0, MS);
    // It has run, so V is behind it: it is not eligible and stays.
    let rq = &mut kernel.cpus[0].rq;
    assert!(rq.dequeue_curr_to_sleep(&mut kernel.entities));
    kernel.cpus[0].rq.put_prev(&mut kernel.entities);
    kernel.cpus[0].donor = None;
    kernel.track(reader);
    kernel.now_ns += HALF_LIFE_NS;
    let delayed = kernel.group(CpuId(0));
    assert_eq!(delayed.load, 71_755 + 1024);
    // It counts as queued, but not as runnable: half of its 1024 are left.
    assert_eq!((delayed.nr, delayed.nr_runnable), (2, 1));
    let now_ns = kernel.now_ns;
    assert_eq!(kernel.task(reader).pelt.runnable(now_ns) >> 22, 512);

    let rq = &mut kernel.cpus[0].rq;
    rq.finish_delayed_dequeue(&mut kernel.entities, reader);
    kernel.track(reader);
    kernel.now_ns += HALF_LIFE_NS;
    let gone = kernel.group(CpuId(0));
    // 71 755 / 2, rounded down.
    assert_eq!(gone.load, 35_877 + 1024);
    assert_eq!(gone.nr, 1);
    assert_eq!(kernel.cpu_load(CpuId(0)), gone.load, "blocked load counts");
}

#[test]
fn a_cpu_with_one_task_that_weighs_too_much_is_no_source() {
    // Step 10: only for loads, and only if it is the one that is runnable.
    let with = |nr_runnable, load| Group {
        nr_runnable,
        ..group(0, GroupType::Overloaded, load, 2)
    };
    assert!(with(1, 1024).is_too_heavy(Imbalance::Load(1023)));
    assert!(!with(1, 1024).is_too_heavy(Imbalance::Load(1024)));
    assert!(!with(2, 1024).is_too_heavy(Imbalance::Load(1023)));
    assert!(!with(1, 1024).is_too_heavy(Imbalance::Tasks(1)));
}

#[test]
fn a_lone_delayed_pair_is_passed_over_without_counting_as_failure() {
    // Steps 10 and 5: CPU 1 has a heavy runnable task and a delayed sleeper;
    // what is to move is less than the heavy one weighs.
    let mut kernel = kernel(2);
    let sleeper = queued(&mut kernel, 1, 0);
    let heavy = queued(&mut kernel, 1, -5);
    run(&mut kernel, sleeper);
    advance(&mut kernel, 1, MS);
    let rq = &mut kernel.cpus[1].rq;
    assert!(rq.dequeue_curr_to_sleep(&mut kernel.entities));
    kernel.cpus[1].rq.put_prev(&mut kernel.entities);
    run(&mut kernel, heavy);
    kernel.track(sleeper);
    let local = queued(&mut kernel, 0, 0);
    run(&mut kernel, local);
    // Loads 1024 and 1024 + 3121, average 2584: (4145 - 2584) = 1561 < 4145.
    let outcome = kernel.load_balance(CpuId(0), Kind::Busy);
    assert_eq!(outcome, Outcome::Balanced);
}

/// Step 18's loads: a reader, a spinner and two workers.
const FULL: u64 = 71_755 + 1024 + 2 * 110;

#[test]
fn a_blocked_readers_cpu_pulls_after_7_7_ms_and_ever_more() {
    let mut pelt = crate::pelt::Pelt::full(0);
    pelt.set(0, crate::pelt::Activity::default());
    let found = |at_us: u64| {
        let reader = (71_755 * pelt.queued(at_us * 1_000)) >> 32;
        find_imbalance(&eight(reader + 1024 + 2 * 110), CpuId(0), Kind::Busy)
    };
    assert_eq!(FULL, 72_999);
    assert!(found(7_600).is_none());
    assert!(found(7_800).is_some());
    // (72 999 - load) / 8, with 71 755 * 2^(-t / 33.554 ms) + 1244:
    // 62 069, 48 714 and 22 020.
    for (at_us, imbalance) in [(8_000, 1_366), (20_000, 3_036), (60_000, 6_370)] {
        let Some((Imbalance::Load(load), _)) = found(at_us) else {
            panic!("nothing to move after {at_us} us");
        };
        assert!(load.abs_diff(imbalance) <= 10, "{at_us} us: {load}");
    }
}

#[test]
fn of_two_readers_on_one_cpu_a_cpu_without_any_may_have_one() {
    // Step 18: the average is 72 999 as ever; min(144 754 - 72 999,
    // 72 999 - 1244) = 71 755, which just fits a reader.
    let mut groups = eight(1244);
    groups[1].load = 2 * 71_755 + 1244;
    let (imbalance, busiest) = find_imbalance(&groups, CpuId(0), Kind::Busy).expect("two readers");
    assert_eq!(imbalance, Imbalance::Load(71_755));
    assert_eq!(busiest.cpu, CpuId(1));
}

#[test]
fn a_lone_cpu_balances_nothing() {
    // Step 19.2.
    let mut kernel = kernel(1);
    let task = queued(&mut kernel, 0, 0);
    run(&mut kernel, task);
    kernel.tick_balance(CpuId(0));
    assert_eq!(kernel.cpu(CpuId(0)).balance_pending, None);
    assert_eq!(kernel.newidle_balance(CpuId(0)), 0);
}

#[test]
fn the_load_of_an_owner_that_sleeps_in_anothers_turn_decays() {
    let mut kernel = kernel(2);
    kernel.config.mutex.inheritance = crate::config::Inheritance::Proxy;
    let owner = queued(&mut kernel, 0, 0);
    let donor = queued(&mut kernel, 0, 0);
    run(&mut kernel, donor);
    // The donor waits for a mutex and lends its turn.
    kernel.task(donor).asleep = true;
    kernel.task(donor).lends = true;
    kernel.cpu(CpuId(0)).curr = Some(owner);
    kernel.sleep_until(owner, u64::MAX);
    kernel.schedule(CpuId(0));
    let later_ns = kernel.now_ns + HALF_LIFE_NS;
    let queued = kernel.task(owner).pelt.queued(later_ns);
    assert_eq!(queued, crate::pelt::ONE / 2);
}

#[test]
fn the_load_of_a_task_ends_with_it() {
    let mut kernel = kernel(2);
    let ends = queued(&mut kernel, 0, -20);
    run(&mut kernel, ends);
    kernel.task(ends).op = crate::kernel::Op::Exit;
    kernel.schedule(CpuId(0));
    assert_eq!(kernel.group(CpuId(0)).load, 0);
    assert_eq!(kernel.group(CpuId(0)).util, 0);
}
