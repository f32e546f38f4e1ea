//! The order in which entries are written back.
//!
//! 1. An entry is in the list of its cgroup, and in one, or in none while it
//!    is being written back.
//! 2. With second chance, an entry whose `referenced` flag is set is passed
//!    by once: the flag is cleared and the entry becomes the youngest.
//! 3. A candidate is moved to the young end before it is handed out, so that
//!    a failed writeback does not meet it again at once.
//!
//! Until 6.8 each pool had one list in plain order of last use; since then
//! there is one for each cgroup (and memory node), and since 6.9 entries have
//! a second chance.
//!
//! Left out: memory nodes; there is one.
//!
//! ```
//! use zswap_mm::cgroup::CgroupId;
//! use zswap_mm::entry::EntryId;
//! use zswap_mm::lru::{Scan, ZswapLru};
//!
//! let mut lru = ZswapLru::new();
//! lru.add(CgroupId::ROOT, EntryId(1))?;
//! lru.add(CgroupId::ROOT, EntryId(2))?;
//! let mut referenced = [true, true, true];
//! let scan = lru.scan_second_chance(CgroupId::ROOT, |entry| &mut referenced[entry.0 as usize]);
//! assert_eq!(scan, Some(Scan::Rotated(EntryId(1))));
//! # Ok::<(), zswap_mm::AllocError>(())
//! ```

use crate::cgroup::CgroupId;
use crate::entry::EntryId;
use crate::fault::{AllocError, AllocSite, Failslab};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    younger: u32,
    /// The cgroup whose list it is in.
    list: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    oldest: u32,
    youngest: u32,
    len: usize,
    /// Whether `memcg_list_lru_alloc` made it.
    present: bool,
}

const EMPTY: List = List {
    oldest: NONE,
    youngest: NONE,
    len: 0,
    present: false,
};

/// What looking at the oldest entry of a list led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It got its second chance.
    Rotated(EntryId),
    /// It should be written back. It is still in the list, as the youngest.
    Candidate(EntryId),
}

/// The lists.
#[derive(Clone, Debug, Default)]
pub struct ZswapLru {
    lists: Vec<List>,
    links: Vec<Link>,
    len: usize,
    faults: Failslab,
}

impl ZswapLru {
    /// No lists.
    pub fn new() -> Self {
        ZswapLru::default()
    }

    /// Replaces the injector of allocation failures.
    pub fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }

    /// Makes the list of a cgroup, if it has none yet
    /// (`memcg_list_lru_alloc`).
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if a failure is injected.
    pub fn list_alloc(&mut self, cgroup: CgroupId) -> Result<(), AllocError> {
        let at = cgroup.0 as usize;
        if self.lists.get(at).is_some_and(|list| list.present) {
            return Ok(());
        }
        self.faults.check(AllocSite::ListLru)?;
        if self.lists.len() <= at {
            self.lists.resize(at + 1, EMPTY);
        }
        self.lists[at].present = true;
        Ok(())
    }

    /// Adds an entry that is in no list as the youngest, and makes the list
    /// if the cgroup has none.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if that list could not be made; nothing is
    /// added then.
    ///
    /// # Panics
    ///
    /// If the entry is in a list.
    pub fn add(&mut self, cgroup: CgroupId, entry: EntryId) -> Result<(), AllocError> {
        self.list_alloc(cgroup)?;
        assert!(
            self.list_of(entry).is_none(),
            "entry {} is in a list already",
            entry.0
        );
        let none = Link {
            older: NONE,
            younger: NONE,
            list: NONE,
        };
        if self.links.len() <= entry.0 as usize {
            self.links.resize(entry.0 as usize + 1, none);
        }
        let list = &mut self.lists[cgroup.0 as usize];
        let older = std::mem::replace(&mut list.youngest, entry.0);
        self.links[entry.0 as usize] = Link {
            older,
            younger: NONE,
            list: cgroup.0,
        };
        match older {
            NONE => list.oldest = entry.0,
            older => self.links[older as usize].younger = entry.0,
        }
        list.len += 1;
        self.len += 1;
        Ok(())
    }

    /// The cgroup in whose list an entry is.
    pub fn list_of(&self, entry: EntryId) -> Option<CgroupId> {
        let link = self.links.get(entry.0 as usize)?;
        (link.list != NONE).then_some(CgroupId(link.list))
    }

    /// Takes an entry out of its list and tells whether it was in one.
    pub fn del(&mut self, entry: EntryId) -> bool {
        let Some(cgroup) = self.list_of(entry) else {
            return false;
        };
        let Link { older, younger, .. } = self.links[entry.0 as usize];
        let list = &mut self.lists[cgroup.0 as usize];
        match older {
            NONE => list.oldest = younger,
            older => self.links[older as usize].younger = younger,
        }
        match younger {
            NONE => list.youngest = older,
            younger => self.links[younger as usize].older = older,
        }
        list.len -= 1;
        self.len -= 1;
        self.links[entry.0 as usize].list = NONE;
        true
    }

    /// Makes an entry the youngest of its list: it was used.
    pub fn rotate(&mut self, entry: EntryId) {
        if let Some(cgroup) = self.list_of(entry) {
            self.del(entry);
            let added = self.add(cgroup, entry);
            debug_assert!(added.is_ok(), "the list is there");
        }
    }

    /// The oldest entry of a cgroup.
    pub fn oldest(&self, cgroup: CgroupId) -> Option<EntryId> {
        let oldest = self.lists.get(cgroup.0 as usize)?.oldest;
        (oldest != NONE).then_some(EntryId(oldest))
    }

    /// Takes the oldest entry out (until 6.8: no second chance).
    pub fn isolate_oldest(&mut self, cgroup: CgroupId) -> Option<EntryId> {
        let oldest = self.oldest(cgroup)?;
        self.del(oldest);
        Some(oldest)
    }

    /// Looks at the oldest entry of a cgroup; `referenced` gives its flag.
    pub fn scan_second_chance<'a>(
        &mut self,
        cgroup: CgroupId,
        referenced: impl FnOnce(EntryId) -> &'a mut bool,
    ) -> Option<Scan> {
        let oldest = self.oldest(cgroup)?;
        self.rotate(oldest);
        Some(if std::mem::take(referenced(oldest)) {
            Scan::Rotated(oldest)
        } else {
            Scan::Candidate(oldest)
        })
    }

    /// Entries of a cgroup, oldest first.
    pub fn iter(&self, cgroup: CgroupId) -> impl Iterator<Item = EntryId> + '_ {
        std::iter::successors(self.oldest(cgroup), |entry| {
            let younger = self.links[entry.0 as usize].younger;
            (younger != NONE).then_some(EntryId(younger))
        })
    }

    /// Entries of a cgroup.
    pub fn list_len(&self, cgroup: CgroupId) -> usize {
        self.lists.get(cgroup.0 as usize).map_or(0, |list| list.len)
    }

    /// Entries in all lists.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all lists are empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// How many entries the dynamic shrinker offers to write back: of the
