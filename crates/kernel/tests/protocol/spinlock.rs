//! The protocol of the kernel's queued spinlock on atomics: one word with a
//! locked bit, a pending bit and the tail of a queue of nodes, one per task.
//!
//! Written from the rules (scheduler reference, section 6), not from the
//! simulator. Loom knows no fair order of spinners, so a spinner that has looked in
//! vain parks until somebody has written; and it keeps only read-modify-writes of
//! one object in a single order, so plain loads and stores are written as such. Left out: the short wait for a pending one that is just taking
//! over, and the try before queueing, which only save time.

use super::Step;
use super::explore::{Log, Protocol};
use kernel_sim::Acquired;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread::{self, Thread};
use std::sync::{Mutex, PoisonError};

const LOCKED: usize = 1;
const PENDING: usize = 2;
const HEAD: usize = LOCKED | PENDING;

/// The tail that says that the node of a task is the last.
fn tail(task: usize) -> usize {
    (task + 1) * (HEAD + 1)
}

/// The task whose node is meant; there must be one.
fn task_of(tail: usize) -> usize {
    tail / (HEAD + 1) - 1
}

/// What can be wrong with an implementation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The unlock clears the whole word, the queue with it.
    ClearsQueue,
    /// The head of the queue does not wait for the pending one.
    IgnoresPending,
}

/// What a task in the queue waits at.
struct Node {
    is_head: AtomicBool,
    /// The task behind it, as a tail; 0 while there is none.
    next: AtomicUsize,
}

/// A spinlock.
pub struct QueuedSpinLock {
    word: AtomicUsize,
    nodes: Vec<Node>,
    /// Who spins. As the log, it is no lock of the model.
    spinners: Mutex<Vec<Thread>>,
    log: Log,
    bug: Option<Bug>,
}

impl QueuedSpinLock {
    /// A free spinlock for so many tasks.
    pub fn new(tasks: usize, bug: Option<Bug>, log: Log) -> QueuedSpinLock {
        let node = |_| Node {
            is_head: AtomicBool::new(false),
            next: AtomicUsize::new(0),
        };
        QueuedSpinLock {
            word: AtomicUsize::new(0),
            nodes: (0..tasks).map(node).collect(),
            spinners: Mutex::default(),
            log,
            bug,
        }
    }

    /// Looks whenever somebody has written. Who is about to look is a spinner
    /// already, so that no write is missed.
    fn spin_until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut spinners = self.spinners.lock().unwrap_or_else(PoisonError::into_inner);
            spinners.push(thread::current());
            drop(spinners);
            if let Some(seen) = look() {
                return seen;
            }
            thread::park();
        }
    }

    /// Somebody has written: spinners look again.
    fn wrote<T>(&self, result: T) -> T {
        let mut spinners = self.spinners.lock().unwrap_or_else(PoisonError::into_inner);
        spinners.drain(..).for_each(|spinner| spinner.unpark());
        result
    }

    /// The word as it is.
    fn seen(&self) -> usize {
        self.word.fetch_or(0, Ordering::AcqRel)
    }

    fn replace(&self, from: usize, to: usize) -> Result<usize, usize> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.wrote(self.word.compare_exchange(from, to, success, failure))
    }

    /// The second one to come waits at the word itself; says whether it did.
    fn wait_as_pending(&self, task: usize) -> bool {
        let seen = self.wrote(self.word.fetch_or(PENDING, Ordering::AcqRel));
        if seen & !LOCKED != 0 {
            if seen & PENDING == 0 {
                self.wrote(self.word.fetch_and(!PENDING, Ordering::AcqRel));
            }
            return false;
        }
        self.log.push(Step::Wait(task));
        self.spin_until(|| (self.seen() & LOCKED == 0).then_some(()));
        // LOCKED in, PENDING out; the tail may have changed meanwhile.
        self.wrote(self.word.fetch_xor(HEAD, Ordering::AcqRel));
        self.log.push(Step::Acquire(task, Acquired::HandedOff));
        true
    }

    /// All others queue, each at its own node.
    fn wait_in_queue(&self, task: usize) {
        let node = &self.nodes[task];
        node.is_head.swap(false, Ordering::AcqRel);
        node.next.swap(0, Ordering::AcqRel);
        let before = self.swap_tail(task);
        if before != 0 {
            let before = &self.nodes[task_of(before)];
            self.wrote(before.next.swap(tail(task), Ordering::AcqRel));
            self.spin_until(|| node.is_head.fetch_or(false, Ordering::AcqRel).then_some(()));
        }
        let awaited = match self.bug {
            Some(Bug::IgnoresPending) => LOCKED,
            _ => HEAD,
        };
        self.spin_until(|| (self.seen() & awaited == 0).then_some(()));
        if self.replace(tail(task), LOCKED).is_ok() {
            self.log.push(Step::Acquire(task, Acquired::HandedOff));
            return;
        }
        self.wrote(self.word.fetch_or(LOCKED, Ordering::AcqRel));
        self.log.push(Step::Acquire(task, Acquired::HandedOff));
        let next = self
            .spin_until(|| Some(node.next.fetch_or(0, Ordering::AcqRel)).filter(|&next| next != 0));
        let next = &self.nodes[task_of(next)];
        self.wrote(next.is_head.swap(true, Ordering::AcqRel));
    }

    /// Puts the node of a task at the end; gives the tail before it.
    fn swap_tail(&self, task: usize) -> usize {
        let mut seen = self.seen();
        loop {
            match self.replace(seen, seen & HEAD | tail(task)) {
                Err(other) => seen = other,
                Ok(_) => {
                    self.log.push(Step::Wait(task));
                    return seen & !HEAD;
                }
            }
        }
    }
}

impl Protocol for QueuedSpinLock {
    fn lock(&self, task: usize) {
        if self.replace(0, LOCKED).is_ok() {
            self.log.push(Step::Acquire(task, Acquired::Fast));
        } else if !self.wait_as_pending(task) {
            self.wait_in_queue(task);
        }
    }

    fn unlock(&self, task: usize) {
        let kept = match self.bug {
            Some(Bug::ClearsQueue) => 0,
            _ => !LOCKED,
        };
        self.wrote(self.word.fetch_and(kept, Ordering::AcqRel));
        let handed = false;
        self.log.push(Step::Release { task, handed });
    }
}
