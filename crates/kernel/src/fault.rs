//! A broken rule, with who broke it and where.

use crate::trace::Site;
use core::fmt;

/// Why a machine stopped before its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// When, in virtual ns.
    pub at_ns: u64,
    /// The name of the task.
    pub task: String,
    /// The source line the task was at.
    pub site: Site,
    /// What it did, and what would have been right.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { file, line } = &self.site;
        write!(
            f,
            "at {} ns, {} ({file}:{line}): {}",
            self.at_ns, self.task, self.what
        )
    }
}

impl core::error::Error for Fault {}
