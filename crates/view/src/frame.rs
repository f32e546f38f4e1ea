//! What there is to see at a moment, in the viewer's words.
//!
//! A frame is worked out from the [`MachineState`] alone. It knows nothing of
//! shapes and places: that is the scene's.
//!
//! Invariants:
//! 1. At most one alarm: of the locks that somebody waits for and whose owner
//!    is not running, the one whose waiter has the largest weight.
//! 2. A run queue is in order of virtual deadline, the running task not in it.
//! 3. Between two records only the running task's virtual runtime moves on; it
//!    is carried forward to the time of the frame.

use crate::few::sort_few;
use crate::words::in_words_ns;
use serde::{Deserialize, Serialize};
use zswap_lab::{
    Activity, CpuId, LockId, LockKind, MachineState, Role, Roster, RunState, TaskId, TaskState,
    size_class,
};

/// A moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Its time, in virtual ns.
    pub at_ns: u64,
    /// The CPUs.
    pub cpus: Vec<CpuFrame>,
    /// The tasks, by number.
    pub tasks: Vec<TaskFrame>,
    /// The locks, by number.
    pub locks: Vec<LockFrame>,
    /// Compressed memory.
    pub pool: PoolFrame,
    /// What the eye must find first, if there is such a thing.
    pub alarm: Option<Alarm>,
}

/// What a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// It runs a task in user mode.
    User,
    /// It runs a task in the kernel.
    Kernel,
    /// It compresses a page, with preemption off.
    Compressing,
    /// It decompresses a page, with preemption off.
    Decompressing,
    /// Its task spins on a lock, with preemption off.
    Spinning,
    /// It is between two tasks.
    Switching,
    /// It has nothing to run.
    Idle,
}

impl Mode {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Mode::User => "user mode",
            Mode::Kernel => "kernel mode",
            Mode::Compressing => "compressing",
            Mode::Decompressing => "decompressing",
            Mode::Spinning => "spinning on a lock",
            Mode::Switching => "switching tasks",
            Mode::Idle => "idle",
        }
    }
}

/// A pending request to reschedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Resched {
    /// Honoured on return to user mode, or made full by the next tick.
    Lazy,
    /// Honoured as soon as preemption is possible.
    Full,
}

/// A CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CpuFrame {
    /// Which.
    pub cpu: CpuId,
    /// The task it runs.
    pub running: Option<TaskId>,
    /// What it does.
    pub mode: Mode,
    /// The same in words, with the task's nice value.
    pub words: String,
    /// How long the task has been running in this stretch, in ns.
    pub slice_used_ns: u64,
    /// Length of a slice, in ns.
    pub slice_ns: u64,
    /// A pending request to reschedule.
    pub resched: Option<Resched>,
    /// The queued tasks in order of virtual deadline; without the running one,
    /// with delayed sleepers.
    pub run_queue: Vec<TaskId>,
}

/// What a task does, or why it does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// It runs.
    Running,
    /// It lost its CPU before it was done.
    Preempted,
    /// It is ready and has not run since it was woken.
    Runnable,
    /// It sleeps on a lock.
    WaitsForLock,
    /// It sleeps on a lock and still works off its debt in the run queue.
    Delayed,
    /// It sleeps until a time.
    Asleep,
    /// It has ended.
    Ended,
}

/// A line of the source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourceLine {
    /// The file, as records name it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskFrame {
    /// Which.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// One or two characters for its token.
    pub label: String,
    /// What it is for.
    pub role: Role,
    /// Nice value.
    pub nice: i8,
    /// Load weight; 1024 is nice 0.
    pub weight: u32,
    /// What it does.
    pub status: Status,
    /// The same in words.
    pub words: String,
    /// Since when, in ns.
    pub since_ns: u64,
    /// It has had no more than its share; only for queued tasks.
    pub eligible: bool,
    /// What it is owed, `V - v`, in virtual ns; negative when it owes. Only for
    /// queued tasks.
    pub lag_ns: i64,
    /// Virtual runtime, in virtual ns.
    pub vruntime_ns: i64,
    /// Virtual deadline, in virtual ns.
    pub deadline_ns: i64,
    /// The lock it waits for.
    pub waits_for: Option<LockId>,
    /// The locks it owns.
    pub holds: Vec<LockId>,
    /// The source line it is at.
    pub line: Option<SourceLine>,
    /// It owns a lock that somebody waits for, and is not running.
    pub alarm: bool,
}

