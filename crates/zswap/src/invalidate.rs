//! `zswap_invalidate`: a swap slot is given up, or its page has been loaded.

use crate::probe::{ObjectPlace, Probe};
use crate::zswap::{Zswap, ZswapEntry, is_raw};
use kernel_sim::Task;
use zswap_mm::{SwapIndex, SwapSlot};

/// Drops what is stored under a slot, if anything is.
pub fn zswap_invalidate(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    let erased = zswap.index.borrow_mut().erase(slot);
    if let Some(entry) = erased {
        task.probe(Probe::IndexErase as u16, slot.0);
        zswap_entry_free(task, zswap, entry, true);
    }
}

/// `zswap_entry_free`: gives the object back. `counted` says whether the entry
/// had become part of the counters.
pub(crate) fn zswap_entry_free(task: &Task, zswap: &Zswap, entry: ZswapEntry, counted: bool) {
    let mut pool = zswap.pool.borrow_mut();
    let place = ObjectPlace::of(pool.location(entry.handle));
    pool.zs_free(entry.handle);
    task.probe(Probe::ObjectFree as u16, place.to_arg());
    if counted {
        zswap.count(|counters| {
            counters.stored_pages -= 1;
            counters.stored_incompressible_pages -= u64::from(is_raw(entry.length));
        });
    }
}
