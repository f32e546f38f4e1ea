//! The tables of what a machine has beside CPUs, tasks and locks.

use crate::completion::CompletionState;
use crate::percpu_ref::RefState;
use crate::rcu::Rcu;
use crate::request::{Requests, Server};
use crate::workqueue::{WorkState, WorkqueueState};

/// All of it, each by number.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub completions: Vec<CompletionState>,
    pub servers: Vec<Server>,
    pub requests: Requests,
    pub workqueues: Vec<WorkqueueState>,
    pub works: Vec<WorkState>,
    pub rcu: Rcu,
    pub refs: Vec<RefState>,
}
