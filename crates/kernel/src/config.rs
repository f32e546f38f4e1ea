//! What a machine is made of, as options.

use crate::fair::LagClamp;
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
            switch_ns: 1_500,
            timer_irq_ns: 1_500,
            wake_ns: 750,
            ipi_ns: 1_000,
            line_ns: 50,
        }
    }
}

impl MachineConfig {
    /// Length of a tick in ns.
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }
}
