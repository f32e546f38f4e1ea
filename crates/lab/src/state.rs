//! The state of a machine, folded from its records.
//!
//! This is all that a viewer can know of a moment: whatever a record does not
//! say is not here.

use crate::roster::Roster;
use crate::workload::WorkProbe;
use kernel_sim::{Acquired, CpuId, Event, EventKind, LockId, OutReason, SiteId, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use zswap_paths::{ObjectPlace, Probe};

/// Whether a task runs, and if not, why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RunState {
    /// It has a CPU.
    Running,
    /// It wants one.
    Runnable {
        /// It had one and lost it before it was done.
        preempted: bool,
    },
    /// It sleeps on a lock.
    Blocked,
    /// It sleeps until this time, in ns.
    Sleeping {
        /// When it wakes.
        until_ns: u64,
    },
    /// It has ended.
    Exited,
}

/// What a task is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Activity {
    /// Its own computing.
    Computing,
    /// It stores the page of this swap slot.
    Storing {
        /// The slot.
        slot: u64,
        /// The compressor is at work.
        compressing: bool,
    },
    /// It loads the page of this swap slot.
    Loading {
        /// The slot.
        slot: u64,
        /// The decompressor is at work.
        decompressing: bool,
    },
}

/// A task at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskState {
    /// Whether it runs.
    pub run: RunState,
    /// Since when, in ns.
    pub since_ns: u64,
    /// Its CPU.
    pub cpu: CpuId,
    /// It is in user mode.
    pub user_mode: bool,
    /// Preemption is off.
    pub preempt_off: bool,
    /// Virtual runtime as last accounted, in virtual ns.
    pub vruntime: i64,
    /// Virtual deadline, in virtual ns.
    pub deadline: i64,
    /// It counts in the run queue: running, runnable, or a delayed sleeper.
    pub on_rq: bool,
    /// It sleeps but is still queued to work off its debt.
    pub delayed: bool,
    /// Time up to which its running is in `vruntime`, in ns; only while it runs.
    pub accounted_ns: u64,
    /// The source line it last asked the kernel from.
    pub site: SiteId,
    /// What it is about.
    pub activity: Activity,
    /// The lock it has queued on.
    pub waits_for: Option<LockId>,
    /// Since when it has queued, in ns.
    pub waits_since_ns: u64,
    /// The lock it spins on.
    pub spins_on: Option<LockId>,
    /// Start of its timed read in progress, in ns.
    pub read_since_ns: Option<u64>,
}

/// A CPU at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CpuState {
    /// The task it runs.
    pub curr: Option<TaskId>,
    /// Since when, in ns.
    pub since_ns: u64,
    /// End of the context switch that brought the task in, in ns.
    pub switched_ns: u64,
    /// A full request to reschedule is pending.
    pub need_resched: bool,
    /// A lazy request to reschedule is pending.
    pub need_resched_lazy: bool,
}

/// A lock at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockState {
    /// Who owns it, or is about to pick it up.
    pub owner: Option<TaskId>,
    /// Since when, in ns.
    pub since_ns: u64,
    /// How it came to its owner.
    pub how: Acquired,
    /// It was handed to the owner, who has not run since.
    pub handed_over: bool,
    /// Who waits, first come first.
    pub queue: VecDeque<TaskId>,
    /// The first waiter demands to be handed the lock.
    pub handoff_wanted: bool,
}

/// A zspage at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ZspageState {
    /// One bit per object: set when it is in use.
    pub used: Vec<u64>,
}

impl ZspageState {
    /// Whether object number `object` is in use.
    #[must_use]
    pub fn is_used(&self, object: u16) -> bool {
        let (word, bit) = (usize::from(object / 64), object % 64);
        self.used.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// Objects in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.used.iter().map(|word| word.count_ones()).sum()
    }

    fn set(&mut self, object: u16, used: bool) {
        let (word, bit) = (usize::from(object / 64), object % 64);
        if self.used.len() <= word {
            self.used.resize(word + 1, 0);
        }
        if used {
            self.used[word] |= 1 << bit;
        } else {
            self.used[word] &= !(1 << bit);
        }
    }
}

/// A machine at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MachineState {
    /// Time of the last record, in ns.
    pub at_ns: u64,
    /// The CPUs.
    pub cpus: Vec<CpuState>,
    /// The tasks.
    pub tasks: Vec<TaskState>,
    /// The locks.
    pub locks: Vec<LockState>,
    /// The zspages that hold objects, in the order of class and number. There
    /// are some dozens: a list does, and copying it is what a player does most.
    pub zspages: Vec<((u8, u32), ZspageState)>,
    /// One bit per swap slot: set when its page is in zswap.
    pub stored: Vec<u64>,
    /// Pages in zswap.
    pub stored_pages: u64,
}

