//! The lists of least recent use under their locks.

use crate::design::LruDesign;
use crate::zswap::Zswap;
use kernel_sim::{PlainSpinLock, Task};
use zswap_mm::SwapSlot;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::entry::{EntryData, EntryId};
use zswap_mm::lifecycle::PoolId;
use zswap_mm::lru::Scan;

impl Zswap {
    /// The number of the list that entries of a pool are in.
    pub(crate) fn lru_of(&self, pool: PoolId) -> usize {
        match self.design.lru {
            LruDesign::PerPool => usize::from(pool.0) - 1,
            LruDesign::Global => 0,
        }
    }

    pub(crate) fn lru_lock(&self, list: usize) -> PlainSpinLock {
        self.lru_locks[list]
    }

    /// The cgroup under which an entry is listed: until 6.8 there was one list.
    pub(crate) fn listed_under(&self, cgroup: CgroupId) -> CgroupId {
        match self.design.lru {
            LruDesign::PerPool => CgroupId::ROOT,
            LruDesign::Global => cgroup,
        }
    }

    pub(crate) fn is_in_lru(&self, id: EntryId) -> bool {
        let list = self.lru_of(self.entry(id).pool);
        self.lrus.borrow()[list].list_of(id).is_some()
    }

    /// Looks at the oldest entry of a cgroup. The list is locked.
    pub(crate) fn scan(&self, list: usize, cgroup: CgroupId) -> Option<Scan> {
        let mut entries = self.entries.borrow_mut();
        let entries = &mut *entries;
        self.lrus.borrow_mut()[list].scan_second_chance(cgroup, move |id| {
            let entry = entries.get_mut(id);
            &mut entry.expect("a list has live entries only").referenced
        })
    }

    /// Takes the oldest entry out. The list is locked.
    pub(crate) fn isolate_oldest(&self, list: usize) -> Option<(EntryId, SwapSlot)> {
        let oldest = self.lrus.borrow_mut()[list].isolate_oldest(CgroupId::ROOT)?;
        Some((oldest, self.entry(oldest).swpentry))
    }

    /// How many entries of a cgroup could be written back.
    pub(crate) fn lru_len(&self, cgroup: CgroupId) -> u64 {
        let lrus = self.lrus.borrow();
        lrus.iter().map(|lru| lru.list_len(cgroup) as u64).sum()
    }

    /// Whether entries with this content are in a list: what takes no memory
    /// need not be written back.
    pub(crate) fn is_listed(data: EntryData) -> bool {
        matches!(data, EntryData::Stored(_))
    }
}

/// `zswap_lru_add`: the entry is the youngest.
pub(crate) async fn zswap_lru_add(task: &Task, zswap: &Zswap, id: EntryId) {
    let entry = zswap.entry(id);
    if !Zswap::is_listed(entry.data) {
        return;
    }
    let list = zswap.lru_of(entry.pool);
    task.spin_lock(zswap.lru_lock(list)).await;
    let added = zswap.lrus.borrow_mut()[list].add(zswap.listed_under(entry.objcg), id);
    if added.is_err() {
        task.fail("adds an entry to a list that was not made before".to_owned());
    }
    task.run_kernel(zswap.costs.store_outside.lru_ns).await;
    task.spin_unlock(zswap.lru_lock(list)).await;
}

/// `zswap_lru_del`.
pub(crate) async fn zswap_lru_del(task: &Task, zswap: &Zswap, id: EntryId) {
    let entry = zswap.entry(id);
    if !Zswap::is_listed(entry.data) {
        return;
    }
    let list = zswap.lru_of(entry.pool);
    task.spin_lock(zswap.lru_lock(list)).await;
    zswap.lrus.borrow_mut()[list].del(id);
    task.run_kernel(zswap.costs.load_outside.free.lru_ns).await;
    task.spin_unlock(zswap.lru_lock(list)).await;
}
