//! How a task is scheduled: its policy, its slice, the CPUs it may use.
//!
//! Left out: deadline and round-robin policies, and utilisation clamps.
//!
//! ```
//! use kernel_sim::{CpuMask, Policy, TaskOptions};
//! let pinned = TaskOptions {
//!     cpus_allowed: CpuMask::only(2),
//!     ..TaskOptions::from(Policy::Fifo { priority: 50 })
//! };
//! assert!(pinned.cpus_allowed.allows(kernel_sim::CpuId(2)));
//! ```

use crate::ids::{CpuId, TaskId};
use crate::weight::{IDLE_WEIGHT, weight_of_nice};

/// The policy of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// `SCHED_NORMAL`: the fair class, by weight.
    Normal {
        /// −20 (most important) to 19.
        nice: i8,
    },
    /// `SCHED_BATCH`: as normal, but a wakeup of it never preempts.
    Batch {
        /// −20 (most important) to 19.
        nice: i8,
    },
    /// `SCHED_IDLE`: the fair class with the smallest weight; anybody else who
    /// wakes up preempts it.
    Idle,
    /// `SCHED_FIFO`: above the fair class; runs until it blocks or somebody of
    /// a higher priority comes.
    Fifo {
        /// 1 to 99; 99 is the most important.
        priority: u8,
    },
}

impl Policy {
    /// The load weight, or what is wrong with the policy's numbers.
    pub(crate) fn weight(self) -> Result<u32, SpawnError> {
        match self {
            Policy::Normal { nice } | Policy::Batch { nice } => {
                weight_of_nice(nice).ok_or(SpawnError::Nice(nice))
            }
            Policy::Idle => Ok(IDLE_WEIGHT),
            Policy::Fifo { priority: 1..=99 } => weight_of_nice(0).ok_or(SpawnError::Nice(0)),
            Policy::Fifo { priority } => Err(SpawnError::Priority(priority)),
        }
    }

    /// The real-time priority, if it has one.
    #[must_use]
    pub fn rt_priority(self) -> Option<u8> {
        match self {
            Policy::Fifo { priority } => Some(priority),
            Policy::Normal { .. } | Policy::Batch { .. } | Policy::Idle => None,
        }
    }
}

/// A set of CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuMask(pub u64);

impl CpuMask {
    /// Every CPU.
    pub const ALL: CpuMask = CpuMask(u64::MAX);

    /// One CPU, 0 to 63; none for a larger number.
    #[must_use]
    pub fn only(cpu: u8) -> CpuMask {
        CpuMask(1_u64.checked_shl(cpu.into()).unwrap_or(0))
    }

    /// Whether the CPU is one of them.
    #[must_use]
    pub fn allows(self, cpu: CpuId) -> bool {
        self.0 & CpuMask::only(cpu.0).0 != 0
    }
}

/// Shortest and longest slice that a task can ask for, in ns.
const CUSTOM_SLICE_NS: (u64, u64) = (100_000, 100_000_000);

/// What a task is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskOptions {
    /// Its policy.
    pub policy: Policy,
    /// A slice of its own in ns (`sched_runtime`), as the kernel does brought
    /// into the range from 0.1 to 100 ms; otherwise the base slice.
    pub slice_ns: Option<u64>,
    /// The CPUs it may run on.
    pub cpus_allowed: CpuMask,
}

impl TaskOptions {
    /// The length of its slices, in ns.
    pub(crate) fn slice_or(self, base_slice_ns: u64) -> u64 {
        let (shortest, longest) = CUSTOM_SLICE_NS;
        self.slice_ns
            .map_or(base_slice_ns, |ns| ns.clamp(shortest, longest))
    }
}

impl From<Policy> for TaskOptions {
    fn from(policy: Policy) -> TaskOptions {
        TaskOptions {
            policy,
            slice_ns: None,
            cpus_allowed: CpuMask::ALL,
        }
    }
}

/// Why a task cannot be created, or its policy not be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpawnError {
    /// The nice value is outside −20..=19.
    Nice(i8),
    /// The real-time priority is outside 1..=99.
    Priority(u8),
    /// The machine has none of the CPUs that the task may use.
    NoCpu(CpuMask),
    /// The machine has as many tasks as it can number.
    TooMany,
    /// The machine has no such task.
    NoTask(TaskId),
    /// The machine stops, because a task broke a rule.
    Faulty,
}

impl core::fmt::Display for SpawnError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SpawnError::Nice(nice) => write!(f, "nice is {nice}; it takes -20 to 19"),
            SpawnError::Priority(priority) => {
                write!(f, "the FIFO priority is {priority}; it takes 1 to 99")
            }
            SpawnError::NoCpu(CpuMask(mask)) => {
                write!(f, "the machine has no CPU of the set {mask:#x}")
            }
            SpawnError::TooMany => write!(f, "a machine takes at most {} tasks", u16::MAX),
            SpawnError::NoTask(task) => write!(f, "the machine has no task {task}"),
            SpawnError::Faulty => write!(f, "the machine stops, because a task broke a rule"),
        }
    }
}

impl core::error::Error for SpawnError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_slice_is_brought_into_its_range() {
        let slice = |slice_ns| {
            TaskOptions {
                slice_ns,
                ..TaskOptions::from(Policy::Idle)
            }
            .slice_or(700_000)
        };
        assert_eq!(slice(None), 700_000);
        assert_eq!(slice(Some(1)), 100_000);
        assert_eq!(slice(Some(3_000_000)), 3_000_000);
        assert_eq!(slice(Some(u64::MAX)), 100_000_000);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(
            Policy::Normal { nice: 25 }.weight(),
            Err(SpawnError::Nice(25))
        );
        for priority in [0, 100] {
            let refused = Policy::Fifo { priority }.weight();
            assert_eq!(refused, Err(SpawnError::Priority(priority)));
        }
    }

    #[test]
    fn a_mask_of_one_allows_only_it() {
        assert!(CpuMask::only(63).allows(CpuId(63)));
        assert!(!CpuMask::only(63).allows(CpuId(0)));
        assert_eq!(CpuMask::only(64), CpuMask(0));
        assert!(CpuMask::ALL.allows(CpuId(17)));
    }
}
