//! Who waits for whom: for every task what it does, since when, and through
//! which chain of locks.
//!
//! Invariants:
//! 1. A chain ends with a task that does not wait for a lock, or with a lock
//!    that nobody owns.
//! 2. A chain that would come back to its beginning is a deadlock. It is
//!    reported as a fault, with its tasks and locks, when its last wait begins.
//!
//! Left out: waits for somebody whom no lock names, as for a completion; a chain
//! ends there.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig, TaskActivity};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let mutex = machine.mutex("mutex");
//! machine.spawn("owner", 0, move |task| async move {
//!     task.mutex_lock(mutex).await;
//!     task.sleep(5_000_000).await;
//!     task.mutex_unlock(mutex).await;
//! })?;
//! let waiter = machine.spawn("waiter", 0, move |task| async move {
//!     task.sleep(1_000_000).await;
//!     task.mutex_lock(mutex).await;
//!     task.mutex_unlock(mutex).await;
//! })?;
//! machine.run_until(2_000_000)?;
//! let chain = machine.wait_chain(waiter);
//! assert_eq!(chain[0].activity, TaskActivity::WaitsFor(mutex.id()));
//! assert_eq!(chain[1].activity, TaskActivity::Sleeps);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::config::Hrtick;
use crate::fair::Entity;
use crate::ids::{LockId, TaskId};
use crate::kernel::{Kernel, Op};
use crate::machine::Machine;

/// What a task is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskActivity {
    /// A CPU runs it.
    Runs,
    /// It runs, but only to look again and again at this lock.
    SpinsOn(LockId),
    /// It could run, and another task has its CPU.
    Queued,
    /// It sleeps until it can have this lock.
    WaitsFor(LockId),
    /// It sleeps until a time, or until somebody wakes it.
    Sleeps,
    /// It has ended.
    Ended,
}

/// A link of a chain of waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitLink {
    /// The task.
    pub task: TaskId,
    /// What it does.
    pub activity: TaskActivity,
    /// Since when, in virtual ns.
    pub since_ns: u64,
}

/// A queued task that is owed more than its scheduler allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starving {
    /// The task.
    pub task: TaskId,
    /// The CPU time that it is owed, in ns.
    pub owed_ns: u64,
    /// The most that it should ever be, in ns.
    pub bound_ns: u64,
    /// Since when it has been queued, in virtual ns.
    pub since_ns: u64,
}

impl Machine {
    /// Why a task does not get on: the task itself, then the owner of the lock
    /// that it waits for, and so on to a task that waits for no lock.
    #[must_use]
    pub fn wait_chain(&self, task: TaskId) -> Vec<WaitLink> {
        let kernel = self.kernel.borrow();
        let mut chain = Vec::new();
        let mut next = Some(task);
        while let Some(task) = next.filter(|_| chain.len() <= kernel.tasks.len()) {
            chain.push(WaitLink {
                task,
                activity: kernel.activity(task),
                since_ns: kernel.tasks[task.index()].since_ns,
            });
            next = kernel.waits_for_whom(task);
        }
        chain
    }

    /// The queued fair tasks that are owed more than one longest slice and what
    /// lazy preemption may delay, two ticks, and a third where slices end at
    /// ticks: the bound of their lag. Long sections with preemption off come on
    /// top of it.
    #[must_use]
    pub fn starving(&self) -> Vec<Starving> {
        let kernel = self.kernel.borrow();
        let queues = kernel.cpus.iter().map(|cpu| cpu.rq.tree());
        let queued = queues.flat_map(|tree| tree.iter().copied());
        queued.filter_map(|task| kernel.starves(task)).collect()
    }

