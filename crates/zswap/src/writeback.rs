//! Writeback: a page leaves zswap for the swap device.

use crate::design::LruDesign;
use crate::invalidate::zswap_entry_free;
use crate::load::zswap_decompress;
use crate::lru::zswap_lru_add;
use crate::probe::Probe;
use crate::swap_cache::{CachedFolio, end_swap_writes, folio_add_locked, folio_unlock};
use crate::tree::{tree_erase, tree_search};
use crate::zswap::Zswap;
use kernel_sim::{Io, Task};
use zswap_mm::cgroup::{CgroupId, ZswapEvent};
use zswap_mm::entry::EntryId;
use zswap_mm::lru::Scan;
use zswap_mm::{Page, SwapSlot};

/// Why an entry was not written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritebackError {
    /// The slot has a folio already: the page is warm (`-EEXIST`).
    Exists,
    /// The entry was gone by the time its folio was locked (`-ENOMEM`).
    Gone,
    /// Its data did not decompress (`-EIO`).
    Io,
    /// There is no device to write to.
    NoDevice,
}

/// What became of the oldest entry of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walked {
    /// There is none.
    Empty,
    /// It was referenced, and gets a second chance.
    Rotated,
    /// It was written back.
    Removed,
    /// It was not.
    Failed(WritebackError),
}

/// `zswap_writeback_entry`: decompresses the page into a folio of the swap
/// cache and begins to write that. Of the entry only the number may be used
/// until the folio is locked and the tree still has it.
pub(crate) async fn zswap_writeback_entry(
    task: &Task,
    zswap: &Zswap,
    id: EntryId,
    slot: SwapSlot,
) -> Result<(), WritebackError> {
    let device = zswap.device.ok_or(WritebackError::NoDevice)?;
    if !folio_add_locked(zswap, slot) {
        return Err(WritebackError::Exists);
    }
    let mut page = Box::new(Page::zeroed());
    let taken = take_from_zswap(task, zswap, id, slot, &mut page).await;
    if taken.is_ok() {
        let write = Some(task.submit_io(device, Io::write(slot.0, 1)).await);
        let folio = CachedFolio { page, write };
        zswap.cache.borrow_mut().folios.insert(slot.0, folio);
    }
    folio_unlock(task, zswap, slot).await;
    taken
}

/// With the folio locked: verifies, decompresses, takes the entry out.
async fn take_from_zswap(
    task: &Task,
    zswap: &Zswap,
    id: EntryId,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), WritebackError> {
    if tree_search(task, zswap, slot).await != Some(id) {
        return Err(WritebackError::Gone);
    }
    let cgroup = zswap.entry(id).objcg;
    let erases_first = zswap.design.erases_first();
    if erases_first {
        tree_erase(task, zswap, slot).await;
    }
    if !zswap_decompress(task, zswap, id, page).await {
        if erases_first {
            task.fail(format!("BUG_ON: slot {} does not decompress", slot.0));
        }
        zswap.count(|counters| counters.decompress_fail += 1);
        return Err(WritebackError::Io);
    }
    if !erases_first {
        tree_erase(task, zswap, slot).await;
    }
    zswap.count(|counters| counters.zswpwb += 1);
    zswap
        .cgroups
        .borrow_mut()
        .count(cgroup, ZswapEvent::Zswpwb, 1);
    zswap_entry_free(task, zswap, id).await;
    Ok(())
}

/// `shrink_memcg_cb` on the oldest entry of a cgroup's list: it is moved to the
/// young end and the lock dropped before it is written back.
pub(crate) async fn shrink_memcg_cb(
    task: &Task,
    zswap: &Zswap,
    list: usize,
    cgroup: CgroupId,
) -> Walked {
    end_swap_writes(task, zswap).await;
    let lock = zswap.lru_lock(list);
    task.spin_lock(lock).await;
    let scan = zswap.scan(list, cgroup);
    task.run_kernel(zswap.costs.store_outside.lru_ns).await;
    let slot = match scan {
        Some(Scan::Candidate(id)) => Some((id, zswap.entry(id).swpentry)),
        _ => None,
    };
    task.spin_unlock(lock).await;
    let Some((id, slot)) = slot else {
        return if scan.is_some() {
            Walked::Rotated
        } else {
            Walked::Empty
        };
    };

    let written = write_back_counted(task, zswap, id, slot).await;
    written.map_or_else(Walked::Failed, |()| Walked::Removed)
}

/// `zswap_reclaim_entry` (until 6.8): the oldest entry leaves its list, and
/// comes back as the youngest if it cannot be written.
pub(crate) async fn zswap_reclaim_entry(task: &Task, zswap: &Zswap, list: usize) -> Walked {
    end_swap_writes(task, zswap).await;
    let lock = zswap.lru_lock(list);
    task.spin_lock(lock).await;
    let oldest = zswap.isolate_oldest(list);
    task.run_kernel(zswap.costs.store_outside.lru_ns).await;
    task.spin_unlock(lock).await;
    let Some((id, slot)) = oldest else {
        return Walked::Empty;
    };

    let written = write_back_counted(task, zswap, id, slot).await;
    if written.is_err() {
        put_back(task, zswap, id, slot).await;
    }
    written.map_or_else(Walked::Failed, |()| Walked::Removed)
}

/// Writes one entry back, with the records and the counters of it.
async fn write_back_counted(
    task: &Task,
    zswap: &Zswap,
    id: EntryId,
    slot: SwapSlot,
) -> Result<(), WritebackError> {
    task.probe(Probe::WritebackBegin as u16, slot.0);
    let written = zswap_writeback_entry(task, zswap, id, slot).await;
    let end = if written.is_ok() {
        Probe::WritebackEnd
    } else {
        Probe::WritebackFailed
    };
    task.probe(end as u16, slot.0);
    zswap.count(|counters| match written {
        Ok(()) => counters.written_back_pages += 1,
        Err(_) => counters.reject_reclaim_fail += 1,
    });
    written
}

/// If the tree still has the entry, and no list does.
async fn put_back(task: &Task, zswap: &Zswap, id: EntryId, slot: SwapSlot) {
    let tree = zswap.tree_lock(slot);
    task.spin_lock(tree).await;
    if zswap.peek(slot) == Some(id) && !zswap.is_in_lru(id) {
        zswap_lru_add(task, zswap, id).await;
    }
    task.spin_unlock(tree).await;
}

/// Writes the oldest entry of the root cgroup back, whether it was referenced
/// or not, and whatever the limits say.
pub async fn write_back_oldest(task: &Task, zswap: &Zswap) {
    match zswap.design.lru {
        LruDesign::PerPool => drop(zswap_reclaim_entry(task, zswap, 0).await),
        LruDesign::Global => {
            // The first look clears its flag.
            for _ in 0..=zswap.lru_len(CgroupId::ROOT) {
                let walked = shrink_memcg_cb(task, zswap, 0, CgroupId::ROOT).await;
                if walked != Walked::Rotated {
                    return;
                }
            }
        }
    }
}
