//! When passes are made, and by whom (steps 2, 5.6, 14, 15, 17).

use super::*;

#[test]
fn a_pinned_imbalance_lets_the_interval_grow_to_512_ms() {
    // Step 19.1: 8, 16, ... 512 ms; times 16 when busy, at most HZ * CPUs / 10.
    let mut kernel = kernel(8);
    let mut grown = Vec::new();
    for _ in 0..8 {
        kernel.note_outcome(CpuId(0), Kind::Busy, Outcome::AllPinned);
        grown.push(kernel.cpu(CpuId(0)).balance.interval_ms);
    }
    assert_eq!(grown, [16, 32, 64, 128, 256, 512, 512, 512]);
    assert_eq!(kernel.interval_ns(CpuId(0), true), 800_000_000);
    assert_eq!(kernel.interval_ns(CpuId(0), false), 512_000_000);
}

#[test]
fn everything_pinned_is_not_a_failure() {
    let mut kernel = kernel(2);
    for _ in 0..3 {
        pinned(&mut kernel, 0, 0);
    }
    let outcome = kernel.load_balance(CpuId(1), Kind::Idle);
    assert_eq!(outcome, Outcome::AllPinned);
    kernel.cpu(CpuId(1)).balance.nr_balance_failed = 3;
    kernel.note_outcome(CpuId(1), Kind::Idle, outcome);
    assert_eq!(kernel.cpu(CpuId(1)).balance.nr_balance_failed, 0);
}

#[test]
fn a_newidle_pass_counts_no_failure_but_resets_what_it_finds_wrong() {
    // Step 5.6, for any kind, with the exceptions it names.
    let mut kernel = kernel(8);
    let mut after = |outcome| {
        let balance = &mut kernel.cpu(CpuId(0)).balance;
        (balance.interval_ms, balance.nr_balance_failed) = (16, 2);
        kernel.note_outcome(CpuId(0), Kind::NewlyIdle, outcome);
        let balance = &kernel.cpu(CpuId(0)).balance;
        (balance.interval_ms, balance.nr_balance_failed)
    };
    assert_eq!(after(Outcome::Unbalanced { moved: 0 }), (8, 2));
    assert_eq!(after(Outcome::Unbalanced { moved: 1 }), (8, 0));
    assert_eq!(after(Outcome::Balanced), (16, 0));
    assert_eq!(after(Outcome::AllPinned), (16, 0));
}

#[test]
fn a_busy_pass_is_due_at_the_last_one_and_127_ms() {
    // Step 3, with 8 CPUs at 1000 Hz; nothing is wrong, so it backs off.
    let mut kernel = kernel(8);
    let task = queued(&mut kernel, 0, 0);
    run(&mut kernel, task);
    kernel.cpu(CpuId(0)).balance.last_balance_ns = 0;
    let mut passes_ms = Vec::new();
    for ms in 1..=640 {
        kernel.now_ns = ms * MS;
        kernel.rebalance(CpuId(0), Kind::Busy);
        if kernel.cpu(CpuId(0)).balance.last_balance_ns == kernel.signed_now_ns() {
            passes_ms.push(ms);
        }
    }
    assert_eq!(passes_ms, [127, 382, 637]);
}

#[test]
fn the_tick_raises_the_softirq_when_a_pass_may_be_due() {
    let mut kernel = kernel(2);
    let task = queued(&mut kernel, 0, 0);
    run(&mut kernel, task);
    let next_ns = kernel.signed_now_ns() + 1;
    kernel.cpu(CpuId(0)).balance.next_balance_ns = next_ns;
    kernel.tick_balance(CpuId(0));
    assert_eq!(kernel.cpu(CpuId(0)).balance_pending, None);
    kernel.now_ns += 1;
    kernel.tick_balance(CpuId(0));
    assert_eq!(
        kernel.cpu(CpuId(0)).balance_pending,
        Some(false),
        "it is busy"
    );
}

/// CPU 1 is about to idle beside four tasks on CPU 0, without any dice.
fn about_to_idle() -> Kernel {
    let mut kernel = kernel(2);
    for _ in 0..4 {
        queued(&mut kernel, 0, 0);
    }
    assert!(kernel.overloaded, "more than one task on a CPU");
    kernel.cpu(CpuId(1)).balance.newidle_ratio = 1024;
    kernel
}

#[test]
fn a_newidle_pass_needs_an_overloaded_cpu_and_longer_idling_than_it_costs() {
    // Step 14.2; the pass costs 2 us and 0.3 us for each of two CPUs.
    let mut kernel = about_to_idle();
    assert_eq!(kernel.newidle_balance(CpuId(1)), 2_600);
    assert_eq!(kernel.nr_running(CpuId(1)), 1);
    assert_eq!(kernel.cpu(CpuId(1)).balance.idle_stamp_ns, None);

    let mut kernel = about_to_idle();
    kernel.overloaded = false;
    let balance = &mut kernel.cpu(CpuId(1)).balance;
    (balance.last_balance_ns, balance.next_balance_ns) = (5_000_000, i64::MAX);
    assert_eq!(kernel.newidle_balance(CpuId(1)), 0);
    // The idle interval of two CPUs is 2 ms.
    assert_eq!(kernel.cpu(CpuId(1)).balance.next_balance_ns, 7_000_000);

    for (avg_idle_ns, cost_ns) in [(2_599, 0), (2_600, 2_600)] {
        let mut kernel = about_to_idle();
        let balance = &mut kernel.cpu(CpuId(1)).balance;
        (balance.avg_idle_ns, balance.max_newidle_cost_ns) = (avg_idle_ns, 2_600);
        assert_eq!(kernel.newidle_balance(CpuId(1)), cost_ns);
    }
}

