//! zswap's counters, named as in debugfs and vmstat.
//!
//! Most of the kernel's are plain integers that nobody locks; a comment there
//! calls them possibly inaccurate. Here they are exact.

use serde::{Deserialize, Serialize};

/// The counters of `/sys/kernel/debug/zswap` and zswap's lines of
/// `/proc/vmstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZswapCounters {
    /// The pool limit was hit.
    pub pool_limit_hit: u64,
    /// Writeback of an entry failed.
    pub reject_reclaim_fail: u64,
    /// The allocator or the index had no memory.
    pub reject_alloc_fail: u64,
    /// No memory for an entry.
    pub reject_kmemcache_fail: u64,
    /// The compressor failed.
    pub reject_compress_fail: u64,
    /// The page compressed to more than the allocator takes.
    pub reject_compress_poor: u64,
    /// Decompression failed (counted since about 6.15).
    pub decompress_fail: u64,
    /// Entries written to the swap device.
    pub written_back_pages: u64,
    /// Entries stored.
    pub stored_pages: u64,
    /// Entries stored as they are (since 6.18).
    pub stored_incompressible_pages: u64,
    /// A store found an older entry for its slot (until 6.7).
    pub duplicate_entry: u64,
    /// Entries that are one repeated word (until 6.11).
    pub same_filled_pages: u64,
    /// Pages loaded from zswap.
    pub zswpin: u64,
    /// Pages stored in zswap.
    pub zswpout: u64,
    /// Pages written from zswap to the swap device.
    pub zswpwb: u64,
}

/// Which counters a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterSet {
    /// 6.7, with `duplicate_entry` and `same_filled_pages`.
    V6_7,
    /// 6.12 to 6.14.
    V6_12,
    /// 2026, with `decompress_fail` and `stored_incompressible_pages`.
    V2026,
}

impl ZswapCounters {
    /// The files of `/sys/kernel/debug/zswap`. `pool_total_size` is in bytes.
    pub fn debugfs(&self, set: CounterSet, pool_total_size: u64) -> Vec<(&'static str, u64)> {
        let mut files = vec![
            ("pool_limit_hit", self.pool_limit_hit),
            ("reject_reclaim_fail", self.reject_reclaim_fail),
            ("reject_alloc_fail", self.reject_alloc_fail),
            ("reject_kmemcache_fail", self.reject_kmemcache_fail),
            ("reject_compress_fail", self.reject_compress_fail),
            ("reject_compress_poor", self.reject_compress_poor),
        ];
        match set {
            CounterSet::V6_7 => files.push(("duplicate_entry", self.duplicate_entry)),
            CounterSet::V6_12 => {}
            CounterSet::V2026 => files.push(("decompress_fail", self.decompress_fail)),
        }
        files.extend([
            ("written_back_pages", self.written_back_pages),
            ("pool_total_size", pool_total_size),
            ("stored_pages", self.stored_pages),
        ]);
        match set {
            CounterSet::V6_7 => files.push(("same_filled_pages", self.same_filled_pages)),
            CounterSet::V6_12 => {}
            CounterSet::V2026 => {
                files.push((
                    "stored_incompressible_pages",
                    self.stored_incompressible_pages,
                ));
            }
        }
        files
    }

    /// zswap's lines of `/proc/vmstat`.
    pub fn vmstat(&self) -> [(&'static str, u64); 3] {
        [
            ("zswpin", self.zswpin),
            ("zswpout", self.zswpout),
            ("zswpwb", self.zswpwb),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_its_own_files() {
        let counters = ZswapCounters {
            decompress_fail: 3,
            ..ZswapCounters::default()
        };
        let names = |set| {
            counters
                .debugfs(set, 8192)
                .into_iter()
                .map(|(name, _)| name)
        };
        assert_eq!(names(CounterSet::V6_7).count(), 11);
        assert_eq!(names(CounterSet::V6_12).count(), 9);
        assert_eq!(names(CounterSet::V2026).count(), 11);
        assert!(names(CounterSet::V6_7).all(|name| name != "decompress_fail"));
        assert!(
            counters
                .debugfs(CounterSet::V2026, 8192)
                .contains(&("decompress_fail", 3))
        );
        assert!(
            counters
                .debugfs(CounterSet::V2026, 8192)
                .contains(&("pool_total_size", 8192))
        );
    }
}
