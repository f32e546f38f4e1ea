//! What the page and its worker tell each other: postcard bytes in transferred
//! buffers.
//!
//! Invariants:
//! 1. Every answer carries the number of the run that it is about, so that the
//!    page can drop what belongs to a run it has left.
//! 2. A list of wanted windows replaces the one before: what nobody wants any
//!    more is not computed.

use serde::{Deserialize, Serialize};
use zswap_lab::Recording;

/// Length of a window, in virtual ns: some six thousand records, which take a
/// few ms to make and far less to send.
pub const WINDOW_NS: u64 = 5_000_000;

/// From the page to its worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// Forget the run before and start this one.
    Start {
        /// Number of the run.
        run: u32,
        /// The scenario: its keys with their values as text.
        settings: Vec<(String, String)>,
        /// The seed.
        seed: u64,
    },
    /// These windows are wanted, the most urgent first.
    Windows {
        /// Number of the run.
        run: u32,
        /// Numbers of the windows: number `n` ends at `(n + 1) * WINDOW_NS`.
        wanted: Vec<u64>,
    },
}

/// A timed read as it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlimRead {
    /// When it began, in ns.
    pub begin_ns: u64,
    /// How long it took, in ns.
    pub latency_ns: u64,
}

impl SlimRead {
    /// When it ended, in ns.
    pub fn end_ns(self) -> u64 {
        self.begin_ns + self.latency_ns
    }
}

/// How far the pass over the whole run is, and what it has come to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Virtual time reached, in ns.
    pub at_ns: u64,
    /// Virtual end of the run, in ns.
    pub end_ns: u64,
    /// Records so far.
    pub events: u64,
    /// Median, 99th and 99.9th percentile of the reads so far, in ns.
    pub percentiles_ns: [u64; 3],
    /// Hash of all records, once the pass is over.
    pub trace_hash: Option<u64>,
}

/// From the worker to its page.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToPage {
    /// The worker listens.
    Ready,
    /// More reads of the pass, in order of their end.
    Reads {
        /// Number of the run.
        run: u32,
        /// The reads.
        reads: Vec<SlimRead>,
    },
    /// How far the pass is.
    Progress {
        /// Number of the run.
        run: u32,
        /// How far.
        progress: Progress,
    },
    /// A window.
    Window {
        /// Number of the run.
        run: u32,
        /// Number of the window.
        number: u64,
        /// Its records.
        recording: Box<Recording>,
    },
    /// The run cannot go on.
    Failed {
        /// Number of the run.
        run: u32,
        /// Why, in a sentence.
        words: String,
    },
}
