//! Read-copy-update: free readers, and waiting until all of them are through.
//!
//! It is the one of kernels with `PREEMPT_RCU=n` (plain lazy preemption,
//! scheduler reference, section 6), under every preemption model: a reader has
//! preemption off, so whoever gives its CPU away is no reader.
//!
//! A grace period is over when every CPU has passed a quiescent state since it
//! began: a context switch, a tick in user mode or where preemption is on, idle.
//!
//! Invariants:
//! 1. A reader costs nothing and nests. Sleeping in it is a fault, as is ending.
//! 2. What waits, waits for a grace period that begins after it has asked: it is
//!    not served by the one that is under way.
//! 3. A grace period begins at a jiffy. A busy CPU notices it at its next tick,
//!    and reports at a later one that it has passed a quiescent state since.
//! 4. Idle CPUs have no ticks: the grace-period thread looks for them every few
//!    jiffies, as many as the kernel has it wait.
//! 5. `synchronize_rcu` returns at the end of its grace period; what
//!    `call_rcu` puts off happens at the next jiffy, on the CPU that asked.
//!
//! So a grace period takes 1 to 2 ticks if all CPUs are busy, 3 to 4 if some are
//! idle, and up to twice that if one is under way. The 10 to 30 ms at 1000 Hz of
//! the reference are from memory and of loaded machines; what lengthens it there
//! is left out: batches of callbacks, waiting for the thread's turn (its CPU time
//! is in [`crate::Machine::spawn_background`]), hurrying CPUs that hold out.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! machine.spawn("reader", 0, |task| async move {
//!     task.rcu_read_lock();
//!     task.run_kernel(12_000_000).await;
//!     task.rcu_read_unlock().await;
//! })?;
//! machine.spawn("updater", 0, |task| async move {
//!     task.synchronize_rcu().await;
//!     assert!(task.now_ns() > 12_000_000, "after the reader");
//! })?;
//! machine.run_until(100_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::completion::Completion;
use crate::config::Preemption;
use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::kernel::Kernel;
use crate::machine::Shared;
use crate::percpu_ref::PercpuRef;
use crate::task::Task;
use crate::timer::Timed;
use crate::workqueue::Work;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// What is done later by whom nobody waits for: in a softirq, which cannot
/// sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Deferred {
    /// One waiter of a completion is let through.
    Complete(Completion),
    /// A work item is queued.
    Queue(Work),
}

/// What happens at a time of RCU's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RcuEvent {
    /// A grace period begins.
    Begin,
    /// The thread looks for idle CPUs, on behalf of this grace period.
    Scan(u64),
    /// The time of something put off has come.
    Run(CpuId, Callback),
}

/// What is done after a grace period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Callback {
    /// What somebody has put off.
    Deferred(Deferred),
    /// The counts of a reference that was killed for so many times are added up.
    Summed(PercpuRef, u64),
}

/// A set of CPUs, of which a machine has at most 64.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct CpuSet(u64);

impl CpuSet {
    fn contains(self, cpu: CpuId) -> bool {
        self.0 >> cpu.0 & 1 == 1
    }

    fn add(&mut self, cpu: CpuId) {
        self.0 |= 1 << cpu.0;
    }

    fn take(&mut self, cpu: CpuId) {
        self.0 &= !(1 << cpu.0);
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A grace period under way.
#[derive(Clone, Copy, Debug)]
struct GracePeriod {
    /// CPUs that have not reported a quiescent state.
    holdouts: CpuSet,
    /// CPUs that have noticed it.
    noticed: CpuSet,
    /// CPUs that have switched tasks since.
    switched: CpuSet,
}

/// A callback that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The grace period after which it is done.
    after: u64,
    cpu: CpuId,
    what: Callback,
}

/// What RCU remembers.
#[derive(Debug, Default)]
pub(crate) struct Rcu {
    /// Depth of read sections, by task; shorter than the table of tasks.
    nesting: Vec<u32>,
    /// How many grace periods are over.
    over: u64,
    current: Option<GracePeriod>,
    /// One will begin at the next jiffy.
    wanted: bool,
    /// Tasks, and the grace period that they wait for.
    waiters: Vec<(u64, TaskId)>,
    callbacks: Vec<Waiting>,
}

impl Kernel {
    /// Depth of read sections that a task is in.
    pub(crate) fn rcu_nesting(&mut self, task: TaskId) -> &mut u32 {
        let nesting = &mut self.objects.rcu.nesting;
        if nesting.len() <= task.index() {
            nesting.resize(task.index() + 1, 0);
        }
        &mut nesting[task.index()]
    }

