//! What a machine is made of, as options.

use crate::fair::{LagClamp, SliceProtection};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// When a task in kernel mode can lose its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// Only where it blocks or returns to user mode.
    None,
    /// As `None`, and at the points where it might sleep anyway.
    Voluntary,
    /// Wherever preemption is not switched off, and for every reason.
    Full,
    /// As `Full`, but the fair class only asks lazily: such a request is
    /// honoured on return to user mode, or made a full one by the next tick.
    Lazy,
}

/// When the precise slice-end timer is armed for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hrtick {
    /// Never: a slice ends at a tick (up to v7.0).
    Off,
    /// When it is switched in, and when a task is queued while no timer is
    /// pending (v7.1 to v7.3).
    On,
    /// As `On`, and when it is picked again (v7.4).
    Repick,
}

/// A word that names no choice of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName(pub String);

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no choice called {}", self.0)
    }
}

impl core::error::Error for UnknownName {}

/// Gives an option its names, in both directions.
macro_rules! named {
    ($option:ident: $($name:literal => $choice:ident),+) => {
        impl $option {
            /// The names of all choices.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name on the command line and in files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($option::$choice => $name,)+
                }
            }
        }

        impl fmt::Display for $option {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $option {
            type Err = UnknownName;
            fn from_str(name: &str) -> Result<$option, UnknownName> {
                match name {
                    $($name => Ok($option::$choice),)+
                    _ => Err(UnknownName(name.to_owned())),
                }
            }
        }
    };
}

named!(Preemption: "lazy" => Lazy, "full" => Full, "voluntary" => Voluntary, "none" => None);
named!(Hrtick: "off" => Off, "on" => On, "repick" => Repick);

/// Whether waiting for a mutex helps its owner along: what if?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inheritance {
    /// It does not, as in the kernel's mutex.
    Off,
    /// The owner has the weight of the heaviest task that waits for it, or its
    /// real-time priority, through chains of locks (as an rt_mutex does between
    /// classes; among fair tasks the kernel's would not change the weight).
    Priority,
    /// A waiter stays queued and lends its turn to the owner (proxy execution).
    Proxy,
}

named!(Inheritance: "off" => Off, "priority" => Priority, "proxy" => Proxy);

/// How mutexes work; other than the default is a what-if.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MutexOptions {
    /// The first waiter, woken in vain, is handed the lock by name.
    pub handoff: bool,
    /// Who comes while the owner runs on another CPU spins.
    pub spinning: bool,
    /// What waiting does for the owner.
    pub inheritance: Inheritance,
}

impl Default for MutexOptions {
    fn default() -> MutexOptions {
        MutexOptions {
            handoff: true,
            spinning: true,
            inheritance: Inheritance::Off,
        }
    }
}

