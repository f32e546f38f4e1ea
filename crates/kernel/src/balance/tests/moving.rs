//! Which tasks a pass takes, and how they arrive (steps 11 to 13).

use super::*;

const ONE_TASK: Imbalance = Imbalance::Tasks(1);

/// Moves from CPU 0 to CPU 1, on whose behalf a periodic idle pass is made.
fn pull(kernel: &mut Kernel, imbalance: Imbalance) -> u64 {
    kernel.move_tasks(CpuId(0), CpuId(1), Kind::Idle, imbalance)
}

fn fail(kernel: &mut Kernel, times: u32) {
    kernel.cpu(CpuId(1)).balance.nr_balance_failed = times;
}

#[test]
fn the_tail_is_taken_first_and_who_is_refused_goes_to_the_head() {
    let mut kernel = kernel(2);
    let stays = pinned(&mut kernel, 0, 0);
    let [tail, next] = [0, 0].map(|nice| queued(&mut kernel, 0, nice));
    let runs = queued(&mut kernel, 0, 0);
    run(&mut kernel, runs);
    assert_eq!(kernel.cpus[0].cfs_tasks, [stays, tail, next, runs]);
    assert_eq!(pull(&mut kernel, ONE_TASK), 1);
    assert_eq!(kernel.cpus[0].cfs_tasks, [next, runs, stays]);
    assert_eq!(kernel.cpus[1].cfs_tasks, [tail]);
}

#[test]
fn a_pass_takes_no_more_than_it_wants_and_leaves_one() {
    let mut kernel = kernel(2);
    for _ in 0..4 {
        queued(&mut kernel, 0, 0);
    }
    assert_eq!(pull(&mut kernel, Imbalance::Tasks(2)), 2);
    assert_eq!(pull(&mut kernel, Imbalance::Tasks(9)), 1);
    assert_eq!(kernel.nr_running(CpuId(0)), 1);
}

#[test]
fn loads_are_subtracted_in_full_until_nothing_is_wanted() {
    let mut kernel = kernel(2);
    for _ in 0..5 {
        queued(&mut kernel, 0, 0);
    }
    // 2500 - 1024 - 1024 = 452, and the third weighs 1024.
    assert_eq!(pull(&mut kernel, Imbalance::Load(2500)), 2);
}

#[test]
fn a_newidle_pass_takes_one() {
    // Step 14: of six tasks an idle pass would take three.
    let taken = |kind| {
        let mut kernel = kernel(2);
        for _ in 0..6 {
            queued(&mut kernel, 0, 0);
        }
        kernel.load_balance(CpuId(1), kind)
    };
    assert_eq!(taken(Kind::Idle), Outcome::Unbalanced { moved: 3 });
    assert_eq!(taken(Kind::NewlyIdle), Outcome::Unbalanced { moved: 1 });
}

#[test]
fn a_pass_looks_at_32_tasks_and_the_next_one_goes_on_there() {
    let mut kernel = kernel(2);
    for _ in 0..LOOKS_MAX {
        pinned(&mut kernel, 0, 0);
    }
    let free = queued(&mut kernel, 0, 0);
    let runs = queued(&mut kernel, 0, 0);
    run(&mut kernel, runs);
    assert_eq!(pull(&mut kernel, ONE_TASK), 0);
    assert_eq!(pull(&mut kernel, ONE_TASK), 1);
    assert_eq!(kernel.task(free).cpu, CpuId(1));
}

/// A source of two: one runs, and the other is looked at.
fn with_candidate() -> (Kernel, TaskId) {
    let mut kernel = kernel(2);
    let candidate = queued(&mut kernel, 0, 0);
    let runs = queued(&mut kernel, 0, 0);
    run(&mut kernel, runs);
    (kernel, candidate)
}

#[test]
fn a_delayed_sleeper_moves_only_as_load() {
    let delayed = || {
        let (mut kernel, candidate) = with_candidate();
        kernel.entities[candidate].delayed = true;
        (kernel, candidate)
    };
    let (mut kernel, _) = delayed();
    assert_eq!(pull(&mut kernel, ONE_TASK), 0);
    let (mut kernel, candidate) = delayed();
    assert_eq!(pull(&mut kernel, Imbalance::Load(1024)), 1);
    assert!(kernel.entities[candidate].delayed, "and sleeps on there");
    assert_eq!(kernel.nr_running(CpuId(1)), 1);
}

/// As [`with_candidate`], with one that has had more than its share.
fn with_ineligible() -> Kernel {
    let (mut kernel, candidate) = with_candidate();
    // V = (0 + 1 ms) / 2: it is 0.5 ms ahead.
    kernel.entities[candidate].vruntime += 1_000_000;
    assert!(!kernel.cpus[0].rq.is_eligible(&kernel.entities, candidate));
    kernel
}