    /// Asks for a grace period that begins from now on; returns its number.
    fn rcu_ask(&mut self) -> u64 {
        let rcu = &mut self.objects.rcu;
        if rcu.current.is_some() {
            return rcu.over + 2;
        }
        let after = rcu.over + 1;
        if !core::mem::replace(&mut rcu.wanted, true) {
            let at_ns = self.next_jiffy_ns();
            self.timers.arm(at_ns, Timed::Rcu(RcuEvent::Begin));
        }
        after
    }

    fn next_jiffy_ns(&self) -> u64 {
        let tick_ns = self.config.tick_ns();
        (self.now_ns / tick_ns + 1) * tick_ns
    }

    /// How long the thread waits between looking for idle CPUs: one jiffy, one
    /// more above 250 Hz, and one more above 500 Hz.
    fn rcu_scan_ns(&self) -> u64 {
        let hz = self.config.hz;
        let jiffies = 1 + u64::from(hz > 250) + u64::from(hz > 500);
        jiffies * self.config.tick_ns()
    }

    /// Does something after a grace period.
    pub(crate) fn call_rcu(&mut self, cpu: CpuId, what: Callback) {
        let after = self.rcu_ask();
        self.objects
            .rcu
            .callbacks
            .push(Waiting { after, cpu, what });
    }

    /// The CPU that an event of RCU is on: that of who asked, else the first,
    /// where the thread is.
    pub(crate) fn cpu_of_rcu(&self, event: RcuEvent) -> CpuId {
        match event {
            RcuEvent::Run(cpu, _) => cpu,
            RcuEvent::Begin | RcuEvent::Scan(_) => CpuId(0),
        }
    }

    pub(crate) fn rcu_event(&mut self, cpu: CpuId, event: RcuEvent) {
        // It takes no time of its own, but its end is a preemption point.
        self.enter_irq(cpu, 0);
        match event {
            RcuEvent::Begin => self.rcu_begin(),
            RcuEvent::Scan(number) => self.rcu_scan(number),
            RcuEvent::Run(_, Callback::Deferred(what)) => self.run_deferred(what),
            RcuEvent::Run(_, Callback::Summed(counted, kills)) => self.ref_summed(counted, kills),
        }
    }

    pub(crate) fn run_deferred(&mut self, what: Deferred) {
        match what {
            Deferred::Complete(completion) => {
                self.complete(completion, TaskId::NONE);
            }
            Deferred::Queue(work) => {
                self.queue_work(work, TaskId::NONE);
            }
        }
    }

    fn rcu_begin(&mut self) {
        let mut holdouts = CpuSet::default();
        self.cpu_ids().for_each(|cpu| holdouts.add(cpu));
        let rcu = &mut self.objects.rcu;
        rcu.wanted = false;
        rcu.current = Some(GracePeriod {
            holdouts,
            noticed: CpuSet::default(),
            switched: CpuSet::default(),
        });
        let number = rcu.over + 1;
        self.emit_irq(self.this_cpu, EventKind::GraceBegin, number, 0);
        let at_ns = self.now_ns + self.rcu_scan_ns();
        self.timers.arm(at_ns, Timed::Rcu(RcuEvent::Scan(number)));
    }

    /// The thread looks for idle CPUs.
    fn rcu_scan(&mut self, number: u64) {
        if self.objects.rcu.over + 1 != number {
            return;
        }
        for cpu in self.cpu_ids() {
            if self.is_idle(cpu) {
                self.rcu_report(cpu);
            }
        }
        if self.objects.rcu.over + 1 == number {
            let at_ns = self.now_ns + self.rcu_scan_ns();
            self.timers.arm(at_ns, Timed::Rcu(RcuEvent::Scan(number)));
        }
    }

    /// A CPU has switched tasks, or might have.
    pub(crate) fn rcu_note_switch(&mut self, cpu: CpuId) {
        if let Some(current) = &mut self.objects.rcu.current
            && current.noticed.contains(cpu)
        {
            current.switched.add(cpu);
        }
    }

    /// The part of a tick that is RCU's.
    pub(crate) fn rcu_tick(&mut self, cpu: CpuId) {
        let Some(current) = &mut self.objects.rcu.current else {
            return;
        };
        if !current.noticed.contains(cpu) {
            current.noticed.add(cpu);
            return;
        }
        if current.switched.contains(cpu) || self.tick_is_quiescent(cpu) {
            self.rcu_report(cpu);
        }
    }

    /// Whether what a tick interrupts cannot be a reader.
    fn tick_is_quiescent(&self, cpu: CpuId) -> bool {
        let Some(curr) = self.curr(cpu) else {
            return true;
        };
        let task = &self.tasks[curr.index()];
        // Only these models count where preemption is off.
        let counts = matches!(self.config.preempt, Preemption::Full | Preemption::Lazy);
        task.user_mode || counts && task.preempt_count == 0
    }

