//! Memory cgroups, as far as zswap asks them.
//!
//! 1. What is charged to a cgroup is charged to all above it.
//! 2. The charge comes after the fact and is never refused, so a limit can be
//!    overrun by what is being stored at the same time.
//! 3. The root has no limit.
//!
//! Left out: cgroup v1, which zswap never limits, and the delay with which
//! the kernel sums its per-CPU statistics.
//!
//! ```
//! use zswap_mm::cgroup::{Cgroups, CgroupId};
//!
//! let mut cgroups = Cgroups::new();
//! let job = cgroups.create(CgroupId::ROOT);
//! cgroups.set_zswap_max(job, Some(1));
//! assert!(cgroups.may_zswap(job));
//! cgroups.charge(job, 4096);
//! assert!(!cgroups.may_zswap(job));
//! assert_eq!(cgroups.zswap_current(CgroupId::ROOT), 4096);
//! ```

use crate::page::PAGE_SIZE;

/// A memory cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// The root of the hierarchy.
    pub const ROOT: CgroupId = CgroupId(0);
}

/// An event counted for the machine and for every cgroup it happens in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZswapEvent {
    /// A page was loaded from zswap (`zswpin`).
    Zswpin,
    /// A page was stored in zswap (`zswpout`).
    Zswpout,
    /// A page was written from zswap to the device (`zswpwb`).
    Zswpwb,
}

#[derive(Clone, Debug)]
struct Cgroup {
    parent: Option<CgroupId>,
    /// `memory.zswap.max`, in pages; none is `max`.
    zswap_max_pages: Option<u64>,
    /// `memory.zswap.writeback`.
    writeback: bool,
    online: bool,
    zswap_bytes: u64,
    zswapped: u64,
    events: [u64; 3],
}

/// The hierarchy.
#[derive(Clone, Debug)]
pub struct Cgroups {
    cgroups: Vec<Cgroup>,
}

impl Default for Cgroups {
    fn default() -> Self {
        Cgroups::new()
    }
}

impl Cgroups {
    /// The root alone.
    pub fn new() -> Self {
        Cgroups {
            cgroups: vec![Cgroups::fresh(None)],
        }
    }

    fn fresh(parent: Option<CgroupId>) -> Cgroup {
        Cgroup {
            parent,
            zswap_max_pages: None,
            writeback: true,
            online: true,
            zswap_bytes: 0,
            zswapped: 0,
            events: [0; 3],
        }
    }

    fn at(&self, cgroup: CgroupId) -> &Cgroup {
        &self.cgroups[cgroup.0 as usize]
    }

