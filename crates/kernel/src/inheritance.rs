//! Priority inheritance: what if the owner of a mutex were as important as the
//! most important task that waits for it?
//!
//! Off by default, since the kernel's mutex has none. With
//! [`Inheritance::Priority`](crate::Inheritance) waiters stand in order of
//! priority, and an owner has the highest real-time priority and the largest
//! weight of those that wait for any of its mutexes, through chains of locks.
//!
//! Invariants:
//! 1. What a task has inherited follows from who waits at this moment; nothing
//!    of it is left when nobody does.
//! 2. Nobody becomes less important by inheriting.
//!
//! The kernel's rt_mutex inherits between classes like this; among fair tasks it
//! would leave the weight as it is.

use crate::config::Inheritance;
use crate::event::EventKind;
use crate::ids::{LockId, TaskId};
use crate::kernel::Kernel;
use crate::lock::{Lock, LockKind};

/// What a task has from those that wait for its locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inherited {
    pub priority: Option<u8>,
    /// A load weight; 0 if nobody waits.
    pub weight: i64,
}

impl Kernel {
    /// The real-time priority that a task runs with, its own or inherited.
    pub(crate) fn rt_priority(&self, task: TaskId) -> Option<u8> {
        let state = &self.tasks[task.index()];
        state.policy.rt_priority().max(state.inherited.priority)
    }

    /// Where in the queue of a lock a task takes its place.
    pub(crate) fn place_in_line(&self, lock: LockId, task: TaskId) -> usize {
        let waiters = &self.locks[lock.index()].waiters;
        let by_priority = self.config.mutex.inheritance == Inheritance::Priority;
        if !by_priority || self.locks[lock.index()].kind != LockKind::Mutex {
            return waiters.len();
        }
        let own = self.importance(task);
        let ahead = |waiter: &TaskId| self.importance(*waiter) >= own;
        waiters.iter().take_while(|waiter| ahead(waiter)).count()
    }

    fn importance(&self, task: TaskId) -> (Option<u8>, i64) {
        (self.rt_priority(task), self.entities[task].weight)
    }

    /// Gives a task what those that wait for its locks have, and takes from it
    /// what nobody gives any more.
    pub(crate) fn inherit(&mut self, task: TaskId) {
        if self.config.mutex.inheritance != Inheritance::Priority {
            return;
        }
        let inherited = self.due(task);
        if self.tasks[task.index()].inherited != inherited {
            self.change_importance(task, inherited);
        }
    }

    /// What a task has from those that wait at this moment.
    pub(crate) fn due(&self, task: TaskId) -> Inherited {
        let mut inherited = Inherited::default();
        let held = self.tasks[task.index()].held.iter();
        let held = held.map(|lock| &self.locks[lock.index()]);
        for lock in held.filter(|lock| lock.kind == LockKind::Mutex) {
            let waiters = lock.waiters.iter().chain(&lock.osq);
            for &waiter in waiters.filter(|&&waiter| waiter != task) {
                let (priority, weight) = self.importance(waiter);
                inherited.priority = inherited.priority.max(priority);
                inherited.weight = inherited.weight.max(weight);
            }
        }
        inherited
    }

    fn change_importance(&mut self, task: TaskId, inherited: Inherited) {
        let former = self.rt_priority(task);
        let state = &self.tasks[task.index()];
        let priority = state.policy.rt_priority().max(inherited.priority);
        let own = state.policy.weight().map_or(0, i64::from);
        if former != priority {
            self.change_class(task, inherited);
        } else {
            self.task(task).inherited = inherited;
        }
        self.reweight(task, own.max(inherited.weight));
        self.move_up_in_line(task);
    }

    /// A waiter that has become more or less important takes another place. If
    /// that makes somebody else the first to have a free lock, it is woken.
    fn move_up_in_line(&mut self, task: TaskId) {
        let Some(lock) = self.task(task).waits_for else {
            return;
        };
        if self.lock(lock).kind != LockKind::Mutex {
            return;
        }
        let waiters = &mut self.lock(lock).waiters;
        if let Some(at) = waiters.iter().position(|&waiter| waiter == task) {
            waiters.remove(at);
            let at = self.place_in_line(lock, task);
            self.lock(lock).waiters.insert(at, task);
            self.wake_first_of_free(lock);
        }
    }

    fn wake_first_of_free(&mut self, lock: LockId) {
        let Lock { owner, waiters, .. } = &self.locks[lock.index()];
        if let (None, Some(&first)) = (owner, waiters.front()) {
            let waker = self.curr(self.this_cpu).unwrap_or(TaskId::NONE);
            self.wake(first, waker);
        }
    }

    /// A task has become more or less important: so do those that it waits for.
    pub(crate) fn pass_on(&mut self, task: TaskId) {
        if self.config.mutex.inheritance != Inheritance::Priority {
            return;
        }
        self.move_up_in_line(task);
        let mut at = task;
        for _ in 0..self.tasks.len() {
            let Some(owner) = self.waits_for_whom(at) else {
                return;
            };
            self.inherit(owner);
            at = owner;
        }
    }

    /// `rt_mutex_setprio`: moves a task between classes, or within the real-time
    /// one.
    fn change_class(&mut self, task: TaskId, inherited: Inherited) {
        let former = self.rt_priority(task);
        let cpu = self.task(task).cpu;
        self.update_curr(cpu);
        let queued = self.entities[task].on_rq;
        let running = self.cpu(cpu).donor == Some(task);
        if queued {
            self.leave_class(task);
        }
        self.task(task).inherited = inherited;
        if !queued || self.task(task).asleep {
            return;
        }
        self.enqueue(cpu, task);
        if running {
            self.set_donor(cpu, task);
        }
        if running && self.rt_priority(task) < former {
            self.resched_full(cpu);
        } else if !running {
            self.wakeup_preempt(cpu, task);
        }
    }

    fn leave_class(&mut self, task: TaskId) {
        let (cpu, real_time) = (self.task(task).cpu, self.is_rt(task));
        let state = &mut self.cpus[cpu.index()];
        if state.donor == Some(task) {
            state.rq.put_prev(&mut self.entities);
            state.donor = None;
        }
        if real_time {
            state.rt.dequeue(task);
            self.entities[task].on_rq = false;
            return;
        }
        if self.entities[task].delayed {
            state.rq.finish_delayed_dequeue(&mut self.entities, task);
            self.cpu(cpu).untouch(task);
            self.emit(task, EventKind::FinishDequeue, 0, 0);
        } else {
            self.detach(cpu, task);
        }
    }
}
