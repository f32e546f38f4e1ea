//! The sleeping mutex.
//!
//! State: an owner and three flags. Waiters queue first come, first served, but
//! the queue does not own the lock: while it is free, *anybody* who comes by
//! may take it ("stealing"). Only the first waiter is ever woken, and only when
//! it finds the lock taken again does it set the handoff flag, after which the
//! next unlock names it as the owner.
//!
//! Invariants:
//! 1. At most one owner; only the owner unlocks.
//! 2. Waiters get the lock in the order in which they queued.
//! 3. While somebody waits, either the lock is owned or the first waiter has
//!    been woken: no wakeup is lost.
//! 4. Owning a mutex does not switch preemption off. The slow paths do, and
//!    their ends are preemption points: the one of the lock path is passed
//!    *holding* the lock, the one of the unlock path is not.
//!
//! 5. A task spins only while the owner runs on another CPU and nobody wants its
//!    own; of those who have just come only one watches the owner.
//!
//! Left out: the time that the slow path itself takes beside the wakeup and the
//! context switches (well below 1 µs).
//!
//! Source of the rules: scheduler reference, sections 5, W1 and W6, and items
//! 50 to 56 of its verification.

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

/// A mutex of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutex(pub(crate) LockId);

impl Mutex {
    /// The number under which records speak of it.
    #[must_use]
    pub fn id(self) -> LockId {
        self.0
    }
}

impl Kernel {
    /// The fast path: nobody owns it and nobody waits.
    fn mutex_trylock_fast(&mut self, lock: LockId, task: TaskId) -> bool {
        let state = self.lock(lock);
        let free = state.owner.is_none() && state.waiters.is_empty();
        if free {
            self.own(lock, task, Acquired::Fast);
        }
        free
    }

    /// `__mutex_trylock_common`: takes a free mutex whoever waits, or one that
    /// was handed to `task`.
    fn mutex_trylock(&mut self, lock: LockId, task: TaskId, how: Acquired) -> bool {
        let state = self.lock(lock);
        if state.owner.is_none() {
            self.own(lock, task, how);
            return true;
        }
        if state.pickup && state.owner == Some(task) {
            state.pickup = false;
            self.own(lock, task, Acquired::HandedOff);
            return true;
        }
        false
    }

    fn mutex_enqueue(&mut self, lock: LockId, task: TaskId) {
        self.queue_on(lock, task);
        self.emit(task, EventKind::LockWait, lock.0.into(), 0);
        self.sleep_until_woken(task);
    }

    /// A waiter has the lock: it leaves the queue; the last one clears the flags.
    fn mutex_dequeue(&mut self, lock: LockId, task: TaskId) {
        self.check_turn(lock, task);
        let state = self.lock(lock);
        state.waiters.retain(|&waiter| waiter != task);
        if state.waiters.is_empty() {
            state.handoff = false;
        }
    }

    /// One turn of a woken waiter; says whether it has the lock now.
    fn mutex_try_as_waiter(&mut self, lock: LockId, task: TaskId) -> bool {
        if self.mutex_trylock(lock, task, Acquired::Woken) {
            self.mutex_dequeue(lock, task);
            return true;
        }
        let first = self.lock(lock).waiters.front() == Some(&task);
        if first && self.config.mutex.handoff && !self.lock(lock).handoff {
            self.lock(lock).handoff = true;
            self.emit(task, EventKind::LockHandoffWanted, lock.0.into(), 0);
        }
        false
    }

    /// Whether it is worth spinning: nobody wants this CPU, and the owner, if
    /// there is one, is on another.
    fn mutex_can_spin(&self, lock: LockId, task: TaskId) -> bool {
        let cpu = self.tasks[task.index()].cpu;
        if self.cpus[cpu.index()].need_resched || !self.config.mutex.spinning {
            return false;
        }
        let owner = self.locks[lock.index()].owner;
        owner.is_none_or(|owner| self.is_on_cpu(owner))
    }

    /// `on_cpu`: whether a CPU runs it at this moment.
    pub(crate) fn is_on_cpu(&self, task: TaskId) -> bool {
        let cpu = self.tasks[task.index()].cpu;
        self.curr(cpu) == Some(task)
    }

    fn spin(&mut self, task: TaskId) {
        self.task(task).op = Op::Spin { again_ns: NEVER };
    }

    /// Leaves the queue of spinners; the next one takes over the watch.
    fn osq_leave(&mut self, lock: LockId, task: TaskId) {
        let osq = &mut self.lock(lock).osq;
        osq.retain(|&spinner| spinner != task);
        if let Some(&next) = osq.front() {
            let line_ns = self.config.line_ns;
            self.kick_spinner(next, line_ns);
        }
        if let Some(owner) = self.lock(lock).owner {
            self.inherit(owner);
            self.pass_on(owner);
        }
    }

