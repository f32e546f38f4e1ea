//! Who takes part in a run: the names that records' numbers stand for.

use kernel_sim::{LockInfo, Site};
use serde::{Deserialize, Serialize};
use zswap_paths::Context;

/// What a task is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Pages memory out and reads it back.
    Worker,
    /// Only computes.
    Spinner,
    /// Times its reads.
    Reader,
    /// A kernel thread in the background.
    Kthread,
}

/// A task; its number is its place in [`Roster::tasks`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskInfo {
    /// Its name: role and number.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Number among the tasks of its role, from 0.
    pub number: u16,
    /// Nice value.
    pub nice: i8,
    /// Load weight; 1024 is nice 0.
    pub weight: u32,
}

/// Everybody and everything that records refer to by number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Roster {
    /// Number of CPUs.
    pub cpus: u8,
    /// The tasks.
    pub tasks: Vec<TaskInfo>,
    /// The locks.
    pub locks: Vec<LockInfo>,
    /// Source places met so far.
    pub sites: Vec<Site>,
    /// The context design of zswap.
    pub context: Context,
    /// Length of a slice in ns.
    pub base_slice_ns: u64,
    /// Length of a tick in ns.
    pub tick_ns: u64,
    /// Number of swap slots.
    pub slots: u64,
}
