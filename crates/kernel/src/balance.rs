//! Load balancing over one domain of CPUs that each are a group of their own.
//!
//! Rules: scheduler reference, verified, section 2, by step number. All
//! arithmetic is in integers; capacity is 1024 per CPU and load in weights.
//!
//! Invariants:
//! 1. A running task is moved only by an active balance, which displaces it
//!    first; a task keeps its lag and its relative deadline.
//! 2. Tasks are taken from the tail of the source's list: that which was neither
//!    queued nor switched in for the longest time.
//!
//! Left out: SMT and several caches (domains above or below this one), capacities
//! that differ, the time that a periodic pass takes, a second look at the other
//! CPUs when everything on the busiest one is pinned. A real-time task's running
//! counts as use of its CPU and not as lost capacity.

use crate::cpu::BalanceState;
use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::kernel::Kernel;

/// How much busier another CPU must be, in percent.
pub(crate) const IMBALANCE_PCT: u32 = 117;
const PCT: u64 = IMBALANCE_PCT as u64;
const CAPACITY: u64 = 1024;
/// Looks at tasks of the source in one pass.
const LOOKS_MAX: usize = 32;
/// `cache_nice_tries` of a domain that shares a cache.
const CACHE_NICE_TRIES: u32 = 1;
/// `busy_factor`: a busy CPU balances that much less often.
const BUSY_FACTOR: u64 = 16;
/// `MAX_PINNED_INTERVAL`: how far the interval grows while everything that
/// should move is pinned.
const PINNED_INTERVAL_MS: u64 = 512;
/// `sysctl_sched_migration_cost`: a task that ran this recently is cache-hot.
const MIGRATION_COST_NS: u64 = 500_000;
/// A fork leaves its CPU only for a load that is lower by more than this: 17 %
/// of a task of nice 0.
const FORK_MARGIN: u64 = 174;
/// Cost of a newidle pass: fixed, and for each CPU looked at (step 14).
const NEWIDLE_NS: u64 = 2_000;
const NEWIDLE_PER_CPU_NS: u64 = 300;

/// On whose behalf a pass is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Idle,
    Busy,
    NewlyIdle,
}

/// How loaded a CPU is, in the order of the kernel's group types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum GroupType {
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// Statistics of a CPU (step 6).
#[derive(Clone, Copy, Debug)]
struct Group {
    cpu: CpuId,
    kind: GroupType,
    load: u64,
    util: u64,
    /// Queued tasks, delayed sleepers included.
    nr: u64,
    /// Queued tasks without delayed sleepers.
    nr_runnable: u64,
}

impl Group {
    /// Whether its only task weighs more than is to be moved (step 10). With
    /// CPUs as groups the busiest group is the run queue to take from.
    fn is_too_heavy(&self, imbalance: Imbalance) -> bool {
        match imbalance {
            Imbalance::Load(load) => self.nr_runnable == 1 && self.load > load,
            Imbalance::Tasks(_) => false,
        }
    }

    /// `avg_load`: only overloaded groups have one.
    fn avg_load(&self) -> u64 {
        match self.kind {
            GroupType::Overloaded => self.load,
            _ => 0,
        }
    }
}

/// What is to be moved, and how much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Imbalance {
    Tasks(u64),
    Load(u64),
}

/// What a pass came to (step 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Balanced,
    /// Something should have moved, but none of it may run here.
    AllPinned,
    Unbalanced {
        moved: u64,
    },
}

impl Kernel {
    /// The part of the tick that decides whether to balance (step 2).
    pub(crate) fn tick_balance(&mut self, cpu: CpuId) {
        if self.config.cpus == 1 {
            return;
        }
        let now_ns = self.signed_now_ns();
        if now_ns >= self.cpus[cpu.index()].balance.next_balance_ns {
            let idle = self.is_idle(cpu);
            self.cpu(cpu).balance_pending = Some(idle);
        }
        self.nohz_kick(cpu);
    }

