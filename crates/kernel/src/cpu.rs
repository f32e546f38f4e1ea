//! A CPU: its run queue, its timers, what it is in the middle of.

use crate::agenda::Item;
use crate::check::Checked;
use crate::fair::{CfsRq, FairOptions};
use crate::ids::{CpuId, TaskId};
use crate::kernel::NEVER;
use crate::rng::Stream;
use crate::rt::RtRq;

/// What happens next on a CPU, in the order in which things of the same time
/// are done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Next {
    /// A sleeper's time has come, or a device's.
    Timer,
    /// The timer tick.
    Tick,
    /// The slice-end timer.
    Hrtick,
    /// Another CPU's interrupt arrives.
    Ipi,
    /// An interrupt or a context switch ends.
    StallEnd,
    /// The running task has done what it asked for.
    OpEnd,
}

impl Next {
    /// By number; the last one stands for numbers that there are not.
    pub const ALL: [Next; 8] = [
        Next::Timer,
        Next::Tick,
        Next::Hrtick,
        Next::Ipi,
        Next::StallEnd,
        Next::OpEnd,
        Next::OpEnd,
        Next::OpEnd,
    ];
}

/// A CPU.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The task that it runs.
    pub curr: Option<TaskId>,
    /// The task whose turn it is, which is accounted: `curr`, or a waiter that
    /// lends its turn to the owner of what it waits for.
    pub donor: Option<TaskId>,
    pub rq: CfsRq,
    pub rt: RtRq,
    pub need_resched: bool,
    pub need_resched_lazy: bool,
    pub tick_at_ns: u64,
    pub hrtick_at_ns: u64,
    /// Arrival of an interrupt that another CPU has sent, or [`NEVER`].
    pub ipi_at_ns: u64,
    /// End of an interrupt or a context switch in progress, or [`NEVER`].
    pub stall_until_ns: u64,
    /// When what the running task has asked for is done, or [`NEVER`].
    pub op_end_ns: u64,
    /// It has said that it idles.
    pub idle: bool,
    /// Tasks attached to it: whose load counts here, whether they sleep or not.
    pub attached: Vec<TaskId>,
    /// `cfs_tasks`: its queued tasks, that which was neither queued nor
    /// switched in for the longest time first.
    pub cfs_tasks: Vec<TaskId>,
    /// The balancing softirq is raised; the value is whether the CPU was idle.
    pub balance_pending: Option<bool>,
    pub balance: BalanceState,
    /// An active balance wants one of its tasks pushed to this CPU.
    pub push_to: Option<CpuId>,
    /// Asked to balance on behalf of all idle CPUs.
    pub nohz_kicked: bool,
    pub checked: Checked,
}

/// What load balancing remembers of a CPU and its domain.
#[derive(Clone, Debug)]
pub(crate) struct BalanceState {
    /// Current interval in ms, between its bounds.
    pub interval_ms: u64,
    /// In ns; negative before the run began.
    pub last_balance_ns: i64,
    pub next_balance_ns: i64,
    pub nr_balance_failed: u32,
    /// Mean length of an idle stretch in ns, at most twice the largest cost of
    /// a newidle pass.
    pub avg_idle_ns: u64,
    pub idle_stamp_ns: Option<u64>,
    /// Largest cost of a newidle pass in ns, slowly decaying.
    pub max_newidle_cost_ns: u64,
    pub max_cost_decayed_ns: u64,
    pub newidle_call: u64,
    pub newidle_success: u64,
    pub newidle_ratio: u64,
    pub newidle_stamp_ns: u64,
}

impl BalanceState {
    fn new(cpus: u64) -> BalanceState {
        BalanceState {
            interval_ms: cpus,
            last_balance_ns: 0,
            next_balance_ns: 0,
            nr_balance_failed: 0,
            avg_idle_ns: 1_000_000,
            idle_stamp_ns: None,
            max_newidle_cost_ns: 0,
            max_cost_decayed_ns: 0,
            newidle_call: 512,
            newidle_success: 256,
            newidle_ratio: 512,
            newidle_stamp_ns: 0,
        }
    }
}

impl Cpu {
    pub fn new(fair: FairOptions, tick_ns: u64, cpus: u64) -> Cpu {
        Cpu {
            curr: None,
            donor: None,
            rq: CfsRq::new(fair),
            rt: RtRq::default(),
            need_resched: false,
            need_resched_lazy: false,
            tick_at_ns: tick_ns,
            hrtick_at_ns: NEVER,
            ipi_at_ns: NEVER,
            stall_until_ns: NEVER,
            op_end_ns: NEVER,
            idle: false,
            attached: Vec::new(),
            cfs_tasks: Vec::new(),
            balance_pending: None,
            balance: BalanceState::new(cpus),
            push_to: None,
            nohz_kicked: false,
            checked: Checked::default(),
        }
    }

    /// Domains are balanced before a run begins; the CPUs' last passes lie
    /// within two idle intervals of its start, on the grid of ticks.
    pub fn with_phase(mut self, random: &mut Stream, cpus: u64, tick_ns: u64) -> Cpu {
        let back_ns = random.below(2 * cpus * 1_000_000);
        self.balance.last_balance_ns = -(i64::try_from(back_ns / tick_ns * tick_ns).unwrap_or(0));
        self
    }

    /// The earliest thing that happens on this CPU by itself.
    pub fn next(&self) -> Item {
        let work = if self.stall_until_ns == NEVER {
            Item::new(self.op_end_ns, Next::OpEnd)
        } else {
            Item::new(self.stall_until_ns, Next::StallEnd)
        };
        work.min(Item::new(self.tick_at_ns, Next::Tick))
            .min(Item::new(self.hrtick_at_ns, Next::Hrtick))
            .min(Item::new(self.ipi_at_ns, Next::Ipi))
    }

    /// A task was queued or switched in: it is the last that balancing takes.
    pub fn touch(&mut self, task: TaskId) {
        self.untouch(task);
        self.cfs_tasks.push(task);
    }

    /// A task has left the queue.
    pub fn untouch(&mut self, task: TaskId) {
        self.cfs_tasks.retain(|&queued| queued != task);
    }
}