    /// The cgroup and everything above it.
    fn upwards(&self, cgroup: CgroupId) -> impl Iterator<Item = CgroupId> + '_ {
        std::iter::successors(Some(cgroup), |at| self.at(*at).parent)
    }

    fn for_each_upwards(&mut self, cgroup: CgroupId, mut change: impl FnMut(&mut Cgroup)) {
        let mut at = Some(cgroup);
        while let Some(here) = at {
            let record = &mut self.cgroups[here.0 as usize];
            change(record);
            at = record.parent;
        }
    }

    /// Creates a cgroup.
    pub fn create(&mut self, parent: CgroupId) -> CgroupId {
        self.cgroups.push(Cgroups::fresh(Some(parent)));
        CgroupId(self.cgroups.len() as u32 - 1)
    }

    /// Removes a cgroup: it stays as a zombie while something is charged to
    /// it, and the shrinker passes it by.
    pub fn offline(&mut self, cgroup: CgroupId) {
        self.cgroups[cgroup.0 as usize].online = false;
    }

    /// Whether a cgroup was not removed.
    pub fn is_online(&self, cgroup: CgroupId) -> bool {
        self.at(cgroup).online
    }

    /// Cgroups that were not removed, in order of their creation.
    pub fn online(&self) -> impl Iterator<Item = CgroupId> + '_ {
        (0..self.cgroups.len() as u32)
            .map(CgroupId)
            .filter(|cgroup| self.is_online(*cgroup))
    }

    /// Sets `memory.zswap.max` in pages; none lifts the limit.
    pub fn set_zswap_max(&mut self, cgroup: CgroupId, pages: Option<u64>) {
        self.cgroups[cgroup.0 as usize].zswap_max_pages = pages;
    }

    /// Sets `memory.zswap.writeback`.
    pub fn set_writeback(&mut self, cgroup: CgroupId, enabled: bool) {
        self.cgroups[cgroup.0 as usize].writeback = enabled;
    }

    /// Whether pages of a cgroup may be written to the swap device: not if it
    /// or one above it forbids that.
    pub fn writeback_enabled(&self, cgroup: CgroupId) -> bool {
        self.upwards(cgroup).all(|at| self.at(at).writeback)
    }

    /// Whether a cgroup may store another page (`obj_cgroup_may_zswap`): a
    /// limit of 0 says no at once, any other by what is charged already.
    pub fn may_zswap(&self, cgroup: CgroupId) -> bool {
        self.upwards(cgroup)
            .filter(|at| *at != CgroupId::ROOT)
            .all(|at| {
                let record = self.at(at);
                match record.zswap_max_pages {
                    None => true,
                    Some(0) => false,
                    Some(limit) => record.zswap_bytes / (PAGE_SIZE as u64) < limit,
                }
            })
    }

    /// Charges a stored page of so many compressed bytes.
    pub fn charge(&mut self, cgroup: CgroupId, bytes: usize) {
        self.for_each_upwards(cgroup, |at| {
            at.zswap_bytes += bytes as u64;
            at.zswapped += 1;
        });
    }

    /// Takes a charge back.
    ///
    /// # Panics
    ///
    /// If less was charged.
    pub fn uncharge(&mut self, cgroup: CgroupId, bytes: usize) {
        self.for_each_upwards(cgroup, |at| {
            let left = at
                .zswap_bytes
                .checked_sub(bytes as u64)
                .zip(at.zswapped.checked_sub(1));
            (at.zswap_bytes, at.zswapped) = left.expect("no more is taken back than was charged");
        });
    }

    /// Counts an event.
    pub fn count(&mut self, cgroup: CgroupId, event: ZswapEvent, pages: u64) {
        self.for_each_upwards(cgroup, |at| at.events[event as usize] += pages);
    }

    /// Bytes of compressed data charged (`memory.zswap.current`).
    pub fn zswap_current(&self, cgroup: CgroupId) -> u64 {
        self.at(cgroup).zswap_bytes
    }

    /// Pages stored (`zswapped`).
    pub fn zswapped(&self, cgroup: CgroupId) -> u64 {
        self.at(cgroup).zswapped
    }

    /// zswap's lines of `memory.stat`: `zswapped` in bytes, as the file has
    /// it.
    pub fn memory_stat(&self, cgroup: CgroupId) -> [(&'static str, u64); 5] {
        let record = self.at(cgroup);
        [
            ("zswap", record.zswap_bytes),
            ("zswapped", record.zswapped * PAGE_SIZE as u64),
            ("zswpin", record.events[ZswapEvent::Zswpin as usize]),
            ("zswpout", record.events[ZswapEvent::Zswpout as usize]),
            ("zswpwb", record.events[ZswapEvent::Zswpwb as usize]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_above_counts_too_and_zero_denies_at_once() {
        let mut cgroups = Cgroups::new();
        let parent = cgroups.create(CgroupId::ROOT);
        let (one, other) = (cgroups.create(parent), cgroups.create(parent));
        cgroups.set_zswap_max(parent, Some(2));
        cgroups.charge(one, 4096);
        cgroups.charge(other, 4095);
        // 8191 bytes are not two pages yet.
        assert!(cgroups.may_zswap(one));
        cgroups.charge(other, 1);
        assert!(!cgroups.may_zswap(one));
        cgroups.uncharge(one, 4096);
        assert!(cgroups.may_zswap(one));
        cgroups.set_zswap_max(one, Some(0));
        assert!(!cgroups.may_zswap(one));
        assert!(cgroups.may_zswap(other));
        // The root's own value is not looked at.
        cgroups.set_zswap_max(CgroupId::ROOT, Some(0));
        assert!(cgroups.may_zswap(other));
    }

    #[test]
    fn writeback_is_off_below_a_cgroup_that_forbids_it() {
        let mut cgroups = Cgroups::new();
        let parent = cgroups.create(CgroupId::ROOT);
        let child = cgroups.create(parent);
        assert!(cgroups.writeback_enabled(child));
        cgroups.set_writeback(parent, false);
        assert!(!cgroups.writeback_enabled(child));
        assert!(cgroups.writeback_enabled(CgroupId::ROOT));
    }

    #[test]
    fn statistics_add_up_to_the_root() {
        let mut cgroups = Cgroups::new();
        let child = cgroups.create(CgroupId::ROOT);
        cgroups.charge(child, 1000);
        cgroups.count(child, ZswapEvent::Zswpout, 1);
        cgroups.count(child, ZswapEvent::Zswpwb, 2);
        let expected = [
            ("zswap", 1000),
            ("zswapped", 4096),
            ("zswpin", 0),
            ("zswpout", 1),
            ("zswpwb", 2),
        ];
        assert_eq!(cgroups.memory_stat(child), expected);
        assert_eq!(cgroups.memory_stat(CgroupId::ROOT), expected);
        cgroups.offline(child);
        assert_eq!(cgroups.online().collect::<Vec<_>>(), [CgroupId::ROOT]);
    }
}
