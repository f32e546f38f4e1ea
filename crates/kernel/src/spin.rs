//! The spinlock that only switches preemption off (`spin_lock`).
//!
//! Invariants:
//! 1. It queues, hands over and costs as the one with bottom halves off does
//!    ([`crate::SpinLock`]).
//! 2. It does not hold softirqs off: they run at the end of each interrupt that
//!    hits the owner.
//! 3. A lock is taken in one way only, which its handle's type says: taken in
//!    both, a softirq could wait for the very task that it interrupts.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let class = machine.plain_spin_lock("class->lock");
//! machine.spawn("free", 0, move |task| async move {
//!     task.spin_lock(class).await;
//!     task.run_kernel(300).await;
//!     task.spin_unlock(class).await;
//! })?;
//! machine.run_until(1_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::asks::Thing;
use crate::ids::{LockId, TaskId};
use crate::lock::LockKind;
use crate::machine::{Machine, Shared};
use crate::task::Task;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A spinlock of the machine that is taken with preemption off only: a handle
/// that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainSpinLock(LockId);

impl PlainSpinLock {
    /// The number under which records speak of it.
    #[must_use]
    pub fn id(self) -> LockId {
        self.0
    }
}

impl Machine {
    /// Creates a spinlock that is taken with preemption off only.
    pub fn plain_spin_lock(&mut self, name: impl Into<String>) -> PlainSpinLock {
        let mut kernel = self.kernel.borrow_mut();
        PlainSpinLock(kernel.new_lock(name.into(), LockKind::Spin))
    }
}

impl Task {
    /// Takes a spinlock, spinning while it is taken; preemption is off until it
    /// is released.
    #[track_caller]
    pub fn spin_lock(&self, lock: PlainSpinLock) -> SpinLocking<'_> {
        SpinLocking {
            kernel: &self.kernel,
            task: self.id(),
            lock: lock.0,
            place: Location::caller(),
            queued: false,
        }
    }

    /// Releases a spinlock, which is a preemption point.
    #[track_caller]
    pub fn spin_unlock(&self, lock: PlainSpinLock) -> SpinUnlocking<'_> {
        SpinUnlocking {
            kernel: &self.kernel,
            task: self.id(),
            lock: lock.0,
            place: Location::caller(),
            released: false,
        }
    }
}

/// Takes a spinlock; see [`Task::spin_lock`].
#[must_use = "futures do nothing unless awaited"]
pub struct SpinLocking<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    place: &'static Location<'static>,
    queued: bool,
}

impl Future for SpinLocking<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if core::mem::replace(&mut self.queued, true) {
            return kernel.spin_again(self.task, self.lock);
        }
        if !kernel.asks_about(
            Thing::Lock(self.lock, LockKind::Spin),
            self.task,
            self.place,
        ) {
            return Poll::Pending;
        }
        kernel.enter_kernel(self.task);
        kernel.spin_acquire(self.task, self.lock)
    }
}

/// Releases a spinlock; see [`Task::spin_unlock`].
#[must_use = "futures do nothing unless awaited"]
pub struct SpinUnlocking<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    place: &'static Location<'static>,
    released: bool,
}

impl Future for SpinUnlocking<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.released, true) {
            return Poll::Ready(());
        }
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if !kernel.asks_about(
            Thing::Lock(self.lock, LockKind::Spin),
            self.task,
            self.place,
        ) {
            return Poll::Pending;
        }
        if !kernel.disown(self.lock, self.task) {
            return Poll::Pending;
        }
        kernel.spin_release(self.task, self.lock);
        kernel.enable_and_resched(self.task)
    }
}
