//! Worked cases of the rules, with numbers computed by hand from the formulas.

use super::*;

const SLICE_NS: i64 = 700_000;

fn queue(weights: &[i64]) -> (CfsRq, Entities, Vec<TaskId>) {
    let mut entities = Entities::default();
    let mut rq = CfsRq::new(FairOptions::default());
    let ids: Vec<TaskId> = weights
        .iter()
        .map(|&weight| entities.add(weight, SLICE_NS))
        .collect();
    for &id in &ids {
        rq.enqueue(&mut entities, id);
    }
    (rq, entities, ids)
}

/// Runs `id` for `ns`, from `now_ns`, and leaves it current.
fn run(rq: &mut CfsRq, entities: &mut Entities, id: TaskId, now_ns: u64, ns: u64) -> Accounted {
    rq.put_prev(entities);
    rq.set_next(entities, id, now_ns);
    rq.update_curr(entities, now_ns + ns)
}

#[test]
fn virtual_slices_are_those_of_the_reference() {
    let mut entities = Entities::default();
    let slices: Vec<i64> = [1024, 110, 71755]
        .map(|weight| entities.add(weight, SLICE_NS))
        .map(|id| entities[id].vdelta(SLICE_NS))
        .to_vec();
    assert_eq!(slices, [700_000, 6_516_363, 9_989]);
}

#[test]
fn the_slice_end_timer_never_fires_before_the_deadline() {
    let (mut rq, mut entities, ids) = queue(&[71755, 110]);
    rq.set_next(&mut entities, ids[0], 0);
    let ns = entities[ids[0]].real_ns_to_deadline();
    // 9989 virtual ns at weight 71755: 699 961.6 real ns.
    assert_eq!(ns, 699_962);
    let accounted = rq.update_curr(&mut entities, ns.unsigned_abs());
    assert!(accounted.deadline_renewed && accounted.resched);
}

#[test]
fn an_entity_that_ran_its_slice_is_not_eligible_until_the_others_caught_up() {
    let (mut rq, mut entities, ids) = queue(&[1024, 110]);
    let [spinner, owner] = [ids[0], ids[1]];
    run(&mut rq, &mut entities, owner, 0, 700_000);
    assert!(!rq.is_eligible(&entities, owner));
    // T = q (W / w - 1) = 0.7 ms * (1134 / 110 - 1) = 6.516 ms.
    run(&mut rq, &mut entities, spinner, 700_000, 6_516_000);
    assert!(!rq.is_eligible(&entities, owner));
    rq.update_curr(&mut entities, 700_000 + 6_517_000);
    assert!(rq.is_eligible(&entities, owner));
}

#[test]
fn a_protected_current_entity_is_kept_while_eligible() {
    let (mut rq, mut entities, ids) = queue(&[1024, 1024]);
    rq.set_next(&mut entities, ids[0], 0);
    let newcomer = entities.add(71755, SLICE_NS);
    rq.enqueue(&mut entities, newcomer);
    assert_eq!(rq.pick(&entities, true), Some(ids[0]));
    assert_eq!(rq.pick(&entities, false), Some(newcomer));
    rq.cancel_protection(&mut entities);
    rq.update_curr(&mut entities, 1);
    assert_eq!(rq.pick(&entities, true), Some(newcomer));
}

#[test]
fn equal_deadlines_go_by_insertion() {
    let (rq, entities, ids) = queue(&[1024, 1024, 1024]);
    assert_eq!(rq.pick(&entities, true), Some(ids[0]));
}

#[test]
fn a_sleeper_in_debt_stays_queued_and_leaves_without_credit() {
    let (mut rq, mut entities, ids) = queue(&[1024, 1024]);
    let [other, sleeper] = [ids[0], ids[1]];
    run(&mut rq, &mut entities, sleeper, 0, 100_000);
    assert!(rq.dequeue_curr_to_sleep(&mut entities));
    assert!(entities[sleeper].delayed);
    assert_eq!(entities[sleeper].vlag, -50_000);
    assert_eq!(rq.nr_queued(&entities), 2);
    run(&mut rq, &mut entities, other, 100_000, 400_000);
    assert_eq!(rq.pick(&entities, false), Some(sleeper));
    rq.finish_delayed_dequeue(&mut entities, sleeper);
    assert_eq!(entities[sleeper].vlag, 0);
    assert_eq!(rq.nr_queued(&entities), 1);
}