impl MachineState {
    /// The machine before its first record.
    #[must_use]
    pub fn new(roster: &Roster) -> MachineState {
        let task = TaskState {
            run: RunState::Runnable { preempted: false },
            since_ns: 0,
            cpu: CpuId(0),
            user_mode: true,
            preempt_off: false,
            vruntime: 0,
            deadline: 0,
            on_rq: false,
            delayed: false,
            accounted_ns: 0,
            site: SiteId(0),
            activity: Activity::Computing,
            waits_for: None,
            waits_since_ns: 0,
            spins_on: None,
            read_since_ns: None,
        };
        let cpu = CpuState {
            curr: None,
            since_ns: 0,
            switched_ns: 0,
            need_resched: false,
            need_resched_lazy: false,
        };
        let lock = LockState {
            owner: None,
            since_ns: 0,
            how: Acquired::Fast,
            handed_over: false,
            queue: VecDeque::new(),
            handoff_wanted: false,
        };
        let words = usize::try_from(roster.slots.div_ceil(64)).unwrap_or(0);
        MachineState {
            at_ns: 0,
            cpus: vec![cpu; usize::from(roster.cpus)],
            tasks: vec![task; roster.tasks.len()],
            locks: vec![lock; roster.locks.len()],
            zspages: Vec::new(),
            stored: vec![0; words],
            stored_pages: 0,
        }
    }

    /// A task.
    #[must_use]
    pub fn task(&self, task: TaskId) -> &TaskState {
        &self.tasks[task.index()]
    }

    /// A lock.
    #[must_use]
    pub fn lock(&self, lock: LockId) -> &LockState {
        &self.locks[lock.index()]
    }

