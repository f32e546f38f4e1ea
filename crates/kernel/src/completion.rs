//! Waiting until something is done (`struct completion`).
//!
//! A completion counts what has been completed and not yet been waited for.
//!
//! Invariants:
//! 1. `complete` lets exactly one waiter through, whether it comes before or
//!    after: nothing is lost.
//! 2. Waiters are woken first come, first served, one by each `complete`. Who
//!    comes by while the woken one is on its way may take its turn; the woken
//!    one then queues again, at the end.
//! 3. `complete_all` lets everybody through, now and later, until `reinit`.
//! 4. Waiting may sleep, so it is a fault with preemption off; completing is
//!    possible anywhere.
//!
//! Left out: waiting with a timeout or until a signal, and the few ns that
//! either side takes when nobody sleeps.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let done = machine.completion("request done");
//! machine.spawn("waiter", 0, move |task| async move {
//!     task.wait_for_completion(done).await;
//!     assert!(task.now_ns() >= 5_000_000);
//! })?;
//! machine.spawn("worker", 0, move |task| async move {
//!     task.run_kernel(5_000_000).await;
//!     task.complete(done).await;
//! })?;
//! machine.run_until(20_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::asks::Thing;
use crate::event::EventKind;
use crate::ids::TaskId;
use crate::kernel::Kernel;
use crate::machine::{Machine, Shared};
use crate::task::Task;
use crate::wakers::WakeStep;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::VecDeque;

/// A completion of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Completion(pub(crate) u32);

impl Completion {
    /// The number under which records speak of it.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The count that `complete_all` sets: it is never used up.
const ALL: u32 = u32::MAX;

/// A completion as the kernel sees it.
#[derive(Debug)]
pub(crate) struct CompletionState {
    name: String,
    /// Completed and not yet waited for, or [`ALL`].
    done: u32,
    waiters: VecDeque<TaskId>,
}

impl Kernel {
    pub(crate) fn new_completion(&mut self, name: String) -> Completion {
        let completions = &mut self.objects.completions;
        let number = u32::try_from(completions.len()).unwrap_or(u32::MAX);
        completions.push(CompletionState {
            name,
            done: 0,
            waiters: VecDeque::new(),
        });
        Completion(number)
    }

    fn completion(&mut self, completion: Completion) -> &mut CompletionState {
        &mut self.objects.completions[completion.index()]
    }

    /// Makes a completion as good as new. Nobody may be waiting for it.
    pub(crate) fn reinit_completion(&mut self, completion: Completion) {
        self.completion(completion).done = 0;
    }

    /// Whether a waiter would go straight through.
    pub(crate) fn completion_done(&mut self, completion: Completion) -> bool {
        self.completion(completion).done > 0
    }

    /// `complete`; returns how many wakeups had an effect. `waker` is the task
    /// that does it, or [`TaskId::NONE`] in an interrupt.
    pub(crate) fn complete(&mut self, completion: Completion, waker: TaskId) -> u64 {
        let state = self.completion(completion);
        state.done = state.done.saturating_add(1);
        let first = state.waiters.pop_front();
        first.is_some_and(|first| self.wake(first, waker)).into()
    }

    /// `complete_all`; returns how many wakeups had an effect.
    fn complete_all(&mut self, completion: Completion, waker: TaskId) -> u64 {
        let state = self.completion(completion);
        state.done = ALL;
        let waiters = core::mem::take(&mut state.waiters);
        let woken = waiters.into_iter().map(|waiter| self.wake(waiter, waker));
        woken.map(u64::from).sum()
    }

    /// Takes one of what is done, if there is any.
    pub(crate) fn try_wait(&mut self, completion: Completion) -> bool {
        let state = self.completion(completion);
        match state.done {
            0 => return false,
            ALL => {}
            _ => state.done -= 1,
        }
        true
    }

    /// One look of a waiter; if it is in vain the waiter says with a record of
    /// this kind that it will sleep, and does.
    pub(crate) fn wait_turn(
        &mut self,
        completion: Completion,
        task: TaskId,
        (kind, arg, aux): (EventKind, u64, u16),
    ) -> Poll<()> {
        if self.try_wait(completion) {
            return Poll::Ready(());
        }
        self.completion(completion).waiters.push_back(task);
        self.emit(task, kind, arg, aux);
        self.sleep_until_woken(task);
        Poll::Pending
    }
}

impl Machine {
    /// Creates a completion.
    pub fn completion(&mut self, name: impl Into<String>) -> Completion {
        self.kernel.borrow_mut().new_completion(name.into())
    }
}

impl Task {
    /// Waits until something is done that nobody else has waited for.
    #[track_caller]
    pub fn wait_for_completion(&self, completion: Completion) -> WaitForCompletion<'_> {
        WaitForCompletion {
            kernel: &self.kernel,
            task: self.id(),
            completion,
            place: Location::caller(),
            started: false,
        }
    }