#[test]
fn an_attempt_that_pulls_counts_for_those_that_the_dice_skipped() {
    // Step 14.3, ratio 255: weight 256, and a success counts
    // (1024 + 128) / 256 = 4.
    let mut kernel = about_to_idle();
    let attempts = 2_000;
    let mut taken = 0;
    for _ in 0..attempts {
        kernel.cpu(CpuId(1)).balance.newidle_ratio = 255;
        let weight = kernel.newidle_dice(CpuId(1));
        assert!(weight.is_none_or(|weight| weight == 4));
        taken += u32::from(weight.is_some());
    }
    // 0 to 256 of 1024 pass: a quarter.
    assert!((400..=600).contains(&taken), "{taken} of {attempts}");
}

#[test]
fn the_mean_idle_time_moves_by_an_eighth_and_has_a_cap() {
    // Step 14.4: from 1 ms by (0.2 - 1) / 8 ms, then up to the cap of 1 ms.
    let mut kernel = kernel(2);
    let mut after = |idle_ns| {
        let now_ns = kernel.now_ns;
        kernel.cpu(CpuId(0)).balance.idle_stamp_ns = Some(now_ns);
        kernel.now_ns += idle_ns;
        kernel.note_idle_end(CpuId(0));
        kernel.cpu(CpuId(0)).balance.avg_idle_ns
    };
    assert_eq!(after(200_000), 900_000);
    assert_eq!(after(1_300_000), 950_000);
    assert_eq!(after(9_000_000), 1_000_000);
}

#[test]
fn a_busy_tick_kicks_the_first_idle_cpu_once_a_jiffy() {
    // Step 15: two tasks here, or two busy CPUs.
    let kicked = |kernel: &mut Kernel| {
        kernel.nohz_kick(CpuId(0));
        let mut kicked = Vec::new();
        for cpu in kernel.cpu_ids() {
            if core::mem::take(&mut kernel.cpu(cpu).nohz_kicked) {
                kicked.push(cpu.0);
            }
        }
        kicked
    };
    let mut kernel = kernel(4);
    let task = queued(&mut kernel, 0, 0);
    run(&mut kernel, task);
    assert_eq!(kicked(&mut kernel), [] as [u8; 0], "alone");
    queued(&mut kernel, 0, 0);
    assert_eq!(kicked(&mut kernel), [1]);
    kernel.now_ns += MS - 1;
    assert_eq!(kicked(&mut kernel), [] as [u8; 0], "within the jiffy");
    kernel.now_ns += 1;
    assert_eq!(kicked(&mut kernel), [1]);
    kernel.now_ns += MS;
    let mut both = super::kernel(3);
    for cpu in [0, 1] {
        let task = queued(&mut both, cpu, 0);
        run(&mut both, task);
    }
    assert_eq!(kicked(&mut both), [2], "two busy CPUs");
}

#[test]
fn the_kicked_cpu_balances_for_all_that_idle_and_itself_last() {
    // Step 15: CPU 0 has four tasks. From CPU 2 on: CPU 2 takes (4 - 0) / 2,
    // CPU 3 one of CPU 0's last two, CPU 1 one of CPU 2's.
    let mut kernel = kernel(4);
    let tasks = [0; 4].map(|nice| queued(&mut kernel, 0, nice));
    run(&mut kernel, tasks[3]);
    kernel.now_ns = 100 * MS;
    kernel.cpu(CpuId(1)).nohz_kicked = true;
    kernel.this_cpu = CpuId(1);
    kernel.nohz_balance(CpuId(1));
    let counts = [0, 1, 2, 3].map(|cpu| kernel.nr_running(CpuId(cpu)));
    assert_eq!(counts, [1, 1, 1, 1]);
    let places = tasks.map(|task| kernel.task(task).cpu.0);
    assert_eq!(places, [1, 2, 3, 0]);
}

#[test]
fn phases_lie_within_two_idle_intervals_on_the_grid_of_ticks() {
    // Step 17: the last passes were at 0 to 16 ms before the start, in jiffies.
    let mut seen = Vec::new();
    for seed in 0..100 {
        let kernel = Kernel::new(MachineConfig {
            cpus: 8,
            hz: 250,
            seed,
            ..MachineConfig::default()
        });
        for cpu in &kernel.cpus {
            let before_ns = -cpu.balance.last_balance_ns;
            assert_eq!(before_ns % 4_000_000, 0);
            seen.push(before_ns / 1_000_000);
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [0, 4, 8, 12]);
}