    /// Whether the page of a swap slot is in zswap.
    #[must_use]
    pub fn is_stored(&self, slot: u64) -> bool {
        let word = usize::try_from(slot / 64).ok();
        let word = word.and_then(|word| self.stored.get(word));
        word.is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Goes on by one record.
    pub fn apply(&mut self, event: &Event) {
        self.at_ns = event.at_ns;
        if event.task == TaskId::NONE {
            self.apply_to_cpu(event);
            return;
        }
        let task = &mut self.tasks[event.task.index()];
        task.cpu = event.cpu;
        task.site = event.site;
        match event.kind {
            EventKind::Probe => self.apply_probe(event),
            EventKind::LockAcquire
            | EventKind::ReadAcquire
            | EventKind::LockWait
            | EventKind::LockSpin
            | EventKind::LockSpinEnd
            | EventKind::LockHandoffWanted
            | EventKind::LockRelease => self.apply_to_lock(event),
            EventKind::SwitchIn | EventKind::SwitchOut | EventKind::Repick => {
                self.apply_switch(event);
            }
            EventKind::NeedResched | EventKind::Tick | EventKind::Hrtick | EventKind::Idle => {
                self.apply_to_cpu(event);
            }
            _ => self.apply_to_task(event),
        }
    }

    fn apply_to_cpu(&mut self, event: &Event) {
        let cpu = &mut self.cpus[event.cpu.index()];
        match event.kind {
            EventKind::NeedResched if event.aux == 0 => cpu.need_resched_lazy = true,
            EventKind::NeedResched => cpu.need_resched = true,
            EventKind::Idle => {
                cpu.curr = None;
                cpu.since_ns = event.at_ns;
                cpu.need_resched = false;
                cpu.need_resched_lazy = false;
            }
            _ => {}
        }
    }

    fn apply_switch(&mut self, event: &Event) {
        let cpu = &mut self.cpus[event.cpu.index()];
        let task = &mut self.tasks[event.task.index()];
        cpu.need_resched = false;
        cpu.need_resched_lazy = false;
        match event.kind {
            EventKind::SwitchIn => {
                cpu.curr = Some(event.task);
                cpu.since_ns = event.at_ns;
                cpu.switched_ns = event.at_ns + event.arg;
                task.run = RunState::Running;
                task.since_ns = event.at_ns;
                task.accounted_ns = event.at_ns;
            }
            EventKind::SwitchOut => {
                cpu.curr = None;
                task.since_ns = event.at_ns;
                task.run = match (OutReason::from_aux(event.aux), task.run) {
                    (OutReason::Preempted, _) => RunState::Runnable { preempted: true },
                    (OutReason::Blocked, _) => RunState::Blocked,
                    (OutReason::Exited, _) => RunState::Exited,
                    // The record of going to sleep came first and said until when.
                    (OutReason::Sleeping, run) => run,
                };
                if !matches!(task.run, RunState::Runnable { .. }) {
                    task.on_rq = task.delayed;
                }
            }
            _ => {}
        }
    }

    fn apply_to_task(&mut self, event: &Event) {
        let task = &mut self.tasks[event.task.index()];
        match event.kind {
            EventKind::Spawn => task.on_rq = true,
            EventKind::Wake => {
                task.run = RunState::Runnable { preempted: false };
                task.since_ns = event.at_ns;
                task.on_rq = true;
                task.delayed = false;
            }
            EventKind::DelayDequeue => task.delayed = true,
            EventKind::FinishDequeue => {
                task.delayed = false;
                task.on_rq = false;
            }
            EventKind::Mode => task.user_mode = event.aux == 0,
            EventKind::Vruntime => {
                task.vruntime = event.arg.cast_signed();
                task.accounted_ns = event.at_ns;
            }
            EventKind::Deadline => task.deadline = event.arg.cast_signed(),
            EventKind::Sleep => {
                task.run = RunState::Sleeping {
                    until_ns: event.arg,
                };
            }
            EventKind::PreemptOff => task.preempt_off = true,
            EventKind::PreemptOn => task.preempt_off = false,
            _ => {}
        }
    }

    fn apply_to_lock(&mut self, event: &Event) {
        let number = LockId(u16::try_from(event.arg).unwrap_or(u16::MAX));
        let Some(lock) = self.locks.get_mut(number.index()) else {
            return;
        };
        let task = &mut self.tasks[event.task.index()];
        match event.kind {
            EventKind::LockAcquire => {
                lock.owner = Some(event.task);
                lock.since_ns = event.at_ns;
                lock.how = Acquired::from_aux(event.aux);
                lock.handed_over = false;
                lock.queue.retain(|&waiter| waiter != event.task);
                task.waits_for = None;
                task.spins_on = None;
            }
            EventKind::ReadAcquire => {
                lock.queue.retain(|&waiter| waiter != event.task);
                task.waits_for = None;
                task.spins_on = None;
            }
            EventKind::LockWait => {
                lock.queue.push_back(event.task);
                task.waits_for = Some(number);
                task.waits_since_ns = event.at_ns;
            }
            EventKind::LockSpin => task.spins_on = Some(number),
            EventKind::LockSpinEnd => task.spins_on = None,
            EventKind::LockHandoffWanted => lock.handoff_wanted = true,
            EventKind::LockRelease => {
                lock.handed_over = event.aux == 1;
                lock.owner = lock.queue.front().copied().filter(|_| event.aux == 1);
                lock.since_ns = event.at_ns;
                lock.handoff_wanted = false;
            }
            _ => {}
        }
    }

    fn apply_probe(&mut self, event: &Event) {
        if let Some(probe) = Probe::from_code(event.aux) {
            self.apply_path_probe(event, probe);
        } else if let Some(probe) = WorkProbe::from_code(event.aux) {
            let task = &mut self.tasks[event.task.index()];
            task.read_since_ns = match probe {
                WorkProbe::ReadBegin => Some(event.at_ns),
                WorkProbe::ReadEnd => None,
            };
        }
    }

    fn apply_path_probe(&mut self, event: &Event, probe: Probe) {
        let task = &mut self.tasks[event.task.index()];
        match probe {
            Probe::StoreBegin => task.activity = storing(event.arg, false),
            Probe::CompressBegin => task.activity = storing(event.arg, true),
            Probe::LoadBegin => task.activity = loading(event.arg, false),
            Probe::DecompressBegin => task.activity = loading(event.arg, true),
            Probe::CompressEnd | Probe::DecompressEnd => match &mut task.activity {
                Activity::Storing { compressing, .. } => *compressing = false,
                Activity::Loading { decompressing, .. } => *decompressing = false,
                Activity::Computing => {}
            },
            Probe::StoreEnd | Probe::StoreRejected | Probe::LoadEnd => {
                task.activity = Activity::Computing;
            }
            Probe::ObjectAlloc | Probe::ObjectFree => {
                self.apply_object(
                    ObjectPlace::from_arg(event.arg),
                    probe == Probe::ObjectAlloc,
                );
            }
            Probe::IndexStore => self.set_stored(event.arg, true),
            Probe::IndexErase => self.set_stored(event.arg, false),
            Probe::ZeromapSet
            | Probe::ZspageHold
            | Probe::ZspageLetGo
            | Probe::WritebackBegin
            | Probe::WritebackEnd
            | Probe::WritebackFailed
            | Probe::DeviceRead
            | Probe::DeviceWrite => {}
        }
    }

    fn apply_object(&mut self, place: ObjectPlace, used: bool) {
        let key = (place.class, place.zspage);
        let found = self.zspages.binary_search_by_key(&key, |&(key, _)| key);
        let index = found.unwrap_or_else(|index| {
            self.zspages.insert(index, (key, ZspageState::default()));
            index
        });
        let zspage = &mut self.zspages[index].1;
        zspage.set(place.object, used);
        if zspage.in_use() == 0 {
            self.zspages.remove(index);
        }
    }

    fn set_stored(&mut self, slot: u64, stored: bool) {
        let was = self.is_stored(slot);
        let word = usize::try_from(slot / 64).ok();
        let Some(word) = word.and_then(|word| self.stored.get_mut(word)) else {
            return;
        };
        if was != stored {
            *word ^= 1 << (slot % 64);
            if stored {
                self.stored_pages += 1;
            } else {
                self.stored_pages -= 1;
            }
        }
    }
}

fn storing(slot: u64, compressing: bool) -> Activity {
    Activity::Storing { slot, compressing }
}

fn loading(slot: u64, decompressing: bool) -> Activity {
    Activity::Loading {
        slot,
        decompressing,
    }
}
