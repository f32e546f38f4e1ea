//! The story of a wait: how the chain from a waiting task to the one that holds
//! it up changed, from its first moment to its last.
//!
//! Invariants:
//! 1. A moment is told when the chain is another than the moment before: other
//!    tasks, other locks, or an owner that has got or lost its CPU.
//! 2. An owner that lets go of a lock and takes it again before anybody else can
//!    is no moment.
//! 3. Who happens to run beside a queued owner is no part of the chain; a switch
//!    between bystanders is not a moment.
//!
//! ```
//! use zswap_lab::{Run, Scenario, TaskId};
//! let scenario = Scenario::named("b1-1cpu").expect("it is built in");
//! let recording = Run::start(&scenario, 1)?.record(3_000_000)?;
//! let reader = TaskId(5);
//! let story = zswap_view::story(recording, reader, 0, 3_000_000);
//! assert_eq!(story[0].at_ns, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::why::{WhyLink, why};
use serde::{Deserialize, Serialize};
use zswap_lab::{CpuId, LockId, MachineState, Player, Recording, RunState, TaskId};

/// A moment at which a chain of waits became another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Moment {
    /// When, in virtual ns.
    pub at_ns: u64,
    /// The chain from then on.
    pub links: Vec<WhyLink>,
}

/// What a task does, as far as a chain goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Runs(CpuId),
    Queued(CpuId),
    Waits(LockId),
    Spins(LockId),
    Sleeps,
}

fn step(state: &MachineState, task: TaskId) -> Step {
    let task = state.task(task);
    match (task.run, task.waits_for, task.spins_on) {
        (RunState::Blocked, Some(lock), _) => Step::Waits(lock),
        (RunState::Running, _, Some(lock)) => Step::Spins(lock),
        (RunState::Running, ..) => Step::Runs(task.cpu),
        (RunState::Runnable { .. }, ..) => Step::Queued(task.cpu),
        _ => Step::Sleeps,
    }
}

/// The tasks from `first` to the one that could end the wait.
fn chain(state: &MachineState, first: TaskId) -> Vec<(TaskId, Step)> {
    let mut links: Vec<(TaskId, Step)> = Vec::new();
    let mut next = Some(first);
    while let Some(task) = next {
        let step = step(state, task);
        links.push((task, step));
        let owner = match step {
            Step::Waits(lock) | Step::Spins(lock) => state.lock(lock).owner,
            Step::Runs(_) | Step::Queued(_) | Step::Sleeps => None,
        };
        next = owner.filter(|owner| links.iter().all(|(seen, _)| seen != owner));
    }
    links
}

/// Whether a chain breaks off because nobody owns what its last task waits for.
fn ends_at_a_free_lock(chain: &[(TaskId, Step)]) -> bool {
    let last = chain.last().map(|(_, step)| *step);
    matches!(last, Some(Step::Waits(_) | Step::Spins(_)))
}

/// How the chain of `task` changed from `from_ns` to `to_ns`, both within the
/// recording.
#[must_use]
pub fn story(recording: Recording, task: TaskId, from_ns: u64, to_ns: u64) -> Vec<Moment> {
    let mut player = Player::new(recording);
    player.seek_ns(from_ns);
    let end = player.recording().position_at(to_ns);
    let mut told = Vec::new();
    let mut moments = Vec::new();
    let mut at_ns = from_ns;
    loop {
        let now = chain(player.state(), task);
        if now != told && !ends_at_a_free_lock(&now) {
            let links = why(&player.recording().roster, player.state(), at_ns, task);
            moments.push(Moment { at_ns, links });
            told = now;
        }
        if player.position() >= end {
            return moments;
        }
        // What happens at one time is one moment.
        let next_ns = player.recording().events[player.position()].at_ns;
        at_ns = next_ns;
        player.seek_ns(next_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zswap_lab::{Run, Scenario};

    #[test]
    fn the_slowest_read_is_told_from_its_owner_on() {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        scenario.set("duration_s", "1").expect("in range");
        let mut run = Run::start(&scenario, 1).expect("a good scenario");
        run.finish().expect("no rule is broken");
        let slowest = run.metrics().slowest().expect("there are reads");
        let (from_ns, to_ns) = (slowest.begin_ns, slowest.begin_ns + slowest.latency_ns);
        let mut run = Run::start(&scenario, 1).expect("a good scenario");
        run.advance(from_ns).expect("no rule is broken");
        let recording = run.record(to_ns).expect("no rule is broken");
        let story = story(recording, slowest.task, from_ns, to_ns);
        let times: Vec<u64> = story.iter().map(|moment| moment.at_ns).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        assert!(
            story
                .iter()
                .all(|moment| moment.links[0].task == slowest.task)
        );
        // Somebody who does not run owns what is waited for.
        let alarms = story
            .iter()
            .filter(|moment| moment.links.iter().any(|link| link.alarm));
        assert!(alarms.count() >= 2, "{story:#?}");
        let last = &story[story.len() - 1].links;
        assert_eq!(last.len(), 1, "in the end it runs");
    }
}
