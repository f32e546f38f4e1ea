//! Creating tasks, from outside and by a running task.
//!
//! A task that is created from outside goes to the CPU with the fewest tasks, as
//! when a benchmark starts its processes one after the other on an idle machine;
//! one that is forked by a running task goes where `find_idlest_cpu` says
//! (scheduler reference, verified, item 49).
//!
//! Left out: several levels of domains, exec balancing.

use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::inheritance::Inherited;
use crate::kernel::{Kernel, Op, TaskStruct};
use crate::machine::{Machine, Shared};
use crate::pelt::Pelt;
use crate::policy::{Policy, SpawnError, TaskOptions};
use crate::task::Task;
use crate::trace::Sites;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use std::rc::Rc;

/// The state of a task's `async` function.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Bodies on their way from the task that forked them to the executor, in the
/// order of their numbers.
#[derive(Default)]
pub(crate) struct Newborn(pub Vec<TaskFuture>);

impl fmt::Debug for Newborn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} newborn", self.0.len())
    }
}

impl Machine {
    /// Creates a task of the fair class, in user mode.
    ///
    /// # Errors
    /// If `nice` is outside −20..=19 or there are too many tasks.
    pub fn spawn<F>(
        &mut self,
        name: impl Into<String>,
        nice: i8,
        body: impl FnOnce(Task) -> F,
    ) -> Result<TaskId, SpawnError>
    where
        F: Future<Output = ()> + 'static,
    {
        self.spawn_with(name, TaskOptions::from(Policy::Normal { nice }), body)
    }

    /// Creates a task with options, in user mode.
    ///
    /// # Errors
    /// If an option is out of its range, no CPU is allowed, or there are too
    /// many tasks.
    pub fn spawn_with<F>(
        &mut self,
        name: impl Into<String>,
        options: TaskOptions,
        body: impl FnOnce(Task) -> F,
    ) -> Result<TaskId, SpawnError>
    where
        F: Future<Output = ()> + 'static,
    {
        let kernel = &mut *self.kernel.borrow_mut();
        let cpu = kernel.emptiest_cpu(options)?;
        let id = kernel.new_task(name.into(), options, cpu)?;
        kernel.wake_up_new(id, TaskId::NONE);
        let task = Task::new(Rc::clone(&self.kernel), id);
        self.futures.push(Some(Box::pin(body(task))));
        Ok(id)
    }
}

impl Task {
    /// Forks a task, in user mode; takes no time.
    ///
    /// # Errors
    /// If an option is out of its range, no CPU is allowed, or there are too
    /// many tasks.
    #[track_caller]
    pub fn spawn<F>(
        &self,
        name: impl Into<String>,
        options: TaskOptions,
        body: impl FnOnce(Task) -> F,
    ) -> Result<TaskId, SpawnError>
    where
        F: Future<Output = ()> + 'static,
    {
        let kernel = &mut *self.kernel().borrow_mut();
        kernel.at(self.id(), Location::caller());
        let cpu = kernel.find_idlest_cpu(self.id(), options)?;
        let id = kernel.new_task(name.into(), options, cpu)?;
        kernel.wake_up_new(id, self.id());
        let task = Task::new(Shared::clone(self.kernel()), id);
        kernel.newborn.0.push(Box::pin(body(task)));
        Ok(id)
    }
}

impl Kernel {
    pub(crate) fn new_task(
        &mut self,
        name: String,
        options: TaskOptions,
        cpu: CpuId,
    ) -> Result<TaskId, SpawnError> {
        let weight = options.policy.weight()?;
        if self.tasks.len() >= usize::from(u16::MAX) {
            return Err(SpawnError::TooMany);
        }
        let slice_ns = options.slice_or(self.config.base_slice_ns);
        let slice_ns = i64::try_from(slice_ns).unwrap_or(i64::MAX);
        let id = self.entities.add(weight.into(), slice_ns);
        self.tasks.push(TaskStruct {
            name,
            policy: options.policy,
            inherited: Inherited::default(),
            cpus_allowed: options.cpus_allowed,
            op: Op::Poll,
            asleep: false,
            lends: false,
            user_mode: true,
            preempt_count: 0,
            bh_off: 0,
            cpu,
            recent_cpu: cpu,
            pelt: Pelt::full(self.now_ns),
            wakee_flips: 0,
            last_wakee: TaskId::NONE,
            flips_decayed_ns: 0,
            site: Sites::START,
            held: Vec::new(),
            waits_for: None,
            ticket: 0,
            since_ns: self.now_ns,
        });
        self.cpu(cpu).attached.push(id);
        self.emit(id, EventKind::Spawn, weight.into(), 0);
        Ok(id)
    }

    /// The allowed CPU with the fewest tasks, the first of equals.
    fn emptiest_cpu(&self, options: TaskOptions) -> Result<CpuId, SpawnError> {
        let tasks = |cpu: &CpuId| self.cpus[cpu.index()].attached.len();
        self.allowed_cpus(options)
            .min_by_key(tasks)
            .ok_or(SpawnError::NoCpu(options.cpus_allowed))
    }

    fn allowed_cpus(&self, options: TaskOptions) -> impl Iterator<Item = CpuId> + use<> {
        let allowed = options.cpus_allowed;
        self.cpu_ids().filter(move |&cpu| allowed.allows(cpu))
    }

    /// `find_idlest_cpu`: where a fork goes. The parent's own CPU unless another
    /// is clearly better off.
    fn find_idlest_cpu(&self, parent: TaskId, options: TaskOptions) -> Result<CpuId, SpawnError> {
        let own = self.tasks[parent.index()].cpu;
        let others = self.allowed_cpus(options).filter(|&cpu| cpu != own);
        let idlest = others.min_by_key(|&cpu| self.idleness(cpu));
        if !options.cpus_allowed.allows(own) {
            return idlest.ok_or(SpawnError::NoCpu(options.cpus_allowed));
        }
        Ok(idlest
            .filter(|&idlest| self.is_better_for_fork(idlest, own))
            .unwrap_or(own))
    }
}
