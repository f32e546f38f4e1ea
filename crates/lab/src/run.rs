//! A run: the machine of a scenario, on its way.

use crate::metrics::Metrics;
use crate::recording::Recording;
use crate::roster::{Role, Roster, TaskInfo};
use crate::scenario::Scenario;
use crate::state::MachineState;
use crate::workload::{TaskBody, Workload};
use kernel_sim::{ConfigError, Event, Fault, LagClamp, Machine, MachineConfig, SpawnError, Task};
use kernel_sim::{NICE_0_WEIGHT, weight_of_nice};
use std::rc::Rc;
use zswap_mm::Compressor;
use zswap_mm::lifecycle::PoolError;
use zswap_paths::{Counters, Design, Zswap, ZswapOptions};

/// Why a run cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// A task could not be created.
    #[error("{name}: {error}")]
    Spawn {
        /// Its name.
        name: String,
        /// Why.
        error: SpawnError,
    },
    /// There can be no such machine.
    #[error(transparent)]
    Machine(#[from] ConfigError),
    /// The pool could not be created.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A task broke a rule of the model: the model has a bug, or an invariant
    /// that it claims does not hold.
    #[error("a rule is broken {0}")]
    Fault(#[from] Fault),
}

/// Records are taken over from the machine in parts of this length.
const PART_NS: u64 = 1_000_000;

/// The machine of a scenario, on its way.
pub struct Run {
    machine: Machine,
    zswap: Rc<Zswap>,
    roster: Roster,
    end_ns: u64,
    metrics: Metrics,
    state: MachineState,
    part: Vec<Event>,
}

impl Run {
    /// Builds the machine of a scenario, at time 0.
    ///
    /// # Errors
    /// If a task cannot be created.
    pub fn start(scenario: &Scenario, seed: u64) -> Result<Run, RunError> {
        Run::start_with(scenario, seed, scenario.compressor.new_compressor())
    }

    /// As [`Run::start`], with a transform of the scenario's compressor from
    /// elsewhere: a program that calls only this one needs not hold every codec.
    ///
    /// # Errors
    /// If a task cannot be created.
    pub fn start_with(
        scenario: &Scenario,
        seed: u64,
        codec: Box<dyn Compressor>,
    ) -> Result<Run, RunError> {
        let mut machine = Machine::new(machine_config(scenario, seed))?;
        let slots = scenario.pages();
        let design = Design {
            context: scenario.context,
            algorithm: scenario.compressor,
            ..Design::default()
        };
        let options = ZswapOptions::new(design, scenario.costs, slots, seed);
        let zswap = Rc::new(Zswap::new(&mut machine, options, codec)?);
        let tasks = spawn_all(scenario, seed, &zswap, &mut machine)?;
        let roster = Roster {
            cpus: u8::try_from(scenario.cpus).unwrap_or(u8::MAX),
            locks: machine.locks(),
            sites: machine.sites(),
            context: scenario.context,
            base_slice_ns: scenario.base_slice_ns,
            tick_ns: 1_000_000_000 / scenario.hz,
            slots,
            tasks,
        };
        Ok(Run {
            machine,
            zswap,
            end_ns: scenario.duration_s * 1_000_000_000,
            metrics: Metrics::new(&roster.tasks),
            state: MachineState::new(&roster),
            roster,
            part: Vec::new(),
        })
    }

    /// Runs up to and including `to_ns`, showing each record to `follow`.
    ///
    /// # Errors
    /// If a task breaks a rule.
    fn follow(
        &mut self,
        to_ns: u64,
        mut follow: impl FnMut(&mut MachineState, &Event),
    ) -> Result<(), RunError> {
        let mut at_ns = self.now_ns();
        loop {
            at_ns = to_ns.min(at_ns.saturating_add(PART_NS));
            let ran = self.machine.run_until(at_ns);
            self.machine.take_events(&mut self.part);
            for event in &self.part {
                self.metrics.apply(event);
                follow(&mut self.state, event);
            }
            ran?;
            if at_ns >= to_ns {
                return Ok(());
            }
        }
    }

    /// Runs up to and including `to_ns` for the metrics alone. Afterwards the
    /// run can no longer be recorded, since the state was not followed.
    ///
    /// # Errors
    /// If a task breaks a rule.
    pub fn measure(&mut self, to_ns: u64) -> Result<(), RunError> {
        self.follow(to_ns, |_, _| ())
    }

    /// Measures to the end of the scenario's duration.
    ///
    /// # Errors
    /// If a task breaks a rule.
    pub fn finish(&mut self) -> Result<(), RunError> {
        self.measure(self.end_ns)
    }

    /// Runs up to and including `to_ns`, so that a recording can start there.
    ///
    /// # Errors
    /// If a task breaks a rule.
    pub fn advance(&mut self, to_ns: u64) -> Result<(), RunError> {
        self.follow(to_ns, MachineState::apply)
    }

    /// Records from now up to and including `to_ns`.
    ///
    /// # Errors
    /// If a task breaks a rule.
    pub fn record(&mut self, to_ns: u64) -> Result<Recording, RunError> {
        let from_ns = self.now_ns();
        let start = self.state.clone();
        let mut events = Vec::new();
        self.follow(to_ns, |state, event| {
            state.apply(event);
            events.push(*event);
        })?;
        self.roster.sites = self.machine.sites();
        Ok(Recording {
            roster: self.roster.clone(),
            from_ns,
            to_ns,
            start,
            events,
        })
    }

    /// The time, in virtual ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.machine.now_ns()
    }

    /// The end of the scenario's duration, in virtual ns.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// What it has come to so far.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Who takes part.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// zswap's own counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.zswap.counters()
    }

    /// How often the codec worked, and how often the result of a page content
    /// met before was used again.
    #[must_use]
    pub fn codec_work(&self) -> (u64, u64) {
        self.zswap.codec_work()
    }

    /// How many records there were so far.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.machine.event_count()
    }

    /// The hash of all records so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.machine.trace_hash()
    }
}