/// What a waiter of a lock does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WaiterStatus {
    /// It sleeps.
    Asleep,
    /// It was woken and has not run yet, or tries just now.
    Woken,
    /// It was woken, found the lock taken, and sleeps again; it will be handed
    /// the lock.
    WokenInVain,
}

/// A waiter of a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// Who.
    pub task: TaskId,
    /// Since when, in ns.
    pub since_ns: u64,
    /// What it does.
    pub status: WaiterStatus,
}

/// A lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockFrame {
    /// Which.
    pub id: LockId,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: LockKind,
    /// Who owns it.
    pub owner: Option<TaskId>,
    /// Since when it has been owned or free, in ns.
    pub owner_since_ns: u64,
    /// It was handed to the owner, who has not picked it up yet.
    pub handed_over: bool,
    /// The first waiter demands to be handed it.
    pub handoff_wanted: bool,
    /// Who waits, first come first.
    pub queue: Vec<Waiter>,
    /// Somebody waits for it and its owner is not running.
    pub alarm: bool,
}

/// A zspage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ZspageFrame {
    /// Its size class.
    pub class: u8,
    /// Bytes of an object of the class.
    pub class_bytes: u32,
    /// Pages of memory that a zspage of the class is made of.
    pub pages: u32,
    /// Its number in the pool.
    pub number: u32,
    /// For each object, whether it is in use.
    pub used: Vec<bool>,
}

/// Compressed memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolFrame {
    /// Pages stored in it.
    pub stored_pages: u64,
    /// Its zspages, by class and number.
    pub zspages: Vec<ZspageFrame>,
    /// Slots of the swap device.
    pub slots: u64,
}

/// A lock that somebody waits for and whose owner is not running.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Alarm {
    /// The lock.
    pub lock: LockId,
    /// Its owner.
    pub owner: TaskId,
    /// Of its waiters, the one with the largest weight.
    pub waiter: TaskId,
    /// Since when the waiter has waited, in ns.
    pub since_ns: u64,
    /// In words.
    pub words: String,
}

/// The frame of a state. `at_ns` is the state's time or later, before the next
/// record.
#[must_use]
pub fn frame(roster: &Roster, state: &MachineState, at_ns: u64) -> Frame {
    let queue = Queue::of(roster, state, at_ns);
    let locks: Vec<LockFrame> = (0..state.locks.len())
        .map(|number| lock_frame(roster, state, LockId(number as u16)))
        .collect();
    let alarm = find_alarm(roster, state, &locks);
    let tasks: Vec<TaskFrame> = (0..state.tasks.len())
        .map(|number| task_frame(roster, state, &queue, &locks, TaskId(number as u16)))
        .collect();
    let cpus = (0..state.cpus.len())
        .map(|number| cpu_frame(roster, state, &queue, CpuId(number as u8), at_ns))
        .collect();
    Frame {
        at_ns,
        cpus,
        tasks,
        locks,
        pool: pool_frame(roster, state),
        alarm,
    }
}

/// The arithmetic of a run queue.
pub(crate) struct Queue {
    /// Virtual runtimes at the time of the frame, by task.
    vruntimes: Vec<i64>,
    /// The average `V` of the queued tasks of each CPU.
    averages: Vec<i64>,
}

impl Queue {
    pub(crate) fn of(roster: &Roster, state: &MachineState, at_ns: u64) -> Queue {
        let vruntime = |(task, info): (&TaskState, &zswap_lab::TaskInfo)| match task.run {
            RunState::Running => {
                let ran_ns = at_ns.saturating_sub(task.accounted_ns);
                let ran_ns = i64::try_from(ran_ns).unwrap_or(i64::MAX);
                task.vruntime + ran_ns * NICE_0_WEIGHT / i64::from(info.weight.max(1))
            }
            _ => task.vruntime,
        };
        let tasks = || state.tasks.iter().zip(&roster.tasks);
        let vruntimes: Vec<i64> = tasks().map(vruntime).collect();
        let average_of = |cpu: usize| {
            let queued = tasks()
                .zip(&vruntimes)
                .filter(|((task, _), _)| task.on_rq && task.cpu.index() == cpu);
            let (weighted, weight) = queued.fold((0_i128, 0_i128), |sums, ((_, info), v)| {
                let weight = i128::from(info.weight);
                (sums.0 + weight * i128::from(*v), sums.1 + weight)
            });
            i64::try_from(weighted.div_euclid(weight.max(1))).unwrap_or(0)
        };
        let averages = (0..state.cpus.len()).map(average_of).collect();
        Queue {
            vruntimes,
            averages,
        }
    }

