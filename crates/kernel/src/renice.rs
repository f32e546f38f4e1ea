//! Changing a task's nice value while it lives.
//!
//! The task keeps its lag and what is left of its slice, in real time
//! ([`crate::fair::CfsRq::reweight`]). Afterwards a running task that has become
//! less important gives the scheduler a chance, and a queued one that is not
//! running is compared with the one that is, as if it had just been woken.
//!
//! Left out: changing the class of a living task.

use crate::event::EventKind;
use crate::ids::TaskId;
use crate::kernel::Kernel;
use crate::policy::{Policy, SpawnError};
use crate::task::Task;
use crate::weight::weight_of_nice;
use core::panic::Location;

impl Task {
    /// `set_user_nice`: gives a task another nice value; takes no time. A
    /// `SCHED_IDLE` or real-time task keeps its weight, as in the kernel.
    ///
    /// # Errors
    /// If `nice` is outside −20..=19.
    #[track_caller]
    pub fn set_user_nice(&self, who: TaskId, nice: i8) -> Result<(), SpawnError> {
        let weight = weight_of_nice(nice).ok_or(SpawnError::Nice(nice))?;
        let kernel = &mut *self.kernel().borrow_mut();
        kernel.at(self.id(), Location::caller());
        let policy = match kernel.task(who).policy {
            Policy::Normal { .. } => Policy::Normal { nice },
            Policy::Batch { .. } => Policy::Batch { nice },
            Policy::Idle | Policy::Fifo { .. } => return Ok(()),
        };
        kernel.task(who).policy = policy;
        let weight = kernel.task(who).inherited.weight.max(weight.into());
        kernel.reweight(who, weight);
        kernel.pass_on(who);
        Ok(())
    }
}

impl Kernel {
    /// `reweight_task` and `prio_changed_fair`.
    pub(crate) fn reweight(&mut self, task: TaskId, weight: i64) {
        let former = self.entities[task].weight;
        if former == weight {
            return;
        }
        let cpu = self.task(task).cpu;
        self.update_curr(cpu);
        let rq = &mut self.cpus[cpu.index()].rq;
        rq.reweight(&mut self.entities, task, weight);
        self.emit(task, EventKind::Reweight, weight.unsigned_abs(), 0);
        if !self.entities[task].on_rq || self.is_rt(task) {
            return;
        }
        let delayed = self.entities[task].delayed;
        self.emit_vruntime(task);
        self.emit_deadline(task);
        if self.cpu(cpu).donor == Some(task) {
            if weight < former {
                self.resched_full(cpu);
            }
        } else if !delayed {
            self.wakeup_preempt(cpu, task);
        }
    }
}
