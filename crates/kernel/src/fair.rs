//! The fair class: one run queue in order of virtual deadline (EEVDF).
//!
//! Each entity `i` has a weight `w`, a virtual runtime `v` that grows by
//! `1024 / w` per nanosecond of running, and a deadline `d`, one slice of
//! virtual time ahead. `V` is the weighted average of `v` over everything that
//! is queued. An entity is *eligible* when `v <= V`: it has had no more than its
//! share. The queue runs the eligible entity with the earliest deadline.
//!
//! Invariants, checked by the tests at every step:
//! 1. The weighted lags `w * (V - v)` sum to zero up to rounding, so somebody is
//!    always eligible.
//! 2. An entity that is not eligible is never picked over one that is.
//! 3. A sleeper that had more than its share stays queued ("delayed") until it
//!    is eligible or woken; a delayed entity is never the current one.
//! 4. The current entity is not in the tree but counts in every sum.
//!
//! Left out: group scheduling (and with it autogroup, which is off by default
//! here), and the features that are off by default (NEXT_BUDDY). Sums are
//! rebuilt by a scan, which is the faster way for the few tasks that a CPU of
//! these experiments has.
//!
//! Source of the rules: the project's scheduler reference, sections 2.1 to 2.9.
//!
//! ```
//! use kernel_sim::fair::{CfsRq, Entities, FairOptions};
//! let mut entities = Entities::default();
//! let heavy = entities.add(1024, 700_000);
//! let light = entities.add(110, 700_000);
//! let mut rq = CfsRq::new(FairOptions::default());
//! rq.enqueue(&mut entities, heavy);
//! rq.enqueue(&mut entities, light);
//! // Both are eligible; the heavier one's virtual slice is shorter.
//! assert_eq!(rq.pick(&entities, true), Some(heavy));
//! ```

use crate::ids::TaskId;
use crate::weight::NICE_0_WEIGHT;
use core::ops::{Index, IndexMut};

/// Numbers the fair class works with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairOptions {
    /// Length of the timer tick in ns; part of the lag clamp.
    pub tick_ns: i64,
    /// How far saved lag may reach.
    pub lag_clamp: LagClamp,
    /// How far a task that is switched in is protected.
    pub protection: SliceProtection,
}

impl Default for FairOptions {
    fn default() -> FairOptions {
        FairOptions {
            tick_ns: 1_000_000,
            lag_clamp: LagClamp::SlicePlusTick,
            protection: SliceProtection::WhileEligible,
        }
    }
}

/// How long RUN_TO_PARITY protects a task that is switched in, by kernel
/// version. With equal slices all of them protect to the deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceProtection {
    /// To the deadline, whatever is queued; once past it, the task asks for a
    /// reschedule only at its next deadline (v6.12 to v6.16).
    Deadline,
    /// For the shortest slice that is queued (v6.17 to v7.1).
    MinSlice,
    /// While it stays eligible, if a shorter slice is queued (mid 2026).
    WhileEligible,
    /// As the former, and for the shortest slice at most (v7.4).
    WhileEligibleMinSlice,
}

/// The bound of the lag that a task keeps over sleep, by kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LagClamp {
    /// One slice and one tick (v7.0 and later).
    SlicePlusTick,
    /// The larger of two slices and one tick (up to v6.19).
    TwoSlicesOrTick,
}

/// What the fair class knows of a task.
#[derive(Clone, Debug)]
pub struct Entity {
    /// Load weight; 1024 is nice 0.
    pub weight: i64,
    /// Length of a slice, in ns of real time.
    pub slice_ns: i64,
    /// Virtual runtime, in virtual ns.
    pub vruntime: i64,
    /// Virtual deadline, in virtual ns.
    pub deadline: i64,
    /// Lag saved when the entity left the queue, in virtual ns.
    pub vlag: i64,
    /// Up to this virtual runtime the current entity is protected.
    pub vprot: i64,
    /// Start of the running stretch not yet accounted, in ns.
    pub exec_start_ns: u64,
    /// All the CPU time it has had, in ns.
    pub sum_exec_ns: u64,
    /// It is queued or current (delayed sleepers included).
    pub on_rq: bool,
    /// Its deadline is relative to its virtual runtime: it is between two CPUs.
    pub rel_deadline: bool,
    /// It sleeps, but is still queued to work off its debt.
    pub delayed: bool,
    /// Order of insertion, to break ties of the deadline.
    seq: u64,
}

