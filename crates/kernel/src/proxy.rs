//! Proxy execution: what if a waiter could lend its turn to the owner?
//!
//! Off by default, as in distribution kernels. With
//! [`Inheritance::Proxy`](crate::Inheritance) a task that blocks on a mutex stays
//! in the run queue. When its turn comes, the owner runs in it, accounted to the
//! waiter (the *donor*), and at the unlock the mutex goes to the donor by name.
//!
//! Invariants:
//! 1. A donor waits for a mutex; who runs in its turn is the owner at the end of
//!    its chain of mutexes, on the same CPU.
//! 2. A donor whose owner sleeps for another reason leaves the queue, and is
//!    then an ordinary waiter.
//! 3. A donor whose owner is on another CPU is moved there.
//!
//! Source of the rules: scheduler reference, section 5, item 8.

use crate::config::Inheritance;
use crate::ids::{CpuId, LockId, TaskId};
use crate::kernel::Kernel;
use crate::lock::LockKind;

impl Kernel {
    /// A task blocks on a mutex: whether it stays queued to lend its turn.
    pub(crate) fn stays_to_lend(&mut self, task: TaskId) -> bool {
        let lends = self.config.mutex.inheritance == Inheritance::Proxy
            && self.tasks[task.index()]
                .waits_for
                .is_some_and(|lock| self.locks[lock.index()].kind == LockKind::Mutex);
        self.task(task).lends = lends;
        lends
    }

    /// Whether a task is queued although it sleeps.
    pub(crate) fn lends(&self, task: TaskId) -> bool {
        self.tasks[task.index()].lends
    }

    /// `find_proxy_task`: who runs in the turn of `donor`. `None` if the donor
    /// has left this queue, so that the CPU picks again.
    pub(crate) fn find_proxy_task(&mut self, cpu: CpuId, donor: TaskId) -> Option<TaskId> {
        let owner = self.end_of_chain(donor);
        let Some(owner) = owner.filter(|&owner| self.entities[owner].on_rq) else {
            self.stop_lending(cpu, donor);
            return None;
        };
        if self.task(owner).asleep {
            self.stop_lending(cpu, donor);
            return None;
        }
        let there = self.task(owner).cpu;
        if there == cpu {
            return Some(owner);
        }
        if self.tasks[donor.index()].cpus_allowed.allows(there) && !self.is_rt(donor) {
            self.put_back(cpu, donor);
            self.detach(cpu, donor);
            self.attach(there, donor);
        } else {
            self.stop_lending(cpu, donor);
        }
        None
    }

    /// The task that a chain of mutexes leads to, if it can run.
    fn end_of_chain(&self, donor: TaskId) -> Option<TaskId> {
        let mut at = donor;
        for _ in 0..self.tasks.len() {
            let lock = self.tasks[at.index()].waits_for?;
            let lock = &self.locks[lock.index()];
            // A free mutex is about to be taken by its first waiter.
            at = lock.owner.or(lock.waiters.front().copied())?;
            if !self.tasks[at.index()].lends {
                return Some(at);
            }
        }
        None
    }

    fn stop_lending(&mut self, cpu: CpuId, donor: TaskId) {
        self.task(donor).lends = false;
        self.put_back(cpu, donor);
        let real_time = self.is_rt(donor);
        let state = &mut self.cpus[cpu.index()];
        if real_time {
            state.rt.dequeue(donor);
            self.entities[donor].on_rq = false;
        } else {
            state.rq.dequeue_queued(&mut self.entities, donor);
            self.cpu(cpu).untouch(donor);
        }
        self.track(donor);
    }

    /// If it is the donor's turn already, ends it.
    fn put_back(&mut self, cpu: CpuId, donor: TaskId) {
        let state = &mut self.cpus[cpu.index()];
        if state.rq.curr() == Some(donor) {
            state.rq.put_prev(&mut self.entities);
            state.donor = None;
        }
    }

    /// The waiter in whose turn `owner` releases the mutex.
    pub(crate) fn donor_for(&mut self, lock: LockId, owner: TaskId) -> Option<TaskId> {
        let cpu = self.task(owner).cpu;
        let donor = self.cpu(cpu).donor?;
        let waits = donor != owner && self.task(donor).waits_for == Some(lock);
        let queued = self.lock(lock).waiters.contains(&donor);
        if waits && queued {
            // Its turn goes on as its own.
            self.resched_full(cpu);
            return Some(donor);
        }
        None
    }
}
