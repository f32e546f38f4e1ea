//! The real-time class: `SCHED_FIFO`, above the fair class.
//!
//! Invariants:
//! 1. The task that runs is the first of the highest priority that is queued;
//!    it stays queued while it runs.
//! 2. Within a priority, first come first served; a task that is preempted keeps
//!    its place, one that has slept goes to the end.
//!
//! Left out: round robin, throttling and the server that gives the fair class a
//! share beside it, pushing and pulling between CPUs other than at a wakeup.

use crate::ids::TaskId;

/// A queued task.
#[derive(Clone, Copy, Debug)]
struct Queued {
    priority: u8,
    task: TaskId,
}

/// The real-time run queue of one CPU.
#[derive(Debug, Default)]
pub(crate) struct RtRq {
    /// Highest priority first, then in order of coming.
    queue: Vec<Queued>,
}

impl RtRq {
    /// Queues a task behind those of its priority.
    pub fn enqueue(&mut self, task: TaskId, priority: u8) {
        let at = self
            .queue
            .partition_point(|queued| queued.priority >= priority);
        self.queue.insert(at, Queued { priority, task });
    }

    /// Takes a task off.
    pub fn dequeue(&mut self, task: TaskId) {
        self.queue.retain(|queued| queued.task != task);
    }

    /// The task to run.
    pub fn pick(&self) -> Option<TaskId> {
        self.queue.first().map(|queued| queued.task)
    }

    /// How many are queued, the running one included.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_goes_first_and_then_the_order_of_coming() {
        let mut rq = RtRq::default();
        for (task, priority) in [(0, 10), (1, 50), (2, 10), (3, 50)] {
            rq.enqueue(TaskId(task), priority);
        }
        let mut order = Vec::new();
        while let Some(task) = rq.pick() {
            order.push(task.0);
            rq.dequeue(task);
        }
        assert_eq!(order, [1, 3, 0, 2]);
        assert!(rq.is_empty());
    }
}