/// All entities of a machine, by task.
#[derive(Default, Debug)]
pub struct Entities(Vec<Entity>);

impl Entities {
    /// Adds an entity at virtual time 0 without lag; its number is the next
    /// task's.
    pub fn add(&mut self, weight: i64, slice_ns: i64) -> TaskId {
        let id = TaskId(u16::try_from(self.0.len()).unwrap_or(u16::MAX));
        self.0.push(Entity {
            weight,
            slice_ns,
            vruntime: 0,
            deadline: 0,
            vlag: 0,
            vprot: 0,
            exec_start_ns: 0,
            sum_exec_ns: 0,
            on_rq: false,
            rel_deadline: false,
            delayed: false,
            seq: 0,
        });
        id
    }

    /// Accounts the running of a task of another class up to `now_ns`.
    pub(crate) fn charge(&mut self, id: TaskId, now_ns: u64) {
        let entity = &mut self.0[id.index()];
        entity.sum_exec_ns += now_ns.saturating_sub(entity.exec_start_ns);
        entity.exec_start_ns = now_ns;
    }
}

impl Index<TaskId> for Entities {
    type Output = Entity;
    fn index(&self, id: TaskId) -> &Entity {
        &self.0[id.index()]
    }
}

impl IndexMut<TaskId> for Entities {
    fn index_mut(&mut self, id: TaskId) -> &mut Entity {
        &mut self.0[id.index()]
    }
}

impl Entity {
    /// `calc_delta_fair`: real ns as virtual ns of this entity, rounded down.
    #[must_use]
    pub fn vdelta(&self, real_ns: i64) -> i64 {
        if self.weight == NICE_0_WEIGHT {
            real_ns
        } else {
            real_ns * NICE_0_WEIGHT / self.weight
        }
    }

    /// Real ns of running until the deadline, rounded up so that a timer set
    /// with it never fires before the deadline; negative when it has passed.
    #[must_use]
    pub fn real_ns_to_deadline(&self) -> i64 {
        let left = self.deadline - self.vruntime;
        if left < 0 {
            left
        } else {
            (left * self.weight + NICE_0_WEIGHT - 1) / NICE_0_WEIGHT
        }
    }

    fn is_protected(&self) -> bool {
        self.vruntime < self.vprot
    }
}

/// What [`CfsRq::update_curr`] found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accounted {
    /// The current entity's virtual runtime has grown.
    pub ran: bool,
    /// Its deadline has been renewed.
    pub deadline_renewed: bool,
    /// Its slice is over or it is no longer protected, and others are queued.
    pub resched: bool,
}

/// Sums over everything queued, relative to a reference `v0`.
#[derive(Clone, Copy)]
struct Sums {
    v0: i64,
    /// Sum of `w * (v - v0)`.
    weighted: i64,
    /// Sum of `w`.
    weight: i64,
}

impl Sums {
    /// `vruntime_eligible`: `V >= v`, without division.
    fn eligible(self, vruntime: i64) -> bool {
        self.weighted >= (vruntime - self.v0) * self.weight
    }

    /// `V`, rounded towards minus infinity.
    fn average(self) -> i64 {
        if self.weight == 0 {
            self.v0
        } else {
            self.v0 + self.weighted.div_euclid(self.weight)
        }
    }
}

/// `lag * joined / weight`; in wider numbers only where it has to be, since that
/// takes several times as long.
fn inflated(lag: i64, joined: i64, weight: i64) -> i64 {
    if let Some(product) = lag.checked_mul(joined) {
        return product / weight;
    }
    let wide = i128::from(lag) * i128::from(joined) / i128::from(weight);
    i64::try_from(wide).unwrap_or(0)
}

