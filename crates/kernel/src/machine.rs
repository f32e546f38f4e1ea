//! The executor: advances virtual time and polls the tasks.
//!
//! Invariants:
//! 1. What happens next is chosen by (time, class, CPU): nothing else decides.
//! 2. A task is polled only while it is the current one of its CPU and has
//!    finished what it last asked for.
//! 3. An await allocates nothing: futures live in the task's own state.
//! 4. An interrupt and a context switch take time in which the task makes no
//!    progress; requests to reschedule are looked at when it ends.

use crate::config::{ConfigError, MachineConfig};
use crate::cpu::Next;
use crate::event::{Event, EventKind};
use crate::fault::Fault;
use crate::ids::{CpuId, TaskId};
use crate::kernel::{Kernel, NEVER, Op};
use crate::lock::{LockInfo, LockKind};
use crate::mutex::Mutex;
use crate::spawn::TaskFuture;
use crate::spinlock::SpinLock;
use crate::trace::{Sink, Site};
use core::cell::RefCell;
use core::task::{Context, Waker};
use std::rc::Rc;

/// The kernel as the tasks and the executor share it.
pub(crate) type Shared = Rc<RefCell<Kernel>>;

/// A virtual machine with its tasks.
///
/// ```
/// use kernel_sim::{Machine, MachineConfig};
/// let mut machine = Machine::new(MachineConfig::default())?;
/// machine.spawn("spinner", 0, |task| async move {
///     loop {
///         task.run_user(1_000_000).await;
///     }
/// })?;
/// machine.run_until(10_000_000)?;
/// assert_eq!(machine.now_ns(), 10_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Machine {
    pub(crate) kernel: Shared,
    pub(crate) futures: Vec<Option<TaskFuture>>,
}

impl Machine {
    /// A machine without tasks, at time 0.
    ///
    /// # Errors
    /// If there can be no such machine, as one without CPUs.
    pub fn new(config: MachineConfig) -> Result<Machine, ConfigError> {
        config.check()?;
        Ok(Machine {
            kernel: Rc::new(RefCell::new(Kernel::new(config))),
            futures: Vec::new(),
        })
    }

    /// Creates a mutex.
    pub fn mutex(&mut self, name: impl Into<String>) -> Mutex {
        self.kernel.borrow_mut().new_mutex(name.into())
    }

    /// Creates a spinlock that is taken with bottom halves off.
    pub fn spin_lock(&mut self, name: impl Into<String>) -> SpinLock {
        SpinLock(
            self.kernel
                .borrow_mut()
                .new_lock(name.into(), LockKind::SpinBh),
        )
    }

    /// Runs everything that happens up to and including `until_ns`.
    ///
    /// # Errors
    /// If a task breaks a rule; the machine then stays where it is.
    pub fn run_until(&mut self, until_ns: u64) -> Result<(), Fault> {
        let cpus = self.kernel.borrow().cpu_ids();
        for cpu in cpus {
            self.kernel.borrow_mut().this_cpu = cpu;
            self.settle(cpu);
        }
        loop {
            let mut kernel = self.kernel.borrow_mut();
            if let Some(fault) = &kernel.fault {
                return Err(fault.clone());
            }
            let (at_ns, next, cpu) = kernel.next();
            if at_ns > until_ns {
                kernel.now_ns = kernel.now_ns.max(until_ns);
                return Ok(());
            }
            debug_assert!(
                at_ns >= kernel.now_ns,
                "{next:?} of CPU {cpu} is in the past"
            );
            kernel.now_ns = at_ns;
            kernel.this_cpu = cpu;
            kernel.handle(next, cpu);
            drop(kernel);
            self.settle(cpu);
            let kernel = &mut *self.kernel.borrow_mut();
            if kernel.config.checks {
                kernel.check();
            }
        }
    }

