//! The sleeping reader/writer semaphore (`struct rw_semaphore`).
//!
//! Waiters queue first come, first served, readers and writers in one queue. As
//! with the mutex the queue does not own the lock: while it is free a *writer*
//! who comes by may take it, until the first waiter has waited for so long that
//! it demands to be handed it.
//!
//! Invariants:
//! 1. Readers share it; a writer has it alone. Whoever has it can be preempted
//!    and can sleep.
//! 2. A reader queues while a writer has it or anybody waits. So readers that
//!    come and go do not starve a writer.
//! 3. A release that frees it either gives it to the readers at the head of the
//!    queue, all of them at once, or wakes the writer there, which then has to
//!    try.
//! 4. A writer at the head that tries in vain after 4 ms in the queue sets the
//!    handoff flag: nobody else takes the lock any more.
//! 5. A writer spins instead of sleeping while another writer has the lock and
//!    runs; of those who spin only one watches. It does not spin for readers,
//!    nor once the handoff flag is set.
//!
//! Left out: lending a turn or a priority to who has it, downgrading, trying, waiting until a signal, spinning by the head
//! of the queue after the handoff flag, and readers behind a writer in the
//! queue, whom newer kernels let through together with those at its head.
//!
//! Source of the rules: scheduler reference, section 6, and the kernel's own
//! description of its timeout.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let sem = machine.rw_sem("mmap_lock");
//! for name in ["fault", "another fault"] {
//!     machine.spawn(name, 0, move |task| async move {
//!         task.down_read(sem).await;
//!         task.sleep(1_000_000).await;
//!         task.up_read(sem).await;
//!         assert!(task.now_ns() < 1_200_000, "both sleep at the same time");
//!     })?;
//! }
//! machine.run_until(10_000_000)?;
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
use crate::wakers::WakeStep;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// So long the head of the queue waits before it demands the lock: 4 ms, at
/// least one jiffy (scheduler reference, section 6).
const HANDOFF_AFTER_MS: u64 = 4;

/// A reader/writer semaphore of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RwSem(LockId);

impl RwSem {
    /// The number under which records speak of it.
    #[must_use]
    pub fn id(self) -> LockId {
        self.0
    }
}

impl Kernel {
    /// The fast path: it is free for this access and nobody waits.
    fn rwsem_take_fast(&mut self, lock: LockId, task: TaskId, access: Access) -> bool {
        let free = self.lock(lock).rw_queue.is_empty() && self.rw_is_free(lock, access);
        if free {
            self.rw_give(lock, task, access, Acquired::Fast);
        }
        free
    }

    /// A writer takes it ahead of those who wait, unless it is to be handed over.
    fn rwsem_steal(&mut self, lock: LockId, task: TaskId) -> bool {
        let free = !self.lock(lock).handoff && self.rw_is_free(lock, Access::Write);
        if free {
            self.rw_give(lock, task, Access::Write, Acquired::Stolen);
        }
        free
    }

    /// Whether it is worth spinning: nobody wants this CPU, and no reader has
    /// the lock nor a writer that does not run.
    fn rwsem_can_spin(&self, lock: LockId, task: TaskId) -> bool {
        let cpu = self.tasks[task.index()].cpu;
        let state = &self.locks[lock.index()];
        if self.cpus[cpu.index()].need_resched || state.handoff || !state.readers.is_empty() {
            return false;
        }
        state.owner.is_none_or(|owner| self.is_on_cpu(owner))
    }

    /// Leaves the queue of spinners; the next one takes over the watch.
    fn rwsem_stop_spinning(&mut self, lock: LockId, task: TaskId) {
        let osq = &mut self.lock(lock).osq;
        osq.retain(|&spinner| spinner != task);
        if let Some(&next) = osq.front() {
            let line_ns = self.config.line_ns;
            self.kick_spinner(next, line_ns);
        }
    }

    fn rwsem_enqueue(&mut self, lock: LockId, task: TaskId, access: Access) {
        self.lock(lock)
            .rw_queue
            .push_back(RwWaiter { task, access });
        self.wait_for(task, lock);
        self.emit(task, EventKind::LockWait, lock.0.into(), 0);
        self.sleep_until_woken(task);
    }

