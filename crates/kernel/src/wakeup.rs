//! Which CPU a woken task goes to.
//!
//! Rules (scheduler reference, verified, items 29 to 33): first one of two CPUs
//! is chosen, the waker's and the one the task was on; then, if that is busy, an
//! idle one near it.
//!
//! A real-time task stays where it was unless one of at least its own priority
//! runs there; then it goes to the allowed CPU with the least important task.
//!
//! Left out: SMT siblings, more than one cache, per-CPU kernel threads.

use crate::balance::IMBALANCE_PCT;
use crate::ids::{CpuId, TaskId};
use crate::kernel::Kernel;
use crate::pelt::ONE;
use crate::policy::Policy;

/// A waker's count of flips is halved once a second at most.
const FLIPS_DECAY_NS: u64 = 1_000_000_000;

impl Kernel {
    /// `select_task_rq_fair` for a wakeup.
    pub(crate) fn select_task_rq(&mut self, task: TaskId, waker: TaskId) -> CpuId {
        let (prev, this) = (self.tasks[task.index()].cpu, self.this_cpu);
        if self.config.cpus == 1 {
            return prev;
        }
        if let Some(priority) = self.rt_priority(task) {
            return self.select_task_rq_rt(task, prev, priority);
        }
        if waker != TaskId::NONE {
            self.record_wakee(waker, task);
        }
        let wide = waker != TaskId::NONE && self.wake_wide(waker, task);
        let target = if wide || this == prev || !self.may_run(task, this) {
            prev
        } else {
            self.wake_affine(task, this, prev)
        };
        self.select_idle_sibling(task, prev, target)
    }

    fn record_wakee(&mut self, waker: TaskId, wakee: TaskId) {
        let now_ns = self.now_ns;
        let state = self.task(waker);
        if now_ns > state.flips_decayed_ns + FLIPS_DECAY_NS {
            state.wakee_flips >>= 1;
            state.flips_decayed_ns = now_ns;
        }
        if state.last_wakee != wakee {
            state.last_wakee = wakee;
            state.wakee_flips += 1;
        }
    }

    /// Many tasks that wake each other crosswise are better spread.
    fn wake_wide(&self, waker: TaskId, wakee: TaskId) -> bool {
        let flips = |task: TaskId| self.tasks[task.index()].wakee_flips;
        let (few, many) = (
            flips(waker).min(flips(wakee)),
            flips(waker).max(flips(wakee)),
        );
        let factor = u32::from(self.config.cpus);
        few >= factor && many >= few * factor
    }

    /// `wake_affine`: the waker's CPU or the task's own.
    fn wake_affine(&self, task: TaskId, this: CpuId, prev: CpuId) -> CpuId {
        let (this_idle, prev_idle) = (self.is_idle(this), self.is_idle(prev));
        if this_idle && self.config.shared_cache {
            return if prev_idle { prev } else { this };
        }
        if prev_idle {
            return prev;
        }
        let load = |cpu| i64::try_from(self.cpu_load(cpu)).unwrap_or(i64::MAX);
        let weight = self.entities[task].weight.unsigned_abs();
        let stored = self.tasks[task.index()].pelt.queued_as_stored();
        let own = i64::try_from((weight * (stored >> 1)) / (ONE >> 1)).unwrap_or(0);
        let margin = 100 + i64::from((IMBALANCE_PCT - 100) / 2);
        if (load(this) + own) * 100 < (load(prev) - own) * margin {
            this
        } else {
            prev
        }
    }

    fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.tasks[task.index()].cpus_allowed.allows(cpu)
    }

    /// `select_task_rq_rt` and `find_lowest_rq`.
    fn select_task_rq_rt(&self, task: TaskId, prev: CpuId, priority: u8) -> CpuId {
        let running = |cpu: CpuId| {
            let donor = self.cpus[cpu.index()].donor;
            let priority = |task: TaskId| self.rt_priority(task);
            // Idle before fair before real-time.
            donor.map(|donor| priority(donor).unwrap_or(0))
        };
        if running(prev) < Some(priority) {
            return prev;
        }
        let allowed = self.cpu_ids().filter(|&cpu| self.may_run(task, cpu));
        let lowest = allowed.min_by_key(|&cpu| running(cpu));
        lowest
            .filter(|&cpu| running(cpu) < Some(priority))
            .unwrap_or(prev)
    }

    fn select_idle_sibling(&mut self, task: TaskId, prev: CpuId, target: CpuId) -> CpuId {
        if self.takes_at_once(target) {
            return target;
        }
        let shared = self.config.shared_cache;
        if shared && prev != target && self.takes_at_once(prev) {
            return prev;
        }
        let recent = core::mem::replace(&mut self.task(task).recent_cpu, prev);
        let others = shared && recent != prev && recent != target;
        if others && self.takes_at_once(recent) && self.may_run(task, recent) {
            return recent;
        }
        if !shared {
            return target;
        }
        let cpus = u64::from(self.config.cpus);
        let looked_at = self.nr_idle_scan.min(cpus - 1);
        (1..=looked_at)
            .map(|step| CpuId(((u64::from(target.0) + step) % cpus) as u8))
            .find(|&cpu| self.takes_at_once(cpu) && self.may_run(task, cpu))
            .unwrap_or(target)
    }

    /// Nothing is queued and nothing is on its way.
    pub(crate) fn is_idle(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].idle && self.nr_running(cpu) == 0
    }

    /// It is idle, or all that it has is `SCHED_IDLE` (`sched_idle_cpu`).
    fn takes_at_once(&self, cpu: CpuId) -> bool {
        self.is_idle(cpu) || self.has_only_idle_policy(cpu)
    }

    fn has_only_idle_policy(&self, cpu: CpuId) -> bool {
        let state = &self.cpus[cpu.index()];
        let mut queued = state.rq.tree().iter().chain(state.donor.iter());
        state.donor.is_some()
            && state.rt.is_empty()
            && queued.all(|task| self.tasks[task.index()].policy == Policy::Idle)
    }

    /// The load of a CPU: that of all tasks attached to it, asleep or not, in
    /// units of weight.
    pub(crate) fn cpu_load(&self, cpu: CpuId) -> u64 {
        let attached = self.cpus[cpu.index()].attached.iter();
        attached.map(|&task| self.task_load(task)).sum()
    }

    /// The load of a task, in units of weight; none for a real-time one.
    pub(crate) fn task_load(&self, task: TaskId) -> u64 {
        self.weighted(task, self.tasks[task.index()].pelt.queued(self.now_ns))
    }

    /// A share of the weight of a task; none for a real-time one.
    pub(crate) fn weighted(&self, task: TaskId, share: u64) -> u64 {
        if self.is_rt(task) {
            return 0;
        }
        // No weight has more than 17 bits, and no share more than 33.
        (self.entities[task].weight.unsigned_abs() * share) >> 32
    }

    /// Attaches a task to another CPU: its load counts there from now on.
    pub(crate) fn attach_to(&mut self, task: TaskId, cpu: CpuId) {
        let from = self.task(task).cpu;
        self.cpu(from).attached.retain(|&other| other != task);
        self.cpu(cpu).attached.push(task);
        self.task(task).cpu = cpu;
    }
}

#[cfg(test)]
mod tests;
