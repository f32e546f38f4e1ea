//! Scheduling: the switch, sleep and wakeup, timers.
//!
//! Rules (scheduler reference, sections 2.8 to 2.10, 3 and W1 to W5):
//! 1. A real-time task runs before any fair one; within a class its queue
//!    decides.
//! 2. The slice-end timer and the tick's promotion of a lazy request ask for a
//!    reschedule in full. A full request is honoured at the end of the
//!    interrupt, or as soon as preemption is possible again.
//! 3. Protection and the slice-end timer are set on a switch to *another* task;
//!    a task that is picked again keeps what it had.
//! 4. A wakeup acts only on a task that sleeps.
//!
//! Left out here: deadline scheduling, core scheduling.

use crate::config::Hrtick;
use crate::event::{EventKind, OutReason};
use crate::ids::{CpuId, TaskId};
use crate::kernel::{Kernel, NEVER, Op};
use crate::timer::Timed;

/// The shortest time the slice-end timer is set for.
const HRTICK_MIN_NS: u64 = 10_000;
/// A new expiry this near the pending one does not replace it.
const HRTICK_SLACK_NS: u64 = 5_000;

impl Kernel {
    /// Whether a task is of the real-time class.
    pub(crate) fn is_rt(&self, task: TaskId) -> bool {
        self.rt_priority(task).is_some()
    }

    /// `update_curr`, with its request to reschedule.
    pub(crate) fn update_curr(&mut self, cpu: CpuId) {
        let now_ns = self.now_ns;
        let state = &mut self.cpus[cpu.index()];
        let Some(donor) = state.donor else { return };
        if state.rq.curr() != Some(donor) {
            self.entities.charge(donor, now_ns);
            return;
        }
        let accounted = state.rq.update_curr(&mut self.entities, now_ns);
        if accounted.ran {
            self.emit_vruntime(donor);
        }
        if accounted.deadline_renewed {
            self.emit_deadline(donor);
        }
        if accounted.resched {
            self.resched_fair(cpu);
        }
    }

    /// `schedule`: ends the current task's turn if somebody else is to run.
    pub(crate) fn schedule(&mut self, cpu: CpuId) {
        self.check_progress(cpu);
        self.update_curr(cpu);
        self.rcu_note_switch(cpu);
        let prev = self.curr(cpu);
        let reason = prev.map_or(OutReason::Preempted, |prev| self.put_to_sleep(cpu, prev));
        self.cpu(cpu).need_resched = false;
        self.cpu(cpu).need_resched_lazy = false;
        let displaced = self.cpu(cpu).donor;
        let pushes = self.cpu(cpu).push_to.is_some();
        if pushes {
            // The stopper runs, so whatever ran is an ordinary queued task.
            self.put_prev(cpu);
            self.push_task(cpu);
        }
        let donor = self.cpu(cpu).donor;
        let (next, looked_ns) = self.pick_next_or_pull(cpu);
        let same = next.is_some_and(|next| Some(next.runs) == prev && Some(next.donor) == donor);
        if same && !pushes {
            self.emit_cpu(cpu, EventKind::Repick, 0);
            if self.config.hrtick == Hrtick::Repick {
                self.arm_hrtick(cpu, 0);
            }
            return;
        }
        if let Some(prev) = prev {
            self.emit_on(cpu, prev, EventKind::SwitchOut, 0, reason as u16);
            self.task(prev).since_ns = self.now_ns;
        }
        self.put_prev(cpu);
        for ended in [displaced, prev].into_iter().flatten() {
            self.track(ended);
        }
        if let Some(prev) = prev {
            self.kick_watchers(prev);
            if reason == OutReason::Exited {
                // `task_dead_fair`: its load goes with it.
                self.cpu(cpu).attached.retain(|&task| task != prev);
            }
        }
        match next {
            Some(next) => self.switch_to(cpu, next, looked_ns),
            None => self.go_idle(cpu),
        }
    }

