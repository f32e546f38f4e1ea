//! Work that a kernel thread does later (`queue_work`).
//!
//! A workqueue has one worker, a task at nice 0, which takes the items of its
//! queue first come, first served.
//!
//! Invariants:
//! 1. An item that is pending is not queued again: `queue_work` says `false`.
//! 2. It stops being pending just before it runs. So what is queued while it
//!    runs has it run once more, and it sees everything that its queuer did
//!    before.
//! 3. An item never runs twice at the same time.
//! 4. `flush_work` returns when the item has done all that was queued before.
//! 5. An item ends without locks and with preemption on; otherwise the fault
//!    names it.
//!
//! Left out: several workers that start when one sleeps (so a workqueue here is
//! one with `max_active` 1), delayed items, cancelling, and the queue's lock.
//! Running an item allocates its future; awaiting in it does not.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let queue = machine.workqueue("zswap-shrink")?;
//! let shrink = machine.work(queue, "shrink_worker", |task| async move {
//!     task.run_kernel(50_000).await;
//! });
//! machine.spawn("store", 0, move |task| async move {
//!     assert!(task.queue_work(shrink).await);
//!     assert!(!task.queue_work(shrink).await, "it is pending already");
//!     task.flush_work(shrink).await;
//! })?;
//! machine.run_until(10_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::event::EventKind;
use crate::ids::TaskId;
use crate::kernel::Kernel;
use crate::machine::{Machine, Shared};
use crate::policy::SpawnError;
use crate::task::Task;
use crate::wakers::WakeStep;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::rc::Rc;

/// A workqueue of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workqueue(u16);

/// A work item of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Work(u16);

impl Work {
    /// The number under which records speak of it.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

type ItemFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What an item does.
type Body = Rc<dyn Fn(Task) -> ItemFuture>;

/// A workqueue as the kernel sees it.
#[derive(Debug)]
pub(crate) struct WorkqueueState {
    worker: TaskId,
    pending: VecDeque<Work>,
    /// The worker sleeps for want of work, and not in an item for a lock.
    idle: bool,
}

/// A work item as the kernel sees it.
pub(crate) struct WorkState {
    name: String,
    queue: Workqueue,
    body: Body,
    pending: bool,
    /// How often it was queued.
    queued: u64,
    /// How often it has run to its end.
    done: u64,
    /// Who waits until it has run to its end so many times.
    flushers: Vec<(TaskId, u64)>,
}

impl fmt::Debug for WorkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkState")
            .field("name", &self.name)
            .field("pending", &self.pending)
            .field("queued", &self.queued)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Kernel {
    fn work(&mut self, work: Work) -> &mut WorkState {
        &mut self.objects.works[usize::from(work.0)]
    }

    fn workqueue(&mut self, queue: Workqueue) -> &mut WorkqueueState {
        &mut self.objects.workqueues[usize::from(queue.0)]
    }

    /// `queue_work`; says whether the item was not pending, and how many wakeups
    /// had an effect. `waker` is the task that does it, or [`TaskId::NONE`].
    pub(crate) fn queue_work(&mut self, work: Work, waker: TaskId) -> (bool, u64) {
        let state = self.work(work);
        if core::mem::replace(&mut state.pending, true) {
            return (false, 0);
        }
        state.queued += 1;
        let queue = state.queue;
        let state = self.workqueue(queue);
        state.pending.push_back(work);
        let worker = state.worker;
        let idle = core::mem::take(&mut state.idle);
        (true, (idle && self.wake(worker, waker)).into())
    }

    /// The next item of a worker, which sleeps if there is none.
    fn next_work(&mut self, queue: Workqueue) -> Poll<(Work, Body)> {
        let state = self.workqueue(queue);
        let worker = state.worker;
        let Some(work) = state.pending.pop_front() else {
            state.idle = true;
            self.enter_kernel(worker);
            self.sleep_until_woken(worker);
            return Poll::Pending;
        };
        let state = self.work(work);
        state.pending = false;
        let body = Rc::clone(&state.body);
        self.emit(worker, EventKind::WorkBegin, work.0.into(), 0);
        Poll::Ready((work, body))
    }

    /// An item has run to its end; returns how many wakeups had an effect.
    fn work_done(&mut self, work: Work, worker: TaskId) -> u64 {
        self.emit(worker, EventKind::WorkEnd, work.0.into(), 0);
        let state = self.work(work);
        state.done += 1;
        let done = state.done;
        let (through, wait) = core::mem::take(&mut state.flushers)
            .into_iter()
            .partition(|&(_, until)| until <= done);
        state.flushers = wait;
        let through: Vec<(TaskId, u64)> = through;
        let woken = through.into_iter().map(|(task, _)| self.wake(task, worker));
        woken.map(u64::from).sum()
    }

    /// Whether an item has ended as it must; a fault if not.
    fn work_ended_well(&mut self, work: Work, worker: TaskId) -> bool {
        let name = &self.objects.works[usize::from(work.0)].name;
        let state = &self.tasks[worker.index()];
        let what = match state.held.first() {
            Some(&lock) => {
                let lock = &self.locks[lock.index()].name;
                format!("ends work {name} while it holds {lock}; unlock it first")
            }
            None if state.preempt_count > 0 => {
                format!("ends work {name} with preemption off; release what switched it off")
            }
            None => return true,
        };
        self.fail(worker, what);
        false
    }
}

/// The life of a worker.
async fn work_for_ever(task: Task, queue: Workqueue) {
    loop {
        let next = NextWork {
            kernel: &task.kernel,
            queue,
        };
        let (work, body) = next.await;
        body(Task::new(Rc::clone(&task.kernel), task.id())).await;
        let done = WorkDone {
            kernel: &task.kernel,
            task: task.id(),
            work,
            step: WakeStep::Start,
        };
        done.await;
    }
}

/// A worker waits for its next item.
struct NextWork<'a> {
    kernel: &'a Shared,
    queue: Workqueue,
}