/// Why there is no such machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// The number of CPUs.
    Cpus(u8),
    /// The ticks per second.
    Hz(u32),
    /// The length of a slice.
    BaseSlice(u64),
    /// A cost, by its name.
    Cost(&'static str, u64),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Cpus(cpus) => {
                write!(
                    f,
                    "cpus is {cpus}; it takes 1 to {}",
                    MachineConfig::CPUS_MAX
                )
            }
            ConfigError::Hz(hz) => write!(f, "hz is {hz}; it takes 1 to 10000"),
            ConfigError::BaseSlice(ns) => {
                write!(f, "base_slice_ns is {ns}; it takes 1000 to 1000000000")
            }
            ConfigError::Cost(name, ns) => {
                write!(f, "{name} is {ns}; it takes 0 to {COST_MAX_NS}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// The largest cost of anything, in ns.
const COST_MAX_NS: u64 = 1_000_000_000;

/// A machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Number of CPUs, 1 to 64.
    pub cpus: u8,
    /// Seed of what chance decides: phases of balancing, newidle's dice.
    pub seed: u64,
    /// The CPUs are known to share a cache, so that wakeups look for an idle
    /// one among them.
    pub shared_cache: bool,
    /// Ticks per second: 100, 250, 300 or 1000.
    pub hz: u32,
    /// The precise slice-end timer.
    pub hrtick: Hrtick,
    /// Length of a slice in ns of real time.
    pub base_slice_ns: u64,
    /// The preemption model.
    pub preempt: Preemption,
    /// The bound of the lag kept over sleep.
    pub lag_clamp: LagClamp,
    /// How far a task that is switched in is protected.
    pub protection: SliceProtection,
    /// How mutexes work.
    pub mutex: MutexOptions,
    /// After every event the invariants are checked; a broken one is a fault.
    pub checks: bool,
    /// Cost of a context switch in ns, borne by the task that comes in.
    pub switch_ns: u64,
    /// Cost of a timer interrupt in ns, borne by the task it hits.
    pub timer_irq_ns: u64,
    /// Cost of waking a task in ns, borne by the waker with preemption off.
    pub wake_ns: u64,
    /// Time that an interrupt to another CPU is on its way, in ns.
    pub ipi_ns: u64,
    /// Time that a cache line takes to another CPU, in ns: how long after a
    /// release a spinner sees it.
    pub line_ns: u64,
}

impl Default for MachineConfig {
    /// One CPU of a server with v7.1 to v7.3 and its default settings.
    ///
    /// Costs are the middles of the ranges in the scheduler reference, 4.1:
    /// switch 1–1.5 µs (it starts the experiments at 1.5), tick 1–2 µs,
    /// wakeup 0.5–1 µs, interrupt to another CPU 0.5–1 µs on bare metal; a
    /// cache line within one cache 20–80 ns (section 6).
    fn default() -> MachineConfig {
        MachineConfig {
            cpus: 1,
            seed: 0,
            shared_cache: true,
            hz: 1000,
            hrtick: Hrtick::On,
            base_slice_ns: 700_000,
            preempt: Preemption::Lazy,
            lag_clamp: LagClamp::SlicePlusTick,
            protection: SliceProtection::WhileEligible,
            mutex: MutexOptions::default(),
            checks: false,
            switch_ns: 1_500,
            timer_irq_ns: 1_500,
            wake_ns: 750,
            ipi_ns: 1_000,
            line_ns: 50,
        }
    }
}

impl MachineConfig {
    /// The largest number of CPUs.
    pub const CPUS_MAX: u8 = 64;

    /// The scheduler of v6.12: no slice-end timer, protection to the deadline,
    /// its clamp of the lag, a base slice of 0.75 ms, and no lazy preemption yet.
    #[must_use]
    pub fn v6_12() -> MachineConfig {
        MachineConfig {
            hrtick: Hrtick::Off,
            base_slice_ns: 750_000,
            preempt: Preemption::Full,
            lag_clamp: LagClamp::TwoSlicesOrTick,
            protection: SliceProtection::Deadline,
            ..MachineConfig::default()
        }
    }

    /// Whether there can be such a machine.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MachineConfig::CPUS_MAX).contains(&self.cpus) {
            return Err(ConfigError::Cpus(self.cpus));
        }
        if !(1..=10_000).contains(&self.hz) {
            return Err(ConfigError::Hz(self.hz));
        }
        if !(1_000..=1_000_000_000).contains(&self.base_slice_ns) {
            return Err(ConfigError::BaseSlice(self.base_slice_ns));
        }
        self.check_costs()
    }

    fn check_costs(&self) -> Result<(), ConfigError> {
        let costs = [
            ("switch_ns", self.switch_ns),
            ("timer_irq_ns", self.timer_irq_ns),
            ("wake_ns", self.wake_ns),
            ("ipi_ns", self.ipi_ns),
            ("line_ns", self.line_ns),
        ];
        match costs.into_iter().find(|&(_, ns)| ns > COST_MAX_NS) {
            Some((name, ns)) => Err(ConfigError::Cost(name, ns)),
            None => Ok(()),
        }
    }

    /// Length of a tick in ns.
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_choices() {
        for name in Preemption::NAMES {
            assert_eq!(name.parse::<Preemption>().map(Preemption::name), Ok(*name));
        }
        for name in Hrtick::NAMES {
            assert_eq!(name.parse::<Hrtick>().map(Hrtick::name), Ok(*name));
        }
        assert_eq!(
            "eager".parse::<Preemption>(),
            Err(UnknownName("eager".to_owned()))
        );
    }

    #[test]
    fn a_machine_that_cannot_be_is_refused_with_what_it_takes() {
        let config = |edit: fn(&mut MachineConfig)| {
            let mut config = MachineConfig::default();
            edit(&mut config);
            config.check().map_err(|error| error.to_string())
        };
        let refused = config(|config| config.cpus = 0);
        assert_eq!(refused, Err("cpus is 0; it takes 1 to 64".to_owned()));
        assert!(config(|config| config.cpus = 65).is_err());
        assert!(config(|config| config.hz = 0).is_err());
        assert!(config(|config| config.base_slice_ns = 0).is_err());
        assert_eq!(config(|_| ()), Ok(()));
    }
}
