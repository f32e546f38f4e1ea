//! The spinlock with bottom halves off (`spin_lock_bh`).
//!
//! Invariants:
//! 1. From before the acquisition to the release preemption is off, so the
//!    owner keeps its CPU.
//! 2. Who finds it taken spins, first come first served, and is given it by the
//!    release; it goes on when two cache lines have travelled.
//! 3. The release runs the softirqs that were held off, and is then a
//!    preemption point: a full request that came meanwhile is honoured there.
//!
//! Left out: the paravirtual variants of guests.

use crate::asks::Thing;
use crate::event::{Acquired, EventKind};
use crate::ids::{LockId, TaskId};
use crate::kernel::{Kernel, NEVER, Op};
use crate::lock::LockKind;
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
    /// Takes a spinlock with bottom halves off, or queues on it.
    fn spin_lock_bh(&mut self, task: TaskId, lock: LockId) -> Poll<()> {
        self.task(task).bh_off += 1;
        self.spin_acquire(task, lock)
    }

    /// Takes a spinlock or queues on it; says whether it is taken.
    pub(crate) fn spin_acquire(&mut self, task: TaskId, lock: LockId) -> Poll<()> {
        if self.lock(lock).owner == Some(task) {
            let name = &self.locks[lock.index()].name;
            let what = format!("takes {name}, which it holds already; it would spin for ever");
            self.fail(task, what);
            return Poll::Pending;
        }
        self.preempt_disable(task);
        if self.lock(lock).owner.is_none() {
            self.own(lock, task, Acquired::Fast);
            return Poll::Ready(());
        }
        self.queue_on(lock, task);
        self.emit(task, EventKind::LockSpin, lock.0.into(), 0);
        self.task(task).op = Op::Spin { again_ns: NEVER };
        Poll::Pending
    }

    /// A spinner looks whether it has been given the lock.
    pub(crate) fn spin_again(&mut self, task: TaskId, lock: LockId) -> Poll<()> {
        if self.lock(lock).owner == Some(task) {
            return Poll::Ready(());
        }
        self.task(task).op = Op::Spin { again_ns: NEVER };
        Poll::Pending
    }

    /// Releases a spinlock: the first of those who spin has it now.
    pub(crate) fn spin_release(&mut self, task: TaskId, lock: LockId) {
        self.lock(lock).owner = None;
        self.emit(task, EventKind::LockRelease, lock.0.into(), 0);
        if let Some(next) = self.lock(lock).waiters.pop_front() {
            self.own(lock, next, Acquired::HandedOff);
            let lines_ns = 2 * self.config.line_ns;
            self.kick_spinner(next, lines_ns);
        }
    }

    fn spin_unlock_bh(&mut self, task: TaskId, lock: LockId) -> Poll<()> {
        self.spin_release(task, lock);
        self.task(task).bh_off -= 1;
        let cpu = self.task(task).cpu;
        if self.task(task).bh_off == 0 {
            self.run_softirq(cpu);
        }
        self.enable_and_resched(task)
    }
}

/// Takes a spinlock.
#[must_use = "futures do nothing unless awaited"]
pub struct SpinLockBh<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    place: &'static Location<'static>,
    queued: bool,
}

impl<'a> SpinLockBh<'a> {
    pub(crate) fn new(
        kernel: &'a Shared,
        task: TaskId,
        lock: SpinLock,
        place: &'static Location<'static>,
    ) -> SpinLockBh<'a> {
        SpinLockBh {
            kernel,
            task,
            lock: lock.0,
            place,
            queued: false,
        }
    }
}

impl Future for SpinLockBh<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if self.queued {
            return kernel.spin_again(self.task, self.lock);
        }
        self.queued = true;
        if !kernel.asks_about(
            Thing::Lock(self.lock, LockKind::SpinBh),
            self.task,
            self.place,
        ) {
            return Poll::Pending;
        }
        kernel.enter_kernel(self.task);
        kernel.spin_lock_bh(self.task, self.lock)
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
        if !kernel.asks_about(
            Thing::Lock(self.lock, LockKind::SpinBh),
            self.task,
            self.place,
        ) {
            return Poll::Pending;
        }
        if !kernel.disown(self.lock, self.task) {
            return Poll::Pending;
        }
        kernel.spin_unlock_bh(self.task, self.lock)
    }
}
