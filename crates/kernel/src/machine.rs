//! The executor: advances virtual time and polls the tasks.
//!
//! Invariants:
//! 1. What happens next is chosen by (time, class, CPU): nothing else decides.
//! 2. A task is polled only while it is the current one of its CPU and has
//!    finished what it last asked for.
//! 3. An await allocates nothing: futures live in the task's own state.
//! 4. An interrupt and a context switch take time in which the task makes no
//!    progress; requests to reschedule are looked at when it ends.

use crate::asks::Polled;
use crate::config::{ConfigError, MachineConfig};
use crate::cpu::Next;
use crate::event::{Event, EventKind};
use crate::fault::Fault;
use crate::ids::{CpuId, TaskId};
use crate::kernel::{Kernel, LATEST_NS, NEVER, Op, moment_after};
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

    /// Runs everything that happens up to and including `until_ns`, and not
    /// beyond the end of time at 2^62 ns. A time that has passed changes nothing.
    ///
    /// # Errors
    /// If a task breaks a rule; the machine then stays where it is.
    pub fn run_until(&mut self, until_ns: u64) -> Result<(), Fault> {
        let until_ns = until_ns.min(LATEST_NS);
        let cpus = self.kernel.borrow().cpu_ids();
        for cpu in cpus {
            self.drive(|kernel| {
                kernel.this_cpu = cpu;
                Ok(kernel.settle(cpu))
            })?;
        }
        self.drive(|kernel| kernel.run_until(until_ns))
    }

    /// Goes on, and polls the tasks that this gives, until there is none. Between
    /// two polls the kernel is borrowed once, since an event is no more than some
    /// ten ns of work.
    fn drive(
        &mut self,
        mut go_on: impl FnMut(&mut Kernel) -> Result<Option<TaskId>, Fault>,
    ) -> Result<(), Fault> {
        let shared = Rc::clone(&self.kernel);
        let mut kernel = shared.borrow_mut();
        while let Some(task) = go_on(&mut kernel)? {
            kernel.polled = Polled::begins(task);
            drop(kernel);
            let ended = self.poll(task);
            kernel = shared.borrow_mut();
            kernel.has_polled(task, ended);
            for (id, body) in kernel.newborn.0.drain(..) {
                self.give_body(id, body);
            }
        }
        Ok(())
    }

    /// Polls a task; says whether it has ended.
    fn poll(&mut self, task: TaskId) -> bool {
        let slot = &mut self.futures[task.index()];
        let Some(future) = slot else { return false };
        let mut context = Context::from_waker(Waker::noop());
        let ended = future.as_mut().poll(&mut context).is_ready();
        if ended {
            *slot = None;
        }
        ended
    }

    pub(crate) fn give_body(&mut self, id: TaskId, body: TaskFuture) {
        if self.futures.len() <= id.index() {
            self.futures.resize_with(id.index() + 1, || None);
        }
        self.futures[id.index()] = Some(body);
    }

    /// The name that a task was created with; empty if there is no such task.
    #[must_use]
    pub fn task_name(&self, task: TaskId) -> String {
        let kernel = self.kernel.borrow();
        let task = kernel.tasks.get(task.index());
        task.map_or_else(String::new, |task| task.name.clone())
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

    /// CPU time that a task has had, in ns, up to the last accounting; 0 if
    /// there is no such task.
    #[must_use]
    pub fn cpu_time_ns(&self, task: TaskId) -> u64 {
        let kernel = self.kernel.borrow();
        let exists = task.index() < kernel.tasks.len();
        if exists {
            kernel.entities[task].sum_exec_ns
        } else {
            0
        }
    }
}

impl Kernel {
    /// Runs everything up to and including `until_ns`, or to the moment at which
    /// a task is to be polled.
    fn run_until(&mut self, until_ns: u64) -> Result<Option<TaskId>, Fault> {
        loop {
            let polls = self.settle(self.this_cpu);
            if self.config.checks && polls.is_none() {
                self.check();
            }
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            if polls.is_some() {
                return Ok(polls);
            }
            let (at_ns, next, cpu) = self.next();
            if at_ns > until_ns {
                self.now_ns = self.now_ns.max(until_ns);
                return Ok(None);
            }
            debug_assert!(at_ns >= self.now_ns, "{next:?} of CPU {cpu} is in the past");
            self.now_ns = at_ns;
            self.this_cpu = cpu;
            self.handle(next, cpu);
        }
    }

    /// A task has been polled: it has asked for something, or has ended.
    fn has_polled(&mut self, task: TaskId, ended: bool) {
        self.polled = Polled::default();
        if ended {
            self.exit(task);
        } else if self.task(task).op == Op::Poll {
            let what = "awaits something that the machine does not know; \
                        a task may only await what its `Task` gives it";
            self.fail(task, what.to_owned());
        }
    }

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
            state.stall_until_ns = moment_after(now_ns, irq_ns);
            if let Op::Run { left_ns } = &mut self.task(curr).op {
                *left_ns = end_ns - now_ns;
            }
        } else {
            state.stall_until_ns = moment_after(state.stall_until_ns, irq_ns);
        }
    }

    /// Lets a CPU act until it has to wait for time to pass, or gives the task
    /// that it polls. After a fault nothing acts.
    fn settle(&mut self, cpu: CpuId) -> Option<TaskId> {
        let polls = self.settle_cpu(cpu);
        if polls.is_none() {
            self.refresh(cpu);
        }
        polls
    }

    fn settle_cpu(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let failed = self.fault.is_some();
            let state = self.cpu(cpu);
            if failed || state.stall_until_ns != NEVER || state.op_end_ns != NEVER {
                return None;
            }
            let Some(curr) = state.curr else {
                // An idle CPU notices what was queued for it when the interrupt
                // that says so arrives.
                let queued = !state.rq.tree().is_empty() || !state.rt.is_empty();
                let told = state.ipi_at_ns == NEVER && queued;
                if state.idle && !told {
                    return None;
                }
                self.schedule(cpu);
                continue;
            };
            match self.task(curr).op {
                Op::Poll => return Some(curr),
                Op::Run { left_ns } => {
                    let now_ns = self.now_ns;
                    self.cpu(cpu).op_end_ns = moment_after(now_ns, left_ns);
                    return None;
                }
                Op::Spin { again_ns } => {
                    let now_ns = self.now_ns;
                    self.cpu(cpu).op_end_ns = again_ns.max(now_ns);
                    return None;
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
        if let Some(what) = self.unfinished(task) {
            self.fail(task, format!("ends, and so {what}"));
        } else if let Some(&lock) = self.task(task).held.first() {
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
