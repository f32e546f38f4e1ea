//! The spinlock with bottom halves off (`spin_lock_bh`).
//!
//! Invariants:
//! 1. From before the acquisition to the release preemption is off, so the
//!    owner keeps its CPU.
//! 2. The release is a preemption point: a full request that came meanwhile is
//!    honoured right there.
//!
//! Left out: contention. Each of these locks belongs to one CPU and is taken on
//! that CPU only, so with preemption off nobody can meet an owner; an attempt
//! to is reported as a fault.

use crate::event::{Acquired, EventKind};
use crate::ids::{LockId, TaskId};
use crate::kernel::Kernel;
use crate::machine::Shared;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A spinlock of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpinLock(pub(crate) LockId);

impl SpinLock {
    /// The number under which records speak of it.
    #[must_use]
    pub fn id(self) -> LockId {
        self.0
    }
}

impl Kernel {
    pub(crate) fn spin_lock_bh(&mut self, task: TaskId, lock: LockId) {
        self.preempt_disable(task);
        if let Some(owner) = self.lock(lock).owner {
            let (name, owner) = (
                self.locks[lock.index()].name.clone(),
                self.task(owner).name.clone(),
            );
            let what = format!(
                "takes {name}, which {owner} holds with preemption off; \
                 it would spin for ever"
            );
            self.fail(task, what);
            return;
        }
        self.own(lock, task, Acquired::Fast);
    }
}

/// Releases a spinlock and gives way if that is due.
#[must_use = "futures do nothing unless awaited"]
pub struct SpinUnlockBh<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    place: &'static Location<'static>,
    released: bool,
}

impl<'a> SpinUnlockBh<'a> {
    pub(crate) fn new(
        kernel: &'a Shared,
        task: TaskId,
        lock: SpinLock,
        place: &'static Location<'static>,
    ) -> SpinUnlockBh<'a> {
        SpinUnlockBh {
            kernel,
            task,
            lock: lock.0,
            place,
            released: false,
        }
    }
}

impl Future for SpinUnlockBh<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.released {
            return Poll::Ready(());
        }
        self.released = true;
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        kernel.at(self.task, self.place);
        if !kernel.disown(self.lock, self.task) {
            return Poll::Pending;
        }
        kernel.lock(self.lock).owner = None;
        kernel.emit(self.task, EventKind::LockRelease, self.lock.0.into(), 0);
        kernel.enable_and_resched(self.task)
    }
}