#[test]
fn an_ineligible_task_does_not_move_to_a_queue_where_it_competes() {
    let mut kernel = with_ineligible();
    queued(&mut kernel, 1, 0);
    assert_eq!(pull(&mut kernel, ONE_TASK), 0);
    fail(&mut kernel, 1);
    assert_eq!(pull(&mut kernel, ONE_TASK), 1, "but after a failure");
    let mut kernel = with_ineligible();
    assert_eq!(pull(&mut kernel, ONE_TASK), 1, "and to an empty queue");
}

#[test]
fn a_real_time_task_is_no_competition_for_an_ineligible_one() {
    let mut kernel = with_ineligible();
    let fifo = TaskOptions::from(Policy::Fifo { priority: 1 });
    spawn(&mut kernel, 1, fifo);
    assert_eq!(pull(&mut kernel, ONE_TASK), 1);
}

#[test]
fn neither_a_pinned_nor_the_running_task_moves() {
    let mut kernel = kernel(2);
    pinned(&mut kernel, 0, 0);
    let runs = queued(&mut kernel, 0, 0);
    run(&mut kernel, runs);
    for failed in [0, 4] {
        fail(&mut kernel, failed);
        assert_eq!(pull(&mut kernel, ONE_TASK), 0);
    }
}

#[test]
fn a_task_that_ran_within_half_a_millisecond_is_hot_until_two_failures() {
    for (ran_ns_ago, failed, moves) in [
        (499_999, 0, 0),
        (500_000, 0, 1),
        (499_999, 1, 0),
        (499_999, 2, 1),
    ] {
        let (mut kernel, candidate) = with_candidate();
        kernel.entities[candidate].exec_start_ns = kernel.now_ns - ran_ns_ago;
        fail(&mut kernel, failed);
        let moved = pull(&mut kernel, ONE_TASK);
        assert_eq!(moved, moves, "{ran_ns_ago} ns ago, {failed} failures");
    }
}

#[test]
fn each_failure_halves_what_a_task_weighs() {
    // 1024 against 511, 512 and 1023; a reader's 71 755 >> 5 = 2242.
    for (nice, failed, wanted, moves) in [
        (0, 0, 1023, 0),
        (0, 0, 1024, 1),
        (0, 1, 511, 0),
        (0, 1, 512, 1),
        (0, 2, 511, 1),
        (-19, 4, 4483, 0),
        (-19, 4, 4484, 1),
        (-19, 5, 2242, 1),
    ] {
        let mut kernel = kernel(2);
        queued(&mut kernel, 0, nice);
        let runs = queued(&mut kernel, 0, 0);
        run(&mut kernel, runs);
        fail(&mut kernel, failed);
        let moved = pull(&mut kernel, Imbalance::Load(wanted));
        assert_eq!(moved, moves, "nice {nice}, {failed} failures, {wanted}");
    }
}

#[test]
fn three_equal_spinners_one_moves_at_the_second_pass() {
    // Step 19.3: min(2048 - 1536, 1536 - 1024) = 512; 1024 > 512, 512 is not.
    let mut kernel = kernel(2);
    let (a, b) = (queued(&mut kernel, 0, 0), queued(&mut kernel, 0, 0));
    let c = queued(&mut kernel, 1, 0);
    run(&mut kernel, b);
    run(&mut kernel, c);
    let mut pass = || {
        let outcome = kernel.load_balance(CpuId(1), Kind::Busy);
        kernel.note_outcome(CpuId(1), Kind::Busy, outcome);
        (outcome, kernel.task(a).cpu)
    };
    assert_eq!(pass(), (Outcome::Unbalanced { moved: 0 }, CpuId(0)));
    assert_eq!(pass(), (Outcome::Unbalanced { moved: 1 }, CpuId(1)));
}

#[test]
fn the_fourth_pass_in_vain_pushes_the_running_task() {
    // Step 12: more than cache_nice_tries + 2 = 3 failures, its own included.
    let mut kernel = kernel(2);
    let stays = pinned(&mut kernel, 0, 0);
    let runs = queued(&mut kernel, 0, 0);
    run(&mut kernel, runs);
    for failed in 1..=4 {
        let outcome = kernel.load_balance(CpuId(1), Kind::Idle);
        assert_eq!(outcome, Outcome::Unbalanced { moved: 0 });
        kernel.note_outcome(CpuId(1), Kind::Idle, outcome);
        let state = &kernel.cpus[0];
        assert_eq!(kernel.cpus[1].balance.nr_balance_failed, failed);
        assert_eq!(state.push_to.is_some(), failed == 4, "after {failed}");
        assert_eq!(state.need_resched, failed == 4);
    }
    kernel.schedule(CpuId(0));
    assert_eq!(kernel.task(runs).cpu, CpuId(1));
    assert_eq!(kernel.curr(CpuId(0)), Some(stays));
    assert_eq!(kernel.cpus[1].balance.nr_balance_failed, 0);
}

