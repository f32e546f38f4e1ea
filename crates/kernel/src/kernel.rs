//! The state of the virtual kernel that tasks and interrupts work on.
//!
//! The executor ([`crate::machine::Machine`]) and the futures of
//! [`crate::task`] and [`crate::mutex`] share it behind one `RefCell`; each
//! borrows it for one step and never across an await.

use crate::agenda::Agenda;
use crate::config::MachineConfig;
use crate::cpu::Cpu;
use crate::event::{Event, EventKind};
use crate::fair::{Entities, FairOptions};
use crate::fault::Fault;
use crate::ids::{CpuId, LockId, SiteId, TaskId};
use crate::inheritance::Inherited;
use crate::lock::Lock;
use crate::objects::Objects;
use crate::pelt::{Activity, Pelt};
use crate::policy::{CpuMask, Policy};
use crate::rng::Stream;
use crate::spawn::Newborn;
use crate::timer::Timers;
use crate::trace::{Sites, Trace};
use core::panic::Location;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// What a task does next when it has its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Its future is to be polled.
    Poll,
    /// It runs for this many more ns.
    Run { left_ns: u64 },
    /// It spins, and looks again at this time if at any.
    Spin { again_ns: u64 },
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
    pub policy: Policy,
    /// What it has from those that wait for its locks.
    pub inherited: Inherited,
    pub cpus_allowed: CpuMask,
    pub op: Op,
    /// It sleeps: a wakeup has an effect.
    pub asleep: bool,
    /// It waits for a mutex and stays queued, to lend its turn to the owner.
    pub lends: bool,
    pub user_mode: bool,
    pub preempt_count: u32,
    /// Depth of sections with bottom halves off.
    pub bh_off: u32,
    pub cpu: CpuId,
    /// The last CPU that was idle when a wakeup looked for one.
    pub recent_cpu: CpuId,
    pub pelt: Pelt,
    /// How often it woke somebody other than the time before.
    pub wakee_flips: u32,
    pub last_wakee: TaskId,
    pub flips_decayed_ns: u64,
    pub site: SiteId,
    /// Locks it owns, in the order of taking.
    pub held: Vec<LockId>,
    /// The lock that it waits for, asleep or spinning.
    pub waits_for: Option<LockId>,
    /// Its place among those that wait, by their order of coming.
    pub ticket: u64,
    /// Since when it has been doing what it does: running, queued, asleep.
    pub since_ns: u64,
}

/// The virtual kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub config: MachineConfig,
    pub now_ns: u64,
    /// The CPU that acts at this moment.
    pub this_cpu: CpuId,
    pub cpus: Vec<Cpu>,
    /// What happens next on each CPU; see `refresh`.
    pub agenda: Agenda,
    pub tasks: Vec<TaskStruct>,
    pub entities: Entities,
    pub locks: Vec<Lock>,
    /// How many have queued on a lock so far.
    pub tickets: u64,
    /// Sleepers and other events with a time of their own.
    pub timers: Timers,
    /// What there is beside CPUs, tasks and locks.
    pub objects: Objects,
    pub trace: Trace,
    pub sites: Sites,
    /// The root domain has a CPU with more than one task.
    pub overloaded: bool,
    pub nohz_next_balance_ns: u64,
    /// How many CPUs of the cache a wakeup scans for an idle one.
    pub nr_idle_scan: u64,
    pub random: Stream,
    /// The bodies of tasks that running tasks have forked.
    pub newborn: Newborn,
    pub fault: Option<Fault>,
}

impl Kernel {
    pub fn new(config: MachineConfig) -> Kernel {
        let fair = FairOptions {
            tick_ns: i64::try_from(config.tick_ns()).unwrap_or(i64::MAX),
            lag_clamp: config.lag_clamp,
            protection: config.protection,
        };
        let (count, tick_ns) = (config.cpus, config.tick_ns());
        let mut random = Stream::new(config.seed, "kernel");
        let cpus = (0..count)
            .map(|_| Cpu::new(fair, tick_ns, count.into()))
            .map(|cpu| cpu.with_phase(&mut random, count.into(), tick_ns))
            .collect();
        Kernel {
            config,
            now_ns: 0,
            this_cpu: CpuId(0),
            agenda: Agenda::new(count),
            cpus,
            tasks: Vec::new(),
            entities: Entities::default(),
            locks: Vec::new(),
            tickets: 0,
            timers: Timers::default(),
            objects: Objects::default(),
            trace: Trace::default(),
            sites: Sites::default(),
            overloaded: false,
            nohz_next_balance_ns: 0,
            nr_idle_scan: count.into(),
            random,
            newborn: Newborn::default(),
            fault: None,
        }
    }

    pub fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    pub fn task(&mut self, task: TaskId) -> &mut TaskStruct {
        &mut self.tasks[task.index()]
    }

    /// All CPUs, in order.
    pub fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.config.cpus).map(CpuId)
    }

    /// Tells load tracking what a task does from now on.
    pub fn track(&mut self, task: TaskId) {
        let entity = &self.entities[task];
        let state = &mut self.tasks[task.index()];
        let activity = Activity {
            queued: entity.on_rq,
            runnable: entity.on_rq && !entity.delayed,
            running: self.cpus[state.cpu.index()].donor == Some(task) && entity.on_rq,
        };
        state.pelt.set(self.now_ns, activity);
    }

    /// The task that a CPU runs.
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].curr
    }

    /// Remembers the source line that a task asks from.
    pub fn at(&mut self, task: TaskId, place: &'static Location<'static>) {
        self.tasks[task.index()].site = self.sites.number(place);
    }

    /// A task that asks for something only the kernel can do is in the kernel.
    pub fn enter_kernel(&mut self, task: TaskId) {
        if self.task(task).user_mode {
            self.task(task).user_mode = false;
            self.emit(task, EventKind::Mode, 0, 1);
        }
    }

    /// Reports a transition of a task.
    pub fn emit(&mut self, task: TaskId, kind: EventKind, arg: u64, aux: u16) {
        let cpu = self.tasks[task.index()].cpu;
        self.emit_on(cpu, task, kind, arg, aux);
    }

    /// Reports a transition of a task on a CPU that it may have been moved from.
    pub fn emit_on(&mut self, cpu: CpuId, task: TaskId, kind: EventKind, arg: u64, aux: u16) {
        let site = self.tasks[task.index()].site;
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
        self.emit_irq(cpu, kind, 0, aux);
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
