//! Every order of the steps of a lock's protocol, as loom finds them.

use super::{Outcomes, Step, outcome};
use loom::model::Builder;
use loom::thread;
use std::sync::{Arc, Mutex, PoisonError};

/// A lock whose protocol is explored.
pub trait Protocol: Send + Sync + 'static {
    /// Takes the lock for a task.
    fn lock(&self, task: usize);
    /// Releases it.
    fn unlock(&self, task: usize);
}

/// Where the steps of a run are written down. It is no lock of the model: loom
/// switches between tasks only at the model's own operations, so a step is
/// written down together with the operation before it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Step>>>);

impl Log {
    pub fn push(&self, step: Step) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(step);
    }

    fn take(&self) -> Vec<Step> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn play(lock: &impl Protocol, task: usize, rounds: usize) {
    for _ in 0..rounds {
        lock.lock(task);
        lock.unlock(task);
    }
}

/// All outcomes of tasks that take the lock so often each. Tasks are interrupted
/// between their steps at most `preemptions` times in a run, and as often as
/// they have to wait.
///
/// # Panics
/// If `judge` does, or if in some order all tasks wait for each other.
pub fn explore<P: Protocol>(
    rounds: &'static [usize],
    preemptions: usize,
    new: impl Fn(Log) -> P + Send + Sync + 'static,
    judge: fn(&[Step], &[usize]),
) -> Outcomes {
    let outcomes = Arc::new(Mutex::new(Outcomes::new()));
    let found = Arc::clone(&outcomes);
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let log = Log::default();
        let lock = Arc::new(new(log.clone()));
        let others: Vec<_> = (1..rounds.len())
            .map(|task| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || play(&*lock, task, rounds[task]))
            })
            .collect();
        play(&*lock, 0, rounds[0]);
        for other in others {
            other.join().expect("the task ends");
        }
        let steps = log.take();
        judge(&steps, rounds);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(outcome(&steps));
    });
    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut outcomes)
}