    /// Nobody's turn any more: a fair task goes back among the queued.
    fn put_prev(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        state.rq.put_prev(&mut self.entities);
        state.donor = None;
        state.curr = None;
    }

    /// The task to run. A CPU that has none looks around for one, which takes
    /// the time that is returned beside it.
    fn pick_next_or_pull(&mut self, cpu: CpuId) -> (Option<Turn>, u64) {
        let next = self.pick_next(cpu);
        if next.is_some() || self.cpu(cpu).idle {
            return (next, 0);
        }
        let looked_ns = self.newidle_balance(cpu);
        (self.pick_next(cpu), looked_ns)
    }

    /// Takes a task that cannot go on off the queue.
    fn put_to_sleep(&mut self, cpu: CpuId, prev: TaskId) -> OutReason {
        let reason = match self.task(prev).op {
            Op::Block => OutReason::Blocked,
            Op::Sleep => OutReason::Sleeping,
            Op::Exit => OutReason::Exited,
            Op::Poll | Op::Run { .. } | Op::Spin { .. } | Op::Resched => {
                return OutReason::Preempted;
            }
        };
        if reason == OutReason::Blocked && self.stays_to_lend(prev) {
            return reason;
        }
        let real_time = self.is_rt(prev);
        let state = &mut self.cpus[cpu.index()];
        if real_time {
            state.rt.dequeue(prev);
            self.entities[prev].on_rq = false;
        } else if state.rq.curr() != Some(prev) {
            // It ran on somebody else's turn.
            state.rq.dequeue_queued(&mut self.entities, prev);
            self.cpu(cpu).untouch(prev);
        } else if reason == OutReason::Exited {
            // Only a sleep is delayed.
            state.rq.dequeue_curr(&mut self.entities);
            self.cpu(cpu).untouch(prev);
        } else if state.rq.dequeue_curr_to_sleep(&mut self.entities) {
            self.emit(prev, EventKind::DelayDequeue, 0, 0);
        } else {
            self.cpu(cpu).untouch(prev);
        }
        reason
    }

    /// Whose turn it is, of the highest class that has one, and who runs in it.
    fn pick_next(&mut self, cpu: CpuId) -> Option<Turn> {
        loop {
            let real_time = self.cpu(cpu).rt.pick();
            let donor = real_time.or_else(|| self.pick_fair(cpu, true))?;
            if !self.task(donor).lends {
                let runs = donor;
                return Some(Turn { donor, runs });
            }
            if let Some(runs) = self.find_proxy_task(cpu, donor) {
                return Some(Turn { donor, runs });
            }
        }
    }

    /// The fair task to run; sleepers that turn out to be picked leave first.
    pub(crate) fn pick_fair(&mut self, cpu: CpuId, protect: bool) -> Option<TaskId> {
        loop {
            let picked = self.cpus[cpu.index()].rq.pick(&self.entities, protect)?;
            if !self.entities[picked].delayed {
                return Some(picked);
            }
            let is_curr = self.cpu(cpu).donor == Some(picked);
            if is_curr {
                // The blocking task itself: it is queued again so that it can
                // be taken out like any other delayed sleeper.
                self.cpus[cpu.index()].rq.put_prev(&mut self.entities);
            }
            let state = &mut self.cpus[cpu.index()];
            state.rq.finish_delayed_dequeue(&mut self.entities, picked);
            self.cpu(cpu).untouch(picked);
            self.track(picked);
            self.emit(picked, EventKind::FinishDequeue, 0, 0);
        }
    }

    /// A task's turn begins: from now on it is the one that is accounted.
    pub(crate) fn set_donor(&mut self, cpu: CpuId, donor: TaskId) {
        let now_ns = self.now_ns;
        self.cpu(cpu).donor = Some(donor);
        if self.is_rt(donor) {
            self.entities[donor].exec_start_ns = now_ns;
            return;
        }
        let rq = &mut self.cpus[cpu.index()].rq;
        rq.set_next(&mut self.entities, donor, now_ns);
        self.cpu(cpu).touch(donor);
    }

