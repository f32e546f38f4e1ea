//! The spinning reader/writer lock (`rwlock_t`), in its queued form.
//!
//! Invariants:
//! 1. From before the acquisition to the release preemption is off, so who has
//!    the lock keeps its CPU.
//! 2. Readers share it; a writer has it alone.
//! 3. It is fair: while somebody waits, who comes queues behind, a reader too. So
//!    a writer is not starved by readers that come and go.
//! 4. A release gives the lock to the first in the queue, and if that is a
//!    reader to the readers right behind it, each of whom goes on one cache
//!    line later than the one before; the first two lines after the release.
//!
//! Left out: readers in interrupts, which do not queue, and the variants with
//! bottom halves or interrupts off.
//!
//! Source of the rules: scheduler reference, section 6.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let pool = machine.rw_lock("pool->lock");
//! machine.spawn("free", 0, move |task| async move {
//!     task.read_lock(pool).await;
//!     task.run_kernel(300).await;
//!     task.read_unlock(pool).await;
//! })?;
//! machine.run_until(1_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::asks::Thing;
use crate::event::{Acquired, EventKind};
use crate::ids::{LockId, TaskId};
use crate::kernel::{Kernel, NEVER, Op};
use crate::lock::LockKind;
use crate::machine::{Machine, Shared};
use crate::shared::{Access, RwWaiter};
use crate::task::Task;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A spinning reader/writer lock of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RwLock(LockId);

impl RwLock {
    /// The number under which records speak of it.
    #[must_use]
    pub fn id(self) -> LockId {
        self.0
    }
}

impl Kernel {
    /// Takes the lock, if it is free and nobody waits.
    fn rw_lock_fast(&mut self, lock: LockId, task: TaskId, access: Access) -> bool {
        let free = self.lock(lock).rw_queue.is_empty() && self.rw_is_free(lock, access);
        if free {
            self.preempt_disable(task);
            self.rw_give(lock, task, access, Acquired::Fast);
        }
        free
    }

    /// Takes the lock or queues for it.
    fn rw_lock(&mut self, lock: LockId, task: TaskId, access: Access) -> Poll<()> {
        if !self.rw_may_ask(lock, task) {
            return Poll::Pending;
        }
        if self.rw_lock_fast(lock, task, access) {
            return Poll::Ready(());
        }
        self.preempt_disable(task);
        self.lock(lock)
            .rw_queue
            .push_back(RwWaiter { task, access });
        self.wait_for(task, lock);
        self.emit(task, EventKind::LockSpin, lock.0.into(), 0);
        self.task(task).op = Op::Spin { again_ns: NEVER };
        Poll::Pending
    }

    /// A spinner looks whether it has been given the lock.
    fn rw_lock_again(&mut self, lock: LockId, task: TaskId) -> Poll<()> {
        if self.rw_has(lock, task) {
            return Poll::Ready(());
        }
        self.task(task).op = Op::Spin { again_ns: NEVER };
        Poll::Pending
    }

    /// Gives the lock to those whose turn it is after a release.
    fn rw_lock_pass_on(&mut self, lock: LockId) {
        let line_ns = self.config.line_ns;
        let mut after_ns = 2 * line_ns;
        while let Some(&RwWaiter { task, access }) = self.lock(lock).rw_queue.front() {
            if !self.rw_is_free(lock, access) {
                return;
            }
            self.lock(lock).rw_queue.pop_front();
            self.rw_give(lock, task, access, Acquired::HandedOff);
            self.kick_spinner(task, after_ns);
            after_ns += line_ns;
        }
    }
}

impl Machine {
    /// Creates a spinning reader/writer lock.
    pub fn rw_lock(&mut self, name: impl Into<String>) -> RwLock {
        let mut kernel = self.kernel.borrow_mut();
        RwLock(kernel.new_lock(name.into(), LockKind::RwLock))
    }
}

