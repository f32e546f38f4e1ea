//! Tasks that compete for CPUs and locks.

use crate::measure::Count;
use kernel_sim::{Event, Fault, Machine, MachineConfig, Mutex, SpinLock, Stream, Task};
use std::error::Error;
use std::hint::black_box;
use std::rc::Rc;

/// Tasks of each CPU, unless their number is what is measured.
pub const TASKS_PER_CPU: u16 = 4;

/// A task chooses among these: with one for each CPU, one in four finds its
/// mutex taken, whatever the number of CPUs.
const MUTEXES_PER_CPU: usize = 1;
/// Two mutexes share a spinlock, so that it too is contended.
const MUTEXES_PER_SPINLOCK: usize = 2;

/// Between two locks, in user mode.
const COMPUTE_NS: u64 = 4_000;
/// With the mutex alone, before and after the spinlock.
const MUTEX_NS: u64 = 300;
/// With both.
const SPIN_NS: u64 = 800;
/// Times vary by so many thousandths.
const JITTER: u64 = 500;
/// One round in so many sleeps with the mutex, and one at its end,
const SLEEP_ONE_IN: u64 = 16;
/// for so long.
const SLEEP_OWNING_NS: u64 = 10_000;
const SLEEP_NS: u64 = 50_000;

/// Records are taken out after so much virtual time, as the recorder does.
const PART_NS: u64 = 1_000_000;

struct Locks {
    mutexes: Vec<Mutex>,
    spinlocks: Vec<SpinLock>,
}

impl Locks {
    fn new(machine: &mut Machine, cpus: u8) -> Locks {
        let mutexes = usize::from(cpus) * MUTEXES_PER_CPU;
        let spinlocks = mutexes.div_ceil(MUTEXES_PER_SPINLOCK);
        Locks {
            mutexes: (0..mutexes)
                .map(|number| machine.mutex(format!("mutex {number}")))
                .collect(),
            spinlocks: (0..spinlocks)
                .map(|number| machine.spin_lock(format!("spinlock {number}")))
                .collect(),
        }
    }
}

async fn work(task: Task, locks: Rc<Locks>, mut random: Stream) {
    loop {
        task.run_user(random.jittered(COMPUTE_NS, JITTER)).await;
        let number = random.below(locks.mutexes.len() as u64) as usize;
        let mutex = locks.mutexes[number];
        let spinlock = locks.spinlocks[number / MUTEXES_PER_SPINLOCK];
        task.mutex_lock(mutex).await;
        task.run_kernel(MUTEX_NS).await;
        task.spin_lock_bh(spinlock).await;
        task.run_kernel(random.jittered(SPIN_NS, JITTER)).await;
        task.spin_unlock_bh(spinlock).await;
        task.run_kernel(MUTEX_NS).await;
        let sleeps = random.below(SLEEP_ONE_IN);
        if sleeps == 0 {
            task.sleep(random.jittered(SLEEP_OWNING_NS, JITTER)).await;
        }
        task.mutex_unlock(mutex).await;
        if sleeps == 1 {
            task.sleep(random.jittered(SLEEP_NS, JITTER)).await;
        }
    }
}

/// A machine with its tasks, and the records that were taken out last.
pub struct Workers {
    machine: Machine,
    part: Vec<Event>,
}

impl Workers {
    /// So many CPUs with so many tasks.
    ///
    /// # Errors
    /// If there can be no such machine.
    pub fn new(cpus: u8, tasks: u16) -> Result<Workers, Box<dyn Error>> {
        let config = MachineConfig {
            cpus,
            ..MachineConfig::default()
        };
        let mut machine = Machine::new(config)?;
        let locks = Rc::new(Locks::new(&mut machine, cpus));
        for number in 0..tasks {
            let locks = Rc::clone(&locks);
            let random = Stream::new(u64::from(number), "worker");
            machine.spawn(format!("worker {number}"), 0, |task| {
                work(task, locks, random)
            })?;
        }
        Ok(Workers {
            machine,
            part: Vec::new(),
        })
    }

    fn advance(&mut self) -> Result<Count, Fault> {
        self.machine.run_until(self.machine.now_ns() + PART_NS)?;
        self.machine.take_events(&mut self.part);
        Ok(Count(black_box(&self.part).len() as u64))
    }

    /// Runs on for a part and takes the records out; they are what counts.
    pub fn step(&mut self) -> Count {
        self.advance()
            .unwrap_or_else(|fault| panic!("the program breaks no rule: {fault}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_sim::EventKind;

    /// How often each of `kinds` is among the records of some parts.
    fn counted<const N: usize>(cpus: u8, kinds: [EventKind; N]) -> [usize; N] {
        let tasks = u16::from(cpus) * TASKS_PER_CPU;
        let mut workers = Workers::new(cpus, tasks).expect("a machine that can be");
        let mut counts = [0; N];
        for _ in 0..50 {
            workers.step();
            for (kind, count) in kinds.iter().zip(&mut counts) {
                let of_kind = workers.part.iter().filter(|event| event.kind == *kind);
                *count += of_kind.count();
            }
        }
        counts
    }

    #[test]
    fn the_locks_are_contended_and_the_scheduler_is_busy() {
        let kinds = [
            EventKind::LockAcquire,
            EventKind::LockSpin,
            EventKind::LockWait,
            EventKind::SwitchIn,
            EventKind::Sleep,
        ];
        for cpus in [1, 8] {
            let [taken, spun, waited, switched, slept] = counted(cpus, kinds);
            let all = [taken, spun, waited, switched, slept];
            assert!(waited * 40 > taken && switched * 10 > taken, "{all:?}");
            assert!(slept * 20 > taken, "{all:?}");
            assert_eq!(spun > 0, cpus > 1, "on one CPU nobody spins");
        }
    }
}