    /// Runs the balancing softirq of a CPU if it is raised.
    pub(crate) fn run_softirq(&mut self, cpu: CpuId) {
        if let Some(idle) = self.cpu(cpu).balance_pending.take() {
            self.update_curr(cpu);
            self.rebalance(cpu, if idle { Kind::Idle } else { Kind::Busy });
        }
    }

    fn signed_now_ns(&self) -> i64 {
        i64::try_from(self.now_ns).unwrap_or(i64::MAX)
    }

    /// A periodic pass, if its time has come (step 3).
    fn rebalance(&mut self, cpu: CpuId, kind: Kind) {
        let now_ns = self.signed_now_ns();
        let busy = kind == Kind::Busy;
        let due = self.cpus[cpu.index()].balance.last_balance_ns + self.interval_ns(cpu, busy);
        if now_ns >= due {
            let outcome = self.load_balance(cpu, kind);
            self.note_outcome(cpu, kind, outcome);
            self.cpu(cpu).balance.last_balance_ns = now_ns;
        }
        let busy = !self.is_idle(cpu);
        let interval_ns = self.interval_ns(cpu, busy);
        let balance = &mut self.cpu(cpu).balance;
        balance.next_balance_ns = balance.last_balance_ns + interval_ns;
    }

    /// The interval between passes (step 4).
    fn interval_ns(&self, cpu: CpuId, busy: bool) -> i64 {
        let hz = u64::from(self.config.hz);
        let ms = self.cpus[cpu.index()].balance.interval_ms * if busy { BUSY_FACTOR } else { 1 };
        let jiffies = (ms * hz).div_ceil(1000) - u64::from(busy);
        let jiffies = jiffies.clamp(1, (hz * u64::from(self.config.cpus) / 10).max(1));
        i64::try_from(jiffies * self.config.tick_ns()).unwrap_or(i64::MAX)
    }

    /// What a pass changes in the rhythm of the next ones (step 5.6).
    fn note_outcome(&mut self, cpu: CpuId, kind: Kind, outcome: Outcome) {
        let cpus = u64::from(self.config.cpus);
        let balance: &mut BalanceState = &mut self.cpu(cpu).balance;
        match outcome {
            Outcome::Balanced | Outcome::AllPinned => {
                balance.nr_balance_failed = 0;
                let longest_ms = match outcome {
                    Outcome::AllPinned => PINNED_INTERVAL_MS,
                    _ => 2 * cpus,
                };
                if kind != Kind::NewlyIdle && balance.interval_ms < longest_ms {
                    balance.interval_ms *= 2;
                }
            }
            Outcome::Unbalanced { moved } => {
                balance.interval_ms = cpus;
                if moved > 0 {
                    balance.nr_balance_failed = 0;
                } else if kind != Kind::NewlyIdle {
                    balance.nr_balance_failed += 1;
                }
            }
        }
    }

    /// One pass for `dst` (step 5).
    fn load_balance(&mut self, dst: CpuId, kind: Kind) -> Outcome {
        let groups: Vec<Group> = self.cpu_ids().map(|cpu| self.group(cpu)).collect();
        self.overloaded = groups.iter().any(|group| group.nr > 1);
        if kind != Kind::NewlyIdle {
            self.update_idle_scan(&groups);
        }
        let Some((imbalance, busiest)) = find_imbalance(&groups, dst, kind) else {
            return Outcome::Balanced;
        };
        if busiest.is_too_heavy(imbalance) {
            return Outcome::Balanced;
        }
        let src = busiest.cpu;
        let mut moved = 0;
        if self.nr_running(src) > 1 {
            if self.all_pinned(src, dst) {
                return Outcome::AllPinned;
            }
            moved = self.move_tasks(src, dst, kind, imbalance);
        }
        if moved == 0 && matches!(imbalance, Imbalance::Tasks(_)) {
            self.balance_actively(src, dst, kind);
        }
        Outcome::Unbalanced { moved }
    }