    fn switch_to(&mut self, cpu: CpuId, turn: Turn, looked_ns: u64) {
        let (now_ns, switch_ns) = (self.now_ns, self.config.switch_ns + looked_ns);
        let Turn { donor, runs: next } = turn;
        self.check_eligible(cpu, donor);
        self.cpu(cpu).curr = Some(next);
        self.set_donor(cpu, donor);
        self.emit(next, EventKind::SwitchIn, switch_ns, 0);
        if donor != next {
            self.emit(next, EventKind::Donor, donor.0.into(), 0);
        }
        self.track(donor);
        self.task(next).since_ns = now_ns;
        let state = self.cpu(cpu);
        state.op_end_ns = NEVER;
        state.stall_until_ns = now_ns + switch_ns;
        if state.idle {
            state.idle = false;
            self.restart_tick(cpu);
            self.note_idle_end(cpu);
        }
        if self.config.hrtick != Hrtick::Off {
            // The timer is started at the end of the switch.
            self.arm_hrtick(cpu, switch_ns);
        }
    }

    fn go_idle(&mut self, cpu: CpuId) {
        let state = self.cpu(cpu);
        state.op_end_ns = NEVER;
        state.hrtick_at_ns = NEVER;
        state.tick_at_ns = NEVER;
        if !state.idle {
            state.idle = true;
            self.emit_cpu(cpu, EventKind::Idle, 0);
        }
    }

    /// The tick of a CPU that leaves idle stays on the grid of all ticks.
    fn restart_tick(&mut self, cpu: CpuId) {
        let tick_ns = self.config.tick_ns();
        self.cpu(cpu).tick_at_ns = (self.now_ns / tick_ns + 1) * tick_ns;
    }

    /// Sets the slice-end timer for the current task, `delay_ns` from now plus
    /// the time to its deadline, if others are queued.
    fn arm_hrtick(&mut self, cpu: CpuId, delay_ns: u64) {
        let state = &self.cpus[cpu.index()];
        let Some(curr) = state.rq.curr() else { return };
        if state.rq.nr_queued(&self.entities) < 2 {
            return;
        }
        let Ok(left_ns) = u64::try_from(self.entities[curr].real_ns_to_deadline()) else {
            self.resched_full(cpu);
            return;
        };
        // The handler reads the clock after the interrupt's entry, so it always
        // finds the deadline reached.
        let entry_ns = self.config.timer_irq_ns;
        let at_ns = self.now_ns + delay_ns + left_ns.max(HRTICK_MIN_NS) + entry_ns;
        if state.hrtick_at_ns.abs_diff(at_ns) > HRTICK_SLACK_NS {
            self.cpu(cpu).hrtick_at_ns = at_ns;
        }
    }

    /// `hrtick_update`: at the end of a real enqueue.
    fn arm_hrtick_on_enqueue(&mut self, cpu: CpuId) {
        if self.config.hrtick == Hrtick::Off || self.cpu(cpu).hrtick_at_ns != NEVER {
            return;
        }
        self.arm_hrtick(cpu, 0);
        // Another CPU's timer is armed by a call on that CPU: an interrupt.
        if cpu != self.this_cpu && self.cpu(cpu).hrtick_at_ns != NEVER {
            self.send_ipi(cpu);
        }
    }

    /// The timer tick.
    pub(crate) fn tick(&mut self, cpu: CpuId) {
        self.cpu(cpu).tick_at_ns += self.config.tick_ns();
        self.emit_cpu(cpu, EventKind::Tick, 0);
        if self.cpu(cpu).need_resched_lazy {
            self.resched_full(cpu);
        }
        self.update_curr(cpu);
        self.rcu_tick(cpu);
        self.tick_balance(cpu);
    }

    /// The slice-end timer fires.
    pub(crate) fn hrtick(&mut self, cpu: CpuId) {
        self.cpu(cpu).hrtick_at_ns = NEVER;
        self.emit_cpu(cpu, EventKind::Hrtick, 0);
        self.update_curr(cpu);
        self.resched_full(cpu);
    }

