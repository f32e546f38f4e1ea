//! Why a task does not run: lock, owner, why the owner does not run, and what
//! must happen first.
//!
//! Invariants:
//! 1. The chain starts with the task that was asked about and ends with one
//!    that runs, or that only time can wake.
//! 2. No task comes twice, but for an owner, which has one link for what it
//!    owns and one for why it does not run.

use crate::frame::{Queue, Status, frame};
use crate::words::{in_words_ns, in_words_signed_ns};
use crate::{Frame, TaskFrame};
use serde::{Deserialize, Serialize};
use zswap_lab::{LockId, MachineState, Roster, TaskId};

/// One link of the chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WhyLink {
    /// The task it is about.
    pub task: TaskId,
    /// What is so.
    pub title: String,
    /// Since when, and what decides.
    pub detail: String,
    /// Somebody waits for this, and it is not running.
    pub alarm: bool,
}

/// Why `task` does not run at `at_ns`, or that it does.
#[must_use]
pub fn why(roster: &Roster, state: &MachineState, at_ns: u64, task: TaskId) -> Vec<WhyLink> {
    let frame = frame(roster, state, at_ns);
    let queue = Queue::of(roster, state, at_ns);
    let mut chain = Chain {
        frame: &frame,
        queue: &queue,
        state,
        links: Vec::new(),
    };
    chain.follow(task);
    chain.links
}

struct Chain<'a> {
    frame: &'a Frame,
    queue: &'a Queue,
    state: &'a MachineState,
    links: Vec<WhyLink>,
}

impl Chain<'_> {
    fn task(&self, task: TaskId) -> &TaskFrame {
        &self.frame.tasks[task.index()]
    }

    fn ago(&self, since_ns: u64) -> String {
        in_words_ns(self.frame.at_ns.saturating_sub(since_ns))
    }

    fn push(&mut self, task: TaskId, title: String, detail: String, alarm: bool) {
        self.links.push(WhyLink {
            task,
            title,
            detail,
            alarm,
        });
    }

    /// One link after the other. Tasks that wait for each other in a circle end
    /// the chain where it closes.
    fn follow(&mut self, first: TaskId) {
        let mut seen = vec![first];
        let mut at = Some(first);
        while let Some(task) = at {
            at = self.link(task).filter(|next| !seen.contains(next));
            seen.extend(at);
        }
    }

    /// Why one task does not run, and whom that leads to.
    fn link(&mut self, task: TaskId) -> Option<TaskId> {
        let (name, status) = (self.task(task).name.clone(), self.task(task).status);
        match status {
            Status::WaitsForLock | Status::Delayed => {
                let lock = self.task(task).waits_for?;
                self.waits(task, lock);
                let owner = self.frame.locks[lock.index()].owner?;
                self.owns(owner, lock);
                if owner == task {
                    // The lock is handed over and its new owner about to be woken.
                    return self.running_beside(task);
                }
                Some(owner)
            }
            Status::Preempted | Status::Runnable => self.queued(task),
            Status::Running => {
                let cpu = self.state.task(task).cpu;
                let mode = self.frame.cpus[cpu.index()].mode;
                let since = self.ago(self.task(task).since_ns);
                let title = format!("{name} runs on CPU {cpu}");
                self.push(
                    task,
                    title,
                    format!("{}; on the CPU for {since}", mode.words()),
                    false,
                );
                None
            }
            Status::Asleep | Status::Ended => {
                let words = self.task(task).words.clone();
                let title = format!("{name} is {words}");
                self.push(task, title, "by its own wish".to_owned(), false);
                None
            }
        }
    }

    fn waits(&mut self, task: TaskId, lock: LockId) {
        let frame = &self.frame.locks[lock.index()];
        let place = frame.queue.iter().position(|waiter| waiter.task == task);
        let place = place.map_or(String::new(), |place| {
            format!(", {} in the queue", ordinal(place + 1))
        });
        let since = self.ago(self.state.task(task).waits_since_ns);
        let at = self.line(task);
        let title = format!("{} sleeps on {}", self.task(task).name, frame.name);
        self.push(task, title, format!("for {since}{place}{at}"), false);
    }

    fn owns(&mut self, owner: TaskId, lock: LockId) {
        let frame = &self.frame.locks[lock.index()];
        let since = self.ago(frame.owner_since_ns);
        let name = &self.task(owner).name;
        let (title, how) = if frame.handed_over {
            (format!("{name} is to have it"), "handed over")
        } else {
            (format!("{name} owns it"), "taken")
        };
        let at = self.line(owner);
        let detail = format!("{how} {since} ago{at}");
        let runs = self.task(owner).status == Status::Running;
        self.push(owner, title, detail, !runs);
    }

    /// A task that wants to run and does not: what the queue decides by.
    fn queued(&mut self, task: TaskId) -> Option<TaskId> {
        let TaskFrame {
            name,
            weight,
            eligible,
            since_ns,
            alarm,
            ..
        } = self.task(task).clone();
        let since = self.ago(since_ns);
        let lag = in_words_signed_ns(self.queue.lag_ns(self.state, task));
        let title = if eligible {
            format!("{name} is ready and must wait its turn")
        } else {
            format!("{name} is ready but not eligible")
        };
        let reason = if eligible {
            "its virtual deadline is later, or the running task is protected"
        } else {
            "it has had more than its share"
        };
        let detail = format!("for {since}; lag {lag} at weight {weight}: {reason}");
        self.push(task, title, detail, alarm);
        self.running_beside(task)
    }

    /// Who runs on the CPU of a task that does not.
    fn running_beside(&self, task: TaskId) -> Option<TaskId> {
        let cpu = self.state.task(task).cpu;
        self.frame.cpus[cpu.index()].running
    }

    fn line(&self, task: TaskId) -> String {
        self.task(task)
            .line
            .as_ref()
            .map_or_else(String::new, |at| {
                let file = at.file.rsplit('/').next().unwrap_or(&at.file);
                format!("; {file}, line {}", at.line)
            })
    }
}

fn ordinal(place: usize) -> String {
    match place {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        _ => format!("number {place}"),
    }
}