    /// A pass that moved nothing wants a running task pushed, if it is one too
    /// many of them (step 12).
    fn balance_actively(&mut self, src: CpuId, dst: CpuId, kind: Kind) {
        // A newidle pass does not count itself.
        let itself = u32::from(kind != Kind::NewlyIdle);
        let failed = self.cpus[dst.index()].balance.nr_balance_failed + itself;
        if failed > CACHE_NICE_TRIES + 2 && self.curr(src).is_some() {
            self.cpu(src).push_to = Some(dst);
            self.resched_full(src);
        }
    }

    /// `nr_running`: queued tasks of all classes, delayed sleepers included.
    pub(crate) fn nr_running(&self, cpu: CpuId) -> usize {
        let state = &self.cpus[cpu.index()];
        state.rq.nr_queued(&self.entities) + state.rt.len()
    }

    /// Statistics of a CPU (step 6).
    fn group(&self, cpu: CpuId) -> Group {
        let state = &self.cpus[cpu.index()];
        let now_ns = self.now_ns;
        let (mut util, mut runnable, mut load, mut delayed) = (0, 0, 0, 0);
        for &task in &state.attached {
            let shares = self.tasks[task.index()].pelt.shares(now_ns);
            load += self.weighted(task, shares.queued);
            util += shares.running;
            runnable += shares.runnable;
            delayed += u64::from(self.entities[task].delayed);
        }
        let real_time = state.rt.len() as u64;
        let (util, runnable) = ((util >> 22).min(CAPACITY), runnable >> 22);
        let nr = self.nr_running(cpu) as u64;
        Group {
            cpu,
            kind: group_type(nr, util, runnable),
            load,
            util,
            nr,
            nr_runnable: nr - delayed - real_time,
        }
    }

    /// How far wakeups scan for an idle CPU (item 32).
    fn update_idle_scan(&mut self, groups: &[Group]) {
        let cpus = groups.len() as u64;
        let util = groups.iter().map(|group| group.util).sum::<u64>() / cpus;
        self.nr_idle_scan = scan_of(cpus, util);
    }

    /// `detach_tasks` and `attach_tasks` (steps 11 and 13).
    fn move_tasks(&mut self, src: CpuId, dst: CpuId, kind: Kind, imbalance: Imbalance) -> u64 {
        self.update_curr(src);
        let failed = self.cpus[dst.index()].balance.nr_balance_failed;
        let by_load = matches!(imbalance, Imbalance::Load(_));
        let (Imbalance::Tasks(mut left) | Imbalance::Load(mut left)) = imbalance;
        let mut detached = Vec::new();
        for _ in 0..LOOKS_MAX.min(self.nr_running(src)) {
            if self.nr_running(src) <= 1 {
                break;
            }
            let Some(&task) = self.cpu(src).cfs_tasks.first() else {
                break;
            };
            let load = self.task_load(task);
            let fits = !by_load || load.max(1) >> failed.min(63) <= left;
            if !fits || !self.can_migrate(task, src, dst, failed, by_load) {
                self.cpu(src).touch(task);
                continue;
            }
            self.detach(src, task);
            detached.push(task);
            left = left.saturating_sub(if by_load { load } else { 1 });
            if left == 0 || kind == Kind::NewlyIdle {
                break;
            }
        }
        for &task in &detached {
            self.attach(dst, task);
        }
        detached.len() as u64
    }

    /// Whether no queued task of `src` may run on `dst`.
    fn all_pinned(&self, src: CpuId, dst: CpuId) -> bool {
        let mut queued = self.cpus[src.index()].cfs_tasks.iter();
        queued.all(|task| !self.tasks[task.index()].cpus_allowed.allows(dst))
    }

