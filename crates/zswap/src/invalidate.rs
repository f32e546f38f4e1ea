//! `zswap_invalidate`: a swap slot is given up.

use crate::lru::zswap_lru_del;
use crate::zpool::zs_free;
use crate::zswap::Zswap;
use kernel_sim::Task;
use zswap_mm::SwapSlot;
use zswap_mm::entry::{EntryData, EntryId};

/// Drops what is stored under a slot, if anything is.
pub async fn zswap_invalidate(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    if zswap.peek(slot).is_none() {
        return;
    }
    let tree = zswap.tree_lock(slot);
    task.spin_lock(tree).await;
    let erased = zswap.erase_locked(task, slot);
    task.run_kernel(zswap.costs.load_outside.tree_ns).await;
    if zswap.tree_lock_is_outermost() {
        free(task, zswap, erased).await;
        task.spin_unlock(tree).await;
    } else {
        task.spin_unlock(tree).await;
        free(task, zswap, erased).await;
    }
}

async fn free(task: &Task, zswap: &Zswap, erased: Option<EntryId>) {
    if let Some(entry) = erased {
        zswap_entry_free(task, zswap, entry).await;
    }
}

/// `zswap_entry_free`: out of the list first, so that nobody begins to write
/// it back, then the object, the references and the entry itself.
pub(crate) async fn zswap_entry_free(task: &Task, zswap: &Zswap, id: EntryId) {
    zswap_lru_del(task, zswap, id).await;
    let entry = zswap.entry(id);
    if let EntryData::Stored(handle) = entry.data {
        zs_free(task, zswap, entry.pool, handle).await;
    }
    zswap.pool_put(task, entry.pool);
    zswap
        .cgroups
        .borrow_mut()
        .uncharge(entry.objcg, usize::from(entry.length));
    zswap.entries.borrow_mut().free(id);
    zswap.count(|counters| {
        counters.stored_pages -= 1;
        counters.stored_incompressible_pages -= u64::from(entry.is_incompressible());
        counters.same_filled_pages -= u64::from(!Zswap::is_listed(entry.data));
    });
}