impl Task {
    /// Takes a lock together with other readers, spinning while a writer has it
    /// or somebody waits; preemption is off until it is released.
    #[track_caller]
    pub fn read_lock(&self, lock: RwLock) -> RwLockAcquire<'_> {
        RwLockAcquire::new(self, lock, Access::Read, Location::caller())
    }

    /// Takes a lock alone, spinning while others have it; preemption is off
    /// until it is released.
    #[track_caller]
    pub fn write_lock(&self, lock: RwLock) -> RwLockAcquire<'_> {
        RwLockAcquire::new(self, lock, Access::Write, Location::caller())
    }

    /// Takes a lock alone if that is possible at once; says whether it was.
    #[track_caller]
    #[must_use]
    pub fn write_trylock(&self, lock: RwLock) -> bool {
        let kernel = &mut *self.kernel.borrow_mut();
        let thing = Thing::Lock(lock.0, LockKind::RwLock);
        if !kernel.asks_about(thing, self.id(), Location::caller()) {
            return false;
        }
        kernel.enter_kernel(self.id());
        kernel.rw_lock_fast(lock.0, self.id(), Access::Write)
    }

    /// Whether somebody waits for a lock, so that who has it should let go.
    #[track_caller]
    #[must_use]
    pub fn rw_lock_contended(&self, lock: RwLock) -> bool {
        let kernel = &mut *self.kernel.borrow_mut();
        let thing = Thing::Lock(lock.0, LockKind::RwLock);
        kernel.asks_about(thing, self.id(), Location::caller())
            && !kernel.lock(lock.0).rw_queue.is_empty()
    }

    /// Releases a lock that the task shares, which is a preemption point.
    #[track_caller]
    pub fn read_unlock(&self, lock: RwLock) -> RwLockRelease<'_> {
        RwLockRelease::new(self, lock, Access::Read, Location::caller())
    }

    /// Releases a lock that the task has alone, which is a preemption point.
    #[track_caller]
    pub fn write_unlock(&self, lock: RwLock) -> RwLockRelease<'_> {
        RwLockRelease::new(self, lock, Access::Write, Location::caller())
    }
}

/// Takes a lock; see [`Task::read_lock`] and [`Task::write_lock`].
#[must_use = "futures do nothing unless awaited"]
pub struct RwLockAcquire<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    access: Access,
    place: &'static Location<'static>,
    started: bool,
}

impl<'a> RwLockAcquire<'a> {
    fn new(
        task: &'a Task,
        lock: RwLock,
        access: Access,
        place: &'static Location<'static>,
    ) -> RwLockAcquire<'a> {
        RwLockAcquire {
            kernel: &task.kernel,
            task: task.id(),
            lock: lock.0,
            access,
            place,
            started: false,
        }
    }
}

impl Future for RwLockAcquire<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if core::mem::replace(&mut self.started, true) {
            return kernel.rw_lock_again(self.lock, self.task);
        }
        if !kernel.asks_about(
            Thing::Lock(self.lock, LockKind::RwLock),
            self.task,
            self.place,
        ) {
            return Poll::Pending;
        }
        kernel.enter_kernel(self.task);
        kernel.rw_lock(self.lock, self.task, self.access)
    }
}

/// Releases a lock; see [`Task::read_unlock`] and [`Task::write_unlock`].
#[must_use = "futures do nothing unless awaited"]
pub struct RwLockRelease<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    access: Access,
    place: &'static Location<'static>,
    released: bool,
}

impl<'a> RwLockRelease<'a> {
    fn new(
        task: &'a Task,
        lock: RwLock,
        access: Access,
        place: &'static Location<'static>,
    ) -> RwLockRelease<'a> {
        RwLockRelease {
            kernel: &task.kernel,
            task: task.id(),
            lock: lock.0,
            access,
            place,
            released: false,
        }
    }
}

impl Future for RwLockRelease<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.released, true) {
            return Poll::Ready(());
        }
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if !kernel.asks_about(
            Thing::Lock(self.lock, LockKind::RwLock),
            self.task,
            self.place,
        ) {
            return Poll::Pending;
        }
        if !kernel.rw_take_back(self.lock, self.task, self.access) {
            return Poll::Pending;
        }
        kernel.rw_lock_pass_on(self.lock);
        kernel.enable_and_resched(self.task)
    }
}
