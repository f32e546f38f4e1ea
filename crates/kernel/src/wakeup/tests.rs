//! Worked cases of the placement of woken tasks (step 16, items 11 and 29 to 33).

use super::*;
use crate::config::MachineConfig;
use crate::kernel::Op;
use crate::policy::{CpuMask, TaskOptions};

const MS: u64 = 1_000_000;
const HALF_LIFE_NS: u64 = 1 << 25;
/// The task that wakes up was here; the waker is on the other one.
const PREV: CpuId = CpuId(0);
const THIS: CpuId = CpuId(1);

fn kernel(cpus: u8, shared_cache: bool) -> Kernel {
    let mut kernel = Kernel::new(MachineConfig {
        cpus,
        shared_cache,
        ..MachineConfig::default()
    });
    kernel.this_cpu = THIS;
    for cpu in kernel.cpu_ids() {
        kernel.cpu(cpu).idle = true;
    }
    kernel
}

fn add(kernel: &mut Kernel, cpu: CpuId, options: TaskOptions) -> TaskId {
    let task = kernel.new_task("task".to_owned(), options, cpu);
    task.expect("options that can be")
}

/// A task that runs on a CPU.
fn busy(kernel: &mut Kernel, cpu: CpuId, policy: Policy) -> TaskId {
    let task = add(kernel, cpu, TaskOptions::from(policy));
    kernel.enqueue(cpu, task);
    kernel.cpu(cpu).idle = false;
    kernel.cpu(cpu).curr = Some(task);
    kernel.set_donor(cpu, task);
    kernel.track(task);
    task
}

fn nice(nice: i8) -> Policy {
    Policy::Normal { nice }
}

/// A task that has gone to sleep on `PREV` at this moment, with its full load.
fn asleep(kernel: &mut Kernel, policy: Policy, cpus_allowed: CpuMask) -> TaskId {
    let options = TaskOptions {
        cpus_allowed,
        ..TaskOptions::from(policy)
    };
    let task = add(kernel, PREV, options);
    kernel.task(task).asleep = true;
    kernel.task(task).op = Op::Block;
    task
}

fn wakee(kernel: &mut Kernel) -> TaskId {
    asleep(kernel, nice(0), CpuMask::ALL)
}

#[test]
fn an_idle_cpu_of_the_two_decides() {
    // WA_IDLE: of an idle waker's CPU only beside a shared cache, and then the
    // task's own is preferred if it idles too.
    for (shared, this_busy, prev_busy, chosen) in [
        (true, false, false, PREV),
        (true, false, true, THIS),
        (true, true, false, PREV),
        (false, false, false, PREV),
        (false, true, false, PREV),
    ] {
        let mut kernel = kernel(2, shared);
        for (cpu, is_busy) in [(THIS, this_busy), (PREV, prev_busy)] {
            if is_busy {
                busy(&mut kernel, cpu, nice(0));
            }
        }
        let task = wakee(&mut kernel);
        let found = kernel.wake_affine(task, THIS, PREV);
        assert_eq!(found, chosen, "{shared} {this_busy} {prev_busy}");
    }
}

/// Where a task of nice 0 goes from a busy CPU with one task to a busy CPU with
/// another, by their nice values.
fn by_weight(this: i8, prev: i8, asleep_ns: u64) -> CpuId {
    let mut kernel = kernel(2, true);
    busy(&mut kernel, THIS, nice(this));
    busy(&mut kernel, PREV, nice(prev));
    let task = wakee(&mut kernel);
    kernel.now_ns += asleep_ns;
    kernel.wake_affine(task, THIS, PREV)
}

#[test]
fn between_busy_cpus_the_weights_decide() {
    // WA_WEIGHT: (L_this + h) * 100 < (L_prev - h) * 108, with h = 1024 and the
    // blocked load of the wakee itself in L_prev.
    // (1024 + 1024) * 100 = 204 800 and (1024 + 1024 - 1024) * 108 = 110 592.
    assert_eq!(by_weight(0, 0, 0), PREV);
    // (15 + 1024) * 100 = 103 900 and still 110 592.
    assert_eq!(by_weight(19, 0, 0), THIS);
    // (87 + 1024) * 100 = 111 100: just too much; nice 12 (70): 109 400.
    assert_eq!(by_weight(11, 0, 0), PREV);
    assert_eq!(by_weight(12, 0, 0), THIS);
}

#[test]
fn the_wakees_own_load_is_that_of_when_it_went_to_sleep() {
    // A half-life later L_prev = 15 + 512 and h is 1024 still:
    // (15 + 1024) * 100 against (527 - 1024) * 108, which is negative.
    assert_eq!(by_weight(19, 19, HALF_LIFE_NS), PREV);
    // With 1586 on the other: (1586 + 512 - 1024) * 108 = 115 992 > 103 900.
    assert_eq!(by_weight(19, -2, HALF_LIFE_NS), THIS);
    // And with 1277: (1277 + 512 - 1024) * 108 = 82 620.
    assert_eq!(by_weight(19, -1, HALF_LIFE_NS), PREV);
}

#[test]
fn a_heavy_wakee_stays_where_it_was() {
    // Item 30: h = 71 755; (1024 + 71 755) * 100 against (1024 + 71 755 -
    // 71 755) * 108.
    let mut kernel = kernel(2, true);
    busy(&mut kernel, THIS, nice(0));
    busy(&mut kernel, PREV, nice(0));
    let task = asleep(&mut kernel, nice(-19), CpuMask::ALL);
    assert_eq!(kernel.wake_affine(task, THIS, PREV), PREV);
}

