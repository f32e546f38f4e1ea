//! What the machine reports: one record per scheduling or lock transition.
//!
//! Everything that a viewer shows is folded from these records, so nothing can
//! be drawn that the model did not produce.
//!
//! Invariants:
//! 1. Records are in order of time; records of the same time are in order of
//!    cause.
//! 2. A record is 24 bytes and refers to tasks, CPUs and locks by index.
//! 3. The source line of a record ([`Event::site`]) is not part of the trace
//!    hash: moving a line of code does not change what the model does.

use crate::ids::{CpuId, SiteId, TaskId};
use serde::{Deserialize, Serialize};

/// One transition of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// When, in virtual nanoseconds since the start of the run.
    pub at_ns: u64,
    /// What the [`EventKind`] says it is.
    pub arg: u64,
    /// The task it is about, or [`TaskId::NONE`].
    pub task: TaskId,
    /// The source line the task last asked the kernel from.
    pub site: SiteId,
    /// A second number, as the [`EventKind`] says.
    pub aux: u16,
    /// The CPU it happened on.
    pub cpu: CpuId,
    /// What happened.
    pub kind: EventKind,
}

/// The kinds of transition, with the meaning of `arg` and `aux`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum EventKind {
    /// The task exists and is runnable. `arg`: its weight.
    Spawn,
    /// The task is now the one that the CPU runs. The context switch takes
    /// time, during which the task makes no progress: `arg` is its length in ns.
    SwitchIn,
    /// The task has left the CPU. `aux`: an [`OutReason`].
    SwitchOut,
    /// The scheduler was asked and has picked the task that runs already.
    Repick,
    /// The task was asleep and is runnable again. `aux`: the waking task's
    /// index, or [`TaskId::NONE`]'s for a timer.
    Wake,
    /// The task blocks while it is not eligible: it stays in the run queue as
    /// a delayed sleeper.
    DelayDequeue,
    /// The delayed sleeper has left the run queue.
    FinishDequeue,
    /// The CPU has nothing to run.
    Idle,
    /// The timer tick of the CPU.
    Tick,
    /// The precise slice-end timer fired.
    Hrtick,
    /// The task runs in user mode from here on (`aux` 0) or in the kernel (1).
    Mode,
    /// A reschedule is wanted of the CPU's task: `aux` 0 lazily, 1 in full.
    NeedResched,
    /// The task's virtual runtime, `arg` as `i64` in virtual ns.
    Vruntime,
    /// The task's virtual deadline, `arg` as `i64` in virtual ns.
    Deadline,
    /// The task goes to sleep until the time `arg`.
    Sleep,
    /// The task has ended.
    Exit,
    /// Preemption was switched off for the task (nesting depth 0 to 1).
    PreemptOff,
    /// Preemption is possible again (nesting depth 1 to 0).
    PreemptOn,
    /// The task was moved here from CPU `arg`.
    Migrate,
    /// The task spins on lock `arg`, as one who has just come (`aux` 0) or as
    /// the first waiter (1).
    LockSpin,
    /// It has given up spinning on lock `arg`.
    LockSpinEnd,
    /// The task owns lock `arg`. `aux`: an [`Acquired`].
    LockAcquire,
    /// The task has queued on lock `arg` and will sleep.
    LockWait,
    /// The first waiter, woken in vain, demands to be handed lock `arg`.
    LockHandoffWanted,
    /// The task has released lock `arg`; with `aux` 1 it handed it to the
    /// first waiter.
    LockRelease,
    /// A record of the layer above: `aux` is its code, `arg` its value.
    Probe,
    /// The task has another weight, `arg`.
    Reweight,
    /// The task that was just switched in runs in the turn of task `arg`, which
    /// waits for it.
    Donor,
    /// The task waits for completion `arg` and will sleep.
    CompletionWait,
    /// The task has completed completion `arg`; with `aux` 1 for everybody.
    Complete,
    /// The task has submitted request `arg` to device `aux`.
    IoSubmit,
    /// The task waits for request `arg` of device `aux` and will sleep.
    IoWait,
    /// The interrupt that says that request `arg` is done; with `aux` 1 it has
    /// failed. The task is the one that it hit.
    IoDone,
    /// The task shares the reader/writer lock `arg`. `aux`: an [`Acquired`].
    ReadAcquire,
    /// The task no longer shares the reader/writer lock `arg`.
    ReadRelease,
    /// The worker begins to run work item `arg`.
    WorkBegin,
    /// The worker has run work item `arg` to its end.
    WorkEnd,
    /// The task waits for work item `arg` and will sleep.
    WorkFlush,
    /// RCU's grace period `arg` begins.
    GraceBegin,
    /// RCU's grace period `arg` is over.
    GraceEnd,
    /// The task waits for RCU's grace period `arg` and will sleep.
    GraceWait,
}

/// Why a task left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u16)]
pub enum OutReason {
    /// It still wants to run.
    Preempted = 0,
    /// It waits for a lock.
    Blocked = 1,
    /// It sleeps until a time.
    Sleeping = 2,
    /// It has ended.
    Exited = 3,
}

impl OutReason {
    /// The reason with this number in [`Event::aux`].
    #[must_use]
    pub fn from_aux(aux: u16) -> OutReason {
        match aux {
            1 => OutReason::Blocked,
            2 => OutReason::Sleeping,
            3 => OutReason::Exited,
            _ => OutReason::Preempted,
        }
    }
}

/// How a lock came to its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u16)]
pub enum Acquired {
    /// It was free and nobody waited.
    Fast = 0,
    /// It was free, and the task took it ahead of those that wait.
    Stolen = 1,
    /// The task had waited, was woken, and found it free.
    Woken = 2,
    /// The former owner gave it to the task by name.
    HandedOff = 3,
}

impl Acquired {
    /// The way with this number in [`Event::aux`].
    #[must_use]
    pub fn from_aux(aux: u16) -> Acquired {
        match aux {
            1 => Acquired::Stolen,
            2 => Acquired::Woken,
            3 => Acquired::HandedOff,
            _ => Acquired::Fast,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_24_bytes() {
        assert_eq!(size_of::<Event>(), 24);
    }
}
