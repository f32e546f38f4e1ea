//! How full zswap may get.
//!
//! zswap takes pages until its pools hold `max_pool_percent` of memory. Once
//! that was reached it takes none until they are down to
//! `accept_threshold_percent` of that, so that it does not flutter around the
//! limit. The flag in between is one for the machine, and not protected by a
//! lock.
//!
//! 1. Between the thresholds the answer depends on which one was crossed
//!    last.
//! 2. With a threshold of 100 % there is no such range.
//!
//! ```
//! use zswap_mm::limits::Limits;
//!
//! // 4 GiB.
//! let limits = Limits::new(1 << 20);
//! assert_eq!((limits.max_pages(), limits.accept_thr_pages()), (209_715, 188_743));
//! ```

use crate::counters::ZswapCounters;
use crate::page::PAGE_SIZE;
use serde::{Deserialize, Serialize};

/// How the limits are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitRule {
    /// Full above the maximum; accepts again below the threshold (until 6.7).
    Exclusive,
    /// Full at the maximum; accepts again at the threshold (since 6.8).
    #[default]
    Inclusive,
}

/// The limits and whether the upper one was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the machine, in pages.
    pub totalram_pages: u64,
    /// `max_pool_percent`.
    pub max_pool_percent: u32,
    /// `accept_threshold_percent`.
    pub accept_threshold_percent: u32,
    /// How they are compared.
    pub rule: LimitRule,
    /// `zswap_pool_reached_full`.
    pub reached_full: bool,
}

impl Limits {
    /// The defaults: 20 % of memory, accepting again at 90 % of that.
    pub fn new(totalram_pages: u64) -> Self {
        Limits {
            totalram_pages,
            max_pool_percent: 20,
            accept_threshold_percent: 90,
            rule: LimitRule::Inclusive,
            reached_full: false,
        }
    }

    /// The most pages the pools may hold.
    pub fn max_pages(&self) -> u64 {
        self.totalram_pages * u64::from(self.max_pool_percent) / 100
    }

    /// How many pages they may hold for zswap to accept again.
    pub fn accept_thr_pages(&self) -> u64 {
        match self.rule {
            LimitRule::Inclusive => {
                self.max_pages() * u64::from(self.accept_threshold_percent) / 100
            }
            // The older code takes the percentages in the other order, which
            // rounds differently.
            LimitRule::Exclusive => {
                self.totalram_pages * u64::from(self.accept_threshold_percent) / 100
                    * u64::from(self.max_pool_percent)
                    / 100
            }
        }
    }

    /// Whether the pools hold too much (`zswap_is_full`).
    pub fn is_full(&self, pool_pages: u64) -> bool {
        match self.rule {
            LimitRule::Exclusive => self.max_pages() < pool_pages,
            LimitRule::Inclusive => pool_pages >= self.max_pages(),
        }
    }

    /// Whether they hold little enough to accept again
    /// (`zswap_can_accept`).
    pub fn can_accept(&self, pool_pages: u64) -> bool {
        match self.rule {
            LimitRule::Exclusive => self.accept_thr_pages() > pool_pages,
            LimitRule::Inclusive => pool_pages <= self.accept_thr_pages(),
        }
    }

    /// Whether a store must be refused now (`zswap_check_limits`); updates
    /// the flag and counts hits of the limit.
    pub fn check(&mut self, pool_pages: u64, counters: &mut ZswapCounters) -> bool {
        if self.is_full(pool_pages) {
            counters.pool_limit_hit += 1;
            self.reached_full = true;
        } else if self.reached_full && self.can_accept(pool_pages) {
            self.reached_full = false;
        }
        self.reached_full
    }
}

/// Pages that so many bytes fill.
pub fn bytes_to_pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_SIZE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which sizes, tried one after the other, are refused.
    fn refused(limits: &mut Limits, sizes: &[u64]) -> (Vec<bool>, u64) {
        let mut counters = ZswapCounters::default();
        let answers = sizes
            .iter()
            .map(|pages| limits.check(*pages, &mut counters))
            .collect();
        (answers, counters.pool_limit_hit)
    }

    #[test]
    fn between_the_thresholds_the_last_one_crossed_decides() {
        // 10,000 pages: full at 2,000, accepting again at 1,800.
        let mut limits = Limits::new(10_000);
        let sizes = [1999, 2000, 1999, 1801, 1800, 1999, 2500];
        let answers = vec![false, true, true, true, false, false, true];
        assert_eq!(refused(&mut limits, &sizes), (answers, 2));
    }

    #[test]
    fn the_older_rule_is_one_page_later_at_both_ends() {
        let mut limits = Limits {
            rule: LimitRule::Exclusive,
            ..Limits::new(10_000)
        };
        let sizes = [2000, 2001, 1800, 1799];
        assert_eq!(
            refused(&mut limits, &sizes),
            (vec![false, true, true, false], 1)
        );
    }

    #[test]
    fn a_threshold_of_one_hundred_per_cent_switches_the_hysteresis_off() {
        let mut limits = Limits {
            accept_threshold_percent: 100,
            ..Limits::new(10_000)
        };
        assert_eq!(
            refused(&mut limits, &[2000, 1999, 2000]),
            (vec![true, false, true], 2)
        );
    }
}