    /// Takes one of what is done without waiting; says whether there was one.
    #[track_caller]
    #[must_use]
    pub fn try_wait_for_completion(&self, completion: Completion) -> bool {
        self.on_completion(completion, |kernel| kernel.try_wait(completion))
    }

    /// Whether a waiter would go straight through.
    #[track_caller]
    #[must_use]
    pub fn completion_done(&self, completion: Completion) -> bool {
        self.on_completion(completion, |kernel| kernel.completion_done(completion))
    }

    /// Makes a completion as good as new, to be used once more.
    #[track_caller]
    pub fn reinit_completion(&self, completion: Completion) {
        self.on_completion(completion, |kernel| kernel.reinit_completion(completion));
    }

    /// Runs `act` on the kernel, called from this place.
    #[track_caller]
    fn on_completion<T: Default>(
        &self,
        completion: Completion,
        act: impl FnOnce(&mut Kernel) -> T,
    ) -> T {
        let kernel = &mut *self.kernel.borrow_mut();
        let thing = Thing::Completion(completion);
        if kernel.asks_about(thing, self.id(), Location::caller()) {
            act(kernel)
        } else {
            T::default()
        }
    }

    /// Lets one waiter through.
    #[track_caller]
    pub fn complete(&self, completion: Completion) -> Complete<'_> {
        Complete::new(self, completion, false, Location::caller())
    }

    /// Lets all waiters through, now and later.
    #[track_caller]
    pub fn complete_all(&self, completion: Completion) -> Complete<'_> {
        Complete::new(self, completion, true, Location::caller())
    }
}

/// Waits for a completion; see [`Task::wait_for_completion`].
#[must_use = "futures do nothing unless awaited"]
pub struct WaitForCompletion<'a> {
    kernel: &'a Shared,
    task: TaskId,
    completion: Completion,
    place: &'static Location<'static>,
    started: bool,
}

impl Future for WaitForCompletion<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        let (task, completion) = (self.task, self.completion);
        if !core::mem::replace(&mut self.started, true) {
            if !kernel.asks_about(Thing::Completion(completion), task, self.place) {
                return Poll::Pending;
            }
            kernel.enter_kernel(task);
            let does = |kernel: &Kernel| {
                let name = &kernel.objects.completions[completion.index()].name;
                format!("waits for {name}")
            };
            if !kernel.might_sleep(task, does) {
                return Poll::Pending;
            }
        }
        let record = (EventKind::CompletionWait, completion.0.into(), 0);
        kernel.wait_turn(completion, task, record)
    }
}

/// Completes; see [`Task::complete`] and [`Task::complete_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct Complete<'a> {
    kernel: &'a Shared,
    task: TaskId,
    completion: Completion,
    all: bool,
    place: &'static Location<'static>,
    step: WakeStep,
}

impl<'a> Complete<'a> {
    fn new(
        task: &'a Task,
        completion: Completion,
        all: bool,
        place: &'static Location<'static>,
    ) -> Complete<'a> {
        Complete {
            kernel: &task.kernel,
            task: task.id(),
            completion,
            all,
            place,
            step: WakeStep::Start,
        }
    }

    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, completion) = (self.task, self.completion);
        if !kernel.asks_about(Thing::Completion(completion), task, self.place) {
            return Poll::Pending;
        }
        kernel.enter_kernel(task);
        kernel.preempt_disable(task);
        kernel.emit(
            task,
            EventKind::Complete,
            completion.0.into(),
            self.all.into(),
        );
        let woken = if self.all {
            kernel.complete_all(completion, task)
        } else {
            kernel.complete(completion, task)
        };
        kernel.pay_wakeups(task, &mut self.step, woken)
    }
}

impl Future for Complete<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.step {
            WakeStep::Start => self.start(kernel),
            WakeStep::Woke | WakeStep::Done => kernel.end_wakeups(self.task, &mut self.step),
        }
    }
}