    /// The slow unlock: frees the lock or hands it over, and wakes the first
    /// waiter. Says whether the wakeup had an effect.
    fn mutex_unlock_slow(&mut self, lock: LockId, task: TaskId) -> bool {
        let donor = self.donor_for(lock, task);
        let state = self.lock(lock);
        let first = donor.or(state.waiters.front().copied());
        let handed_over = (state.handoff || donor.is_some()) && first.is_some();
        state.handoff = false;
        state.pickup = handed_over;
        state.owner = first.filter(|_| handed_over);
        self.emit(
            task,
            EventKind::LockRelease,
            lock.0.into(),
            handed_over.into(),
        );
        self.kick_lock(lock);
        self.inherit(task);
        first.is_some_and(|first| self.wake(first, task))
    }
}

/// Locks a mutex; sleeps while others have it.
#[must_use = "futures do nothing unless awaited"]
pub struct MutexLock<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    place: &'static Location<'static>,
    step: LockStep,
}

#[derive(Clone, Copy)]
enum LockStep {
    Start,
    /// It spins as one who has just come.
    Spinning,
    /// It has given up spinning and had to give way before it queues.
    GivesWay,
    Waiting,
    /// It spins as the first waiter.
    WaiterSpinning,
    Acquired,
}

impl<'a> MutexLock<'a> {
    pub(crate) fn new(
        kernel: &'a Shared,
        task: TaskId,
        mutex: Mutex,
        place: &'static Location<'static>,
    ) -> MutexLock<'a> {
        MutexLock {
            kernel,
            task,
            lock: mutex.0,
            place,
            step: LockStep::Start,
        }
    }

    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, lock) = (self.task, self.lock);
        if !kernel.asks_about(Thing::Lock(lock, LockKind::Mutex), task, self.place) {
            return Poll::Pending;
        }
        kernel.enter_kernel(task);
        if kernel.task(task).preempt_count > 0 {
            let name = &kernel.locks[lock.index()].name;
            let what = format!(
                "locks {name}, which may sleep, with preemption off; \
                 enable preemption first"
            );
            kernel.fail(task, what);
            return Poll::Pending;
        }
        if kernel.task(task).held.contains(&lock) {
            let name = &kernel.locks[lock.index()].name;
            let what = format!("locks {name}, which it owns already; it would wait for itself");
            kernel.fail(task, what);
            return Poll::Pending;
        }
        if kernel.might_resched(task) {
            kernel.task(task).op = Op::Resched;
            return Poll::Pending;
        }
        if kernel.mutex_trylock_fast(lock, task) {
            return Poll::Ready(());
        }
        kernel.preempt_disable(task);
        if kernel.mutex_trylock(lock, task, Acquired::Stolen) {
            return self.leave(kernel);
        }
        if kernel.mutex_can_spin(lock, task) {
            kernel.lock(lock).osq.push_back(task);
            kernel.wait_for(task, lock);
            kernel.emit(task, EventKind::LockSpin, lock.0.into(), 0);
            self.step = LockStep::Spinning;
            kernel.spin(task);
            return Poll::Pending;
        }
        self.enqueue(kernel)
    }

    /// Takes a place in the queue and sleeps, but gives way first if that is due.
    fn enqueue(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let cpu = kernel.task(self.task).cpu;
        if kernel.cpu(cpu).need_resched && !matches!(self.step, LockStep::GivesWay) {
            self.step = LockStep::GivesWay;
            kernel.task(self.task).op = Op::Resched;
            return Poll::Pending;
        }
        if kernel.mutex_trylock(self.lock, self.task, Acquired::Stolen) {
            return self.leave(kernel);
        }
        kernel.mutex_enqueue(self.lock, self.task);
        self.step = LockStep::Waiting;
        Poll::Pending
    }

    fn spinning(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, lock) = (self.task, self.lock);
        let watches = kernel.lock(lock).osq.front() == Some(&task);
        if watches && kernel.mutex_trylock(lock, task, Acquired::Stolen) {
            kernel.osq_leave(lock, task);
            return self.leave(kernel);
        }
        let cpu = kernel.task(task).cpu;
        let goes_on = if watches {
            kernel.mutex_can_spin(lock, task)
        } else {
            !kernel.cpu(cpu).need_resched
        };
        if goes_on {
            kernel.spin(task);
            return Poll::Pending;
        }
        kernel.osq_leave(lock, task);
        kernel.emit(task, EventKind::LockSpinEnd, lock.0.into(), 0);
        self.enqueue(kernel)
    }

    fn woken(&mut self, kernel: &mut Kernel) -> Poll<()> {
        if kernel.mutex_try_as_waiter(self.lock, self.task) {
            return self.leave(kernel);
        }
        let first = kernel.lock(self.lock).waiters.front() == Some(&self.task);
        if first && kernel.mutex_can_spin(self.lock, self.task) {
            kernel.emit(self.task, EventKind::LockSpin, self.lock.0.into(), 1);
            self.step = LockStep::WaiterSpinning;
            kernel.spin(self.task);
            return Poll::Pending;
        }
        self.sleep_again(kernel)
    }

    fn waiter_spinning(&mut self, kernel: &mut Kernel) -> Poll<()> {
        if kernel.mutex_try_as_waiter(self.lock, self.task) {
            return self.leave(kernel);
        }
        if kernel.mutex_can_spin(self.lock, self.task) {
            kernel.spin(self.task);
            return Poll::Pending;
        }
        kernel.emit(self.task, EventKind::LockSpinEnd, self.lock.0.into(), 1);
        self.step = LockStep::Waiting;
        self.sleep_again(kernel)
    }

    /// Back to sleep; a waiter that should give way does so awake, and tries
    /// once more.
    fn sleep_again(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let cpu = kernel.task(self.task).cpu;
        if kernel.cpu(cpu).need_resched {
            kernel.task(self.task).op = Op::Resched;
        } else {
            kernel.sleep_until_woken(self.task);
        }
        Poll::Pending
    }

    /// The end of the slow path is a preemption point, passed as the owner.
    fn leave(&mut self, kernel: &mut Kernel) -> Poll<()> {
        self.step = LockStep::Acquired;
        kernel.enable_and_resched(self.task)
    }
}