    /// The tasks that sleep although nothing is left that could ever wake them:
    /// no timer, no running task. Empty while the machine has work to do.
    #[must_use]
    pub fn stuck(&self) -> Vec<WaitLink> {
        let kernel = self.kernel.borrow();
        let busy =
            kernel.cpus.iter().any(|cpu| cpu.donor.is_some()) || kernel.timers.peek().is_some();
        let tasks = (0..kernel.tasks.len()).filter(|_| !busy);
        tasks
            .map(|index| TaskId(u16::try_from(index).unwrap_or(u16::MAX)))
            .map(|task| WaitLink {
                task,
                activity: kernel.activity(task),
                since_ns: kernel.tasks[task.index()].since_ns,
            })
            .filter(|link| link.activity != TaskActivity::Ended)
            .collect()
    }
}

impl Kernel {
    fn activity(&self, task: TaskId) -> TaskActivity {
        let state = &self.tasks[task.index()];
        match (state.op, state.waits_for) {
            (Op::Exit, _) => TaskActivity::Ended,
            (Op::Block, Some(lock)) if state.asleep => TaskActivity::WaitsFor(lock),
            _ if state.asleep => TaskActivity::Sleeps,
            _ if !self.is_on_cpu(task) => TaskActivity::Queued,
            (Op::Spin { .. }, Some(lock)) => TaskActivity::SpinsOn(lock),
            _ => TaskActivity::Runs,
        }
    }

    /// The owner of the lock that a task waits for; of several readers one that
    /// waits itself, or the first. One who has been handed a lock and has not
    /// picked it up yet waits for nobody.
    pub(crate) fn waits_for_whom(&self, task: TaskId) -> Option<TaskId> {
        let lock = self.tasks[task.index()].waits_for?;
        let lock = &self.locks[lock.index()];
        let waits = |reader: &&TaskId| self.tasks[reader.index()].waits_for.is_some();
        let reader = lock.readers.iter().find(waits).or(lock.readers.first());
        let owner = lock.owner.or(reader.copied());
        owner.filter(|&owner| owner != task)
    }

    /// A task begins to wait for a lock, asleep or spinning.
    pub(crate) fn wait_for(&mut self, task: TaskId, lock: LockId) {
        self.task(task).waits_for = Some(lock);
        let mut at = task;
        for _ in 0..self.tasks.len() {
            let Some(owner) = self.waits_for_whom(at) else {
                return;
            };
            at = owner;
            if at == task {
                let what = self.describe_cycle(task);
                self.fail(task, what);
                return;
            }
            self.inherit(at);
        }
    }

    fn describe_cycle(&self, first: TaskId) -> String {
        let mut what = "deadlock:".to_owned();
        let mut at = first;
        loop {
            let (Some(lock), Some(owner)) =
                (self.tasks[at.index()].waits_for, self.waits_for_whom(at))
            else {
                return what;
            };
            let names = [at, owner].map(|task| &self.tasks[task.index()].name);
            let lock = &self.locks[lock.index()].name;
            let comma = if at == first { "" } else { "," };
            what += &format!(
                "{comma} {} waits for {lock}, which {} owns",
                names[0], names[1]
            );
            at = owner;
            if at == first {
                return what;
            }
        }
    }

    fn starves(&self, task: TaskId) -> Option<Starving> {
        let state = &self.tasks[task.index()];
        let rq = &self.cpus[state.cpu.index()].rq;
        if self.entities[task].delayed {
            return None;
        }
        let members = rq.tree().iter().copied().chain(rq.curr());
        let slices = members.map(|member| &self.entities[member]);
        let longest_ns = slices.map(|Entity { slice_ns, .. }| *slice_ns).max()?;
        let ticks = 2 + u64::from(self.config.hrtick == Hrtick::Off);
        let longest_ns = u64::try_from(longest_ns).unwrap_or(u64::MAX);
        let bound_ns = longest_ns + ticks * self.config.tick_ns();
        let owed_ns = u64::try_from(rq.owed_ns(&self.entities, task)).unwrap_or(0);
        (owed_ns > bound_ns).then_some(Starving {
            task,
            owed_ns,
            bound_ns,
            since_ns: state.since_ns,
        })
    }
}
