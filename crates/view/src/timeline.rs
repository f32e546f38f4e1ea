//! The timeline: who ran, who slept on a lock, and who owned it, over a window.
//!
//! Invariants:
//! 1. Every part of it is folded from the records of the window; parts that
//!    reach over an end of the window are cut there, so the timelines of windows
//!    that follow each other fit together without a seam.
//! 2. The parts of a lane do not overlap and are in order of time.
//! 3. [`Hold::alarm`] is set for the time during which somebody waited for the
//!    lock and its owner was not running, and for no other time.
//!
//! Left out: spinlocks, which nobody can be seen to hold at this scale.

use crate::few::sort_few;
use serde::{Deserialize, Serialize};
use zswap_lab::{
    Activity, EventKind, LockId, LockKind, MachineState, Recording, Role, RunState, TaskId,
};

/// What a task does during a part of its lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Doing {
    /// It has the CPU.
    Running {
        /// The (de)compressor is at work for it.
        compressing: bool,
    },
    /// It sleeps on a lock.
    WaitsForLock,
    /// It wants the CPU; drawn as nothing but a line.
    Runnable,
    /// It sleeps for another reason, or has ended.
    Away,
}

/// A part of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Segment {
    /// Start, in ns.
    pub from_ns: u64,
    /// End, in ns.
    pub to_ns: u64,
    /// What the task does.
    pub doing: Doing,
}

/// A time during which a task owns a mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hold {
    /// Start, in ns.
    pub from_ns: u64,
    /// End, in ns.
    pub to_ns: u64,
    /// The mutex.
    pub lock: LockId,
    /// Somebody waits for it, and the owner does not run.
    pub alarm: bool,
}

/// What the timeline shows of one task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// The task.
    pub task: TaskId,
    /// What it is for.
    pub role: Role,
    /// What it does.
    pub segments: Vec<Segment>,
    /// When it owns a mutex.
    pub holds: Vec<Hold>,
}

/// A mutex given by its owner to the first waiter, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handoff {
    /// When, in ns.
    pub at_ns: u64,
    /// From whom.
    pub from: TaskId,
    /// To whom.
    pub to: TaskId,
}

/// A window of a run as lanes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// Start of the window, in ns.
    pub from_ns: u64,
    /// End of the window, in ns.
    pub to_ns: u64,
    /// One lane per task: readers, then workers, then spinners.
    pub lanes: Vec<Lane>,
    /// The handoffs.
    pub handoffs: Vec<Handoff>,
    /// The timer ticks, in ns.
    pub ticks_ns: Vec<u64>,
}

impl Timeline {
    /// Folds a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Timeline {
        let mut fold = Fold::new(recording);
        let mut state = recording.start.clone();
        for event in &recording.events {
            fold.before(
                event.at_ns,
                event.kind,
                event.task,
                event.arg,
                event.aux,
                &state,
            );
            state.apply(event);
            fold.after(event.at_ns, &state);
        }
        fold.finish(recording.to_ns)
    }

    /// The longest time in `from_ns..to_ns` during which a task that others
    /// wait for does not run.
    #[must_use]
    pub fn longest_alarm(&self, from_ns: u64, to_ns: u64) -> Option<(u64, u64)> {
        let holds = self.lanes.iter().flat_map(|lane| &lane.holds);
        holds
            .filter(|hold| hold.alarm)
            .map(|hold| (hold.from_ns.max(from_ns), hold.to_ns.min(to_ns)))
            .filter(|(from, to)| from < to)
            .max_by_key(|(from, to)| to - from)
    }
}

/// The order of the lanes.
fn rank(role: Role) -> u8 {
    match role {
        Role::Reader => 0,
        Role::Worker => 1,
        Role::Spinner => 2,
        Role::Kthread => 3,
    }
}

/// A part that has begun and not ended.
#[derive(Clone, Copy)]
struct Open<T> {
    since_ns: u64,
    what: T,
}

struct Fold {
    timeline: Timeline,
    doing: Vec<Open<Doing>>,
    /// Per lock: its owner, and whether that is an alarm.
    owned: Vec<Open<Option<(TaskId, bool)>>>,
    is_mutex: Vec<bool>,
}

impl Fold {
    fn new(recording: &Recording) -> Fold {
        let Recording {
            roster,
            from_ns,
            start,
            ..
        } = recording;
        let lane = |(index, task): (usize, &zswap_lab::TaskInfo)| Lane {
            task: TaskId(u16::try_from(index).unwrap_or(u16::MAX)),
            role: task.role,
            segments: Vec::new(),
            holds: Vec::new(),
        };
        let is_mutex: Vec<bool> = roster
            .locks
            .iter()
            .map(|lock| lock.kind == LockKind::Mutex)
            .collect();
        Fold {
            doing: (0..roster.tasks.len())
                .map(|task| Open {
                    since_ns: *from_ns,
                    what: doing(start, task),
                })
                .collect(),
            owned: (0..roster.locks.len())
                .map(|lock| Open {
                    since_ns: *from_ns,
                    what: owned(start, &is_mutex, lock),
                })
                .collect(),
            is_mutex,
            timeline: Timeline {
                from_ns: *from_ns,
                to_ns: *from_ns,
                lanes: roster.tasks.iter().enumerate().map(lane).collect(),
                handoffs: Vec::new(),
                ticks_ns: Vec::new(),
            },
        }
    }