/// The fair run queue of one CPU.
#[derive(Debug)]
pub struct CfsRq {
    options: FairOptions,
    /// Queued entities other than the current one, delayed sleepers included.
    tree: Vec<TaskId>,
    curr: Option<TaskId>,
    /// The buddy that a short slice has made the next to run.
    next: Option<TaskId>,
    /// A virtual time near every member's: the last known `V`.
    zero_vruntime: i64,
    next_seq: u64,
    /// How often somebody has joined, left or been placed anew.
    changes: u64,
}

impl CfsRq {
    /// An empty queue at virtual time 0.
    #[must_use]
    pub fn new(options: FairOptions) -> CfsRq {
        CfsRq {
            options,
            tree: Vec::new(),
            curr: None,
            next: None,
            zero_vruntime: 0,
            next_seq: 0,
            changes: 0,
        }
    }

    /// The current entity.
    #[must_use]
    pub fn curr(&self) -> Option<TaskId> {
        self.curr
    }

    /// `h_nr_queued`: queued entities, the current one and delayed ones included.
    #[must_use]
    pub fn nr_queued(&self, entities: &Entities) -> usize {
        self.tree.len() + usize::from(self.curr_on_rq(entities).is_some())
    }

    /// The queued entities other than the current one, in no order.
    #[must_use]
    pub fn tree(&self) -> &[TaskId] {
        &self.tree
    }

    fn curr_on_rq(&self, entities: &Entities) -> Option<TaskId> {
        self.curr.filter(|&curr| entities[curr].on_rq)
    }

    fn sums(&self, entities: &Entities) -> Sums {
        let curr = self.curr_on_rq(entities);
        self.sums_of(entities, self.tree.iter().chain(curr.iter()))
    }