#[test]
fn a_delayed_sleeper_woken_early_keeps_the_debt_it_still_has() {
    let (mut rq, mut entities, ids) = queue(&[1024, 1024]);
    let [other, sleeper] = [ids[0], ids[1]];
    run(&mut rq, &mut entities, sleeper, 0, 100_000);
    rq.dequeue_curr_to_sleep(&mut entities);
    run(&mut rq, &mut entities, other, 100_000, 40_000);
    assert!(
        !rq.requeue_delayed(&mut entities, sleeper),
        "stays in place"
    );
    assert_eq!(entities[sleeper].vlag, -30_000);
    assert_eq!(entities[sleeper].vruntime, 100_000);
}

#[test]
fn lag_kept_over_sleep_comes_out_as_it_was_saved() {
    let (mut rq, mut entities, ids) = queue(&[1024, 1024, 110]);
    run(&mut rq, &mut entities, ids[0], 0, 300_000);
    run(&mut rq, &mut entities, ids[1], 300_000, 100_000);
    assert!(!rq.dequeue_curr_to_sleep(&mut entities), "it is eligible");
    let saved = entities[ids[1]].vlag;
    assert!(saved > 0);
    run(&mut rq, &mut entities, ids[0], 400_000, 50_000);
    rq.enqueue(&mut entities, ids[1]);
    let lag = rq.avg_vruntime(&entities) - entities[ids[1]].vruntime;
    assert!((lag - saved).abs() <= 2, "{lag} {saved}");
}

#[test]
fn the_clamp_is_one_slice_and_one_tick() {
    let (mut rq, mut entities, ids) = queue(&[1024, 110]);
    // 1.7 ms at weight 110 is 15.8 virtual ms.
    run(&mut rq, &mut entities, ids[0], 0, 80_000_000);
    run(&mut rq, &mut entities, ids[1], 80_000_000, 1);
    assert!(!rq.dequeue_curr_to_sleep(&mut entities));
    assert_eq!(entities[ids[1]].vlag, 1_700_000 * 1024 / 110);
}

#[test]
fn lags_sum_to_zero_and_the_pick_is_eligible_through_a_long_run() {
    let (mut rq, mut entities, ids) = queue(&[71755, 1024, 110, 110, 110, 110]);
    let mut now_ns = 0;
    for step in 0..20_000_u64 {
        let next = rq.pick(&entities, true).expect("the queue is not empty");
        assert!(rq.is_eligible(&entities, next) || Some(next) == rq.curr());
        if rq.curr() != Some(next) {
            rq.put_prev(&mut entities);
            rq.set_next(&mut entities, next, now_ns);
        }
        now_ns += 1 + step.wrapping_mul(7919) % 900_000;
        rq.update_curr(&mut entities, now_ns);
        let average = rq.avg_vruntime(&entities);
        let lags: i64 = ids
            .iter()
            .map(|&id| entities[id].weight * (average - entities[id].vruntime))
            .sum();
        let weight: i64 = ids.iter().map(|&id| entities[id].weight).sum();
        assert!((-weight..=0).contains(&lags), "{lags}");
    }
}

#[test]
fn who_ends_in_debt_leaves_at_once() {
    let (mut rq, mut entities, ids) = queue(&[1024, 1024]);
    run(&mut rq, &mut entities, ids[1], 0, 100_000);
    assert!(!rq.is_eligible(&entities, ids[1]));
    rq.dequeue_curr(&mut entities);
    assert!(!entities[ids[1]].delayed && !entities[ids[1]].on_rq);
    assert_eq!(rq.nr_queued(&entities), 1);
}