    /// Lets a CPU act until it has to wait for time to pass.
    fn settle(&mut self, cpu: CpuId) {
        loop {
            let mut kernel = self.kernel.borrow_mut();
            if kernel.fault.is_some() {
                return;
            }
            match kernel.settle(cpu) {
                Settled::Waits => return,
                Settled::Polls(task) => {
                    drop(kernel);
                    self.poll(task);
                }
            }
        }
    }

    fn poll(&mut self, task: TaskId) {
        let slot = &mut self.futures[task.index()];
        let Some(future) = slot else { return };
        let mut context = Context::from_waker(Waker::noop());
        let ended = future.as_mut().poll(&mut context).is_ready();
        let kernel = &mut *self.kernel.borrow_mut();
        if ended {
            *slot = None;
            kernel.exit(task);
        } else if kernel.task(task).op == Op::Poll {
            let what = "awaits something that the machine does not know; \
                        a task may only await what its `Task` gives it";
            kernel.fail(task, what.to_owned());
        }
        if !kernel.newborn.0.is_empty() {
            self.futures.extend(kernel.newborn.0.drain(..).map(Some));
        }
    }

    /// The name that a task was created with.
    #[must_use]
    pub fn task_name(&self, task: TaskId) -> String {
        self.kernel.borrow().tasks[task.index()].name.clone()
    }

    /// The time, in virtual ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.kernel.borrow().now_ns
    }

    /// Its CPUs.
    #[must_use]
    pub fn cpus(&self) -> Vec<CpuId> {
        self.kernel.borrow().cpu_ids().collect()
    }

    /// How many records there were so far.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.kernel.borrow().trace.count()
    }

    /// The hash of all records so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.kernel.borrow().trace.hash()
    }

    /// Says what becomes of the records from now on; at first they are kept.
    pub fn set_sink(&mut self, sink: Sink) {
        self.kernel.borrow_mut().trace.set_sink(sink);
    }

    /// Moves the records since the last call into `into`, which is cleared.
    pub fn take_events(&mut self, into: &mut Vec<Event>) {
        self.kernel.borrow_mut().trace.take_into(into);
    }

    /// The source places that records refer to.
    #[must_use]
    pub fn sites(&self) -> Vec<Site> {
        self.kernel.borrow().sites.all().to_vec()
    }

    /// All locks, by number.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        let kernel = self.kernel.borrow();
        let info = |lock: &crate::lock::Lock| LockInfo {
            name: lock.name.clone(),
            kind: lock.kind,
        };
        kernel.locks.iter().map(info).collect()
    }

    /// CPU time that a task has had, in ns, up to the last accounting.
    #[must_use]
    pub fn cpu_time_ns(&self, task: TaskId) -> u64 {
        self.kernel.borrow().entities[task].sum_exec_ns
    }
}

/// What a CPU does at this moment.
enum Settled {
    /// It waits for time to pass.
    Waits,
    /// It polls this task.
    Polls(TaskId),
}

impl Kernel {
    /// What happens next: the earliest, of the same time the first in class, of
    /// the same class the first CPU.
    fn next(&self) -> (u64, Next, CpuId) {
        let first = self.agenda.first();
        let at_ns = first.at_ns();
        match self.timers.peek() {
            // A timer is the first class of all.
            Some((timer_ns, what)) if timer_ns <= at_ns => {
                (timer_ns, Next::Timer, self.cpu_of_timed(what))
            }
            _ => (at_ns, first.next(), first.cpu()),
        }
    }

    /// Notes anew what happens next on a CPU.
    pub(crate) fn refresh(&mut self, cpu: CpuId) {
        self.agenda.set(cpu, self.cpus[cpu.index()].next());
    }

