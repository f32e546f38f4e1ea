//! A window of a run, record by record, and moving about in it.
//!
//! Invariants:
//! 1. The state at a position is the start state plus the records before it,
//!    however the position was reached.
//! 2. Position `n` is the moment between record `n - 1` and record `n`.

use crate::roster::Roster;
use crate::state::MachineState;
use kernel_sim::Event;
use serde::{Deserialize, Serialize};

/// A window of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// Who takes part.
    pub roster: Roster,
    /// Start of the window, in ns: it holds the records after this time.
    pub from_ns: u64,
    /// End of the window, in ns: it holds the records up to this time.
    pub to_ns: u64,
    /// The machine at `from_ns`.
    pub start: MachineState,
    /// The records.
    pub events: Vec<Event>,
}

impl Recording {
    /// The position after all records up to and including `at_ns`.
    #[must_use]
    pub fn position_at(&self, at_ns: u64) -> usize {
        self.events.partition_point(|event| event.at_ns <= at_ns)
    }
}

/// A state is kept every so many records, to go back from.
const SNAPSHOT_EVERY: usize = 1024;

/// Moves about in a recording.
///
/// ```
/// use zswap_lab::{Player, Run, Scenario};
/// let scenario = Scenario::named("b1-1cpu").expect("it is built in");
/// let recording = Run::start(&scenario, 1)?.record(2_000_000)?;
/// let mut player = Player::new(recording);
/// player.seek_ns(1_000_000);
/// let there = player.state().clone();
/// player.step(10);
/// player.step(-10);
/// assert_eq!(*player.state(), there);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Player {
    recording: Recording,
    /// The states at positions 0, [`SNAPSHOT_EVERY`], and so on, as far as the
    /// recording has been played.
    snapshots: Vec<MachineState>,
    state: MachineState,
    position: usize,
}

impl Player {
    /// At the start of a recording.
    #[must_use]
    pub fn new(recording: Recording) -> Player {
        Player {
            snapshots: vec![recording.start.clone()],
            state: recording.start.clone(),
            position: 0,
            recording,
        }
    }

    /// The recording.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The machine at the position.
    #[must_use]
    pub fn state(&self) -> &MachineState {
        &self.state
    }

    /// How many records lie before the position.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Goes to the position after all records up to and including `at_ns`.
    pub fn seek_ns(&mut self, at_ns: u64) {
        self.seek(self.recording.position_at(at_ns));
    }

    /// Goes on by `records`, or back; stops at the ends. Returns the time of
    /// the record before the position, or the start of the window.
    pub fn step(&mut self, records: isize) -> u64 {
        self.seek(self.position.saturating_add_signed(records));
        match self.position.checked_sub(1) {
            Some(last) => self.recording.events[last].at_ns,
            None => self.recording.from_ns,
        }
    }

    /// Goes to a position; one beyond the end means the end.
    pub fn seek(&mut self, position: usize) {
        let position = position.min(self.recording.events.len());
        if position < self.position {
            let snapshot = position / SNAPSHOT_EVERY;
            self.state = self.snapshots[snapshot].clone();
            self.position = snapshot * SNAPSHOT_EVERY;
        }
        while self.position < position {
            self.state.apply(&self.recording.events[self.position]);
            self.position += 1;
            if self.position == self.snapshots.len() * SNAPSHOT_EVERY {
                self.snapshots.push(self.state.clone());
            }
        }
    }
}
