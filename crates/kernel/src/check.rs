//! The invariants of a machine, checked after every event when its options ask
//! for it. A broken one is a fault of the model and names itself.
//!
//! 1. The weighted lags of a queue sum to zero, up to the rounding of `V`.
//! 2. `V` does not go back while nobody joins or leaves.
//! 3. A fair task that is switched in is eligible.
//! 4. A task runs on one CPU at most, and neither sleeps nor is queued elsewhere
//!    meanwhile.
//! 5. A lock has one owner, who knows of it, or readers alone; waiters stand in the order of their
//!    coming, and while a mutex is free, the first has been woken.
//! 6. Nobody is in user mode or asleep with preemption off, but in the slow path
//!    of a mutex.
//! 7. What a task has inherited is what those have that wait for it.
//! 8. Queued are the tasks of the fair class that wait for their turn on this
//!    CPU, each once.
//! 9. Time goes on: a CPU schedules a bounded number of times at one moment.

use crate::config::Inheritance;
use crate::event::Acquired;
use crate::fault::Fault;
use crate::ids::{CpuId, LockId, TaskId};
use crate::kernel::{Kernel, Op};
use crate::lock::LockKind;
use crate::trace::Site;

/// More often than this no CPU has reason to schedule at one moment, even where
/// nothing takes time.
const SCHEDULES_MAX: u32 = 10_000;

/// What was true of a queue when it was checked last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    changes: u64,
    average: i64,
    /// The moment when the CPU scheduled last, and how often it did then.
    scheduled_ns: u64,
    schedules: u32,
}

impl Kernel {
    /// Checks everything; the first invariant that is broken is the fault.
    pub(crate) fn check(&mut self) {
        let checked = self
            .check_queues()
            .and_then(|()| self.check_tasks())
            .and_then(|()| self.check_locks());
        if let Err(what) = checked {
            self.break_invariant(what);
        }
    }

    pub(crate) fn break_invariant(&mut self, what: String) {
        if self.fault.is_none() {
            self.fault = Some(Fault {
                at_ns: self.now_ns,
                task: "the machine".to_owned(),
                site: Site {
                    file: file!().replace('\\', "/"),
                    line: line!(),
                },
                what,
            });
        }
    }

    fn check_queues(&mut self) -> Result<(), String> {
        for index in 0..self.cpus.len() {
            let cpu = &self.cpus[index];
            let (lag, weight) = cpu.rq.lag_and_weight(&self.entities);
            // V is rounded down, by less than one.
            if lag > 0 || (weight > 0 && lag <= -weight) {
                return Err(format!("CPU {index}: the lags sum to {lag}, of {weight}"));
            }
            let then = cpu.checked;
            let now = Checked {
                changes: cpu.rq.changes(),
                average: cpu.rq.avg_vruntime(&self.entities),
                ..then
            };
            if now.changes == then.changes && now.average < then.average && weight > 0 {
                return Err(format!(
                    "CPU {index}: V goes back from {} to {}",
                    then.average, now.average
                ));
            }
            let fair = cpu.donor.filter(|&donor| !self.is_rt(donor));
            if cpu.rq.curr() != fair {
                return Err(format!("CPU {index}: runs {fair:?} and accounts another"));
            }
            let strays = self.strays(index);
            if !strays.is_empty() {
                return Err(format!(
                    "CPU {index}: {strays:?} are queued where they ought not"
                ));
            }
            self.cpus[index].checked = now;
        }
        Ok(())
    }

    /// The members of a queue that have no place there, or a second one.
    fn strays(&self, cpu: usize) -> Vec<TaskId> {
        let rq = &self.cpus[cpu].rq;
        let tree = rq.tree();
        let stray = |&(at, &task): &(usize, &TaskId)| {
            let elsewhere = self.tasks[task.index()].cpu.index() != cpu || self.is_rt(task);
            let twice = rq.curr() == Some(task) || tree[..at].contains(&task);
            elsewhere || twice || !self.entities[task].on_rq
        };
        let strays = tree.iter().enumerate().filter(stray);
        strays.map(|(_, &task)| task).collect()
    }