    fn handle(&mut self, next: Next, cpu: CpuId) {
        match next {
            Next::OpEnd => {
                self.cpu(cpu).op_end_ns = NEVER;
                if let Some(curr) = self.curr(cpu) {
                    self.task(curr).op = Op::Poll;
                }
            }
            Next::StallEnd => {
                self.cpu(cpu).stall_until_ns = NEVER;
                self.leave_irq(cpu);
                if self.must_resched(cpu) {
                    self.schedule(cpu);
                }
            }
            Next::Tick => {
                self.enter_irq(cpu, self.config.timer_irq_ns);
                self.tick(cpu);
            }
            Next::Hrtick => {
                self.enter_irq(cpu, self.config.timer_irq_ns);
                self.hrtick(cpu);
            }
            Next::Timer => self.fire_timer(cpu),
            Next::Ipi => {
                self.cpu(cpu).ipi_at_ns = NEVER;
                self.enter_irq(cpu, self.config.timer_irq_ns);
                self.nohz_balance(cpu);
            }
        }
    }

    /// The end of an interrupt runs the softirqs, unless bottom halves are off.
    fn leave_irq(&mut self, cpu: CpuId) {
        let held_off = self
            .curr(cpu)
            .is_some_and(|curr| self.task(curr).bh_off > 0);
        if !held_off {
            self.run_softirq(cpu);
        }
    }

    /// An interrupt: the running task stops making progress for its length.
    pub(crate) fn enter_irq(&mut self, cpu: CpuId, irq_ns: u64) {
        let now_ns = self.now_ns;
        let Some(curr) = self.curr(cpu) else { return };
        let state = self.cpu(cpu);
        if state.stall_until_ns == NEVER {
            let end_ns = core::mem::replace(&mut state.op_end_ns, NEVER);
            state.stall_until_ns = now_ns + irq_ns;
            if let Op::Run { left_ns } = &mut self.task(curr).op {
                *left_ns = end_ns - now_ns;
            }
        } else {
            state.stall_until_ns += irq_ns;
        }
    }

    fn settle(&mut self, cpu: CpuId) -> Settled {
        let settled = self.settle_cpu(cpu);
        if matches!(settled, Settled::Waits) {
            self.refresh(cpu);
        }
        settled
    }

    fn settle_cpu(&mut self, cpu: CpuId) -> Settled {
        loop {
            let failed = self.fault.is_some();
            let state = self.cpu(cpu);
            if failed || state.stall_until_ns != NEVER || state.op_end_ns != NEVER {
                return Settled::Waits;
            }
            let Some(curr) = state.curr else {
                // An idle CPU notices what was queued for it when the interrupt
                // that says so arrives.
                let queued = !state.rq.tree().is_empty() || !state.rt.is_empty();
                let told = state.ipi_at_ns == NEVER && queued;
                if state.idle && !told {
                    return Settled::Waits;
                }
                self.schedule(cpu);
                continue;
            };
            match self.task(curr).op {
                Op::Poll => return Settled::Polls(curr),
                Op::Run { left_ns } => {
                    let now_ns = self.now_ns;
                    self.cpu(cpu).op_end_ns = now_ns + left_ns;
                    return Settled::Waits;
                }
                Op::Spin { again_ns } => {
                    let now_ns = self.now_ns;
                    self.cpu(cpu).op_end_ns = again_ns.max(now_ns);
                    return Settled::Waits;
                }
                Op::Resched => {
                    self.task(curr).op = Op::Poll;
                    self.schedule(cpu);
                }
                Op::Block | Op::Sleep | Op::Exit => self.schedule(cpu),
            }
        }
    }

    fn exit(&mut self, task: TaskId) {
        if let Some(&lock) = self.task(task).held.first() {
            let name = self.locks[lock.index()].name.clone();
            self.fail(task, format!("ends while it holds {name}; unlock it first"));
        } else if self.task(task).preempt_count > 0 {
            let what = "ends with preemption off; release what switched it off first";
            self.fail(task, what.to_owned());
        }
        self.emit(task, EventKind::Exit, 0, 0);
        self.task(task).op = Op::Exit;
    }
}
