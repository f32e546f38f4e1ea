//! The kernel threads that every machine has (scheduler reference, verified,
//! W7): they wake now and then, run for some µs, and are part of the timing.
//!
//! | thread | wakeups | each runs |
//! | --- | --- | --- |
//! | `rcu_preempt` | 28 to 60 a second, in bursts | 5–6 µs |
//! | `kcompactd0` | every 512 ms | 7 µs |
//! | `kdamond.0` | every 44 to 164 ms | 15–20 µs |
//! | `kworker/0:1` | about 3 a second | 6 µs |
//!
//! Invariants:
//! 1. A thread is woken 0 to 0.1 ms after a tick: the tick's softirq does it.
//! 2. Each draws from a stream of its own, so that what one does shifts no
//!    other, nor the rest of the machine's chance.
//! 3. The threads are ordinary tasks at nice 0.
//!
//! Left out: one `kworker` for each CPU (the reference counts them together),
//! and what the threads do for others: they only take time. A wakeup costs the
//! interrupt of a timer, where on a machine it is part of the tick's.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let threads = machine.spawn_background(7)?;
//! machine.run_until(1_000_000_000)?;
//! let busy_ns: u64 = threads.iter().map(|&thread| machine.cpu_time_ns(thread)).sum();
//! assert!(busy_ns < 2_000_000, "well below 1 % of the CPU");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::ids::TaskId;
use crate::machine::Machine;
use crate::policy::SpawnError;
use crate::rng::Stream;
use crate::task::Task;
use core::ops::RangeInclusive;

/// How long after a tick its softirq wakes a thread, at most.
const AFTER_TICK_NS: u64 = 100_000;

/// Wakeups of `rcu_preempt` in a burst, which is one grace period, and the time
/// between them: three jiffies at 1000 Hz or one at 250. That they are four is
/// assumed; the time from burst to burst then follows from 28 to 60 wakeups a
/// second.
const RCU_BURST: u64 = 4;
const RCU_PAUSE_NS: u64 = 3_000_000;

/// What a kernel thread does.
struct Habit {
    name: &'static str,
    /// Time from a burst of wakeups to the next one, in ns.
    period_ns: RangeInclusive<u64>,
    /// How many wakeups are a burst.
    burst: u64,
    /// Time from one wakeup of a burst to the next one, in ns.
    pause_ns: u64,
    /// Time that it runs at each wakeup, in ns.
    run_ns: RangeInclusive<u64>,
}

/// Those of W7.
static HABITS: [Habit; 4] = [
    Habit {
        name: "rcu_preempt",
        period_ns: RCU_BURST * 1_000_000_000 / 60..=RCU_BURST * 1_000_000_000 / 28,
        burst: RCU_BURST,
        pause_ns: RCU_PAUSE_NS,
        run_ns: 5_000..=6_000,
    },
    Habit {
        name: "kcompactd0",
        period_ns: 512_000_000..=512_000_000,
        burst: 1,
        pause_ns: 0,
        run_ns: 7_000..=7_000,
    },
    Habit {
        name: "kdamond.0",
        period_ns: 44_000_000..=164_000_000,
        burst: 1,
        pause_ns: 0,
        run_ns: 15_000..=20_000,
    },
    // About three a second: a third of a second, give or take half of it.
    Habit {
        name: "kworker/0:1",
        period_ns: 166_000_000..=500_000_000,
        burst: 1,
        pause_ns: 0,
        run_ns: 6_000..=6_000,
    },
];

fn draw(stream: &mut Stream, range: &RangeInclusive<u64>) -> u64 {
    range.start() + stream.below(range.end() - range.start() + 1)
}

impl Habit {
    /// The life of the thread.
    async fn live(&'static self, task: Task, mut stream: Stream, tick_ns: u64) {
        // The threads have lived for a while when the run begins.
        let mut due_ns = task.now_ns() + stream.below(*self.period_ns.end());
        loop {
            let mut next_ns = due_ns;
            for _ in 0..self.burst {
                let tick_at_ns = next_ns.div_ceil(tick_ns) * tick_ns;
                let wake_at_ns = tick_at_ns + stream.below(AFTER_TICK_NS + 1);
                task.sleep(wake_at_ns.saturating_sub(task.now_ns())).await;
                task.run_kernel(draw(&mut stream, &self.run_ns)).await;
                next_ns = tick_at_ns + self.pause_ns;
            }
            due_ns += draw(&mut stream, &self.period_ns);
        }
    }
}

impl Machine {
    /// Creates the kernel threads that every machine has, with the chances of
    /// this seed.
    ///
    /// # Errors
    /// If there are too many tasks.
    pub fn spawn_background(&mut self, seed: u64) -> Result<Vec<TaskId>, SpawnError> {
        let tick_ns = self.kernel.borrow().config.tick_ns();
        let threads = HABITS.iter().map(|habit| {
            let stream = Stream::new(seed, habit.name);
            self.spawn(habit.name, 0, |task| habit.live(task, stream, tick_ns))
        });
        threads.collect()
    }
}
