//! What the tests of the lock protocols share: the steps that a run consists of,
//! the rules of the mutex as a judge of such steps, and outcomes.
//!
//! The judge knows the rules alone. It is shown the steps of two programs that
//! know nothing of each other: the protocol on atomics, in every order that loom
//! finds, and the simulator, with many timings.
#![allow(dead_code, reason = "not every test uses every part")]

pub mod explore;
pub mod mutex;
pub mod simulated;
pub mod spinlock;

use kernel_sim::Acquired;
use std::collections::{BTreeSet, VecDeque};

/// One step of a task, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It owns the lock.
    Acquire(usize, Acquired),
    /// It has released the lock, or handed it to the first waiter.
    Release { task: usize, handed: bool },
    /// It has queued.
    Wait(usize),
    /// It slept and has been woken.
    Wake(usize),
    /// It demands to be handed the lock.
    HandoffWanted(usize),
}

/// Who got the lock, in order, and how.
pub type Outcome = Vec<(usize, &'static str)>;

/// Everything that can happen.
pub type Outcomes = BTreeSet<Outcome>;

/// The outcome of a run.
pub fn outcome(steps: &[Step]) -> Outcome {
    let acquired = steps.iter().filter_map(|step| match *step {
        Step::Acquire(task, how) => Some((task, name(how))),
        _ => None,
    });
    acquired.collect()
}

fn name(how: Acquired) -> &'static str {
    match how {
        Acquired::Fast => "fast",
        Acquired::Stolen => "stolen",
        Acquired::Woken => "woken",
        Acquired::HandedOff => "handed off",
    }
}

/// Whether somebody gets the lock in this way in some outcome.
pub fn occurs(outcomes: &Outcomes, how: Acquired) -> bool {
    let mut all = outcomes.iter().flatten();
    all.any(|&(_, found)| found == name(how))
}

/// The rules of the mutex, as a judge of steps.
#[derive(Default)]
struct Judge {
    owner: Option<usize>,
    /// The lock has been handed to this task, which has not picked it up yet.
    heir: Option<usize>,
    waiters: VecDeque<usize>,
    /// Waiters that have been woken since they queued.
    woken: BTreeSet<usize>,
    wanted: bool,
}

impl Judge {
    fn step(&mut self, step: Step) {
        match step {
            Step::Acquire(task, how) => self.acquire(task, how),
            Step::Release { task, handed } => self.release(task, handed),
            Step::Wait(task) => self.waiters.push_back(task),
            Step::Wake(task) => {
                assert_eq!(self.waiters.front(), Some(&task), "another is woken");
                self.woken.insert(task);
            }
            Step::HandoffWanted(task) => {
                let first = self.waiters.front() == Some(&task);
                assert!(first && self.woken.contains(&task), "it is not its turn");
                assert!(self.owner.is_some() && !self.wanted, "there is no need");
                self.wanted = true;
            }
        }
    }

    fn acquire(&mut self, task: usize, how: Acquired) {
        assert_eq!(self.owner, None, "two owners");
        let first = self.waiters.front() == Some(&task);
        match how {
            Acquired::Fast => assert!(self.waiters.is_empty(), "it passes the waiters by"),
            Acquired::Stolen => {}
            Acquired::Woken => {
                assert!(
                    first && self.woken.contains(&task),
                    "waiters are not in order"
                );
            }
            Acquired::HandedOff => assert!(first, "it is handed to another"),
        }
        let handed = how == Acquired::HandedOff;
        let heir = self.heir.take();
        assert_eq!(heir, handed.then_some(task), "the heir is passed by");
        self.owner = Some(task);
        self.waiters.retain(|&waiter| waiter != task);
        self.woken.remove(&task);
    }

    fn release(&mut self, task: usize, handed: bool) {
        assert_eq!(self.owner.take(), Some(task), "not the owner releases it");
        assert_eq!(handed, self.wanted, "the demand is not met");
        self.wanted = false;
        if handed {
            self.heir = self.waiters.front().copied();
            assert!(self.heir.is_some(), "it is handed to nobody");
        }
    }
}

/// Judges a whole run, in which every task takes the lock so often.
///
/// # Panics
/// At the first step that breaks a rule.
pub fn judge(steps: &[Step], rounds: &[usize]) {
    let mut judge = Judge::default();
    for &step in steps {
        judge.step(step);
    }
    assert_eq!((judge.owner, judge.heir), (None, None), "it stays owned");
    assert!(judge.waiters.is_empty(), "somebody waits for ever");
    assert_eq!(
        outcome(steps).len(),
        rounds.iter().sum(),
        "rounds are missing"
    );
}

/// Judges a run on a lock that spinners get in the order of their coming.
///
/// # Panics
/// At the first step that breaks a rule.
pub fn judge_spinlock(steps: &[Step], rounds: &[usize]) {
    let mut owner = None;
    let mut waiters = VecDeque::new();
    for &step in steps {
        match step {
            Step::Wait(task) => waiters.push_back(task),
            Step::Acquire(task, Acquired::Fast) => {
                assert!(waiters.is_empty(), "it passes the waiters by");
                assert_eq!(owner.replace(task), None, "two owners");
            }
            Step::Acquire(task, _) => {
                assert_eq!(waiters.pop_front(), Some(task), "not in order");
                assert_eq!(owner.replace(task), None, "two owners");
            }
            Step::Release { task, .. } => {
                assert_eq!(owner.take(), Some(task), "not the owner releases it");
            }
            Step::Wake(_) | Step::HandoffWanted(_) => panic!("a spinner never sleeps"),
        }
    }
    assert_eq!(owner, None, "it stays owned");
    assert!(waiters.is_empty(), "somebody waits for ever");
    assert_eq!(
        outcome(steps).len(),
        rounds.iter().sum(),
        "rounds are missing"
    );
}
