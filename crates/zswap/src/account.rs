//! Whether all memory is accounted for.

use crate::zswap::Zswap;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::entry::EntryId;

impl Zswap {
    /// Compares what is allocated with what refers to it. No path may be under
    /// way.
    ///
    /// # Errors
    /// What does not add up.
    pub fn check(&self) -> Result<(), String> {
        let index = self.index.borrow();
        let ids: Vec<EntryId> = index.iter().map(|(_, id)| *id).collect();
        let entries = ids.len() as u64;
        let listed = ids
            .iter()
            .filter(|id| Zswap::is_listed(self.entry(**id).data));
        let objects = listed.count() as u64;
        let lengths = ids.iter().map(|id| u64::from(self.entry(*id).length));
        let pools = self.pools.borrow();
        let live = || pools.live().filter_map(|id| pools.pool(id));
        let zpools = || live().flat_map(|pool| pool.zpools.zpools());
        let allocated: usize = zpools().map(zswap_mm::zpool::Zpool::objects).sum();
        let refs: u64 = live().map(zswap_mm::lifecycle::ZswapPool::refs).sum();
        let current = u64::from(pools.current().is_some());
        let lru: usize = self
            .lrus
            .borrow()
            .iter()
            .map(zswap_mm::lru::ZswapLru::len)
            .sum();
        let cgroups = self.cgroups.borrow();
        let counters = self.counters.get();
        let ledger = pools.ledger();
        let books = [
            (
                "entries allocated",
                self.entries.borrow().len() as u64,
                entries,
            ),
            ("stored_pages", counters.stored_pages, entries),
            (
                "zswapped of the root",
                cgroups.zswapped(CgroupId::ROOT),
                entries,
            ),
            (
                "zswap.current of the root",
                cgroups.zswap_current(CgroupId::ROOT),
                lengths.sum(),
            ),
            (
                "same_filled_pages",
                counters.same_filled_pages,
                entries - objects,
            ),
            ("objects of the allocator", allocated as u64, objects),
            ("entries in the LRU", lru as u64, objects),
            ("references to pools", refs, entries + current),
            (
                "struct zswap_pool",
                ledger.zswap_pools,
                live().count() as u64,
            ),
            ("sets of contexts", ledger.acomp_ctxs, live().count() as u64),
            ("allocator pools", ledger.zpools, zpools().count() as u64),
            ("locked folios", self.cache.borrow().locked(), 0),
        ];
        for (what, found, expected) in books {
            if found != expected {
                return Err(format!("{what}: {found}, and {expected} are accounted for"));
            }
        }
        Ok(())
    }
}