/// freeable ones, the part that compression gained. Entries that had to come
/// from the device anyhow (`disk_swapins`) count against it; what is left of
/// those is the second result.
///
/// Bytes and pages are those of the cgroup.
pub fn shrinker_count(
    freeable: u64,
    backing_pages: u64,
    stored_pages: u64,
    disk_swapins: u64,
) -> (u64, u64) {
    if stored_pages == 0 {
        return (0, disk_swapins);
    }
    let consumed = disk_swapins.min(freeable);
    let left = freeable - consumed;
    let count = u128::from(left) * u128::from(backing_pages) / u128::from(stored_pages);
    (count as u64, disk_swapins - consumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CgroupId = CgroupId(1);
    const B: CgroupId = CgroupId(2);

    fn lru_of(entries: &[(CgroupId, u32)]) -> ZswapLru {
        let mut lru = ZswapLru::new();
        for (cgroup, entry) in entries {
            assert_eq!(lru.add(*cgroup, EntryId(*entry)), Ok(()));
        }
        lru
    }

    fn order(lru: &ZswapLru, cgroup: CgroupId) -> Vec<u32> {
        lru.iter(cgroup).map(|entry| entry.0).collect()
    }

    #[test]
    fn each_cgroup_has_its_own_order() {
        let mut lru = lru_of(&[(A, 1), (B, 2), (A, 3), (A, 4)]);
        assert_eq!((order(&lru, A), order(&lru, B)), (vec![1, 3, 4], vec![2]));
        lru.rotate(EntryId(1));
        assert!(lru.del(EntryId(3)));
        assert!(!lru.del(EntryId(3)));
        assert_eq!(order(&lru, A), [4, 1]);
        assert_eq!(lru.isolate_oldest(A), Some(EntryId(4)));
        assert_eq!((lru.list_len(A), lru.len()), (1, 2));
    }

    #[test]
    fn every_entry_is_passed_by_once() {
        let mut lru = lru_of(&[(A, 0), (A, 1)]);
        let mut flags = [true, true];
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(lru.scan_second_chance(A, |entry| &mut flags[entry.0 as usize]));
        }
        let expected = [
            Scan::Rotated(EntryId(0)),
            Scan::Rotated(EntryId(1)),
            Scan::Candidate(EntryId(0)),
        ];
        assert_eq!(seen, expected.map(Some));
        // The candidate went to the young end.
        assert_eq!(order(&lru, A), [1, 0]);
    }

    #[test]
    fn a_list_that_cannot_be_made_adds_nothing() {
        let mut lru = ZswapLru::new();
        lru.set_faults(Failslab::nth(1));
        assert!(lru.add(A, EntryId(1)).is_err());
        assert!(lru.is_empty());
        assert_eq!(lru.add(A, EntryId(1)), Ok(()));
        assert_eq!(order(&lru, A), [1]);
    }

    #[test]
    fn the_shrinker_offers_what_compression_gained() {
        // 1000 pages in 250: a quarter of the freeable ones.
        assert_eq!(shrinker_count(800, 250, 1000, 0), (200, 0));
        assert_eq!(shrinker_count(800, 250, 1000, 400), (100, 0));
        assert_eq!(shrinker_count(800, 250, 1000, 900), (0, 100));
        assert_eq!(shrinker_count(0, 0, 0, 5), (0, 5));
    }
}