    /// `wake_up_new_task`: puts a new task on the queue. A fork by a running
    /// task does not preempt it.
    pub(crate) fn wake_up_new(&mut self, task: TaskId, parent: TaskId) {
        let cpu = self.task(task).cpu;
        self.enqueue_as(cpu, task, Arrival::Forked);
        if parent == TaskId::NONE {
            return;
        }
        let donor = self.cpu(cpu).donor;
        let stays = |donor| !self.is_rt(task) && !self.displaces_idle(donor, task);
        if donor.is_some_and(stays) {
            self.no_preemption(cpu);
        } else {
            self.wakeup_preempt(cpu, task);
        }
    }

    pub(crate) fn enqueue(&mut self, cpu: CpuId, task: TaskId) {
        self.enqueue_as(cpu, task, Arrival::Placed);
    }

    fn enqueue_as(&mut self, cpu: CpuId, task: TaskId, arrival: Arrival) {
        self.update_curr(cpu);
        if let Some(priority) = self.rt_priority(task) {
            self.cpu(cpu).rt.enqueue(task, priority);
            self.entities[task].on_rq = true;
            self.track(task);
            self.overloaded |= self.nr_running(cpu) > 1;
            return;
        }
        let rq = &mut self.cpus[cpu.index()].rq;
        match arrival {
            Arrival::Placed => rq.enqueue(&mut self.entities, task),
            Arrival::Forked => rq.enqueue_forked(&mut self.entities, task),
        }
        self.track(task);
        self.cpu(cpu).touch(task);
        self.overloaded |= self.nr_running(cpu) > 1;
        self.emit_vruntime(task);
        self.emit_deadline(task);
        self.arm_hrtick_on_enqueue(cpu);
    }

    /// `try_to_wake_up`: says whether the task slept.
    pub(crate) fn wake(&mut self, task: TaskId, waker: TaskId) -> bool {
        if !self.task(task).asleep {
            return false;
        }
        self.task(task).asleep = false;
        self.task(task).op = Op::Poll;
        self.task(task).since_ns = self.now_ns;
        self.emit(task, EventKind::Wake, 0, waker.0);
        if core::mem::take(&mut self.task(task).lends) {
            // It has been queued all the time.
        } else if self.entities[task].on_rq {
            self.wake_delayed(task);
        } else {
            let from = self.task(task).cpu;
            let cpu = self.select_task_rq(task, waker);
            if cpu != from {
                self.attach_to(task, cpu);
                self.emit(task, EventKind::Migrate, from.0.into(), 0);
            }
            self.enqueue(cpu, task);
        }
        let cpu = self.task(task).cpu;
        self.wakeup_preempt(cpu, task);
        true
    }

    /// A sleeper that is still queued goes on where it stands, on the CPU where
    /// it blocked.
    fn wake_delayed(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.update_curr(cpu);
        let state = &mut self.cpus[cpu.index()];
        let moved = state.rq.requeue_delayed(&mut self.entities, task);
        self.track(task);
        if moved {
            self.cpu(cpu).touch(task);
            self.emit_vruntime(task);
            self.emit_deadline(task);
        }
    }

    /// Puts the calling task to sleep until a time.
    pub(crate) fn sleep_until(&mut self, task: TaskId, at_ns: u64) {
        self.task(task).op = Op::Sleep;
        self.task(task).asleep = true;
        self.timers.arm(at_ns, Timed::Sleeper(task));
        self.emit(task, EventKind::Sleep, at_ns, 0);
    }
}

/// Whose turn it is on a CPU, and who runs in it: the same task, unless it waits
/// and lends its turn.
#[derive(Clone, Copy)]
struct Turn {
    donor: TaskId,
    runs: TaskId,
}

/// How a task comes onto a queue.
#[derive(Clone, Copy)]
enum Arrival {
    /// Woken or moved: placed by its lag.
    Placed,
    /// Just forked.
    Forked,
}