    /// `can_migrate_task` (step 11, 1 to 5).
    fn can_migrate(
        &self,
        task: TaskId,
        src: CpuId,
        dst: CpuId,
        failed: u32,
        by_load: bool,
    ) -> bool {
        let entity = &self.entities[task];
        let rq = &self.cpus[src.index()].rq;
        if entity.delayed && !by_load {
            return false;
        }
        let competes = self.cpus[dst.index()].rq.nr_queued(&self.entities) > 0;
        if failed == 0 && competes && !rq.is_eligible(&self.entities, task) {
            return false;
        }
        if !self.tasks[task.index()].cpus_allowed.allows(dst) {
            return false;
        }
        if rq.curr() == Some(task) || self.is_on_cpu(task) {
            return false;
        }
        let hot = self.now_ns - entity.exec_start_ns < MIGRATION_COST_NS;
        !hot || failed > CACHE_NICE_TRIES
    }

    pub(crate) fn detach(&mut self, src: CpuId, task: TaskId) {
        self.cpus[src.index()]
            .rq
            .dequeue_to_migrate(&mut self.entities, task);
        self.cpu(src).untouch(task);
        self.track(task);
    }

    pub(crate) fn attach(&mut self, dst: CpuId, task: TaskId) {
        let src = self.task(task).cpu;
        self.attach_to(task, dst);
        self.entities[task].exec_start_ns = 0;
        self.emit(task, EventKind::Migrate, src.0.into(), 0);
        self.enqueue(dst, task);
        self.wakeup_preempt(dst, task);
    }

    /// Carries out an active balance on the CPU it was asked of (step 12): the
    /// stopper has displaced the running task and pushes one from the tail.
    pub(crate) fn push_task(&mut self, src: CpuId) {
        let Some(dst) = self.cpu(src).push_to.take() else {
            return;
        };
        let allowed = |task: &&TaskId| self.tasks[task.index()].cpus_allowed.allows(dst);
        if let Some(&task) = self.cpus[src.index()].cfs_tasks.iter().find(allowed) {
            self.detach(src, task);
            self.attach(dst, task);
            self.cpu(dst).balance.nr_balance_failed = 0;
        }
    }

    /// A CPU is about to idle (step 14). Returns the ns that looking around
    /// took; a task it has pulled is queued then.
    pub(crate) fn newidle_balance(&mut self, cpu: CpuId) -> u64 {
        if self.config.cpus == 1 {
            return 0;
        }
        let now_ns = self.now_ns;
        let idle_interval_ns = self.interval_ns(cpu, false);
        let overloaded = self.overloaded;
        let balance = &mut self.cpu(cpu).balance;
        balance.idle_stamp_ns = Some(now_ns);
        // As an idle CPU it is due sooner, whether it looks around now or not.
        let due_ns = balance.last_balance_ns + idle_interval_ns;
        balance.next_balance_ns = balance.next_balance_ns.min(due_ns);
        if !overloaded || balance.avg_idle_ns < balance.max_newidle_cost_ns {
            return 0;
        }
        let Some(weight) = self.newidle_dice(cpu) else {
            return 0;
        };
        let outcome = self.load_balance(cpu, Kind::NewlyIdle);
        self.note_outcome(cpu, Kind::NewlyIdle, outcome);
        let pulled = matches!(outcome, Outcome::Unbalanced { moved: 1.. });
        self.note_newidle(cpu, if pulled { weight } else { 0 });
        let cost_ns = NEWIDLE_NS + NEWIDLE_PER_CPU_NS * u64::from(self.config.cpus);
        let balance = &mut self.cpu(cpu).balance;
        if now_ns - balance.max_cost_decayed_ns > 1_000_000_000 {
            balance.max_newidle_cost_ns = balance.max_newidle_cost_ns * 253 / 256;
            balance.max_cost_decayed_ns = now_ns;
        }
        balance.max_newidle_cost_ns = balance.max_newidle_cost_ns.max(cost_ns);
        if pulled {
            balance.idle_stamp_ns = None;
        }
        cost_ns
    }