#[test]
fn a_delayed_sleeper_is_woken_where_it_stands() {
    // Item 11: even though another CPU idles.
    let mut kernel = kernel(3, true);
    let task = busy(&mut kernel, PREV, nice(0));
    let other = add(&mut kernel, PREV, TaskOptions::from(nice(0)));
    kernel.enqueue(PREV, other);
    kernel.now_ns += MS;
    kernel.update_curr(PREV);
    kernel.task(task).asleep = true;
    kernel.task(task).op = Op::Block;
    kernel.schedule(PREV);
    assert!(kernel.entities[task].delayed);
    let hrtick_ns = kernel.cpu(PREV).hrtick_at_ns;
    assert!(kernel.wake(task, TaskId::NONE));
    assert_eq!(kernel.task(task).cpu, PREV);
    assert!(!kernel.entities[task].delayed && kernel.entities[task].on_rq);
    assert_eq!(kernel.cpu(PREV).hrtick_at_ns, hrtick_ns, "arms nothing");
}

#[test]
fn the_scan_shrinks_with_the_use_of_the_cpus() {
    // Item 32: y = 1024 - x^2 * 117^2 / (10^4 * 1024), and 8 y / 1024 of 8 CPUs:
    // 1024, 1024 - 350 = 674, 1024 - 1023 = 1.
    use crate::balance::scan_of;
    assert_eq!(scan_of(8, 0), 8);
    assert_eq!(scan_of(8, 512), 5);
    assert_eq!(scan_of(8, 875), 0);
    assert_eq!(scan_of(8, 1024), 0);
}

/// Eight CPUs, all busy but one; where a task is woken to from busy CPUs.
fn with_one_idle(idle: u8, scan: u64, allowed: CpuMask) -> CpuId {
    let mut kernel = kernel(8, true);
    for cpu in kernel.cpu_ids().filter(|cpu| cpu.0 != idle) {
        busy(&mut kernel, cpu, nice(0));
    }
    let task = asleep(&mut kernel, nice(0), allowed);
    kernel.nr_idle_scan = scan;
    kernel.select_task_rq(task, TaskId::NONE)
}

#[test]
fn an_idle_cpu_is_looked_for_as_far_as_the_scan_goes() {
    // The target is CPU 0, the task's own; the scan begins beside it.
    assert_eq!(with_one_idle(3, 3, CpuMask::ALL), CpuId(3));
    assert_eq!(with_one_idle(3, 2, CpuMask::ALL), PREV);
    assert_eq!(with_one_idle(3, 0, CpuMask::ALL), PREV);
    let not_3 = CpuMask(!CpuMask::only(3).0);
    assert_eq!(with_one_idle(3, 8, not_3), PREV, "it may not run there");
}

#[test]
fn the_cpu_it_used_before_is_tried_before_the_scan() {
    let mut kernel = kernel(8, true);
    for cpu in [0, 1] {
        busy(&mut kernel, CpuId(cpu), nice(0));
    }
    let task = wakee(&mut kernel);
    kernel.task(task).recent_cpu = CpuId(6);
    assert_eq!(kernel.select_task_rq(task, TaskId::NONE), CpuId(6));
    // Now the task's own CPU is the one it used; of the rest, the first.
    assert_eq!(kernel.select_task_rq(task, TaskId::NONE), CpuId(2));
}

#[test]
fn a_cpu_with_nothing_but_idle_policy_is_as_good_as_idle() {
    let mut kernel = kernel(2, true);
    busy(&mut kernel, PREV, nice(0));
    busy(&mut kernel, THIS, Policy::Idle);
    let task = wakee(&mut kernel);
    assert_eq!(kernel.select_task_rq(task, TaskId::NONE), THIS);
}

#[test]
fn without_a_shared_cache_nobody_scans() {
    let mut kernel = kernel(4, false);
    busy(&mut kernel, PREV, nice(0));
    busy(&mut kernel, THIS, nice(0));
    let task = wakee(&mut kernel);
    assert_eq!(kernel.select_task_rq(task, TaskId::NONE), PREV);
}

#[test]
fn who_wakes_many_is_wide_and_leaves_them_where_they_were() {
    // Item 29, two CPUs: the smaller count at least 2 and the larger twice it.
    let mut kernel = kernel(2, true);
    let waker = busy(&mut kernel, THIS, nice(19));
    busy(&mut kernel, PREV, nice(0));
    let task = wakee(&mut kernel);
    for (wakers, wakees, chosen) in [(3, 2, THIS), (4, 2, PREV), (4, 1, THIS), (2, 4, PREV)] {
        // The wakeup itself would be one more with another wakee.
        kernel.task(waker).last_wakee = task;
        kernel.task(waker).wakee_flips = wakers;
        kernel.task(task).wakee_flips = wakees;
        let found = kernel.select_task_rq(task, waker);
        assert_eq!(found, chosen, "{wakers} and {wakees}");
    }
}

#[test]
fn the_count_of_flips_halves_after_a_second() {
    let mut kernel = kernel(2, true);
    let waker = busy(&mut kernel, THIS, nice(0));
    let [a, b] = [0, 0].map(|_| wakee(&mut kernel));
    for wakee in [a, b, a, a] {
        kernel.record_wakee(waker, wakee);
    }
    assert_eq!(kernel.task(waker).wakee_flips, 3);
    kernel.now_ns += 1_000 * MS;
    kernel.record_wakee(waker, a);
    assert_eq!(kernel.task(waker).wakee_flips, 3, "more than a second");
    kernel.now_ns += 1;
    kernel.record_wakee(waker, a);
    assert_eq!(kernel.task(waker).wakee_flips, 1);
}
