//! The same programs on the simulator, with many timings.

use super::{Outcomes, Step, outcome};
use kernel_sim::{
    Acquired, Event, EventKind, Machine, MachineConfig, Mutex, Preemption, SpinLock, Task,
};
use std::collections::BTreeSet;

/// How many timings are tried.
const RUNS: usize = 3_000;
/// Each task goes through the timings in steps of its own, which have no divisor
/// in common with their number.
const STRIDES: [usize; 3] = [7, 11, 13];
/// Long enough for every program to end.
const END_NS: u64 = 100_000_000;

/// Times around those of a wakeup (0.75 µs), an interrupt (1 µs) and a switch
/// (1.5 µs), and around a slice (0.7 ms), so that every order of things has its
/// chance.
const BEFORE_NS: [u64; 4] = [100, 1_300, 2_900, 690_000];
const INSIDE_NS: [u64; 3] = [400, 2_600, 30_000];
const BETWEEN_NS: [u64; 3] = [0, 900, 5_200];
const ASLEEP_NS: [u64; 3] = [0, 4_000, 40_000];

/// Which lock the tasks take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Mutex,
    SpinLock,
}

#[derive(Clone, Copy)]
enum Lock {
    Mutex(Mutex),
    Spin(SpinLock),
}

/// How long the parts of a task take, in ns.
#[derive(Clone, Copy)]
struct Times {
    before: u64,
    inside: u64,
    between: u64,
    /// It sleeps that long with the lock.
    asleep: u64,
}

/// All choices of times for a task. Nobody sleeps with a spinlock.
fn choices(kind: Kind) -> Vec<Times> {
    let asleep_ns = match kind {
        Kind::Mutex => &ASLEEP_NS[..],
        Kind::SpinLock => &ASLEEP_NS[..1],
    };
    let mut all = Vec::new();
    for before in BEFORE_NS {
        for inside in INSIDE_NS {
            for between in BETWEEN_NS {
                all.extend(asleep_ns.iter().map(|&asleep| Times {
                    before,
                    inside,
                    between,
                    asleep,
                }));
            }
        }
    }
    all
}

async fn play(task: Task, lock: Lock, rounds: usize, times: Times) {
    task.run_kernel(times.before).await;
    for _ in 0..rounds {
        match lock {
            Lock::Mutex(mutex) => task.mutex_lock(mutex).await,
            Lock::Spin(lock) => task.spin_lock_bh(lock).await,
        }
        task.run_kernel(times.inside).await;
        if times.asleep > 0 {
            task.sleep(times.asleep).await;
        }
        match lock {
            Lock::Mutex(mutex) => task.mutex_unlock(mutex).await,
            Lock::Spin(lock) => task.spin_unlock_bh(lock).await,
        }
        task.run_user(times.between).await;
    }
}

/// The steps that records tell of. A waiter for a mutex may spin before it
/// queues, which is no step of the protocol; a waiter for a spinlock only spins.
fn steps(kind: Kind, events: &[Event]) -> Vec<Step> {
    let mut waiting = BTreeSet::new();
    let mut steps = Vec::new();
    for event in events {
        let task = event.task.index();
        let step = match event.kind {
            EventKind::LockAcquire => Step::Acquire(task, Acquired::from_aux(event.aux)),
            EventKind::LockRelease => Step::Release {
                task,
                handed: event.aux == 1,
            },
            EventKind::LockWait => Step::Wait(task),
            EventKind::LockSpin if kind == Kind::SpinLock => Step::Wait(task),
            EventKind::LockHandoffWanted => Step::HandoffWanted(task),
            // Others are woken by a timer.
            EventKind::Wake if waiting.contains(&task) => Step::Wake(task),
            _ => continue,
        };
        match step {
            Step::Wait(_) => _ = waiting.insert(task),
            Step::Acquire(..) => _ = waiting.remove(&task),
            _ => {}
        }
        steps.push(step);
    }
    steps
}

fn run(config: MachineConfig, kind: Kind, rounds: &[usize], times: &[Times]) -> Vec<Step> {
    let mut machine = Machine::new(config).expect("a machine that can be");
    let lock = match kind {
        Kind::Mutex => Lock::Mutex(machine.mutex("lock")),
        Kind::SpinLock => Lock::Spin(machine.spin_lock("lock")),
    };
    for (number, (&rounds, &times)) in rounds.iter().zip(times).enumerate() {
        let body = |task| play(task, lock, rounds, times);
        let spawned = machine.spawn(format!("task {number}"), 0, body);
        spawned.expect("a valid nice");
    }
    machine.run_until(END_NS).expect("no rule is broken");
    let mut events = Vec::new();
    machine.take_events(&mut events);
    steps(kind, &events)
}

/// The outcomes of many timings on one to three CPUs. Each run is judged.
pub fn outcomes(kind: Kind, rounds: &[usize], judge: fn(&[Step], &[usize])) -> Outcomes {
    let choices = choices(kind);
    let mut outcomes = Outcomes::new();
    for number in 0..RUNS {
        let choice = |task| (number * STRIDES[task] / (task + 1)) % choices.len();
        let times: Vec<Times> = (0..rounds.len())
            .map(|task| choices[choice(task)])
            .collect();
        let config = MachineConfig {
            cpus: (number % 3 + 1) as u8,
            preempt: match number % 2 {
                0 => Preemption::Lazy,
                _ => Preemption::Full,
            },
            checks: true,
            ..MachineConfig::default()
        };
        let steps = run(config, kind, rounds, &times);
        judge(&steps, rounds);
        outcomes.insert(outcome(&steps));
    }
    outcomes
}
