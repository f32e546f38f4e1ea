//! What the tests of whole machines share.
#![allow(dead_code, reason = "not every test uses every helper")]

use kernel_sim::{Event, EventKind, Machine, MachineConfig, Task, TaskId};
use std::cell::RefCell;
use std::rc::Rc;

/// A machine whose invariants are checked after every event.
pub fn machine(edit: impl FnOnce(&mut MachineConfig)) -> Machine {
    let mut config = MachineConfig {
        checks: true,
        ..MachineConfig::default()
    };
    edit(&mut config);
    Machine::new(config).expect("a machine that can be")
}

/// A machine of some CPUs with the default costs.
pub fn with_cpus(cpus: u8) -> Machine {
    machine(|config| config.cpus = cpus)
}

/// A machine of some CPUs without hardware costs, so that times are round.
pub fn ideal(cpus: u8, edit: impl FnOnce(&mut MachineConfig)) -> Machine {
    machine(|config| {
        config.cpus = cpus;
        config.switch_ns = 0;
        config.timer_irq_ns = 0;
        config.wake_ns = 0;
        config.ipi_ns = 0;
        config.line_ns = 0;
        edit(config);
    })
}

/// Runs in user mode for ever.
pub async fn spin(task: Task) {
    loop {
        task.run_user(1_000_000).await;
    }
}

/// A task of the fair class that runs for ever.
pub fn spinner(machine: &mut Machine, name: &str, nice: i8) -> TaskId {
    machine.spawn(name, nice, spin).expect("a valid nice")
}

/// The records since the last call.
pub fn events(machine: &mut Machine) -> Vec<Event> {
    let mut events = Vec::new();
    machine.take_events(&mut events);
    events
}

/// The records of a kind about a task.
pub fn of(events: &[Event], task: TaskId, kind: EventKind) -> Vec<Event> {
    let matches = |event: &&Event| event.task == task && event.kind == kind;
    events.iter().filter(matches).copied().collect()
}

/// The times of the records of a kind about a task, in ns.
pub fn times(events: &[Event], task: TaskId, kind: EventKind) -> Vec<u64> {
    of(events, task, kind)
        .iter()
        .map(|event| event.at_ns)
        .collect()
}

/// How many records there are of a kind.
pub fn count(events: &[Event], kind: EventKind) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

/// Pairs that tasks write down as they go.
pub type Log = Rc<RefCell<Vec<(u64, u64)>>>;

/// An empty log.
pub fn log() -> Log {
    Rc::new(RefCell::new(Vec::new()))
}

/// The text of the fault that a run ends with.
pub fn fault_of(machine: &mut Machine) -> String {
    let fault = machine.run_until(100_000_000);
    fault.expect_err("a rule is broken").to_string()
}