    /// NI_RANDOM: the less success there was, the less often it is tried; an
    /// attempt stands for as many as were skipped.
    fn newidle_dice(&mut self, cpu: CpuId) -> Option<u64> {
        let ratio = self.cpu(cpu).balance.newidle_ratio;
        if ratio >= 1024 {
            return Some(1);
        }
        let dice = self.random.below(1024);
        let weight = 1 + ratio;
        if dice > weight {
            self.note_newidle(cpu, 0);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    fn note_newidle(&mut self, cpu: CpuId, success: u64) {
        let now_ns = self.now_ns;
        let balance = &mut self.cpu(cpu).balance;
        balance.newidle_call += 1;
        balance.newidle_success += success;
        if balance.newidle_call >= 1024 {
            let calm = (now_ns - balance.newidle_stamp_ns) >> 22;
            balance.newidle_ratio = (balance.newidle_success + calm).min(1024);
            balance.newidle_stamp_ns = now_ns;
            balance.newidle_call /= 2;
            balance.newidle_success /= 2;
        }
    }

    /// A CPU leaves idle (step 14.4).
    pub(crate) fn note_idle_end(&mut self, cpu: CpuId) {
        let now_ns = self.now_ns;
        let balance = &mut self.cpu(cpu).balance;
        let Some(since_ns) = balance.idle_stamp_ns.take() else {
            return;
        };
        let idle_ns = now_ns - since_ns;
        let average = balance.avg_idle_ns;
        let next = if idle_ns > average {
            average + (idle_ns - average) / 8
        } else {
            average - (average - idle_ns) / 8
        };
        let most = 2 * balance.max_newidle_cost_ns.max(MIGRATION_COST_NS);
        balance.avg_idle_ns = next.min(most);
    }

    /// A busy CPU's tick sees to the tickless idle ones (step 15).
    fn nohz_kick(&mut self, cpu: CpuId) {
        if self.now_ns < self.nohz_next_balance_ns {
            return;
        }
        let Some(idle) = self.cpu_ids().find(|&other| self.is_idle(other)) else {
            return;
        };
        let busy_cpus = self.cpu_ids().filter(|&other| !self.is_idle(other)).count();
        if self.nr_running(cpu) >= 2 || busy_cpus > 1 {
            self.nohz_next_balance_ns = self.now_ns + self.config.tick_ns();
            self.cpu(idle).nohz_kicked = true;
            self.send_ipi(idle);
        }
    }

    /// The kicked CPU balances for every idle one, itself last.
    pub(crate) fn nohz_balance(&mut self, kicked: CpuId) {
        if !core::mem::take(&mut self.cpu(kicked).nohz_kicked) {
            return;
        }
        let cpus = self.config.cpus;
        for step in 1..=cpus {
            let cpu = CpuId((kicked.0 + step) % cpus);
            let due = self.signed_now_ns() >= self.cpus[cpu.index()].balance.next_balance_ns;
            if due && self.is_idle(cpu) {
                self.rebalance(cpu, Kind::Idle);
            }
            if self.nr_running(kicked) > 0 {
                break;
            }
        }
        let idle = self.cpu_ids().filter(|&cpu| self.is_idle(cpu));
        let earliest = idle.map(|cpu| self.cpus[cpu.index()].balance.next_balance_ns);
        if let Some(earliest) = earliest.min() {
            self.nohz_next_balance_ns = u64::try_from(earliest).unwrap_or(0);
        }
    }
}

impl Kernel {
    /// How well off a CPU is for a fork, best first: by type, then an idle one
    /// before others, then by load, or by use where there is room (item 49).
    pub(crate) fn idleness(&self, cpu: CpuId) -> impl Ord + use<> {
        let group = self.group(cpu);
        let weight = match group.kind {
            GroupType::HasSpare => group.util,
            GroupType::FullyBusy | GroupType::Overloaded => group.load,
        };
        (group.kind, !self.is_idle(cpu), weight)
    }

    /// Whether a fork leaves its parent's CPU for the idlest of the others.
    pub(crate) fn is_better_for_fork(&self, idlest: CpuId, own: CpuId) -> bool {
        let (best, local) = (self.group(idlest), self.group(own));
        if best.kind != local.kind {
            return best.kind < local.kind;
        }
        match local.kind {
            GroupType::HasSpare => self.is_idle(idlest) && !self.is_idle(own),
            GroupType::FullyBusy | GroupType::Overloaded => {
                local.load > best.load + FORK_MARGIN && 100 * local.load > PCT * best.load
            }
        }
    }
}

/// How many of `cpus` a wakeup looks at when they are used by `util` on average.
pub(crate) fn scan_of(cpus: u64, util: u64) -> u64 {
    let used = util * util * PCT * PCT / (10_000 * CAPACITY);
    cpus * CAPACITY.saturating_sub(used) / CAPACITY
}

fn group_type(nr: u64, util: u64, runnable: u64) -> GroupType {
    let pressed = CAPACITY * PCT < runnable * 100;
    if nr > 1 && (CAPACITY * 100 < util * PCT || pressed) {
        GroupType::Overloaded
    } else if nr == 0 || (!pressed && CAPACITY * 100 > util * PCT) {
        GroupType::HasSpare
    } else {
        GroupType::FullyBusy
    }
}

/// The busiest of the other groups (step 7), in the order that `dst` sees them.
fn busiest_group(groups: &[Group], dst: CpuId) -> Option<Group> {
    let order = groups.iter().cycle().skip(dst.index() + 1);
    let others = order.take(groups.len() - 1);
    let mut busiest: Option<Group> = None;
    for group in others.filter(|group| group.nr_runnable > 0) {
        let busier = busiest.is_none_or(|busiest| {
            group.kind > busiest.kind
                || group.kind == busiest.kind
                    && match group.kind {
                        GroupType::Overloaded => group.avg_load() > busiest.avg_load(),
                        GroupType::FullyBusy => true,
                        GroupType::HasSpare => group.nr > busiest.nr,
                    }
        });
        if busier {
            busiest = Some(*group);
        }
    }
    busiest
}

/// Whether `dst` should take something, and how much (steps 7 to 9).
fn find_imbalance(groups: &[Group], dst: CpuId, kind: Kind) -> Option<(Imbalance, Group)> {
    let local = groups[dst.index()];
    let busiest = busiest_group(groups, dst)?;
    if local.kind > busiest.kind {
        return None;
    }
    let domain_avg = groups.iter().map(|group| group.load).sum::<u64>() / groups.len() as u64;
    if local.kind == GroupType::Overloaded {
        let level = local.load >= busiest.load
            || local.load >= domain_avg
            || 100 * busiest.load <= PCT * local.load;
        if level {
            return None;
        }
    } else if busiest.kind != GroupType::Overloaded
        && (kind == Kind::Busy || busiest.nr_runnable == 1)
    {
        return None;
    }
    let imbalance = match local.kind {
        GroupType::HasSpare => Imbalance::Tasks(spare_tasks(&local, &busiest, kind)),
        GroupType::FullyBusy | GroupType::Overloaded => {
            if local.load >= busiest.load || local.load >= domain_avg {
                return None;
            }
            // The average also counts CPUs that are not overloaded, so it may be
            // above the busiest one; the kernel's unsigned difference then wraps
            // and the other one decides.
            let above = busiest.load.checked_sub(domain_avg).unwrap_or(u64::MAX);
            Imbalance::Load(above.min(domain_avg - local.load))
        }
    };
    let nothing = matches!(imbalance, Imbalance::Tasks(0) | Imbalance::Load(0));
    (!nothing).then_some((imbalance, busiest))
}

/// Half the difference in tasks; nothing for a CPU that is busy (step 9, S and b).
fn spare_tasks(local: &Group, busiest: &Group, kind: Kind) -> u64 {
    let difference = if kind == Kind::Busy {
        0
    } else {
        busiest.nr.saturating_sub(local.nr)
    };
    difference / 2
}

#[cfg(test)]
mod tests;