    /// A writer that was woken tries; says whether it has the lock now.
    fn rwsem_try_as_waiter(&mut self, lock: LockId, task: TaskId, queued_ns: u64) -> bool {
        let free = self.rw_is_free(lock, Access::Write);
        let state = self.lock(lock);
        let first = state.rw_queue.front().map(|waiter| waiter.task) == Some(task);
        let handoff = state.handoff;
        if free && (first || !handoff) {
            state.rw_queue.retain(|waiter| waiter.task != task);
            state.handoff &= !first;
            let how = if handoff {
                Acquired::HandedOff
            } else {
                Acquired::Woken
            };
            self.rw_give(lock, task, Access::Write, how);
            return true;
        }
        if first && !handoff && self.rwsem_waited_long(queued_ns) {
            self.lock(lock).handoff = true;
            self.emit(task, EventKind::LockHandoffWanted, lock.0.into(), 0);
        }
        false
    }

    /// Whether somebody who queued then has waited for too long, as jiffies
    /// tell it.
    fn rwsem_waited_long(&self, queued_ns: u64) -> bool {
        let tick_ns = self.config.tick_ns();
        let jiffies = (HANDOFF_AFTER_MS * 1_000_000).div_ceil(tick_ns);
        self.now_ns / tick_ns > queued_ns / tick_ns + jiffies
    }

    /// It is free and somebody waits: gives it to the readers at the head of the
    /// queue, or wakes the writer there. Returns how many wakeups had an effect.
    fn rwsem_wake(&mut self, lock: LockId, waker: TaskId) -> u64 {
        let mut woken = 0;
        while let Some(&RwWaiter { task, access }) = self.lock(lock).rw_queue.front() {
            if access == Access::Write {
                // After readers it waits until the last of them is through.
                if self.rw_is_free(lock, Access::Write) {
                    woken += u64::from(self.wake(task, waker));
                }
                break;
            }
            self.lock(lock).rw_queue.pop_front();
            self.lock(lock).handoff = false;
            self.rw_give(lock, task, Access::Read, Acquired::HandedOff);
            woken += u64::from(self.wake(task, waker));
        }
        woken
    }
}

impl Machine {
    /// Creates a reader/writer semaphore.
    pub fn rw_sem(&mut self, name: impl Into<String>) -> RwSem {
        let mut kernel = self.kernel.borrow_mut();
        RwSem(kernel.new_lock(name.into(), LockKind::RwSem))
    }
}

impl Task {
    /// Takes a semaphore together with other readers, sleeping while a writer
    /// has it or somebody waits.
    #[track_caller]
    pub fn down_read(&self, sem: RwSem) -> DownRwSem<'_> {
        DownRwSem::new(self, sem, Access::Read, Location::caller())
    }

    /// Takes a semaphore alone, sleeping while others have it.
    #[track_caller]
    pub fn down_write(&self, sem: RwSem) -> DownRwSem<'_> {
        DownRwSem::new(self, sem, Access::Write, Location::caller())
    }

    /// Releases a semaphore that the task shares.
    #[track_caller]
    pub fn up_read(&self, sem: RwSem) -> UpRwSem<'_> {
        UpRwSem::new(self, sem, Access::Read, Location::caller())
    }

    /// Releases a semaphore that the task has alone.
    #[track_caller]
    pub fn up_write(&self, sem: RwSem) -> UpRwSem<'_> {
        UpRwSem::new(self, sem, Access::Write, Location::caller())
    }
}

/// Takes a semaphore; see [`Task::down_read`] and [`Task::down_write`].
#[must_use = "futures do nothing unless awaited"]
pub struct DownRwSem<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    access: Access,
    place: &'static Location<'static>,
    step: DownStep,
}

#[derive(Clone, Copy)]
enum DownStep {
    Start,
    Spinning,
    /// It queued at this time.
    Waiting {
        queued_ns: u64,
    },
    Acquired,
}

