//! What every lock has: a name, an owner, a queue.

use crate::event::{Acquired, EventKind};
use crate::ids::{LockId, TaskId};
use crate::kernel::{Kernel, NEVER, Op};
use crate::shared::RwWaiter;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The kinds of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LockKind {
    /// The sleeping mutex: its owner can be preempted.
    Mutex,
    /// A spinlock taken with bottom halves off: its owner can not.
    SpinBh,
    /// A spinlock taken with preemption off only.
    Spin,
    /// The spinning reader/writer lock: who has it can not be preempted.
    RwLock,
    /// The sleeping reader/writer semaphore: who has it can be preempted.
    RwSem,
}

/// A lock of the machine.
#[derive(Debug)]
pub(crate) struct Lock {
    pub name: String,
    pub kind: LockKind,
    pub owner: Option<TaskId>,
    /// Waiters, first come first: asleep for a mutex, spinning for a spinlock.
    pub waiters: VecDeque<TaskId>,
    /// Those who spin for a mutex before they queue; the first one watches the
    /// owner, the others wait for their turn (the MCS queue).
    pub osq: VecDeque<TaskId>,
    /// The first waiter demands to be handed the lock (`MUTEX_FLAG_HANDOFF`).
    pub handoff: bool,
    /// The owner has been named by the former one and has not picked the lock
    /// up yet (`MUTEX_FLAG_PICKUP`).
    pub pickup: bool,
    /// Those who share a reader/writer lock.
    pub readers: Vec<TaskId>,
    /// Those who wait for a reader/writer lock, first come first.
    pub rw_queue: VecDeque<RwWaiter>,
}

/// A lock as the outside sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockInfo {
    /// Its name, unique in the machine.
    pub name: String,
    /// What it is.
    pub kind: LockKind,
}

impl Kernel {
    /// Lets a spinning task look again, `delay_ns` from now.
    pub(crate) fn kick_spinner(&mut self, task: TaskId, delay_ns: u64) {
        let now_ns = self.now_ns;
        let state = self.task(task);
        let Op::Spin { again_ns } = state.op else {
            return;
        };
        // An interrupt may have kept it from the look that was due.
        let at_ns = (now_ns + delay_ns).min(again_ns.max(now_ns));
        state.op = Op::Spin { again_ns: at_ns };
        let cpu = state.cpu;
        debug_assert_eq!(self.curr(cpu), Some(task), "a spinner keeps its CPU");
        // During an interrupt it looks again when that ends.
        if self.cpu(cpu).stall_until_ns == NEVER {
            self.cpu(cpu).op_end_ns = at_ns;
            self.refresh(cpu);
        }
    }

    /// A task has left its CPU: who spins on a lock that it owns stops, or on one
    /// that was handed to it and that it has not picked up yet.
    pub(crate) fn kick_watchers(&mut self, owner: TaskId) {
        if let Some(lock) = self.task(owner).waits_for
            && self.lock(lock).owner == Some(owner)
        {
            self.kick_lock(lock);
        }
        for number in 0..self.task(owner).held.len() {
            let lock = self.task(owner).held[number];
            self.kick_lock(lock);
        }
    }

    /// Something about the owner of a lock has changed: the spinners that watch
    /// it see so when the cache line has reached them.
    pub(crate) fn kick_lock(&mut self, lock: LockId) {
        let line_ns = self.config.line_ns;
        let Lock { osq, waiters, .. } = &self.locks[lock.index()];
        let watchers = [osq.front().copied(), waiters.front().copied()];
        for watcher in watchers.into_iter().flatten() {
            self.kick_spinner(watcher, line_ns);
        }
    }

    pub(crate) fn new_lock(&mut self, name: String, kind: LockKind) -> LockId {
        let id = LockId(u16::try_from(self.locks.len()).unwrap_or(u16::MAX));
        self.locks.push(Lock {
            name,
            kind,
            owner: None,
            waiters: VecDeque::new(),
            osq: VecDeque::new(),
            handoff: false,
            pickup: false,
            readers: Vec::new(),
            rw_queue: VecDeque::new(),
        });
        id
    }

    pub(crate) fn lock(&mut self, lock: LockId) -> &mut Lock {
        &mut self.locks[lock.index()]
    }

    /// Puts a task in the queue, at the end unless waiters go by priority.
    pub(crate) fn queue_on(&mut self, lock: LockId, task: TaskId) {
        self.tickets += 1;
        self.task(task).ticket = self.tickets;
        let at = self.place_in_line(lock, task);
        self.lock(lock).waiters.insert(at, task);
        self.wait_for(task, lock);
    }

    /// Makes `task` the owner.
    pub(crate) fn own(&mut self, lock: LockId, task: TaskId, how: Acquired) {
        self.check_free(lock, task, how);
        self.task(task).waits_for = None;
        self.lock(lock).owner = Some(task);
        self.task(task).held.push(lock);
        self.emit(task, EventKind::LockAcquire, lock.0.into(), how as u16);
        self.inherit(task);
    }

    /// Takes the lock from `task`; says whether it was the owner.
    pub(crate) fn disown(&mut self, lock: LockId, task: TaskId) -> bool {
        if self.lock(lock).owner != Some(task) || self.lock(lock).pickup {
            let owner = match self.lock(lock).owner {
                Some(owner) => self.task(owner).name.clone(),
                None => "nobody".to_owned(),
            };
            let name = &self.locks[lock.index()].name;
            let what = format!("unlocks {name}, which {owner} owns; only its owner may");
            self.fail(task, what);
            return false;
        }
        self.task(task).held.retain(|&held| held != lock);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MachineConfig;
    use crate::ids::CpuId;
    use crate::policy::{Policy, TaskOptions};

    #[test]
    fn a_spinner_that_missed_its_look_in_an_interrupt_does_not_look_in_the_past() {
        let mut kernel = Kernel::new(MachineConfig::default());
        let options = TaskOptions::from(Policy::Normal { nice: 0 });
        let task = kernel.new_task("spinner".to_owned(), options, CpuId(0));
        let task = task.expect("options that can be");
        kernel.cpu(CpuId(0)).curr = Some(task);
        // Its look was due at 100 ns, when an interrupt had begun that is over now.
        kernel.task(task).op = Op::Spin { again_ns: 100 };
        kernel.now_ns = 200;
        kernel.kick_spinner(task, 50);
        assert_eq!(kernel.cpu(CpuId(0)).op_end_ns, 200);
    }
}