    /// A CPU has passed a quiescent state; the last one ends the grace period.
    fn rcu_report(&mut self, cpu: CpuId) {
        let Some(current) = &mut self.objects.rcu.current else {
            return;
        };
        current.holdouts.take(cpu);
        if current.holdouts.is_empty() {
            self.rcu_end();
        }
    }

    fn rcu_end(&mut self) {
        let at_ns = self.next_jiffy_ns();
        let rcu = &mut self.objects.rcu;
        rcu.current = None;
        rcu.over += 1;
        let over = rcu.over;
        for Waiting { cpu, what, .. } in rcu.callbacks.extract_if(.., |late| late.after <= over) {
            let event = RcuEvent::Run(cpu, what);
            self.timers.arm(at_ns, Timed::Rcu(event));
        }
        let waiters = rcu.waiters.extract_if(.., |(after, _)| *after <= over);
        let waiters: Vec<TaskId> = waiters.map(|(_, task)| task).collect();
        let more = !rcu.waiters.is_empty() || !rcu.callbacks.is_empty();
        self.emit_irq(self.this_cpu, EventKind::GraceEnd, over, 0);
        for task in waiters {
            self.wake(task, TaskId::NONE);
        }
        if more {
            self.rcu_begin();
        }
    }

    fn synchronize_rcu(&mut self, task: TaskId) {
        let after = self.rcu_ask();
        self.objects.rcu.waiters.push((after, task));
        self.emit(task, EventKind::GraceWait, after, 0);
        self.sleep_until_woken(task);
    }
}

impl Task {
    /// Begins to read; nests. Preemption is off until [`Task::rcu_read_unlock`].
    #[track_caller]
    pub fn rcu_read_lock(&self) {
        let kernel = &mut *self.kernel.borrow_mut();
        if !kernel.asks(self.id(), Location::caller()) {
            return;
        }
        kernel.enter_kernel(self.id());
        kernel.preempt_disable(self.id());
        *kernel.rcu_nesting(self.id()) += 1;
    }

    /// Has read, which is a preemption point.
    #[track_caller]
    pub fn rcu_read_unlock(&self) -> RcuReadUnlock<'_> {
        RcuReadUnlock {
            kernel: &self.kernel,
            task: self.id(),
            place: Location::caller(),
            done: false,
        }
    }

    /// Sleeps until everybody has read who reads now.
    #[track_caller]
    pub fn synchronize_rcu(&self) -> SynchronizeRcu<'_> {
        SynchronizeRcu {
            kernel: &self.kernel,
            task: self.id(),
            place: Location::caller(),
            started: false,
        }
    }

    /// Puts something off until everybody has read who reads now; does not
    /// sleep.
    #[track_caller]
    pub fn call_rcu(&self, what: Deferred) {
        let cpu = self.cpu();
        let kernel = &mut *self.kernel.borrow_mut();
        if kernel.asks_about(what.into(), self.id(), Location::caller()) {
            kernel.call_rcu(cpu, Callback::Deferred(what));
        }
    }
}

/// Has read; see [`Task::rcu_read_unlock`].
#[must_use = "futures do nothing unless awaited"]
pub struct RcuReadUnlock<'a> {
    kernel: &'a Shared,
    task: TaskId,
    place: &'static Location<'static>,
    done: bool,
}

impl Future for RcuReadUnlock<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.done, true) {
            return Poll::Ready(());
        }
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if !kernel.asks(self.task, self.place) {
            return Poll::Pending;
        }
        let nesting = kernel.rcu_nesting(self.task);
        if *nesting == 0 {
            let what = "ends an RCU read section without having begun one";
            kernel.fail(self.task, what.to_owned());
            return Poll::Pending;
        }
        *nesting -= 1;
        kernel.enable_and_resched(self.task)
    }
}

/// Waits for readers; see [`Task::synchronize_rcu`].
#[must_use = "futures do nothing unless awaited"]
pub struct SynchronizeRcu<'a> {
    kernel: &'a Shared,
    task: TaskId,
    place: &'static Location<'static>,
    started: bool,
}

impl Future for SynchronizeRcu<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.started, true) {
            return Poll::Ready(());
        }
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        if !kernel.asks(self.task, self.place) {
            return Poll::Pending;
        }
        kernel.enter_kernel(self.task);
        let does = |_: &Kernel| "waits for a grace period".to_owned();
        if kernel.might_sleep(self.task, does) {
            kernel.synchronize_rcu(self.task);
        }
        Poll::Pending
    }
}
