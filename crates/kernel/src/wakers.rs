//! What the things that a task can sleep on have in common.
//!
//! Invariants:
//! 1. Who may sleep has preemption on, whether it then sleeps or not.
//! 2. Waking others costs the waker [`crate::MachineConfig::wake_ns`] for each
//!    wakeup that has an effect, with preemption off; the end is a preemption
//!    point.

use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::kernel::{Kernel, Op};
use crate::trace::Sites;
use core::task::Poll;

/// How far a task has come with waking others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WakeStep {
    /// It has not begun.
    Start,
    /// The wakeups are made and being paid for.
    Woke,
    /// It is through.
    Done,
}

impl Kernel {
    /// Whether a task may sleep; a fault, which says what it does, if not.
    pub(crate) fn might_sleep(
        &mut self,
        task: TaskId,
        does: impl FnOnce(&Kernel) -> String,
    ) -> bool {
        if self.task(task).preempt_count == 0 {
            return true;
        }
        let does = does(self);
        let what = if *self.rcu_nesting(task) > 0 {
            format!("{does}, which may sleep, in an RCU read section; end that first")
        } else {
            format!(
                "{does}, which may sleep, with preemption off; release what switched it off first"
            )
        };
        self.fail(task, what);
        false
    }

    /// Puts the calling task to sleep until it is woken.
    pub(crate) fn sleep_until_woken(&mut self, task: TaskId) {
        self.task(task).op = Op::Block;
        self.task(task).asleep = true;
    }

    /// A task that has switched preemption off has made this many wakeups that
    /// had an effect.
    pub(crate) fn pay_wakeups(
        &mut self,
        task: TaskId,
        step: &mut WakeStep,
        woken: u64,
    ) -> Poll<()> {
        *step = WakeStep::Woke;
        let left_ns = woken * self.config.wake_ns;
        if left_ns == 0 {
            return self.end_wakeups(task, step);
        }
        self.task(task).op = Op::Run { left_ns };
        Poll::Pending
    }

    /// What follows when the wakeups are paid for.
    pub(crate) fn end_wakeups(&mut self, task: TaskId, step: &mut WakeStep) -> Poll<()> {
        if core::mem::replace(step, WakeStep::Done) == WakeStep::Done {
            return Poll::Ready(());
        }
        self.enable_and_resched(task)
    }

    /// Reports something that no task did: an interrupt or a softirq, with the
    /// task that it hit.
    pub(crate) fn emit_irq(&mut self, cpu: CpuId, kind: EventKind, arg: u64, aux: u16) {
        let task = self.curr(cpu).unwrap_or(TaskId::NONE);
        let site = match task {
            TaskId::NONE => Sites::START,
            task => self.tasks[task.index()].site,
        };
        self.trace.push(crate::event::Event {
            at_ns: self.now_ns,
            arg,
            task,
            site,
            aux,
            cpu,
            kind,
        });
    }
}
