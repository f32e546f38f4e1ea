//! Allocation failures on demand.
//!
//! Modelled on the kernel's fault injection for slab allocations (failslab):
//! every place that allocates asks a [`Failslab`] first. Which attempt fails
//! is decided by counting, or by a probability out of a seeded stream of
//! integers, so a failing run can be repeated exactly.
//!
//! 1. An injector that never fails draws nothing from its stream.
//! 2. `times` limits the failures, `space` the attempts let through first,
//!    `interval` how far apart they are: the same knobs as in
//!    `/sys/kernel/debug/failslab`.
//! 3. Asking changes only the injector: whoever asks must be able to give up
//!    with nothing leaked and nothing lost.
//!
//! Left out: filtering by task, stack trace or slab cache. A site filter
//! ([`Failslab::only_at`]) stands for the last.
//!
//! ```
//! use zswap_mm::{AllocSite, Failslab};
//!
//! let mut third = Failslab::nth(3);
//! let failed: Vec<bool> = (0..5).map(|_| third.should_fail(AllocSite::Zspage)).collect();
//! assert_eq!(failed, [false, false, true, false, false]);
//! ```

use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// A place where something is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocSite {
    /// The eight bytes of a zsmalloc handle.
    ZsHandle,
    /// The descriptor of a zspage.
    Zspage,
    /// One of the page frames of a zspage, a zbud or a z3fold page.
    PageFrame,
    /// A node of an index (an xarray node; an rb-tree has its node in the
    /// entry and allocates nothing).
    IndexNode,
    /// A `struct zswap_entry`.
    ZswapEntry,
    /// A `struct zswap_pool` and its per-CPU contexts.
    ZswapPool,
    /// The zsmalloc, zbud or z3fold pool behind a zswap pool.
    Zpool,
    /// The list of an LRU for one memory cgroup.
    ListLru,
}

impl AllocSite {
    /// Every site.
    pub const ALL: [AllocSite; 8] = [
        AllocSite::ZsHandle,
        AllocSite::Zspage,
        AllocSite::PageFrame,
        AllocSite::IndexNode,
        AllocSite::ZswapEntry,
        AllocSite::ZswapPool,
        AllocSite::Zpool,
        AllocSite::ListLru,
    ];
}

impl std::fmt::Display for AllocSite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AllocSite::ZsHandle => "zsmalloc handle",
            AllocSite::Zspage => "zspage descriptor",
            AllocSite::PageFrame => "page frame",
            AllocSite::IndexNode => "index node",
            AllocSite::ZswapEntry => "zswap entry",
            AllocSite::ZswapPool => "zswap pool",
            AllocSite::Zpool => "allocator pool",
            AllocSite::ListLru => "memory cgroup LRU list",
        })
    }
}

/// Why an allocation did not succeed, with the kernel's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// An object of no bytes (`-EINVAL`).
    #[error("an object of 0 bytes was asked for: 1 byte is the least")]
    Empty,
    /// More bytes than the allocator can place in one object (`-ENOSPC`).
    #[error(
        "an object of {size} bytes was asked for: this allocator holds at most {max} bytes in one"
    )]
    TooLarge {
        /// What was asked for, in bytes.
        size: usize,
        /// The most the allocator accepts, in bytes.
        max: usize,
    },
    /// No memory, because a failure was injected there (`-ENOMEM`).
    #[error("no memory for a {site}: the failure was injected")]
    NoMemory {
        /// What could not be allocated.
        site: AllocSite,
    },
    /// All identifiers of a fixed range are taken (`-EBUSY`).
    #[error("all {max} {what} are in use: give one back first")]
    Busy {
        /// What there are no more of.
        what: &'static str,
        /// How many there can be.
        max: usize,
    },
}

impl AllocError {
    /// The name of the error number the kernel returns.
    pub fn errno(&self) -> &'static str {
        match self {
            AllocError::Empty => "EINVAL",
            AllocError::TooLarge { .. } => "ENOSPC",
            AllocError::NoMemory { .. } => "ENOMEM",
            AllocError::Busy { .. } => "EBUSY",
        }
    }
}

/// Which attempts fail.
#[derive(Clone, Debug)]
enum Rule {
    Never,
    /// The attempt with this number, counted from one.
    Nth(u64),
    /// So many attempts of a million.
    PerMillion(u32, Stream),
}

