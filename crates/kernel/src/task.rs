//! What a task can ask of the kernel.
//!
//! A task is an `async` function that gets a [`Task`] and awaits its methods.
//! None of them allocates; each remembers the source line it was called from,
//! which every record then carries.

use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::kernel::{Kernel, Op};
use crate::machine::Shared;
use crate::mutex::{Mutex, MutexLock, MutexUnlock};
use crate::spinlock::{SpinLock, SpinLockBh, SpinUnlockBh};
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A task's handle on the kernel.
pub struct Task {
    pub(crate) kernel: Shared,
    id: TaskId,
}

impl Task {
    pub(crate) fn new(kernel: Shared, id: TaskId) -> Task {
        Task { kernel, id }
    }

    /// The kernel that it asks.
    pub(crate) fn kernel(&self) -> &Shared {
        &self.kernel
    }

    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The time, in virtual ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.kernel.borrow().now_ns
    }

    /// `raw_smp_processor_id`: the CPU the task is on, which may be another
    /// one after the next await.
    #[must_use]
    pub fn cpu(&self) -> CpuId {
        self.kernel.borrow_mut().task(self.id).cpu
    }

    /// Returns to user mode, which is a point where any request to reschedule
    /// is honoured, and runs there for `ns`.
    #[track_caller]
    pub fn run_user(&self, ns: u64) -> Run<'_> {
        self.run(ns, true)
    }

    /// Runs in kernel mode for `ns`; enters the kernel if the task was in user
    /// mode.
    #[track_caller]
    pub fn run_kernel(&self, ns: u64) -> Run<'_> {
        self.run(ns, false)
    }

    #[track_caller]
    fn run(&self, ns: u64, user_mode: bool) -> Run<'_> {
        Run {
            kernel: &self.kernel,
            task: self.id,
            ns,
            user_mode,
            place: Location::caller(),
            step: RunStep::Start,
        }
    }

    /// `cond_resched`: offers to give way, where kernel code is not preempted
    /// anyway (the models none and voluntary).
    #[track_caller]
    pub fn cond_resched(&self) -> CondResched<'_> {
        CondResched {
            kernel: &self.kernel,
            task: self.id,
            place: Location::caller(),
            offered: false,
        }
    }

    /// Sleeps for `ns`.
    #[track_caller]
    pub fn sleep(&self, ns: u64) -> Sleep<'_> {
        Sleep {
            kernel: &self.kernel,
            task: self.id,
            ns,
            place: Location::caller(),
            started: false,
        }
    }

    /// Locks a mutex, sleeping while it is taken.
    #[track_caller]
    pub fn mutex_lock(&self, mutex: Mutex) -> MutexLock<'_> {
        MutexLock::new(&self.kernel, self.id, mutex, Location::caller())
    }

    /// Unlocks a mutex that the task owns.
    #[track_caller]
    pub fn mutex_unlock(&self, mutex: Mutex) -> MutexUnlock<'_> {
        MutexUnlock::new(&self.kernel, self.id, mutex, Location::caller())
    }

    /// Takes a spinlock, spinning while it is taken; preemption is off until it
    /// is released.
    #[track_caller]
    pub fn spin_lock_bh(&self, lock: SpinLock) -> SpinLockBh<'_> {
        SpinLockBh::new(&self.kernel, self.id, lock, Location::caller())
    }

    /// Releases a spinlock, which is a preemption point.
    #[track_caller]
    pub fn spin_unlock_bh(&self, lock: SpinLock) -> SpinUnlockBh<'_> {
        SpinUnlockBh::new(&self.kernel, self.id, lock, Location::caller())
    }

    /// Leaves a record for the layers above; takes no time.
    #[track_caller]
    pub fn probe(&self, code: u16, arg: u64) {
        let kernel = &mut *self.kernel.borrow_mut();
        if kernel.asks(self.id, Location::caller()) {
            kernel.emit(self.id, EventKind::Probe, arg, code);
        }
    }

    /// Stops the run because the caller found an invariant broken.
    #[track_caller]
    pub fn fail(&self, what: String) {
        let kernel = &mut *self.kernel.borrow_mut();
        if kernel.asks(self.id, Location::caller()) {
            kernel.fail(self.id, what);
        }
    }
}

/// Running for a time; see [`Task::run_user`] and [`Task::run_kernel`].
#[must_use = "futures do nothing unless awaited"]
pub struct Run<'a> {
    kernel: &'a Shared,
    task: TaskId,
    ns: u64,
    user_mode: bool,
    place: &'static Location<'static>,
    step: RunStep,
}

#[derive(Clone, Copy)]
enum RunStep {
    Start,
    InMode,
    Running,
}

impl Run<'_> {
    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        if !kernel.asks(self.task, self.place) {
            return Poll::Pending;
        }
        if self.user_mode && kernel.task(self.task).preempt_count > 0 {
            let what = "returns to user mode with preemption off; \
                        release what switched it off first";
            kernel.fail(self.task, what.to_owned());
            return Poll::Pending;
        }
        self.step = RunStep::InMode;
        if kernel.task(self.task).user_mode != self.user_mode {
            kernel.task(self.task).user_mode = self.user_mode;
            kernel.emit(self.task, EventKind::Mode, 0, (!self.user_mode).into());
            let cpu = kernel.task(self.task).cpu;
            if self.user_mode && kernel.must_resched(cpu) {
                kernel.task(self.task).op = Op::Resched;
                return Poll::Pending;
            }
        }
        self.go(kernel)
    }

    fn go(&mut self, kernel: &mut Kernel) -> Poll<()> {
        self.step = RunStep::Running;
        if self.ns == 0 {
            return Poll::Ready(());
        }
        kernel.task(self.task).op = Op::Run { left_ns: self.ns };
        Poll::Pending
    }
}

impl Future for Run<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.step {
            RunStep::Start => self.start(kernel),
            RunStep::InMode => self.go(kernel),
            RunStep::Running => Poll::Ready(()),
        }
    }
}

/// Sleeping for a time; see [`Task::sleep`].
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep<'a> {
    kernel: &'a Shared,
    task: TaskId,
    ns: u64,
    place: &'static Location<'static>,
    started: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.started {
            return Poll::Ready(());
        }
        self.started = true;
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if !kernel.asks(self.task, self.place) {
            return Poll::Pending;
        }
        if kernel.task(self.task).preempt_count > 0 {
            let what = "sleeps with preemption off; release what switched it off first";
            kernel.fail(self.task, what.to_owned());
            return Poll::Pending;
        }
        kernel.enter_kernel(self.task);
        let at_ns = kernel.now_ns.saturating_add(self.ns);
        kernel.sleep_until(self.task, at_ns);
        Poll::Pending
    }
}

/// Offering to give way; see [`Task::cond_resched`].
#[must_use = "futures do nothing unless awaited"]
pub struct CondResched<'a> {
    kernel: &'a Shared,
    task: TaskId,
    place: &'static Location<'static>,
    offered: bool,
}

impl Future for CondResched<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if core::mem::replace(&mut self.offered, true) {
            return Poll::Ready(());
        }
        if !kernel.asks(self.task, self.place) {
            return Poll::Pending;
        }
        if !kernel.cond_resched(self.task) {
            return Poll::Ready(());
        }
        kernel.task(self.task).op = Op::Resched;
        Poll::Pending
    }
}
