//! What a task may ask for, and when.
//!
//! Everything that a task asks the kernel for passes here first. What it may not
//! ask for is a fault and is not begun: the future stays pending and the run
//! stops.
//!
//! Invariants:
//! 1. A task asks while its own body is polled, with its own handle.
//! 2. It asks for one thing after the other: nothing is begun while something
//!    else is under way, or was given up half way.
//! 3. What it asks about belongs to this machine, as far as numbers and kinds
//!    tell.
//! 4. It asks a bounded number of times before it lets time pass.

use crate::completion::Completion;
use crate::ids::{LockId, TaskId};
use crate::kernel::{Kernel, Op};
use crate::lock::LockKind;
use crate::percpu_ref::PercpuRef;
use crate::rcu::Deferred;
use crate::workqueue::{Work, Workqueue};
use core::panic::Location;

/// More often than this no task has reason to ask without that any time passes.
const ASKS_MAX: u32 = 1_000_000;

/// Who is being polled, and how often it has asked meanwhile.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Polled {
    pub task: Option<TaskId>,
    asks: u32,
}

impl Polled {
    /// This task's turn to ask begins.
    pub fn begins(task: TaskId) -> Polled {
        Polled {
            task: Some(task),
            asks: 0,
        }
    }
}

/// What a task asks about, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thing {
    Lock(LockId, LockKind),
    Completion(Completion),
    Work(Work),
    Workqueue(Workqueue),
    Ref(PercpuRef),
    Server(u16),
    Request(usize),
}

impl From<Deferred> for Thing {
    fn from(deferred: Deferred) -> Thing {
        match deferred {
            Deferred::Complete(completion) => Thing::Completion(completion),
            Deferred::Queue(work) => Thing::Work(work),
        }
    }
}

impl Thing {
    fn name(self) -> &'static str {
        match self {
            Thing::Lock(..) => "a lock",
            Thing::Completion(_) => "a completion",
            Thing::Work(_) => "a work item",
            Thing::Workqueue(_) => "a workqueue",
            Thing::Ref(_) => "a reference count",
            Thing::Server(_) => "a device",
            Thing::Request(_) => "a request",
        }
    }
}

impl Kernel {
    /// A task asks for something from a source line, which is remembered. Says
    /// whether it may; if not, that is a fault.
    #[must_use]
    pub(crate) fn asks(&mut self, task: TaskId, place: &'static Location<'static>) -> bool {
        // Whoever else holds the handle is the one to blame.
        let asker = self.polled.task.unwrap_or(task);
        self.tasks[asker.index()].site = self.sites.number(place);
        self.polled.asks += 1;
        match self.objection(task) {
            None => self.fault.is_none(),
            Some(what) => {
                self.fail(asker, what);
                false
            }
        }
    }

    /// As [`Kernel::asks`], about something that has to be this machine's.
    #[must_use]
    pub(crate) fn asks_about(
        &mut self,
        thing: Thing,
        task: TaskId,
        place: &'static Location<'static>,
    ) -> bool {
        if !self.asks(task, place) {
            return false;
        }
        let has = self.has(thing);
        if !has {
            self.fail(task, format!("uses {} of another machine", thing.name()));
        }
        has
    }

    /// Why a task may not ask for anything now.
    fn objection(&self, task: TaskId) -> Option<String> {
        let state = &self.tasks[task.index()];
        match self.polled.task {
            Some(polled) if polled == task => {}
            Some(_) => {
                let name = &state.name;
                return Some(format!(
                    "uses the handle of {name}; it may only use its own"
                ));
            }
            None => {
                let what = "is asked for something when it is not its turn; \
                            its handle is for its own body";
                return Some(what.to_owned());
            }
        }
        if self.polled.asks > ASKS_MAX {
            let what = format!(
                "asks {ASKS_MAX} times while no time passes; let it run or sleep in between"
            );
            return Some(what);
        }
        self.unfinished(task)
    }

    /// What a task has asked for and has not awaited to its end.
    pub(crate) fn unfinished(&self, task: TaskId) -> Option<String> {
        let state = &self.tasks[task.index()];
        if let Some(lock) = state.waits_for {
            let name = &self.locks[lock.index()].name;
            return Some(format!(
                "goes on while it waits for {name}; await one thing after the other, to its end"
            ));
        }
        (state.op != Op::Poll).then(|| {
            "goes on while what it has asked for is under way; \
             await one thing after the other, to its end"
                .to_owned()
        })
    }

    /// Whether there is such a thing.
    fn has(&self, thing: Thing) -> bool {
        let objects = &self.objects;
        match thing {
            Thing::Lock(lock, kind) => {
                let lock = self.locks.get(lock.index());
                lock.is_some_and(|lock| lock.kind == kind)
            }
            Thing::Completion(completion) => completion.index() < objects.completions.len(),
            Thing::Work(work) => usize::from(work.number()) < objects.works.len(),
            Thing::Workqueue(queue) => queue.index() < objects.workqueues.len(),
            Thing::Ref(counted) => counted.index() < objects.refs.len(),
            Thing::Server(server) => usize::from(server) < objects.servers.len(),
            Thing::Request(slot) => slot < objects.requests.len(),
        }
    }

    /// Something is given to the machine from outside: a fault if it is another
    /// machine's.
    pub(crate) fn is_given(&mut self, thing: Thing) -> bool {
        let has = self.has(thing);
        if !has {
            self.refuse(format!("is given {} of another machine", thing.name()));
        }
        has
    }

    /// The machine gets one more of something that is numbered from 0 to this
    /// number: a fault if there is no number left.
    pub(crate) fn number_for(&mut self, count: usize, what: &str) -> u16 {
        u16::try_from(count).unwrap_or_else(|_| {
            let most = usize::from(u16::MAX) + 1;
            self.refuse(format!("has room for {most} {what} and is given one more"));
            u16::MAX
        })
    }
}