    /// `V - v` of a queued task.
    pub(crate) fn lag_ns(&self, state: &MachineState, task: TaskId) -> i64 {
        let cpu = state.task(task).cpu;
        self.averages[cpu.index()] - self.vruntimes[task.index()]
    }
}

/// One nanosecond at this weight is one virtual nanosecond.
const NICE_0_WEIGHT: i64 = 1024;

fn cpu_frame(
    roster: &Roster,
    state: &MachineState,
    queue: &Queue,
    cpu: CpuId,
    at_ns: u64,
) -> CpuFrame {
    let now = &state.cpus[cpu.index()];
    let mode = cpu_mode(state, cpu, at_ns);
    let words = match now.curr {
        Some(task) => {
            let nice = crate::words::nice_in_words(roster.tasks[task.index()].nice);
            format!("{}, nice {nice}", mode.words())
        }
        None => mode.words().to_owned(),
    };
    let mut run_queue: Vec<TaskId> = (0..state.tasks.len())
        .map(|number| TaskId(number as u16))
        .filter(|&task| {
            let queued = state.task(task);
            queued.on_rq && queued.cpu == cpu && now.curr != Some(task)
        })
        .collect();
    sort_few(&mut run_queue, |&task| {
        (state.task(task).deadline, queue.vruntimes[task.index()])
    });
    CpuFrame {
        cpu,
        running: now.curr,
        mode,
        words,
        slice_used_ns: now.curr.map_or(0, |_| at_ns.saturating_sub(now.since_ns)),
        slice_ns: roster.base_slice_ns,
        resched: match (now.need_resched, now.need_resched_lazy) {
            (true, _) => Some(Resched::Full),
            (false, true) => Some(Resched::Lazy),
            (false, false) => None,
        },
        run_queue,
    }
}

fn cpu_mode(state: &MachineState, cpu: CpuId, at_ns: u64) -> Mode {
    let now = &state.cpus[cpu.index()];
    let Some(curr) = now.curr else {
        return Mode::Idle;
    };
    if at_ns < now.switched_ns {
        return Mode::Switching;
    }
    let task = state.task(curr);
    if task.spins_on.is_some() {
        return Mode::Spinning;
    }
    match task.activity {
        Activity::Storing {
            compressing: true, ..
        } => Mode::Compressing,
        Activity::Loading {
            decompressing: true,
            ..
        } => Mode::Decompressing,
        _ if task.user_mode => Mode::User,
        _ => Mode::Kernel,
    }
}

fn lock_frame(roster: &Roster, state: &MachineState, id: LockId) -> LockFrame {
    let lock = state.lock(id);
    let info = &roster.locks[id.index()];
    let waiters = lock.queue.iter().filter(|&&task| Some(task) != lock.owner);
    let queue: Vec<Waiter> = waiters
        .enumerate()
        .map(|(place, &task)| Waiter {
            task,
            since_ns: state.task(task).waits_since_ns,
            status: match state.task(task).run {
                RunState::Blocked if place == 0 && lock.handoff_wanted => WaiterStatus::WokenInVain,
                RunState::Blocked => WaiterStatus::Asleep,
                _ => WaiterStatus::Woken,
            },
        })
        .collect();
    let owner_runs = lock
        .owner
        .is_none_or(|owner| state.task(owner).run == RunState::Running);
    LockFrame {
        id,
        name: info.name.clone(),
        kind: info.kind,
        owner: lock.owner,
        owner_since_ns: lock.since_ns,
        handed_over: lock.handed_over,
        handoff_wanted: lock.handoff_wanted,
        alarm: !owner_runs && !queue.is_empty(),
        queue,
    }
}