    fn sums_of<'a>(
        &self,
        entities: &Entities,
        members: impl IntoIterator<Item = &'a TaskId>,
    ) -> Sums {
        let v0 = self.zero_vruntime;
        let mut sums = Sums {
            v0,
            weighted: 0,
            weight: 0,
        };
        for &id in members {
            let entity = &entities[id];
            sums.weighted += entity.weight * (entity.vruntime - v0);
            sums.weight += entity.weight;
        }
        sums
    }

    /// `avg_vruntime`: `V`, rounded towards minus infinity.
    #[must_use]
    pub fn avg_vruntime(&self, entities: &Entities) -> i64 {
        self.sums(entities).average()
    }

    /// Whether a queued entity has had no more than its share.
    #[must_use]
    pub fn is_eligible(&self, entities: &Entities, id: TaskId) -> bool {
        self.sums(entities).eligible(entities[id].vruntime)
    }

    /// Accounts the current entity's running up to `now_ns`.
    pub fn update_curr(&mut self, entities: &mut Entities, now_ns: u64) -> Accounted {
        let Some(curr) = self.curr else {
            return Accounted::default();
        };
        let entity = &mut entities[curr];
        let delta_ns = now_ns.saturating_sub(entity.exec_start_ns);
        if delta_ns == 0 {
            return Accounted::default();
        }
        entity.exec_start_ns = now_ns;
        entity.sum_exec_ns += delta_ns;
        entity.vruntime += entity.vdelta(i64::try_from(delta_ns).unwrap_or(i64::MAX));
        let expired = entity.vruntime >= entity.deadline;
        if expired {
            // Renewed from the current `v`: an overrun is not paid back here,
            // it shows as lag.
            entity.deadline = entity.vruntime + entity.vdelta(entity.slice_ns);
        }
        let watched = self.options.protection != SliceProtection::Deadline;
        let unprotected = watched && !entity.is_protected();
        self.zero_vruntime = self.avg_vruntime(entities);
        Accounted {
            ran: true,
            deadline_renewed: expired,
            resched: (expired || unprotected) && self.nr_queued(entities) > 1,
        }
    }

    /// `place_entity` and insertion of an entity that was off the queue. The
    /// caller has accounted the current one up to now.
    pub fn enqueue(&mut self, entities: &mut Entities, id: TaskId) {
        self.place(entities, id);
        entities[id].on_rq = true;
        self.insert(entities, id);
    }

    /// As [`CfsRq::enqueue`], for an entity that has just been forked: its first
    /// deadline is half a slice ahead (PLACE_DEADLINE_INITIAL).
    pub fn enqueue_forked(&mut self, entities: &mut Entities, id: TaskId) {
        self.enqueue(entities, id);
        let entity = &mut entities[id];
        entity.deadline = entity.vruntime + entity.vdelta(entity.slice_ns) / 2;
    }

    fn insert(&mut self, entities: &mut Entities, id: TaskId) {
        entities[id].seq = self.next_seq;
        self.next_seq += 1;
        self.tree.push(id);
    }

    fn take_out(&mut self, id: TaskId) {
        self.next = self.next.filter(|&next| next != id);
        if let Some(at) = self.tree.iter().position(|&queued| queued == id) {
            self.tree.swap_remove(at);
        }
    }

    /// Gives an entity that is off the queue its place in virtual time: as far
    /// from `V` as its saved lag says.
    fn place(&mut self, entities: &mut Entities, id: TaskId) {
        self.changes += 1;
        let sums = self.sums(entities);
        let average = sums.average();
        let entity = &mut entities[id];
        let lag = if sums.weight > 0 {
            // Joining moves V; inflated, the lag comes out as it was saved.
            inflated(entity.vlag, sums.weight + entity.weight, sums.weight)
        } else {
            0
        };
        entity.vruntime = average - lag;
        entity.deadline = if core::mem::take(&mut entity.rel_deadline) {
            entity.vruntime + entity.deadline
        } else {
            entity.vruntime + entity.vdelta(entity.slice_ns)
        };
    }

    /// `entity_lag`: how far `V` is ahead of the entity, within the clamp.
    fn clamped_lag(&self, entities: &Entities, id: TaskId) -> i64 {
        let entity = &entities[id];
        let max_slice_ns = self
            .tree
            .iter()
            .chain(self.curr_on_rq(entities).iter())
            .map(|&queued| entities[queued].slice_ns)
            .fold(entity.slice_ns, i64::max);
        let reach_ns = match self.options.lag_clamp {
            LagClamp::SlicePlusTick => max_slice_ns + self.options.tick_ns,
            LagClamp::TwoSlicesOrTick => (2 * entity.slice_ns).max(self.options.tick_ns),
        };
        let limit = entity.vdelta(reach_ns);
        (self.avg_vruntime(entities) - entity.vruntime).clamp(-limit, limit)
    }

    /// `update_entity_lag`: saves the lag of an entity that is about to leave.
    /// A delayed one has its debt forgiven as far as it was worked off, and
    /// never gets credit. Says whether the result differs from `V - v`.
    fn save_lag(&mut self, entities: &mut Entities, id: TaskId) -> bool {
        self.changes += 1;
        let mut lag = self.clamped_lag(entities, id);
        if entities[id].delayed {
            lag = lag.max(entities[id].vlag).min(0);
        }
        entities[id].vlag = lag;
        self.avg_vruntime(entities) - entities[id].vruntime != lag
    }

    /// Takes the current entity off the queue because its task blocks. An
    /// entity that is not eligible stays queued as a delayed sleeper; says
    /// whether it does. The caller has accounted it up to now.
    pub fn dequeue_curr_to_sleep(&mut self, entities: &mut Entities) -> bool {
        let Some(curr) = self.curr_on_rq(entities) else {
            return false;
        };
        if !self.is_eligible(entities, curr) {
            self.save_lag(entities, curr);
            entities[curr].delayed = true;
            return true;
        }
        self.dequeue_curr(entities);
        false
    }

    /// Takes the current entity off the queue at once, eligible or not.
    pub fn dequeue_curr(&mut self, entities: &mut Entities) {
        if let Some(curr) = self.curr_on_rq(entities) {
            self.save_lag(entities, curr);
            self.zero_vruntime = self.avg_vruntime(entities);
            entities[curr].on_rq = false;
        }
    }

    /// Ends the delay of a sleeper that has become eligible: it leaves without
    /// lag.
    pub fn finish_delayed_dequeue(&mut self, entities: &mut Entities, id: TaskId) {
        self.dequeue_queued(entities, id);
    }

    /// Takes a queued entity off, to be queued on another CPU: it keeps its lag
    /// and how far its deadline is ahead.
    pub fn dequeue_to_migrate(&mut self, entities: &mut Entities, id: TaskId) {
        self.save_lag(entities, id);
        self.zero_vruntime = self.avg_vruntime(entities);
        self.take_out(id);
        let entity = &mut entities[id];
        entity.deadline -= entity.vruntime;
        entity.rel_deadline = true;
        entity.on_rq = false;
    }

    /// Takes a queued entity off because its task blocks while it runs in the
    /// turn of another one. It keeps its lag.
    pub fn dequeue_queued(&mut self, entities: &mut Entities, id: TaskId) {
        self.save_lag(entities, id);
        self.zero_vruntime = self.avg_vruntime(entities);
        self.take_out(id);
        entities[id].delayed = false;
        entities[id].on_rq = false;
    }

    /// `requeue_delayed_entity`: a delayed sleeper is woken where it stands.
    /// Says whether it was placed anew.
    pub fn requeue_delayed(&mut self, entities: &mut Entities, id: TaskId) -> bool {
        let moved = self.save_lag(entities, id);
        entities[id].delayed = false;
        if moved {
            self.take_out(id);
            entities[id].on_rq = false;
            self.enqueue(entities, id);
        }
        moved
    }

    /// `reweight_entity`: gives an entity another weight. Queued or not, it keeps
    /// its lag and what is left of its slice and its protection, in real time.
    /// The caller has accounted the current one up to now.
    pub fn reweight(&mut self, entities: &mut Entities, id: TaskId, weight: i64) {
        // A task that inherits a real-time priority is queued, but not here.
        let queued = self.curr == Some(id) || self.tree.contains(&id);
        let queued = queued && entities[id].on_rq;
        let protected = self.curr == Some(id) && entities[id].is_protected();
        if queued {
            self.save_lag(entities, id);
            self.zero_vruntime = self.avg_vruntime(entities);
            self.take_out(id);
            let entity = &mut entities[id];
            entity.deadline -= entity.vruntime;
            entity.vprot -= entity.vruntime;
            entity.rel_deadline = true;
            entity.on_rq = false;
        }
        let entity = &mut entities[id];
        let scaled = |virtual_ns: i64| virtual_ns * entity.weight / weight;
        let (vlag, deadline, vprot) = (
            scaled(entity.vlag),
            scaled(entity.deadline),
            scaled(entity.vprot),
        );
        entity.vlag = vlag;
        if entity.rel_deadline {
            entity.deadline = deadline;
        }
        entity.weight = weight;
        if queued {
            self.place(entities, id);
            let entity = &mut entities[id];
            entity.on_rq = true;
            entity.vprot = entity.vruntime + if protected { vprot } else { 0 };
            if self.curr != Some(id) {
                self.insert(entities, id);
            }
        }
    }

    /// `pick_eevdf`: whom to run. `protect` keeps a protected, eligible current
    /// entity. The pick may be a delayed sleeper, whose dequeue the caller must
    /// then finish before it picks again.
    #[must_use]
    pub fn pick(&self, entities: &Entities, protect: bool) -> Option<TaskId> {
        let curr = self.curr_on_rq(entities);
        match (self.tree.as_slice(), curr) {
            ([only], None) => return Some(*only),
            ([], only) => return only,
            _ => {}
        }
        let sums = self.sums(entities);
        let eligible = |&id: &TaskId| sums.eligible(entities[id].vruntime);
        if protect && let Some(next) = self.next.filter(eligible) {
            return Some(next);
        }
        let curr = curr.filter(eligible);
        if protect && let Some(curr) = curr.filter(|&curr| entities[curr].is_protected()) {
            return Some(curr);
        }
        let best = self
            .tree
            .iter()
            .copied()
            .filter(eligible)
            .min_by_key(|&id| (entities[id].deadline, entities[id].seq));
        match (best, curr) {
            (Some(best), Some(curr)) if entities[curr].deadline < entities[best].deadline => {
                Some(curr)
            }
            (None, curr) => curr,
            (best, _) => best,
        }
    }

    /// Puts the current entity back among the queued, if it still is one.
    pub fn put_prev(&mut self, entities: &mut Entities) {
        if let Some(curr) = self.curr_on_rq(entities) {
            self.insert(entities, curr);
        }
        self.curr = None;
    }

    /// Makes a queued entity the current one, protected as the version says.
    pub fn set_next(&mut self, entities: &mut Entities, id: TaskId, now_ns: u64) {
        self.take_out(id);
        self.curr = Some(id);
        let entity = &mut entities[id];
        entity.exec_start_ns = now_ns;
        entity.vprot = entity.deadline;
        self.limit_protection(entities, id);
    }

    /// `set_protect_slice`: a shorter slice in the queue limits the protection.
    fn limit_protection(&self, entities: &mut Entities, id: TaskId) {
        let min_slice_ns = self.min_slice_ns(entities, id);
        let entity = &entities[id];
        let quantum = entity.vruntime + entity.vdelta(min_slice_ns);
        let shorter = min_slice_ns < entity.slice_ns;
        let reach = match self.options.protection {
            SliceProtection::Deadline => i64::MAX,
            _ if !shorter => i64::MAX,
            SliceProtection::MinSlice => quantum,
            SliceProtection::WhileEligible => self.becomes_ineligible(entities),
            SliceProtection::WhileEligibleMinSlice => {
                quantum.min(self.becomes_ineligible(entities))
            }
        };
        entities[id].vprot = entities[id].vprot.min(reach);
    }

    /// The shortest slice of the queued and of the current entity, in ns.
    fn min_slice_ns(&self, entities: &Entities, curr: TaskId) -> i64 {
        let slices = self.tree.iter().map(|&queued| entities[queued].slice_ns);
        slices.fold(entities[curr].slice_ns, i64::min)
    }

    /// The virtual runtime at which the current entity stops being eligible: it
    /// has passed the average of the others.
    fn becomes_ineligible(&self, entities: &Entities) -> i64 {
        self.sums_of(entities, &self.tree).average() + 1
    }

    /// `cancel_protect_slice`: the current entity may be preempted from now on.
    pub fn cancel_protection(&mut self, entities: &mut Entities) {
        if let Some(curr) = self.curr {
            let entity = &mut entities[curr];
            entity.vprot = entity.vprot.min(entity.vruntime);
        }
    }

    /// `update_protect_slice`: after a wakeup that does not preempt, the
    /// protection ends at the latest one smallest slice from now.
    pub fn shorten_protection(&mut self, entities: &mut Entities) {
        let Some(curr) = self.curr else { return };
        let quantum = |from: i64, entities: &Entities| {
            from + entities[curr].vdelta(self.min_slice_ns(entities, curr))
        };
        let vruntime = entities[curr].vruntime;
        let reach = match self.options.protection {
            SliceProtection::Deadline => return,
            SliceProtection::MinSlice => quantum(vruntime, entities),
            SliceProtection::WhileEligible => {
                quantum(vruntime.min(self.avg_vruntime(entities)), entities)
            }
            SliceProtection::WhileEligibleMinSlice => {
                self.limit_protection(entities, curr);
                return;
            }
        };
        entities[curr].vprot = entities[curr].vprot.min(reach);
    }

    /// A task with a short slice has woken up and is to run next.
    pub fn set_next_buddy(&mut self, id: TaskId) {
        self.next = Some(id);
    }

    /// The sum of the weighted lags, and that of the weights.
    pub(crate) fn lag_and_weight(&self, entities: &Entities) -> (i64, i64) {
        let sums = self.sums(entities);
        let lag = (sums.average() - sums.v0) * sums.weight - sums.weighted;
        (lag, sums.weight)
    }

    /// A number that changes whenever the members or their places do.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// `entity_lag` as service: how many ns of CPU time the entity is owed,
    /// negative when it has had too much.
    #[must_use]
    pub fn owed_ns(&self, entities: &Entities, id: TaskId) -> i64 {
        let entity = &entities[id];
        (self.avg_vruntime(entities) - entity.vruntime) * entity.weight / NICE_0_WEIGHT
    }
}

#[cfg(test)]
mod tests;
