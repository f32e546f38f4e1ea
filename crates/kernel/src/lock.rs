//! What every lock has: a name, an owner, a queue.

use crate::event::{Acquired, EventKind};
use crate::ids::{LockId, TaskId};
use crate::kernel::Kernel;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The kinds of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LockKind {
    /// The sleeping mutex: its owner can be preempted.
    Mutex,
    /// A spinlock taken with bottom halves off: its owner can not.
    SpinBh,
}

/// A lock of the machine.
#[derive(Debug)]
pub(crate) struct Lock {
    pub name: String,
    pub kind: LockKind,
    pub owner: Option<TaskId>,
    /// Waiters, first come first.
    pub waiters: VecDeque<TaskId>,
    /// The first waiter demands to be handed the lock (`MUTEX_FLAG_HANDOFF`).
    pub handoff: bool,
    /// The owner has been named by the former one and has not picked the lock
    /// up yet (`MUTEX_FLAG_PICKUP`).
    pub pickup: bool,
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
    pub(crate) fn new_lock(&mut self, name: String, kind: LockKind) -> LockId {
        let id = LockId(u16::try_from(self.locks.len()).unwrap_or(u16::MAX));
        self.locks.push(Lock {
            name,
            kind,
            owner: None,
            waiters: VecDeque::new(),
            handoff: false,
            pickup: false,
        });
        id
    }

    pub(crate) fn lock(&mut self, lock: LockId) -> &mut Lock {
        &mut self.locks[lock.index()]
    }

    /// Makes `task` the owner.
    pub(crate) fn own(&mut self, lock: LockId, task: TaskId, how: Acquired) {
        self.lock(lock).owner = Some(task);
        self.task(task).held.push(lock);
        self.emit(task, EventKind::LockAcquire, lock.0.into(), how as u16);
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