/// Decides which allocations fail.
#[derive(Clone, Debug)]
pub struct Failslab {
    rule: Rule,
    site: Option<AllocSite>,
    interval: u64,
    times: u64,
    space: u64,
    attempts: u64,
    failures: u64,
}

impl Default for Failslab {
    /// Same as [`Failslab::never`].
    fn default() -> Self {
        Failslab::never()
    }
}

impl Failslab {
    fn with_rule(rule: Rule) -> Self {
        Failslab {
            rule,
            site: None,
            interval: 1,
            times: u64::MAX,
            space: 0,
            attempts: 0,
            failures: 0,
        }
    }

    /// No allocation fails.
    pub fn never() -> Self {
        Failslab::with_rule(Rule::Never)
    }

    /// The `n`-th allocation fails, counted from one, and no other.
    pub fn nth(n: u64) -> Self {
        Failslab::with_rule(Rule::Nth(n))
    }

    /// Out of a million allocations about `per_million` fail, picked by the
    /// stream of integers that `seed` starts.
    pub fn per_million(per_million: u32, seed: u64) -> Self {
        Failslab::with_rule(Rule::PerMillion(per_million, Stream::new(seed)))
    }

    /// Only allocations at `site` count and can fail.
    #[must_use]
    pub fn only_at(mut self, site: AllocSite) -> Self {
        self.site = Some(site);
        self
    }

    /// At most `times` failures.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// The first `attempts` allocations succeed whatever the rule says.
    #[must_use]
    pub fn space(mut self, attempts: u64) -> Self {
        self.space = attempts;
        self
    }

    /// Only every `interval`-th allocation can fail.
    #[must_use]
    pub fn interval(mut self, interval: u64) -> Self {
        self.interval = interval.max(1);
        self
    }

    /// Whether the allocation that is about to be made at `site` fails.
    #[inline]
    pub fn should_fail(&mut self, site: AllocSite) -> bool {
        if matches!(self.rule, Rule::Never) {
            return false;
        }
        self.decide(site)
    }

    /// [`should_fail`](Self::should_fail) as a result.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if the allocation fails.
    #[inline]
    pub fn check(&mut self, site: AllocSite) -> Result<(), AllocError> {
        if self.should_fail(site) {
            Err(AllocError::NoMemory { site })
        } else {
            Ok(())
        }
    }

    fn decide(&mut self, site: AllocSite) -> bool {
        if self.site.is_some_and(|only| only != site) {
            return false;
        }
        self.attempts += 1;
        if self.attempts <= self.space
            || self.failures >= self.times
            || !self.attempts.is_multiple_of(self.interval)
        {
            return false;
        }
        let fails = match &mut self.rule {
            Rule::Never => false,
            Rule::Nth(n) => self.attempts == *n,
            Rule::PerMillion(rate, stream) => stream.below(1_000_000) < u64::from(*rate),
        };
        self.failures += u64::from(fails);
        fails
    }

    /// Attempts that counted so far.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Failures injected so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures_of(mut failslab: Failslab, attempts: usize) -> Vec<usize> {
        (1..=attempts)
            .filter(|_| failslab.should_fail(AllocSite::PageFrame))
            .collect()
    }

    #[test]
    fn a_probability_is_kept_and_repeats() {
        let first = failures_of(Failslab::per_million(100_000, 42), 100_000);
        let again = failures_of(Failslab::per_million(100_000, 42), 100_000);
        let other = failures_of(Failslab::per_million(100_000, 43), 100_000);
        assert_eq!(first, again);
        assert_ne!(first, other);
        // Binomial: 10,000 expected, standard deviation 95.
        assert!(
            (9_500..10_500).contains(&first.len()),
            "{} failures",
            first.len()
        );
    }

    #[test]
    fn space_times_and_interval_limit_it() {
        let always = || Failslab::per_million(1_000_000, 1);
        assert_eq!(failures_of(always().times(3), 10), [1, 2, 3]);
        assert_eq!(failures_of(always().space(7), 10), [8, 9, 10]);
        assert_eq!(failures_of(always().interval(4), 10), [4, 8]);
    }

    #[test]
    fn a_site_filter_counts_only_that_site() {
        let mut failslab = Failslab::nth(2).only_at(AllocSite::IndexNode);
        assert!(!failslab.should_fail(AllocSite::IndexNode));
        assert!(!failslab.should_fail(AllocSite::Zspage));
        assert!(failslab.should_fail(AllocSite::IndexNode));
        assert_eq!((failslab.attempts(), failslab.failures()), (2, 1));
    }
}