fn find_alarm(roster: &Roster, state: &MachineState, locks: &[LockFrame]) -> Option<Alarm> {
    let weight = |task: TaskId| roster.tasks[task.index()].weight;
    let alarms = locks.iter().filter(|lock| lock.alarm).filter_map(|lock| {
        // Of equal weights the first in the queue.
        let waiter = lock.queue.iter().rev().max_by_key(|w| weight(w.task))?;
        Some((lock, lock.owner?, waiter))
    });
    let (lock, owner, waiter) = alarms.max_by_key(|(_, _, waiter)| weight(waiter.task))?;
    let name = |task: TaskId| &roster.tasks[task.index()].name;
    let cpu = &state.cpus[state.task(owner).cpu.index()];
    let runs_instead = match cpu.curr {
        Some(curr) => format!(", which waits for {}", name(curr)),
        None => String::new(),
    };
    Some(Alarm {
        lock: lock.id,
        owner,
        waiter: waiter.task,
        since_ns: waiter.since_ns,
        words: format!(
            "{} waits for {}{runs_instead}",
            name(waiter.task),
            name(owner)
        ),
    })
}

fn task_frame(
    roster: &Roster,
    state: &MachineState,
    queue: &Queue,
    locks: &[LockFrame],
    id: TaskId,
) -> TaskFrame {
    let info = &roster.tasks[id.index()];
    let task = state.task(id);
    let status = status(task);
    let owned = || locks.iter().filter(move |lock| lock.owner == Some(id));
    let lag_ns = if task.on_rq {
        queue.lag_ns(state, id)
    } else {
        0
    };
    let site = &roster.sites[usize::from(task.site.0).min(roster.sites.len() - 1)];
    TaskFrame {
        id,
        name: info.name.clone(),
        label: label(roster, info),
        role: info.role,
        nice: info.nice,
        weight: info.weight,
        status,
        words: status_in_words(roster, task, status),
        since_ns: task.since_ns,
        eligible: task.on_rq && lag_ns >= 0,
        lag_ns,
        vruntime_ns: queue.vruntimes[id.index()],
        deadline_ns: task.deadline,
        waits_for: task.waits_for,
        holds: owned().map(|lock| lock.id).collect(),
        line: (site.line > 0).then(|| SourceLine {
            file: site.file.clone(),
            line: site.line,
        }),
        alarm: owned().any(|lock| lock.alarm),
    }
}

/// The letter of the role, with the number where there are several.
fn label(roster: &Roster, info: &zswap_lab::TaskInfo) -> String {
    let letter = match info.role {
        Role::Worker => "W",
        Role::Spinner => "S",
        Role::Reader => "R",
        Role::Kthread => "K",
    };
    let of_role = roster.tasks.iter().filter(|task| task.role == info.role);
    if of_role.count() > 1 {
        format!("{letter}{}", info.number)
    } else {
        letter.to_owned()
    }
}

fn status(task: &TaskState) -> Status {
    match task.run {
        RunState::Running => Status::Running,
        RunState::Runnable { preempted: true } => Status::Preempted,
        RunState::Runnable { preempted: false } => Status::Runnable,
        RunState::Blocked if task.delayed => Status::Delayed,
        RunState::Blocked => Status::WaitsForLock,
        RunState::Sleeping { .. } => Status::Asleep,
        RunState::Exited => Status::Ended,
    }
}

fn status_in_words(roster: &Roster, task: &TaskState, status: Status) -> String {
    let lock = || {
        task.waits_for
            .map_or("a lock", |lock| roster.locks[lock.index()].name.as_str())
    };
    match status {
        Status::Running => "running".to_owned(),
        Status::Preempted => "preempted, wants to run".to_owned(),
        Status::Runnable => "woken, wants to run".to_owned(),
        Status::WaitsForLock => format!("asleep on {}", lock()),
        Status::Delayed => format!("asleep on {}, still queued", lock()),
        Status::Asleep => match task.run {
            RunState::Sleeping { until_ns } => format!("asleep until {}", in_words_ns(until_ns)),
            _ => "asleep".to_owned(),
        },
        Status::Ended => "ended".to_owned(),
    }
}

fn pool_frame(roster: &Roster, state: &MachineState) -> PoolFrame {
    let zspages = state.zspages.iter().map(|&((class, number), ref zspage)| {
        let size = size_class(class);
        ZspageFrame {
            class,
            class_bytes: size.bytes,
            pages: size.pages,
            number,
            used: (0..size.objects)
                .map(|object| zspage.is_used(object))
                .collect(),
        }
    });
    PoolFrame {
        stored_pages: state.stored_pages,
        zspages: zspages.collect(),
        slots: roster.slots,
    }
}

#[cfg(test)]
mod tests;