fn machine_config(scenario: &Scenario, seed: u64) -> MachineConfig {
    MachineConfig {
        cpus: u8::try_from(scenario.cpus).unwrap_or(u8::MAX),
        seed,
        hz: u32::try_from(scenario.hz).unwrap_or(u32::MAX),
        hrtick: scenario.hrtick,
        base_slice_ns: scenario.base_slice_ns,
        preempt: scenario.preempt,
        mutex: scenario.mutex,
        lag_clamp: LagClamp::SlicePlusTick,
        switch_ns: scenario.machine_costs.switch_ns,
        timer_irq_ns: scenario.machine_costs.timer_irq_ns,
        wake_ns: scenario.machine_costs.wake_ns,
        ..MachineConfig::default()
    }
}

fn spawn_all(
    scenario: &Scenario,
    seed: u64,
    zswap: &Rc<Zswap>,
    machine: &mut Machine,
) -> Result<Vec<TaskInfo>, RunError> {
    let mut tasks = Vec::new();
    let mut workload = Workload::new(scenario, seed, Rc::clone(zswap));
    for number in 0..scenario.workers.count {
        let body = workload.worker(scenario.workers.pages);
        let info = info(Role::Worker, number, scenario.workers.nice);
        tasks.push(spawn(machine, info, body)?);
    }
    for number in 0..scenario.spinners.count {
        let info = info(Role::Spinner, number, scenario.spinners.nice);
        tasks.push(spawn(machine, info, Workload::spinner())?);
    }
    for number in 0..scenario.readers.count {
        let body = workload.reader(&scenario.readers);
        let info = info(Role::Reader, number, scenario.readers.nice);
        tasks.push(spawn(machine, info, body)?);
    }
    if scenario.background {
        spawn_background(seed, machine, &mut tasks)?;
    }
    Ok(tasks)
}

fn spawn_background(
    seed: u64,
    machine: &mut Machine,
    tasks: &mut Vec<TaskInfo>,
) -> Result<(), RunError> {
    let threads = machine.spawn_background(seed);
    let threads = threads.map_err(|error| RunError::Spawn {
        name: "the background".to_owned(),
        error,
    })?;
    for (number, &thread) in (0..).zip(&threads) {
        tasks.push(TaskInfo {
            name: machine.task_name(thread),
            ..info(Role::Kthread, number, 0)
        });
    }
    Ok(())
}

fn info(role: Role, number: u64, nice: i8) -> TaskInfo {
    let role_name = match role {
        Role::Worker => "worker",
        Role::Spinner => "spinner",
        Role::Reader => "reader",
        Role::Kthread => "kthread",
    };
    let nice_0 = u32::try_from(NICE_0_WEIGHT).unwrap_or(u32::MAX);
    TaskInfo {
        name: format!("{role_name} {number}"),
        role,
        number: u16::try_from(number).unwrap_or(u16::MAX),
        nice,
        weight: weight_of_nice(nice).unwrap_or(nice_0),
    }
}

fn spawn(
    machine: &mut Machine,
    info: TaskInfo,
    body: impl FnOnce(Task) -> TaskBody,
) -> Result<TaskInfo, RunError> {
    match machine.spawn(info.name.clone(), info.nice, body) {
        Ok(_) => Ok(info),
        Err(error) => Err(RunError::Spawn {
            name: info.name,
            error,
        }),
    }
}
