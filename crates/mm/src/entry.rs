//! `struct zswap_entry` and the cache it comes from.
//!
//! 1. An entry's number, and with it its address, is given out again only
//!    after the entry was freed.
//! 2. The number of an entry says where it lies in the kernel's memory
//!    ([`EntryPointer`]), which is what picks one of 32 pools.
//!
//! ```
//! use zswap_mm::entry::{EntryCache, EntryData, ZswapEntry};
//! use zswap_mm::layout::EntryEra;
//! use zswap_mm::{cgroup::CgroupId, lifecycle::PoolId, SwapSlot};
//!
//! let mut cache = EntryCache::new(EntryEra::Xarray);
//! let entry = ZswapEntry {
//!     swpentry: SwapSlot(7),
//!     length: 0,
//!     referenced: true,
//!     pool: PoolId(1),
//!     data: EntryData::SameFilled(0),
//!     objcg: CgroupId::ROOT,
//! };
//! let id = cache.alloc(entry)?;
//! assert_eq!(cache.pointer(id).0 % 56, 0xffff_8880_0000_0000_u64 % 56);
//! assert_eq!(cache.free(id).swpentry, SwapSlot(7));
//! # Ok::<(), zswap_mm::AllocError>(())
//! ```

use crate::cgroup::CgroupId;
use crate::fault::{AllocError, AllocSite, Failslab};
use crate::index::SwapSlot;
use crate::layout::EntryEra;
use crate::lifecycle::PoolId;
use crate::page::PAGE_SIZE;
use crate::slab::Slab;
use crate::zpool::{EntryPointer, SetHandle};

/// An entry of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

/// Where the page's contents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryData {
    /// In an allocator: compressed, or raw if the length is a whole page.
    Stored(SetHandle),
    /// Nowhere: the page repeats this word (until 6.11; the length is 0).
    SameFilled(u64),
}

/// What zswap keeps about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZswapEntry {
    /// The page's slot on the swap device.
    pub swpentry: SwapSlot,
    /// Bytes of the stored form.
    pub length: u16,
    /// Whether the shrinker has to pass it by once (since 6.9).
    pub referenced: bool,
    /// The pool it was stored in, which it keeps alive.
    pub pool: PoolId,
    /// Where the contents are.
    pub data: EntryData,
    /// The cgroup it is charged to.
    pub objcg: CgroupId,
}

impl ZswapEntry {
    /// Whether the page is stored as it is.
    pub fn is_incompressible(&self) -> bool {
        usize::from(self.length) == PAGE_SIZE
    }
}

/// The slab cache entries come from.
#[derive(Clone, Debug)]
pub struct EntryCache {
    entries: Slab<Option<ZswapEntry>>,
    entry_bytes: usize,
    faults: Failslab,
}

impl EntryCache {
    /// A cache of entries as large as they were in an era.
    pub fn new(era: EntryEra) -> Self {
        let entry_bytes = era.layout().size();
        EntryCache {
            entries: Slab::default(),
            entry_bytes,
            faults: Failslab::never(),
        }
    }

    /// Replaces the injector of allocation failures.
    pub fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }

    /// The entry that the next allocation will get, if it succeeds: its
    /// address is known before it is filled.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if a failure is injected.
    pub fn alloc(&mut self, entry: ZswapEntry) -> Result<EntryId, AllocError> {
        self.faults.check(AllocSite::ZswapEntry)?;
        Ok(EntryId(self.entries.insert(Some(entry))))
    }

    /// Frees an entry.
    ///
    /// # Panics
    ///
    /// If it was freed before.
    pub fn free(&mut self, id: EntryId) -> ZswapEntry {
        let entry = self.entries[id.0].take().expect("the entry is allocated");
        self.entries.release(id.0);
        entry
    }

    /// An entry; none if it was freed.
    pub fn get(&self, id: EntryId) -> Option<&ZswapEntry> {
        if id.0 >= self.entries.numbers() {
            None
        } else {
            self.entries[id.0].as_ref()
        }
    }

    /// An entry, to change it.
    pub fn get_mut(&mut self, id: EntryId) -> Option<&mut ZswapEntry> {
        if id.0 >= self.entries.numbers() {
            None
        } else {
            self.entries[id.0].as_mut()
        }
    }

    /// The address of an entry.
    pub fn pointer(&self, id: EntryId) -> EntryPointer {
        EntryPointer::in_slab(u64::from(id.0), self.entry_bytes)
    }

    /// Entries allocated.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry is allocated.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_entry_size_and_are_used_again() -> Result<(), AllocError> {
        let entry = ZswapEntry {
            swpentry: SwapSlot(1),
            length: 4096,
            referenced: false,
            pool: PoolId(1),
            data: EntryData::SameFilled(0),
            objcg: CgroupId::ROOT,
        };
        assert!(entry.is_incompressible());
        let mut cache = EntryCache::new(EntryEra::RbTree);
        let ids = (0..52)
            .map(|_| cache.alloc(entry))
            .collect::<Result<Vec<_>, _>>()?;
        let offset = |id| cache.pointer(id).0 - cache.pointer(ids[0]).0;
        // 51 entries of 80 bytes fit a page, the 52nd begins the next.
        assert_eq!(
            (offset(ids[1]), offset(ids[50]), offset(ids[51])),
            (80, 4000, 4096)
        );
        cache.free(ids[9]);
        assert_eq!(cache.get(ids[9]), None);
        assert_eq!(cache.alloc(entry)?, ids[9]);
        cache.set_faults(Failslab::nth(1));
        assert!(cache.alloc(entry).is_err());
        assert_eq!(cache.len(), 52);
        Ok(())
    }
}
