//! The laboratory: a scenario becomes a machine, the machine a run, and the run
//! metrics, records and frames' raw material.
//!
//! Invariants:
//! 1. A scenario and a seed decide everything: the same two give the same trace
//!    hash.
//! 2. Metrics and [`MachineState`] are folded from records only. What is not in
//!    a record cannot be shown.
//! 3. Replaying a run and going on with it are the same: a recording of a
//!    window does not depend on how the run got there.
//!
//! ```
//! use zswap_lab::{Run, Scenario};
//! let mut scenario = Scenario::named("b1-1cpu").expect("it is built in");
//! scenario.set("duration_s", "1")?;
//! let mut run = Run::start(&scenario, 1)?;
//! run.finish()?;
//! assert!(run.metrics().reads().len() > 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contention;
mod keys;
mod locks;
mod metrics;
mod recording;
mod report;
mod roster;
mod run;
mod scenario;
mod size_class;
mod soak;
mod state;
mod workload;

pub use contention::{Contention, LockCount, contention, contention_text};
pub use kernel_sim::{
    Acquired, CpuId, Event, EventKind, Fault, LockId, LockInfo, LockKind, OutReason, Site, SiteId,
    TaskId,
};
pub use keys::{KEYS, Key, KeyError, Value};
pub use locks::{LockOrder, LockUse, OrderViolation, PathLocks, lock_table, lock_table_text};
pub use metrics::{Metrics, Read};
pub use recording::{Player, Recording};
pub use report::{Report, RunReport};
pub use roster::{Role, Roster, TaskInfo};
pub use run::{Run, RunError};
pub use scenario::{Scenario, ScenarioError, built_in_names};
pub use size_class::{SizeClassInfo, size_class};
pub use soak::{Soak, SoakError, SoakReport, soak};
pub use state::{Activity, CpuState, LockState, MachineState, RunState, TaskState, ZspageState};
pub use workload::WorkProbe;
pub use zswap_paths::{Context, Counters, ObjectPlace, Preset, Probe, source_of};