impl Future for NextWork<'_> {
    type Output = (Work, Body);

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<(Work, Body)> {
        self.kernel.borrow_mut().next_work(self.queue)
    }
}

/// A worker has done an item and wakes who waits for that.
struct WorkDone<'a> {
    kernel: &'a Shared,
    task: TaskId,
    work: Work,
    step: WakeStep,
}

impl Future for WorkDone<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        let (task, work) = (self.task, self.work);
        if self.step != WakeStep::Start {
            return kernel.end_wakeups(task, &mut self.step);
        }
        if !kernel.work_ended_well(work, task) {
            return Poll::Pending;
        }
        kernel.enter_kernel(task);
        kernel.preempt_disable(task);
        let woken = kernel.work_done(work, task);
        kernel.pay_wakeups(task, &mut self.step, woken)
    }
}

impl Machine {
    /// Creates a workqueue with its worker, a task `kworker/` and the name.
    ///
    /// # Errors
    /// If there are too many tasks.
    pub fn workqueue(&mut self, name: impl Into<String>) -> Result<Workqueue, SpawnError> {
        let count = self.kernel.borrow().objects.workqueues.len();
        let queue = Workqueue(u16::try_from(count).unwrap_or(u16::MAX));
        let name = format!("kworker/{}", name.into());
        let worker = self.spawn(name, 0, |task| work_for_ever(task, queue))?;
        let state = WorkqueueState {
            worker,
            pending: VecDeque::new(),
            idle: false,
        };
        self.kernel.borrow_mut().objects.workqueues.push(state);
        Ok(queue)
    }

    /// Creates a work item that its workqueue's worker does when it is queued.
    pub fn work<F>(
        &mut self,
        queue: Workqueue,
        name: impl Into<String>,
        body: impl Fn(Task) -> F + 'static,
    ) -> Work
    where
        F: Future<Output = ()> + 'static,
    {
        let works = &mut self.kernel.borrow_mut().objects.works;
        let work = Work(u16::try_from(works.len()).unwrap_or(u16::MAX));
        works.push(WorkState {
            name: name.into(),
            queue,
            body: Rc::new(move |task| Box::pin(body(task))),
            pending: false,
            queued: 0,
            done: 0,
            flushers: Vec::new(),
        });
        work
    }
}

impl Task {
    /// Has an item done; says whether it was not pending already.
    #[track_caller]
    pub fn queue_work(&self, work: Work) -> QueueWork<'_> {
        QueueWork {
            kernel: &self.kernel,
            task: self.id(),
            work,
            place: Location::caller(),
            newly: false,
            step: WakeStep::Start,
        }
    }

    /// Waits until an item has done all that was queued up to now.
    #[track_caller]
    pub fn flush_work(&self, work: Work) -> FlushWork<'_> {
        FlushWork {
            kernel: &self.kernel,
            task: self.id(),
            work,
            place: Location::caller(),
            until: None,
        }
    }

    /// Whether an item is queued and has not begun.
    #[must_use]
    pub fn work_pending(&self, work: Work) -> bool {
        self.kernel.borrow_mut().work(work).pending
    }
}

/// Queues an item; see [`Task::queue_work`].
#[must_use = "futures do nothing unless awaited"]
pub struct QueueWork<'a> {
    kernel: &'a Shared,
    task: TaskId,
    work: Work,
    place: &'static Location<'static>,
    newly: bool,
    step: WakeStep,
}

impl QueueWork<'_> {
    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let task = self.task;
        kernel.at(task, self.place);
        kernel.enter_kernel(task);
        kernel.preempt_disable(task);
        let (newly, woken) = kernel.queue_work(self.work, task);
        self.newly = newly;
        kernel.pay_wakeups(task, &mut self.step, woken)
    }
}

impl Future for QueueWork<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<bool> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        let through = match self.step {
            WakeStep::Start => self.start(kernel),
            WakeStep::Woke | WakeStep::Done => kernel.end_wakeups(self.task, &mut self.step),
        };
        through.map(|()| self.newly)
    }
}

/// Waits for an item; see [`Task::flush_work`].
#[must_use = "futures do nothing unless awaited"]
pub struct FlushWork<'a> {
    kernel: &'a Shared,
    task: TaskId,
    work: Work,
    place: &'static Location<'static>,
    /// How often the item must have run to its end.
    until: Option<u64>,
}

impl FlushWork<'_> {
    fn start(&mut self, kernel: &mut Kernel) -> Poll<()> {
        let (task, work) = (self.task, self.work);
        kernel.at(task, self.place);
        kernel.enter_kernel(task);
        let does = |kernel: &Kernel| {
            let name = &kernel.objects.works[usize::from(work.0)].name;
            format!("flushes work {name}")
        };
        if !kernel.might_sleep(task, does) {
            return Poll::Pending;
        }
        let queue = kernel.work(work).queue;
        if kernel.workqueue(queue).worker == task {
            let what = format!(
                "{} from its own worker; it would wait for itself",
                does(kernel)
            );
            kernel.fail(task, what);
            return Poll::Pending;
        }
        let state = kernel.work(work);
        let until = state.queued;
        self.until = Some(until);
        if state.done >= until {
            return Poll::Ready(());
        }
        state.flushers.push((task, until));
        kernel.emit(task, EventKind::WorkFlush, work.0.into(), 0);
        kernel.sleep_until_woken(task);
        Poll::Pending
    }
}

impl Future for FlushWork<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        match self.until {
            None => self.start(kernel),
            // It was woken because the item has.
            Some(_) => Poll::Ready(()),
        }
    }
}
