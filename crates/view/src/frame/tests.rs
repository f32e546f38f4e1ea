//! Frames of real runs, against what the run itself says.

use super::*;
use crate::why::why;
use zswap_lab::{Player, Recording, Run, Scenario};

/// The published benchmark around its first read over 10 ms.
fn slow_read() -> (Recording, zswap_lab::Read) {
    let scenario = Scenario::named("b1-1cpu").expect("built in");
    let mut run = Run::start(&scenario, 1).expect("a good scenario");
    let mut looked_ns = 0;
    let read = loop {
        looked_ns += 100_000_000;
        run.measure(looked_ns).expect("no rule is broken");
        let slow = |read: &&zswap_lab::Read| read.latency_ns > 10_000_000;
        if let Some(read) = run.metrics().reads().iter().find(slow) {
            break *read;
        }
    };
    let mut run = Run::start(&scenario, 1).expect("a good scenario");
    run.advance(read.begin_ns - 1_000_000)
        .expect("no rule is broken");
    let end_ns = read.begin_ns + read.latency_ns + 1_000_000;
    (run.record(end_ns).expect("no rule is broken"), read)
}

#[test]
fn the_slow_read_shows_its_preempted_owner_and_the_chain_to_it() {
    let (recording, read) = slow_read();
    let mut player = Player::new(recording);
    let mut alarms_ns = 0;
    let mut last_ns = read.begin_ns;
    player.seek_ns(read.begin_ns + 100_000);
    while player.state().at_ns < read.begin_ns + read.latency_ns {
        let at_ns = player.state().at_ns;
        let roster = &player.recording().roster;
        let frame = frame(roster, player.state(), at_ns);
        if let Some(alarm) = &frame.alarm {
            alarms_ns += at_ns - last_ns;
            assert_ne!(frame.tasks[alarm.owner.index()].status, Status::Running);
            assert!(frame.tasks[alarm.owner.index()].alarm);
            assert!(frame.locks[alarm.lock.index()].alarm);
            let queue = &frame.locks[alarm.lock.index()].queue;
            assert!(queue.iter().any(|waiter| waiter.task == alarm.waiter));
            let links = why(roster, player.state(), at_ns, alarm.waiter);
            assert_eq!(links[0].task, alarm.waiter);
            let waiter = frame.tasks[alarm.waiter.index()].status;
            if matches!(waiter, Status::WaitsForLock | Status::Delayed) {
                assert!(links.len() >= 2, "{links:?}");
                let owner = |link: &crate::WhyLink| link.task == alarm.owner && link.alarm;
                assert!(links.iter().any(owner), "{links:?}");
            }
            let running = frame.cpus[0].running;
            // Between leaving a CPU and the next task's coming in it runs nobody.
            if running.is_some() {
                assert_eq!(links.last().map(|link| link.task), running);
            }
        }
        last_ns = at_ns;
        player.step(1);
    }
    assert!(
        alarms_ns * 10 > read.latency_ns * 8,
        "the owner is off the CPU for most of the wait: {alarms_ns} of {}",
        read.latency_ns
    );
}

#[test]
fn a_run_queue_is_in_order_and_its_lags_sum_to_zero() {
    let (recording, _) = slow_read();
    let mut player = Player::new(recording);
    for _ in 0..2_000 {
        player.step(1);
        let state = player.state();
        let frame = frame(&player.recording().roster, state, state.at_ns);
        let cpu = &frame.cpus[0];
        let deadlines: Vec<i64> = cpu
            .run_queue
            .iter()
            .map(|task| frame.tasks[task.index()].deadline_ns)
            .collect();
        assert!(deadlines.is_sorted());
        let queued = cpu.run_queue.iter().chain(&cpu.running);
        let (lags, weights) = queued.fold((0, 0), |(lags, weights), task| {
            let task = &frame.tasks[task.index()];
            let weight = i64::from(task.weight);
            (lags + weight * task.lag_ns, weights + weight)
        });
        assert!((-weights..=0).contains(&lags), "{lags} {weights}");
    }
}

#[test]
fn stepping_back_is_never_having_stepped() {
    let (recording, _) = slow_read();
    let mut there = Player::new(recording.clone());
    let mut fro = Player::new(recording);
    for (position, detour) in [(10, 5), (1_023, 2), (1_024, 400), (1_100, -200), (0, 1_200)] {
        there.seek(position);
        fro.seek(position);
        fro.step(detour);
        fro.step(-detour);
        assert_eq!(there.state(), fro.state());
        assert_eq!(fro.position(), position);
    }
}

#[test]
fn a_window_does_not_depend_on_how_the_run_got_there() {
    let scenario = Scenario::named("b1-1cpu").expect("built in");
    let run = |stops: &[u64]| {
        let mut run = Run::start(&scenario, 9).expect("a good scenario");
        for &stop_ns in stops {
            run.advance(stop_ns).expect("no rule is broken");
        }
        run.record(60_000_000).expect("no rule is broken")
    };
    let whole = run(&[50_000_000]);
    let parts = run(&[1, 999_999, 1_000_000, 7_777_777, 50_000_000]);
    assert_eq!(whole.start, parts.start);
    assert_eq!(whole.events, parts.events);
    assert!(whole.events.len() > 1_000);
}

#[test]
fn a_frame_survives_being_sent() {
    let (recording, read) = slow_read();
    let mut player = Player::new(recording);
    player.seek_ns(read.begin_ns + read.latency_ns / 2);
    let frame = frame(
        &player.recording().roster,
        player.state(),
        player.state().at_ns,
    );
    let json = serde_json::to_string(&frame).expect("plain data");
    assert_eq!(
        serde_json::from_str::<Frame>(&json).expect("the same"),
        frame
    );
}
