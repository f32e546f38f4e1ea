//! Preemption: who asks for a reschedule, how, and whether the woken task does.
//!
//! Rules (scheduler reference, sections 2.9 and 3; verified, items 13, 20 to 25):
//! 1. A request is full, or under the lazy model and from the fair class, lazy.
//!    A lazy one is honoured on return to user mode, or becomes a full one at
//!    the next tick; a full one to another CPU is sent as an interrupt.
//! 2. A higher class always preempts a lower one, in full.
//! 3. In the fair class a woken task preempts iff it would be picked. One with a
//!    shorter slice is compared without protection, and needs only be eligible.
//! 4. Whoever is not `SCHED_IDLE` preempts who is; otherwise `SCHED_BATCH`,
//!    `SCHED_IDLE`, delayed and forked tasks never preempt.

use crate::config::Preemption;
use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::kernel::Kernel;
use crate::policy::Policy;

impl Kernel {
    /// `resched_curr`: a full request.
    pub(crate) fn resched_full(&mut self, cpu: CpuId) {
        if !self.cpu(cpu).need_resched {
            self.cpu(cpu).need_resched = true;
            self.emit_cpu(cpu, EventKind::NeedResched, 1);
            if cpu != self.this_cpu {
                self.send_ipi(cpu);
            }
            // Spinners watch the flag.
            if let Some(curr) = self.curr(cpu) {
                self.kick_spinner(curr, 0);
            }
        }
    }

    /// Interrupts another CPU, unless an interrupt is on its way already.
    pub(crate) fn send_ipi(&mut self, cpu: CpuId) {
        let at_ns = self.now_ns + self.config.ipi_ns;
        let state = self.cpu(cpu);
        state.ipi_at_ns = state.ipi_at_ns.min(at_ns);
        self.refresh(cpu);
    }

    /// `resched_curr_lazy`: what the fair class asks with.
    pub(crate) fn resched_fair(&mut self, cpu: CpuId) {
        if self.config.preempt != Preemption::Lazy || self.curr(cpu).is_none() {
            self.resched_full(cpu);
        } else if !self.cpu(cpu).need_resched_lazy && !self.cpu(cpu).need_resched {
            self.cpu(cpu).need_resched_lazy = true;
            self.emit_cpu(cpu, EventKind::NeedResched, 0);
        }
    }

    /// Whether the CPU's task must give way at this point, where it is about
    /// to go on in the mode it is in.
    pub(crate) fn must_resched(&self, cpu: CpuId) -> bool {
        let state = &self.cpus[cpu.index()];
        let Some(curr) = state.curr else {
            return false;
        };
        let task = &self.tasks[curr.index()];
        if task.user_mode {
            return state.need_resched || state.need_resched_lazy;
        }
        let preemptible = matches!(self.config.preempt, Preemption::Full | Preemption::Lazy);
        preemptible && task.preempt_count == 0 && state.need_resched
    }

    /// `cond_resched`: whether a task that offers to give way must. Only where
    /// kernel code is not preempted anyway.
    pub(crate) fn cond_resched(&self, task: TaskId) -> bool {
        let state = &self.tasks[task.index()];
        let offered = matches!(
            self.config.preempt,
            Preemption::None | Preemption::Voluntary
        );
        offered && state.preempt_count == 0 && self.cpus[state.cpu.index()].need_resched
    }

    /// `might_sleep`: under the voluntary model also an offer to give way.
    pub(crate) fn might_resched(&self, task: TaskId) -> bool {
        self.config.preempt == Preemption::Voluntary && self.cond_resched(task)
    }

    /// `wakeup_preempt`: whether a task that was just queued displaces the one
    /// whose turn it is.
    pub(crate) fn wakeup_preempt(&mut self, cpu: CpuId, woken: TaskId) {
        let Some(donor) = self.cpu(cpu).donor else {
            if cpu == self.this_cpu {
                self.resched_full(cpu);
            } else {
                self.send_ipi(cpu);
            }
            return;
        };
        let priority = |task: TaskId| self.rt_priority(task);
        match (priority(donor), priority(woken)) {
            (None, None) => self.wakeup_preempt_fair(cpu, donor, woken),
            (curr, woken) if woken > curr => self.resched_full(cpu),
            _ => {}
        }
    }

