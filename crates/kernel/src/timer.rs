//! What happens at a time of its own: sleepers to wake, and events of devices
//! and of RCU.
//!
//! Invariants:
//! 1. The order is total: by time, and of the same time by the order in which
//!    they were armed.
//! 2. An event is an interrupt on one CPU, which is known before it fires: the
//!    sleeper's own, the one that a request was submitted on, or RCU's.

use crate::ids::{CpuId, TaskId};
use crate::kernel::Kernel;
use crate::rcu::RcuEvent;
use crate::request::RequestSlot;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is to happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timed {
    /// A sleeper's time has come.
    Sleeper(TaskId),
    /// A device has done a request.
    Request(RequestSlot),
    /// Something of RCU's.
    Rcu(RcuEvent),
}

/// The pending events, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64, Timed)>>,
    armed: u64,
}

impl Timers {
    /// Adds an event.
    pub fn arm(&mut self, at_ns: u64, what: Timed) {
        self.heap.push(Reverse((at_ns, self.armed, what)));
        self.armed += 1;
    }

    /// The earliest event.
    pub fn peek(&self) -> Option<(u64, Timed)> {
        self.heap
            .peek()
            .map(|&Reverse((at_ns, _, what))| (at_ns, what))
    }

    fn pop(&mut self) -> Option<Timed> {
        self.heap.pop().map(|Reverse((_, _, what))| what)
    }
}

impl Kernel {
    /// The CPU that an event interrupts.
    pub(crate) fn cpu_of_timed(&self, what: Timed) -> CpuId {
        match what {
            Timed::Sleeper(task) => self.tasks[task.index()].cpu,
            Timed::Request(slot) => self.cpu_of_request(slot),
            Timed::Rcu(event) => self.cpu_of_rcu(event),
        }
    }

    /// The earliest event comes to pass on its CPU.
    pub(crate) fn fire_timer(&mut self, cpu: CpuId) {
        match self.timers.pop() {
            Some(Timed::Sleeper(task)) => {
                self.enter_irq(cpu, self.config.timer_irq_ns);
                self.wake(task, TaskId::NONE);
            }
            Some(Timed::Request(slot)) => self.request_irq(cpu, slot),
            Some(Timed::Rcu(event)) => self.rcu_event(cpu, event),
            None => {}
        }
    }
}