#[test]
fn nobody_is_pushed_for_a_load() {
    // As before, but the destination is fully busy, so that load is wanted.
    let mut kernel = kernel(2);
    pinned(&mut kernel, 0, 0);
    let runs = queued(&mut kernel, 0, 0);
    run(&mut kernel, runs);
    let local = queued(&mut kernel, 1, 0);
    run(&mut kernel, local);
    for _ in 0..10 {
        let outcome = kernel.load_balance(CpuId(1), Kind::Busy);
        assert_eq!(outcome, Outcome::Unbalanced { moved: 0 });
        kernel.note_outcome(CpuId(1), Kind::Busy, outcome);
    }
    assert_eq!(kernel.cpus[0].push_to, None);
}

#[test]
fn who_was_displaced_by_a_push_but_not_pushed_no_longer_runs() {
    let mut kernel = kernel(2);
    let runs = pinned(&mut kernel, 0, 0);
    let [pushed, next] = [0, -5].map(|nice| queued(&mut kernel, 0, nice));
    run(&mut kernel, runs);
    kernel.cpu(CpuId(0)).push_to = Some(CpuId(1));
    advance(&mut kernel, 0, MS);
    kernel.schedule(CpuId(0));
    assert_eq!(kernel.task(pushed).cpu, CpuId(1));
    assert_eq!(kernel.curr(CpuId(0)), Some(next));
    // It ran to this moment: a half-life later half of its use is left.
    let later_ns = kernel.now_ns + HALF_LIFE_NS;
    assert_eq!(
        kernel.task(runs).pelt.running(later_ns),
        crate::pelt::ONE / 2
    );
}

#[test]
fn a_task_arrives_with_its_lag_and_its_distance_to_the_deadline() {
    let mut kernel = kernel(2);
    let (a, b) = (queued(&mut kernel, 0, 0), queued(&mut kernel, 0, 0));
    let c = queued(&mut kernel, 1, 0);
    run(&mut kernel, a);
    run(&mut kernel, c);
    advance(&mut kernel, 0, 100_000);
    // On CPU 0: V = (0.1 + 0) / 2 ms = 50 us, so b's lag is 50 us; 700 us to
    // its deadline. On CPU 1, c has run 100 us, and V is that.
    kernel.detach(CpuId(0), b);
    assert_eq!(kernel.entities[b].vlag, 50_000);
    kernel.attach(CpuId(1), b);
    let entity = &kernel.entities[b];
    // Inflated: 50 us * (1024 + 1024) / 1024 = 100 us before V = 100 us.
    assert_eq!(entity.vruntime, 0);
    assert_eq!(entity.deadline, 700_000);
    assert_eq!(entity.exec_start_ns, 0, "not hot");
    let average = kernel.cpus[1].rq.avg_vruntime(&kernel.entities);
    assert_eq!(average - kernel.entities[b].vruntime, 50_000);
    assert_eq!(kernel.cpus[1].cfs_tasks, [c, b], "at the head");
    // Its load has come along.
    let loads = [0, 1].map(|cpu| kernel.cpu_load(CpuId(cpu)));
    assert_eq!(loads, [1024, 2048]);
}

#[test]
fn an_arrival_preempts_as_a_woken_task_would() {
    // Step 13: it is eligible and its deadline is the earliest.
    let mut kernel = kernel(2);
    let heavy = queued(&mut kernel, 0, -19);
    let c = queued(&mut kernel, 1, 0);
    run(&mut kernel, c);
    // c is past its slice and thus not protected.
    advance(&mut kernel, 1, MS);
    kernel.cpu(CpuId(1)).need_resched_lazy = false;
    kernel.detach(CpuId(0), heavy);
    kernel.attach(CpuId(1), heavy);
    assert!(kernel.cpus[1].need_resched_lazy && !kernel.cpus[1].need_resched);
}

#[test]
fn a_delayed_arrival_only_shortens_the_protection() {
    // Item 13: to one slice from V, which is 0 here.
    let (mut kernel, candidate) = with_candidate();
    let c = queued(&mut kernel, 1, 0);
    run(&mut kernel, c);
    kernel.entities[c].vprot = 5_000_000;
    kernel.entities[candidate].delayed = true;
    assert_eq!(pull(&mut kernel, Imbalance::Load(1024)), 1);
    assert_eq!(kernel.entities[c].vprot, 700_000);
    let state = &kernel.cpus[1];
    assert!(!state.need_resched && !state.need_resched_lazy);
}

#[test]
fn an_idle_cpu_that_is_sent_a_delayed_sleeper_is_told() {
    let (mut kernel, candidate) = with_candidate();
    kernel.entities[candidate].delayed = true;
    kernel.cpu(CpuId(0)).push_to = Some(CpuId(1));
    kernel.push_task(CpuId(0));
    assert_eq!(kernel.task(candidate).cpu, CpuId(1));
    let arrives_ns = kernel.now_ns + kernel.config.ipi_ns;
    assert_eq!(kernel.cpus[1].ipi_at_ns, arrives_ns);
}
