//! Two tasks that hand a token to and fro.

use crate::measure::Count;
use kernel_sim::{Event, Machine, MachineConfig, Mutex, Task};
use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;
use std::rc::Rc;

/// How long a task keeps the token.
const TURN_NS: u64 = 1_000;
/// How long it looks away then: less than the other one's turn and the two
/// switches around it, so that the token is never idle.
const PAUSE_NS: u64 = 1_000;
/// Virtual time between two looks at the count.
const PART_NS: u64 = 1_000_000;

async fn play(task: Task, token: Mutex, turns: Rc<Cell<u64>>) {
    loop {
        task.mutex_lock(token).await;
        turns.set(turns.get() + 1);
        task.run_kernel(TURN_NS).await;
        task.mutex_unlock(token).await;
        task.sleep(PAUSE_NS).await;
    }
}

/// A machine with one CPU, two tasks, and a mutex that is their token: with
/// scheduler, timers and records, as everything on the virtual kernel.
pub struct PingPong {
    machine: Machine,
    turns: Rc<Cell<u64>>,
    part: Vec<Event>,
}

impl PingPong {
    /// The game before its first turn.
    ///
    /// # Errors
    /// If there can be no such machine.
    pub fn new() -> Result<PingPong, Box<dyn Error>> {
        let mut machine = Machine::new(MachineConfig::default())?;
        let token = machine.mutex("token");
        let turns = Rc::new(Cell::new(0));
        for name in ["ping", "pong"] {
            let turns = Rc::clone(&turns);
            machine.spawn(name, 0, |task| play(task, token, turns))?;
        }
        Ok(PingPong {
            machine,
            turns,
            part: Vec::new(),
        })
    }

    /// Plays on for a part; turns are what counts.
    pub fn step(&mut self) -> Count {
        let until_ns = self.machine.now_ns() + PART_NS;
        if let Err(fault) = self.machine.run_until(until_ns) {
            panic!("the game breaks no rule: {fault}");
        }
        self.machine.take_events(&mut self.part);
        black_box(&self.part);
        Count(self.turns.take())
    }
}