impl<'a> DownRwSem<'a> {
    fn new(
        task: &'a Task,
        sem: RwSem,
        access: Access,
        place: &'static Location<'static>,
    ) -> DownRwSem<'a> {
        DownRwSem {
            kernel: &task.kernel,
            task: task.id(),
            lock: sem.0,
            access,
            place,
            step: DownStep::Start,
        }
    }

    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, lock) = (self.task, self.lock);
        if !kernel.asks_about(Thing::Lock(lock, LockKind::RwSem), task, self.place) {
            return Poll::Pending;
        }
        kernel.enter_kernel(task);
        let does = |kernel: &Kernel| format!("takes {}", kernel.locks[lock.index()].name);
        if !kernel.might_sleep(task, does) || !kernel.rw_may_ask(lock, task) {
            return Poll::Pending;
        }
        if kernel.rwsem_take_fast(lock, task, self.access) {
            return Poll::Ready(());
        }
        kernel.preempt_disable(task);
        if self.access == Access::Write && kernel.rwsem_can_spin(lock, task) {
            kernel.lock(lock).osq.push_back(task);
            kernel.wait_for(task, lock);
            kernel.emit(task, EventKind::LockSpin, lock.0.into(), 0);
            self.step = DownStep::Spinning;
            return self.spinning(kernel);
        }
        self.enqueue(kernel)
    }

    fn spinning(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, lock) = (self.task, self.lock);
        let watches = kernel.lock(lock).osq.front() == Some(&task);
        if watches && kernel.rwsem_steal(lock, task) {
            kernel.rwsem_stop_spinning(lock, task);
            return self.leave(kernel);
        }
        let cpu = kernel.task(task).cpu;
        let goes_on = if watches {
            kernel.rwsem_can_spin(lock, task)
        } else {
            !kernel.cpu(cpu).need_resched
        };
        if goes_on {
            kernel.task(task).op = Op::Spin { again_ns: NEVER };
            return Poll::Pending;
        }
        kernel.rwsem_stop_spinning(lock, task);
        kernel.emit(task, EventKind::LockSpinEnd, lock.0.into(), 0);
        self.enqueue(kernel)
    }

    fn enqueue(&mut self, kernel: &mut Kernel) -> Poll<()> {
        if self.access == Access::Write && kernel.rwsem_steal(self.lock, self.task) {
            return self.leave(kernel);
        }
        kernel.rwsem_enqueue(self.lock, self.task, self.access);
        self.step = DownStep::Waiting {
            queued_ns: kernel.now_ns,
        };
        Poll::Pending
    }

    fn woken(&mut self, kernel: &mut Kernel, queued_ns: u64) -> Poll<()> {
        let has = match self.access {
            Access::Read => kernel.rw_has(self.lock, self.task),
            Access::Write => kernel.rwsem_try_as_waiter(self.lock, self.task, queued_ns),
        };
        if has {
            return self.leave(kernel);
        }
        kernel.sleep_until_woken(self.task);
        Poll::Pending
    }

    /// The end of the slow path is a preemption point, passed as an owner.
    fn leave(&mut self, kernel: &mut Kernel) -> Poll<()> {
        self.step = DownStep::Acquired;
        kernel.enable_and_resched(self.task)
    }
}

impl Future for DownRwSem<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.step {
            DownStep::Start => self.start(kernel),
            DownStep::Spinning => self.spinning(kernel),
            DownStep::Waiting { queued_ns } => self.woken(kernel, queued_ns),
            DownStep::Acquired => Poll::Ready(()),
        }
    }
}

/// Releases a semaphore; see [`Task::up_read`] and [`Task::up_write`].
#[must_use = "futures do nothing unless awaited"]
pub struct UpRwSem<'a> {
    kernel: &'a Shared,
    task: TaskId,
    lock: LockId,
    access: Access,
    place: &'static Location<'static>,
    step: WakeStep,
}

impl<'a> UpRwSem<'a> {
    fn new(
        task: &'a Task,
        sem: RwSem,
        access: Access,
        place: &'static Location<'static>,
    ) -> UpRwSem<'a> {
        UpRwSem {
            kernel: &task.kernel,
            task: task.id(),
            lock: sem.0,
            access,
            place,
            step: WakeStep::Start,
        }
    }

    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, lock) = (self.task, self.lock);
        if !kernel.asks_about(Thing::Lock(lock, LockKind::RwSem), task, self.place) {
            return Poll::Pending;
        }
        kernel.enter_kernel(task);
        if !kernel.rw_take_back(lock, task, self.access) {
            return Poll::Pending;
        }
        kernel.kick_lock(lock);
        let nobody_waits = kernel.lock(lock).rw_queue.is_empty();
        if nobody_waits || !kernel.rw_is_free(lock, Access::Write) {
            self.step = WakeStep::Done;
            return Poll::Ready(());
        }
        kernel.preempt_disable(task);
        let woken = kernel.rwsem_wake(lock, task);
        kernel.pay_wakeups(task, &mut self.step, woken)
    }
}

impl Future for UpRwSem<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.step {
            WakeStep::Start => self.start(kernel),
            WakeStep::Woke | WakeStep::Done => kernel.end_wakeups(self.task, &mut self.step),
        }
    }
}
