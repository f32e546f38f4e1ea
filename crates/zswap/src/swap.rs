//! The swap code around zswap: who calls it, and what never reaches it.
//!
//! Left out: the swap device. The model's cgroup has `memory.zswap.writeback`
//! switched off, so a page that zswap refuses stays in memory.

use crate::invalidate::zswap_invalidate;
use crate::load::{LoadError, zswap_load};
use crate::probe::Probe;
use crate::store::{StoreError, zswap_store};
use crate::zswap::Zswap;
use kernel_sim::Task;
use zswap_mm::{Page, SwapSlot};

/// `swap_writeout`: a page full of zeroes is only noted in the zeromap (6.12
/// and later); any other is offered to zswap.
///
/// # Errors
/// If zswap refuses the page, which then stays in memory.
pub async fn swap_writeout(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &Page,
) -> Result<(), StoreError> {
    if page.bytes().iter().all(|&byte| byte == 0) {
        // The way to zswap and the reclaim around it are the same.
        let (before_ns, after_ns) = zswap.costs.store_outside();
        task.run_kernel(before_ns + after_ns).await;
        zswap.zeromap.borrow_mut().set(slot.0, true);
        task.probe(Probe::ZeromapSet as u16, slot.0);
        return Ok(());
    }
    zswap.zeromap.borrow_mut().set(slot.0, false);
    zswap_store(task, zswap, slot, page).await
}

/// `swap_read_folio`: the zeromap first, then zswap. A page of zeroes stays
/// noted until its slot is written anew or given up.
///
/// # Errors
/// If the slot holds nothing, or its data do not decompress.
pub async fn swap_read_folio(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    if zswap.zeromap.borrow().contains(slot.0) {
        let (before_ns, after_ns) = zswap.costs.load_outside();
        task.run_kernel(before_ns + after_ns).await;
        page.bytes_mut().fill(0);
        return Ok(());
    }
    zswap_load(task, zswap, slot, page).await
}

/// Gives a swap slot up.
pub fn swap_free(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    zswap.zeromap.borrow_mut().set(slot.0, false);
    zswap_invalidate(task, zswap, slot);
}
