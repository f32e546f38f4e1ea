//! Locks that readers share: who has them, and in which way.
//!
//! Invariants:
//! 1. A reader/writer lock has one writer, or any number of readers, or nobody.
//! 2. A task has it once: to take it again, in either way, is a fault, because
//!    it waits for itself as soon as somebody else waits in between.
//! 3. Only who has it releases it, in the way in which it has it.

use crate::event::{Acquired, EventKind};
use crate::ids::{LockId, TaskId};
use crate::kernel::Kernel;

/// In which way a reader/writer lock is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Together with other readers.
    Read,
    /// Alone.
    Write,
}

/// Somebody who waits for a reader/writer lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RwWaiter {
    pub task: TaskId,
    pub access: Access,
}

impl Kernel {
    /// Whether a task may be given a lock as far as those go who have it.
    pub(crate) fn rw_is_free(&self, lock: LockId, access: Access) -> bool {
        let state = &self.locks[lock.index()];
        let no_writer = state.owner.is_none();
        match access {
            Access::Read => no_writer,
            Access::Write => no_writer && state.readers.is_empty(),
        }
    }

    /// Gives a lock to a task.
    pub(crate) fn rw_give(&mut self, lock: LockId, task: TaskId, access: Access, how: Acquired) {
        match access {
            Access::Write => self.own(lock, task, how),
            Access::Read => {
                self.task(task).waits_for = None;
                self.lock(lock).readers.push(task);
                self.task(task).held.push(lock);
                self.emit(task, EventKind::ReadAcquire, lock.0.into(), how as u16);
            }
        }
    }

    /// Whether a task has a lock, in either way.
    pub(crate) fn rw_has(&self, lock: LockId, task: TaskId) -> bool {
        let state = &self.locks[lock.index()];
        state.owner == Some(task) || state.readers.contains(&task)
    }

    /// Whether a task may ask for a lock; a fault if it has it already.
    pub(crate) fn rw_may_ask(&mut self, lock: LockId, task: TaskId) -> bool {
        if !self.rw_has(lock, task) {
            return true;
        }
        let name = &self.locks[lock.index()].name;
        let what = format!("takes {name}, which it has already; it would wait for itself");
        self.fail(task, what);
        false
    }

    /// Takes a lock back from a task; a fault if it does not have it.
    pub(crate) fn rw_take_back(&mut self, lock: LockId, task: TaskId, access: Access) -> bool {
        match access {
            Access::Write => {
                let had = self.disown(lock, task);
                if had {
                    self.lock(lock).owner = None;
                    self.emit(task, EventKind::LockRelease, lock.0.into(), 0);
                }
                had
            }
            Access::Read => {
                let had = self.lock(lock).readers.contains(&task);
                if had {
                    self.lock(lock).readers.retain(|&reader| reader != task);
                    self.task(task).held.retain(|&held| held != lock);
                    self.emit(task, EventKind::ReadRelease, lock.0.into(), 0);
                } else {
                    let name = &self.locks[lock.index()].name;
                    let what = format!("read-unlocks {name}, which it does not share");
                    self.fail(task, what);
                }
                had
            }
        }
    }
}