    /// `wakeup_preempt_fair`.
    fn wakeup_preempt_fair(&mut self, cpu: CpuId, donor: TaskId, woken: TaskId) {
        if !self.entities[donor].on_rq {
            // It is being switched out; whoever comes next is picked afresh.
            return;
        }
        if self.preempts_fair(cpu, donor, woken) {
            let rq = &mut self.cpus[cpu.index()].rq;
            rq.cancel_protection(&mut self.entities);
            self.resched_fair(cpu);
        } else {
            self.no_preemption(cpu);
        }
    }

    /// What remains to be done when a task that was queued does not preempt.
    pub(crate) fn no_preemption(&mut self, cpu: CpuId) {
        let rq = &mut self.cpus[cpu.index()].rq;
        rq.shorten_protection(&mut self.entities);
    }

    /// Whether the one is `SCHED_IDLE` and the other is not.
    pub(crate) fn displaces_idle(&self, donor: TaskId, woken: TaskId) -> bool {
        let is_idle = |task: TaskId| self.tasks[task.index()].policy == Policy::Idle;
        is_idle(donor) && !is_idle(woken)
    }

    fn preempts_fair(&mut self, cpu: CpuId, donor: TaskId, woken: TaskId) -> bool {
        if self.displaces_idle(donor, woken) {
            return true;
        }
        let policy = self.tasks[woken.index()].policy;
        let never = matches!(policy, Policy::Batch { .. } | Policy::Idle);
        if never || self.entities[woken].delayed {
            return false;
        }
        let shorter = self.entities[woken].slice_ns < self.entities[donor].slice_ns;
        if !shorter {
            return self.pick_fair(cpu, true) == Some(woken);
        }
        let picked = self.pick_fair(cpu, false) == Some(woken);
        let rq = &mut self.cpus[cpu.index()].rq;
        let preempts = picked || rq.is_eligible(&self.entities, woken);
        if preempts {
            rq.set_next_buddy(woken);
        }
        preempts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MachineConfig;
    use crate::policy::TaskOptions;

    const CPU: CpuId = CpuId(0);

    fn add(kernel: &mut Kernel, policy: Policy) -> TaskId {
        let options = TaskOptions::from(policy);
        let task = kernel.new_task("task".to_owned(), options, CPU);
        task.expect("options that can be")
    }

    /// A CPU that runs a task, and whether another that comes displaces it.
    fn displaced(runs: Policy, comes: Policy, forked: bool) -> bool {
        let mut kernel = Kernel::new(MachineConfig::default());
        let runs = add(&mut kernel, runs);
        kernel.enqueue(CPU, runs);
        kernel.cpu(CPU).curr = Some(runs);
        kernel.set_donor(CPU, runs);
        let comes = add(&mut kernel, comes);
        if forked {
            kernel.wake_up_new(comes, runs);
        } else {
            kernel.enqueue(CPU, comes);
            kernel.wakeup_preempt(CPU, comes);
        }
        kernel.cpu(CPU).need_resched_lazy
    }

    #[test]
    fn who_is_not_idle_displaces_who_is_however_it_comes() {
        let (normal, batch) = (Policy::Normal { nice: 0 }, Policy::Batch { nice: 19 });
        for forked in [false, true] {
            assert!(displaced(Policy::Idle, normal, forked));
            assert!(displaced(Policy::Idle, batch, forked));
            assert!(!displaced(Policy::Idle, Policy::Idle, forked));
            assert!(!displaced(Policy::Batch { nice: 19 }, batch, forked));
            assert!(!displaced(normal, batch, forked));
        }
        assert!(!displaced(batch, normal, true), "a fork otherwise waits");
    }
}
