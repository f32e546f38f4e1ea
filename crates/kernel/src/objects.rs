//! The tables of what a machine has beside CPUs, tasks and locks.

use crate::completion::CompletionState;
use crate::request::{Requests, Server};

/// All of it, each by number.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub completions: Vec<CompletionState>,
    pub servers: Vec<Server>,
    pub requests: Requests,
}
