//! The state of the virtual kernel that tasks and interrupts work on.
//!
//! The executor ([`crate::machine::Machine`]) and the futures of
//! [`crate::task`] and [`crate::mutex`] share it behind one `RefCell`; each
//! borrows it for one step and never across an await.

use crate::config::MachineConfig;
use crate::event::{Event, EventKind};
use crate::fair::{CfsRq, Entities, FairOptions};
use crate::fault::Fault;
use crate::ids::{CpuId, LockId, SiteId, TaskId};
use crate::lock::Lock;
use crate::trace::{Sites, Trace};
use core::cmp::Reverse;
use core::panic::Location;
use std::collections::BinaryHeap;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// What a task does next when it has its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Its future is to be polled.
    Poll,
    /// It runs for this many more ns.
    Run { left_ns: u64 },
    /// It gives the scheduler a chance, and is polled when it is picked.
    Resched,
    /// It has queued on a lock and sleeps until it is woken.
    Block,
    /// It sleeps until a time.
    Sleep,
    /// Its future has ended.
    Exit,
}

/// A task as the kernel sees it.
#[derive(Debug)]
pub(crate) struct TaskStruct {
    pub name: String,
    pub op: Op,
    /// It sleeps: a wakeup has an effect.
    pub asleep: bool,
    pub user_mode: bool,
    pub preempt_count: u32,
    pub cpu: CpuId,
    pub site: SiteId,
    /// Locks it owns, in the order of taking.
    pub held: Vec<LockId>,
}

/// A CPU.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub rq: CfsRq,
    pub need_resched: bool,
    pub need_resched_lazy: bool,
    pub tick_at_ns: u64,
    pub hrtick_at_ns: u64,
    /// End of an interrupt or a context switch in progress, or [`NEVER`].
    pub stall_until_ns: u64,
    /// When the running task's [`Op::Run`] ends, or [`NEVER`].
    pub op_end_ns: u64,
    /// It has said that it idles.
    pub idle: bool,
}

/// The virtual kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub config: MachineConfig,
    pub now_ns: u64,
    pub cpus: Vec<Cpu>,
    pub tasks: Vec<TaskStruct>,
    pub entities: Entities,
    pub locks: Vec<Lock>,
    /// Sleepers by (time, order of going to sleep).
    pub timers: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    pub timer_seq: u64,
    pub trace: Trace,
    pub sites: Sites,
    pub fault: Option<Fault>,
}

impl Kernel {
    pub fn new(config: MachineConfig) -> Kernel {
        let fair = FairOptions {
            tick_ns: i64::try_from(config.tick_ns()).unwrap_or(i64::MAX),
            lag_clamp: config.lag_clamp,
        };
        let cpu = Cpu {
            rq: CfsRq::new(fair),
            need_resched: false,
            need_resched_lazy: false,
            tick_at_ns: config.tick_ns(),
            hrtick_at_ns: NEVER,
            stall_until_ns: NEVER,
            op_end_ns: NEVER,
            idle: false,
        };
        Kernel {
            config,
            now_ns: 0,
            cpus: vec![cpu],
            tasks: Vec::new(),
            entities: Entities::default(),
            locks: Vec::new(),
            timers: BinaryHeap::new(),
            timer_seq: 0,
            trace: Trace::default(),
            sites: Sites::default(),
            fault: None,
        }
    }

    pub fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    pub fn task(&mut self, task: TaskId) -> &mut TaskStruct {
        &mut self.tasks[task.index()]
    }

    /// The task that a CPU runs.
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].rq.curr()
    }

    /// Remembers the source line that a task asks from.
    pub fn at(&mut self, task: TaskId, place: &'static Location<'static>) {
        self.tasks[task.index()].site = self.sites.number(place);
    }

    /// Reports a transition of a task.
    pub fn emit(&mut self, task: TaskId, kind: EventKind, arg: u64, aux: u16) {
        let TaskStruct { cpu, site, .. } = self.tasks[task.index()];
        self.trace.push(Event {
            at_ns: self.now_ns,
            arg,
            task,
            site,
            aux,
            cpu,
            kind,
        });
    }

    /// Reports a transition of a CPU, with the task it runs.
    pub fn emit_cpu(&mut self, cpu: CpuId, kind: EventKind, aux: u16) {
        let task = self.curr(cpu).unwrap_or(TaskId::NONE);
        let site = match task {
            TaskId::NONE => Sites::START,
            task => self.tasks[task.index()].site,
        };
        self.trace.push(Event {
            at_ns: self.now_ns,
            arg: 0,
            task,
            site,
            aux,
            cpu,
            kind,
        });
    }

    pub fn emit_vruntime(&mut self, task: TaskId) {
        let vruntime = self.entities[task].vruntime;
        self.emit(task, EventKind::Vruntime, vruntime.cast_unsigned(), 0);
    }

    pub fn emit_deadline(&mut self, task: TaskId) {
        let deadline = self.entities[task].deadline;
        self.emit(task, EventKind::Deadline, deadline.cast_unsigned(), 0);
    }

    /// Switches preemption off for a task; nests.
    pub fn preempt_disable(&mut self, task: TaskId) {
        let count = &mut self.task(task).preempt_count;
        *count += 1;
        if *count == 1 {
            self.emit(task, EventKind::PreemptOff, 0, 0);
        }
    }

    /// Ends one level of switched-off preemption.
    pub fn preempt_enable(&mut self, task: TaskId) {
        let count = &mut self.task(task).preempt_count;
        debug_assert!(*count > 0, "preemption is enabled once too often");
        *count -= 1;
        if *count == 0 {
            self.emit(task, EventKind::PreemptOn, 0, 0);
        }
    }

    /// Stops the run: a task broke a rule.
    pub fn fail(&mut self, task: TaskId, what: String) {
        if self.fault.is_none() {
            let TaskStruct { name, site, .. } = &self.tasks[task.index()];
            self.fault = Some(Fault {
                at_ns: self.now_ns,
                task: name.clone(),
                site: self.sites.all()[usize::from(site.0)].clone(),
                what,
            });
        }
    }
}