    /// What only a record says, and no state.
    fn before(
        &mut self,
        at_ns: u64,
        kind: EventKind,
        task: TaskId,
        arg: u64,
        aux: u16,
        state: &MachineState,
    ) {
        if kind == EventKind::Tick {
            self.timeline.ticks_ns.push(at_ns);
        }
        if kind == EventKind::LockRelease && aux == 1 {
            let lock = usize::try_from(arg)
                .ok()
                .and_then(|index| state.locks.get(index));
            if let Some(&to) = lock.and_then(|lock| lock.queue.front()) {
                self.timeline.handoffs.push(Handoff {
                    at_ns,
                    from: task,
                    to,
                });
            }
        }
    }

    fn after(&mut self, at_ns: u64, state: &MachineState) {
        for task in 0..self.doing.len() {
            let now = doing(state, task);
            if now != self.doing[task].what {
                self.end_segment(task, at_ns);
                self.doing[task] = Open {
                    since_ns: at_ns,
                    what: now,
                };
            }
        }
        for lock in 0..self.owned.len() {
            let now = owned(state, &self.is_mutex, lock);
            if now != self.owned[lock].what {
                self.end_hold(lock, at_ns);
                self.owned[lock] = Open {
                    since_ns: at_ns,
                    what: now,
                };
            }
        }
    }

    fn end_segment(&mut self, task: usize, to_ns: u64) {
        let Open {
            since_ns: from_ns,
            what: doing,
        } = self.doing[task];
        if from_ns < to_ns {
            let segments = &mut self.timeline.lanes[task].segments;
            segments.push(Segment {
                from_ns,
                to_ns,
                doing,
            });
        }
    }

    fn end_hold(&mut self, lock: usize, to_ns: u64) {
        let Open {
            since_ns: from_ns,
            what,
        } = self.owned[lock];
        let Some((owner, alarm)) = what else {
            return;
        };
        if from_ns < to_ns {
            let lock = LockId(u16::try_from(lock).unwrap_or(u16::MAX));
            let holds = &mut self.timeline.lanes[owner.index()].holds;
            holds.push(Hold {
                from_ns,
                to_ns,
                lock,
                alarm,
            });
        }
    }

    fn finish(mut self, to_ns: u64) -> Timeline {
        for task in 0..self.doing.len() {
            self.end_segment(task, to_ns);
        }
        for lock in 0..self.owned.len() {
            self.end_hold(lock, to_ns);
        }
        self.timeline.to_ns = to_ns;
        sort_few(&mut self.timeline.lanes, |lane| {
            (rank(lane.role), lane.task)
        });
        self.timeline
    }
}

fn doing(state: &MachineState, task: usize) -> Doing {
    let task = &state.tasks[task];
    match task.run {
        RunState::Running => Doing::Running {
            compressing: match task.activity {
                Activity::Storing { compressing, .. } => compressing,
                Activity::Loading { decompressing, .. } => decompressing,
                Activity::Computing => false,
            },
        },
        RunState::Runnable { .. } => Doing::Runnable,
        RunState::Blocked => Doing::WaitsForLock,
        RunState::Sleeping { .. } | RunState::Exited => Doing::Away,
    }
}

/// The owner of a mutex, and whether somebody waits while it does not run.
fn owned(state: &MachineState, is_mutex: &[bool], lock: usize) -> Option<(TaskId, bool)> {
    if !is_mutex[lock] {
        return None;
    }
    let lock = &state.locks[lock];
    let owner = lock.owner?;
    let runs = state.task(owner).run == RunState::Running;
    let waited_for = lock.queue.iter().any(|&waiter| waiter != owner);
    Some((owner, waited_for && !runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zswap_lab::{Run, Scenario};

    fn window(context: &str, from_ns: u64, to_ns: u64) -> Recording {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        scenario.set("context", context).expect("a context");
        let mut run = Run::start(&scenario, 1).expect("it starts");
        run.advance(from_ns).expect("it runs");
        run.record(to_ns).expect("it runs")
    }

    #[test]
    fn lanes_are_without_gap_or_overlap() {
        let timeline = Timeline::of(&window("shared", 3_000_000, 9_000_000));
        for lane in &timeline.lanes {
            let mut at_ns = timeline.from_ns;
            for segment in &lane.segments {
                assert_eq!(segment.from_ns, at_ns);
                assert!(segment.from_ns < segment.to_ns);
                at_ns = segment.to_ns;
            }
            assert_eq!(at_ns, timeline.to_ns);
        }
    }

    #[test]
    fn windows_fit_together() {
        let length = |timeline: &Timeline| -> u64 {
            let holds = timeline.lanes.iter().flat_map(|lane| &lane.holds);
            holds.map(|hold| hold.to_ns - hold.from_ns).sum()
        };
        let whole = Timeline::of(&window("shared", 2_000_000, 8_000_000));
        let first = Timeline::of(&window("shared", 2_000_000, 5_000_000));
        let second = Timeline::of(&window("shared", 5_000_000, 8_000_000));
        assert_eq!(length(&whole), length(&first) + length(&second));
        assert_eq!(
            whole.ticks_ns.len(),
            first.ticks_ns.len() + second.ticks_ns.len()
        );
    }

    #[test]
    fn readers_come_first_and_spinners_last() {
        let timeline = Timeline::of(&window("split", 0, 1_000_000));
        let roles: Vec<Role> = timeline.lanes.iter().map(|lane| lane.role).collect();
        assert!(roles.is_sorted_by_key(|&role| rank(role)), "{roles:?}");
        assert_eq!(roles.first(), Some(&Role::Reader));
    }
}