    fn check_tasks(&self) -> Result<(), String> {
        let numbers = (0..self.tasks.len()).map(|index| TaskId(index as u16));
        for task in numbers {
            let state = &self.tasks[task.index()];
            let name = &state.name;
            let runs_on: Vec<CpuId> = self.running_on(task).collect();
            if runs_on.len() > 1 || runs_on.iter().any(|&cpu| cpu != state.cpu) {
                return Err(format!(
                    "{name} runs on {runs_on:?} and is on CPU {}",
                    state.cpu
                ));
            }
            if !runs_on.is_empty() && (state.asleep || state.op == Op::Exit) {
                return Err(format!("{name} runs and sleeps"));
            }
            let entity = &self.entities[task];
            let asleep = state.asleep || state.op == Op::Exit;
            if !self.lends(task) && (entity.on_rq == (asleep && !entity.delayed)) {
                return Err(format!("{name} is queued and sleeps, or neither"));
            }
            let slow_path = u32::from(state.waits_for.is_some());
            let off = state.preempt_count > slow_path && state.asleep;
            if off || state.user_mode && state.preempt_count > 0 {
                return Err(format!("{name} has preemption off where it cannot"));
            }
            let by_priority = self.config.mutex.inheritance == Inheritance::Priority;
            if by_priority && state.inherited != self.due(task) {
                return Err(format!("{name} has inherited {:?}", state.inherited));
            }
            if state.bh_off > state.preempt_count {
                return Err(format!("{name} has bottom halves off, but not preemption"));
            }
        }
        Ok(())
    }

    fn running_on(&self, task: TaskId) -> impl Iterator<Item = CpuId> {
        self.cpu_ids()
            .filter(move |cpu| self.cpus[cpu.index()].curr == Some(task))
    }

    fn check_locks(&self) -> Result<(), String> {
        for (index, lock) in self.locks.iter().enumerate() {
            let (id, name) = (LockId(index as u16), &lock.name);
            if lock.owner.is_some() && !lock.readers.is_empty() {
                return Err(format!("{name} has a writer and readers"));
            }
            if matches!(lock.kind, LockKind::RwLock | LockKind::RwSem) {
                continue;
            }
            let holds = |task: TaskId| self.tasks[task.index()].held.contains(&id);
            let known = lock.owner.is_none_or(|owner| lock.pickup != holds(owner));
            let holders = self.tasks.iter().filter(|task| task.held.contains(&id));
            if !known || holders.count() > usize::from(lock.owner.is_some()) {
                return Err(format!("{name} has an owner other than who holds it"));
            }
            let tickets = lock
                .waiters
                .iter()
                .map(|task| self.tasks[task.index()].ticket);
            let by_priority = self.config.mutex.inheritance == Inheritance::Priority;
            let fifo = !by_priority || lock.kind != LockKind::Mutex;
            if fifo && !tickets.is_sorted() {
                return Err(format!("{name}: waiters are not in order of coming"));
            }
            let first = lock.waiters.front().map(|task| &self.tasks[task.index()]);
            if lock.owner.is_none() && first.is_some_and(|first| first.asleep) {
                return Err(format!(
                    "{name} is free and its first waiter sleeps: a lost wakeup"
                ));
            }
        }
        Ok(())
    }

    /// A CPU schedules: invariant 9.
    pub(crate) fn check_progress(&mut self, cpu: CpuId) {
        if !self.config.checks {
            return;
        }
        let now_ns = self.now_ns;
        let checked = &mut self.cpu(cpu).checked;
        if checked.scheduled_ns != now_ns {
            (checked.scheduled_ns, checked.schedules) = (now_ns, 0);
        }
        checked.schedules += 1;
        if checked.schedules > SCHEDULES_MAX {
            self.break_invariant(format!("CPU {cpu} schedules for ever"));
        }
    }

    /// A waiter takes a mutex: it must be the first.
    pub(crate) fn check_turn(&mut self, lock: LockId, task: TaskId) {
        let fifo = self.config.mutex.inheritance == Inheritance::Off;
        if self.config.checks && fifo && self.lock(lock).waiters.front() != Some(&task) {
            let (task, lock) = (&self.tasks[task.index()], &self.locks[lock.index()]);
            let what = format!(
                "{} takes {} ahead of the first waiter",
                task.name, lock.name
            );
            self.break_invariant(what);
        }
    }

    /// A task takes a free lock: that it may, is invariant 5.
    pub(crate) fn check_free(&mut self, lock: LockId, task: TaskId, how: Acquired) {
        let Some(owner) = self.lock(lock).owner else {
            return;
        };
        let handed = how == Acquired::HandedOff && owner == task;
        if self.config.checks && !handed {
            let what = format!(
                "{} is taken while it is owned",
                self.locks[lock.index()].name
            );
            self.break_invariant(what);
        }
    }

    /// A fair task is switched in: that it is eligible, is invariant 3.
    pub(crate) fn check_eligible(&mut self, cpu: CpuId, next: TaskId) {
        if !self.config.checks || self.is_rt(next) {
            return;
        }
        if !self.cpus[cpu.index()].rq.is_eligible(&self.entities, next) {
            let what = format!(
                "{} is picked, but not eligible",
                self.tasks[next.index()].name
            );
            self.break_invariant(what);
        }
    }
}
