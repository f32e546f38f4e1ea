//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use kernel_sim::{Event, EventKind, Machine, MachineConfig};
use std::cell::RefCell;
use std::rc::Rc;

/// A machine with the default costs.
pub fn machine(cpus: u8) -> Machine {
    Machine::new(MachineConfig {
        cpus,
        ..MachineConfig::default()
    })
}

/// Pairs that tasks write down as they go.
pub type Log = Rc<RefCell<Vec<(u64, u64)>>>;

/// An empty log.
pub fn log() -> Log {
    Rc::new(RefCell::new(Vec::new()))
}

/// All records since the last call.
pub fn events(machine: &mut Machine) -> Vec<Event> {
    let mut events = Vec::new();
    machine.take_events(&mut events);
    events
}

/// How many records there are of a kind.
pub fn count(events: &[Event], kind: EventKind) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

/// The text of the fault that a run ends with.
pub fn fault_of(machine: &mut Machine) -> String {
    let fault = machine.run_until(100_000_000);
    fault.expect_err("a rule is broken").to_string()
}