impl Future for MutexLock<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.step {
            LockStep::Start => self.start(kernel),
            LockStep::Spinning => self.spinning(kernel),
            LockStep::GivesWay => self.enqueue(kernel),
            LockStep::Waiting => self.woken(kernel),
            LockStep::WaiterSpinning => self.waiter_spinning(kernel),
            LockStep::Acquired => Poll::Ready(()),
        }
    }
}

/// Unlocks a mutex.
#[must_use = "futures do nothing unless awaited"]
pub struct MutexUnlock<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    place: &'static Location<'static>,
    step: UnlockStep,
}

#[derive(Clone, Copy)]
enum UnlockStep {
    Start,
    Woke,
    Done,
}

impl<'a> MutexUnlock<'a> {
    pub(crate) fn new(
        kernel: &'a Shared,
        task: TaskId,
        mutex: Mutex,
        place: &'static Location<'static>,
    ) -> MutexUnlock<'a> {
        MutexUnlock {
            kernel,
            task,
            lock: mutex.0,
            place,
            step: UnlockStep::Start,
        }
    }

    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, lock) = (self.task, self.lock);
        if !kernel.asks_about(Thing::Lock(lock, LockKind::Mutex), task, self.place) {
            return Poll::Pending;
        }
        kernel.enter_kernel(task);
        if !kernel.disown(lock, task) {
            return Poll::Pending;
        }
        if kernel.lock(lock).waiters.is_empty() {
            kernel.lock(lock).owner = None;
            kernel.emit(task, EventKind::LockRelease, lock.0.into(), 0);
            kernel.kick_lock(lock);
            // Those who spun have lent it their importance too.
            kernel.inherit(task);
            return Poll::Ready(());
        }
        kernel.preempt_disable(task);
        let woke = kernel.mutex_unlock_slow(lock, task);
        self.step = UnlockStep::Woke;
        if woke && kernel.config.wake_ns > 0 {
            kernel.task(task).op = Op::Run {
                left_ns: kernel.config.wake_ns,
            };
            return Poll::Pending;
        }
        self.leave(kernel)
    }

    /// The end of the slow path is a preemption point; the lock is gone.
    fn leave(&mut self, kernel: &mut Kernel) -> Poll<()> {
        self.step = UnlockStep::Done;
        kernel.enable_and_resched(self.task)
    }
}

impl Future for MutexUnlock<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.step {
            UnlockStep::Start => self.start(kernel),
            UnlockStep::Woke => self.leave(kernel),
            UnlockStep::Done => Poll::Ready(()),
        }
    }
}

impl Kernel {
    /// Ends a preemption-off section and gives way there if that is due.
    pub(crate) fn enable_and_resched(&mut self, task: TaskId) -> Poll<()> {
        self.preempt_enable(task);
        let cpu = self.task(task).cpu;
        if self.must_resched(cpu) {
            self.task(task).op = Op::Resched;
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    pub(crate) fn new_mutex(&mut self, name: String) -> Mutex {
        Mutex(self.new_lock(name, LockKind::Mutex))
    }
}
