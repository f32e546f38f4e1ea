//! The protocol of the kernel's mutex on atomics: an owner word with flags, and
//! a list of waiters under a lock of its own.
//!
//! Written from the rules (scheduler reference, section 5, and items 50 to 56 of
//! its verification), not from the simulator.
//!
//! Left out: spinning on the owner. A spinner tries again later, and loom tries
//! every later moment anyway.

use super::Step;
use super::explore::{Log, Protocol};
use kernel_sim::Acquired;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Mutex, MutexGuard};
use loom::thread::{self, Thread};
use std::collections::VecDeque;

const WAITERS: usize = 1;
const HANDOFF: usize = 2;
const PICKUP: usize = 4;
const FLAGS: usize = WAITERS | HANDOFF | PICKUP;

/// The owner word of a task, which is not 0.
fn word(task: usize) -> usize {
    (task + 1) * (FLAGS + 1)
}

/// What can be wrong with an implementation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The unlock wakes nobody.
    ForgetsWaiter,
    /// A woken waiter takes the lock for granted.
    NoRecheck,
    /// Anybody takes a mutex that was handed over.
    AnyonePicksUp,
    /// A handover goes to the last waiter.
    HandsToLast,
}

/// What the lock of the waiters protects.
struct Waiting {
    list: VecDeque<usize>,
    asleep: Vec<Option<Thread>>,
}

/// A mutex.
pub struct KernelMutex {
    owner: AtomicUsize,
    wait_lock: Mutex<Waiting>,
    log: Log,
    bug: Option<Bug>,
}

impl KernelMutex {
    /// A free mutex for so many tasks.
    pub fn new(tasks: usize, bug: Option<Bug>, log: Log) -> KernelMutex {
        KernelMutex {
            owner: AtomicUsize::new(0),
            wait_lock: Mutex::new(Waiting {
                list: VecDeque::new(),
                asleep: vec![None; tasks],
            }),
            log,
            bug,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.wait_lock.lock().expect("nobody panics with it")
    }

    /// Replaces the owner word, if it is `from`; says what it was otherwise.
    fn replace(&self, from: usize, to: usize) -> Result<usize, usize> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.owner.compare_exchange(from, to, success, failure)
    }

    /// `__mutex_trylock_common`: takes the mutex, as `how` if it is free.
    /// Otherwise, with `handoff`, leaves the demand for it.
    fn try_lock(&self, task: usize, how: Acquired, handoff: bool) -> bool {
        let mut seen = self.owner.load(Ordering::Acquire);
        loop {
            let (owner, flags) = (seen & !FLAGS, seen & FLAGS);
            let mine = owner == word(task) || self.bug == Some(Bug::AnyonePicksUp);
            let picks_up = owner != 0 && flags & PICKUP != 0 && mine;
            let next = if owner == 0 {
                word(task) | flags
            } else if picks_up {
                word(task) | (flags & !PICKUP)
            } else if handoff && flags & (PICKUP | HANDOFF) == 0 {
                seen | HANDOFF
            } else {
                return false;
            };
            match self.replace(seen, next) {
                Err(other) => seen = other,
                Ok(_) if next & !FLAGS != word(task) => {
                    self.log.push(Step::HandoffWanted(task));
                    return false;
                }
                Ok(_) => {
                    let how = if picks_up { Acquired::HandedOff } else { how };
                    self.log.push(Step::Acquire(task, how));
                    return true;
                }
            }
        }
    }

    fn lock_slow(&self, task: usize) {
        if self.try_lock(task, Acquired::Stolen, false) {
            return;
        }
        let mut waiting = self.waiting();
        if self.try_lock(task, Acquired::Stolen, false) {
            return;
        }
        waiting.list.push_back(task);
        if waiting.list.len() == 1 {
            self.owner.fetch_or(WAITERS, Ordering::AcqRel);
        }
        self.log.push(Step::Wait(task));
        // Who has not slept yet is as good as one who has just come.
        let mut how = Acquired::Stolen;
        while !self.try_lock(task, how, false) {
            waiting = self.sleep(task, waiting);
            how = Acquired::Woken;
            if self.bug == Some(Bug::NoRecheck) {
                self.owner.fetch_or(word(task), Ordering::AcqRel);
                self.log.push(Step::Acquire(task, how));
                break;
            }
            let first = waiting.list.front() == Some(&task);
            if self.try_lock(task, how, first) {
                break;
            }
        }
        waiting.list.retain(|&waiter| waiter != task);
        if waiting.list.is_empty() {
            self.owner.fetch_and(!FLAGS, Ordering::AcqRel);
        }
    }

    /// Sleeps without the lock of the waiters. Every wakeup of a sleeper unparks
    /// it once, so it is awake when this ends.
    fn sleep<'a>(
        &'a self,
        task: usize,
        mut waiting: MutexGuard<'a, Waiting>,
    ) -> MutexGuard<'a, Waiting> {
        waiting.asleep[task] = Some(thread::current());
        drop(waiting);
        thread::park();
        self.waiting()
    }

    /// `wake_up_q`: without the lock of the waiters in between, so it may come
    /// late; it has an effect only on one who sleeps.
    fn wake(&self, task: usize) {
        let mut waiting = self.waiting();
        if let Some(thread) = waiting.asleep[task].take() {
            self.log.push(Step::Wake(task));
            thread.unpark();
        }
    }

    /// Frees the mutex, unless it is to be handed over; says with which flags it
    /// was owned.
    fn release(&self, task: usize) -> usize {
        let mut seen = self.owner.load(Ordering::Acquire);
        loop {
            if seen & HANDOFF != 0 {
                return seen & FLAGS;
            }
            match self.replace(seen, seen & FLAGS) {
                Err(other) => seen = other,
                Ok(_) => {
                    let handed = false;
                    self.log.push(Step::Release { task, handed });
                    return seen & FLAGS;
                }
            }
        }
    }

    fn unlock_slow(&self, task: usize) {
        let flags = self.release(task);
        if flags & (WAITERS | HANDOFF) == 0 || self.bug == Some(Bug::ForgetsWaiter) {
            return;
        }
        let waiting = self.waiting();
        let heir = match self.bug {
            Some(Bug::HandsToLast) => waiting.list.back().copied(),
            _ => waiting.list.front().copied(),
        };
        if flags & HANDOFF != 0 {
            let next = heir.map_or(0, |heir| word(heir) | PICKUP);
            // With HANDOFF set, nobody but the owner changes the word.
            self.owner.store(next | WAITERS, Ordering::Release);
            let handed = true;
            self.log.push(Step::Release { task, handed });
        }
        drop(waiting);
        if let Some(heir) = heir {
            self.wake(heir);
        }
    }
}

impl Protocol for KernelMutex {
    fn lock(&self, task: usize) {
        match self.replace(0, word(task)) {
            Ok(_) => self.log.push(Step::Acquire(task, Acquired::Fast)),
            Err(_) => self.lock_slow(task),
        }
    }

    fn unlock(&self, task: usize) {
        match self.replace(word(task), 0) {
            Ok(_) => {
                let handed = false;
                self.log.push(Step::Release { task, handed });
            }
            Err(_) => self.unlock_slow(task),
        }
    }
}
