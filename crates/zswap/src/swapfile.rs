//! Swap files come and go, and pages are read ahead.
//!
//! A machine has one swap device, whose slots its owners hand out themselves.

use crate::swap::read_locked;
use crate::swap_cache::{CachedFolio, folio_add_locked, folio_lock, folio_unlock};
use crate::zswap::Zswap;
use kernel_sim::Task;
use zswap_mm::{Page, SwapSlot};

impl Zswap {
    /// Whether a slot has contents anywhere.
    #[must_use]
    pub fn slot_in_use(&self, slot: SwapSlot) -> bool {
        let cache = self.cache.borrow();
        self.peek(slot).is_some()
            || self.zeromap.borrow().test(slot)
            || cache.folios.contains_key(&slot.0)
            || cache.device.contains_key(&slot.0)
    }
}

/// `zswap_swapon`: as many empty trees as the device needs.
pub fn zswap_swapon(zswap: &Zswap) {
    *zswap.index.borrow_mut() = zswap.design.index.new_index(zswap.slots);
}

/// `swapoff`: reads every page back and gives it to its owner. Nobody may store
/// meanwhile; afterwards zswap must have nothing of the device.
///
/// # Errors
/// The slots whose pages could not be read; they stay.
pub async fn swapoff(
    task: &Task,
    zswap: &Zswap,
    mut owner: impl FnMut(SwapSlot, &Page),
) -> Result<(), Vec<SwapSlot>> {
    let mut page = Box::new(Page::zeroed());
    let mut lost = Vec::new();
    for slot in (0..zswap.slots).map(SwapSlot) {
        if !zswap.slot_in_use(slot) {
            continue;
        }
        folio_lock(task, zswap, slot).await;
        match read_locked(task, zswap, slot, &mut page).await {
            Ok(()) => {
                owner(slot, &page);
                zswap.zeromap.borrow_mut().set(slot, false);
                zswap.cache.borrow_mut().device.remove(&slot.0);
            }
            Err(_) => lost.push(slot),
        }
        folio_unlock(task, zswap, slot).await;
    }
    if !lost.is_empty() {
        return Err(lost);
    }
    zswap_swapoff(task, zswap);
    Ok(())
}

/// `zswap_swapoff`: the trees of the device go; all must be empty.
fn zswap_swapoff(task: &Task, zswap: &Zswap) {
    let left = zswap.index.borrow().len();
    if left > 0 {
        task.fail(format!("swapoff leaves {left} entries in the trees"));
    }
}

/// `swap_cluster_readahead`: reads the other slots of the aligned window of
/// 2^`page_cluster` around a slot into the swap cache. As loads are exclusive,
/// what was in zswap is then in the cache only. With `page_cluster` 0 there is
/// no window.
pub async fn swap_cluster_readahead(task: &Task, zswap: &Zswap, slot: SwapSlot, page_cluster: u32) {
    let mask = (1_u64 << page_cluster) - 1;
    let first = slot.0 & !mask;
    let last = (slot.0 | mask).min(zswap.slots - 1);
    for near in (first..=last).map(SwapSlot) {
        if near == slot || !zswap.slot_in_use(near) || !folio_add_locked(zswap, near) {
            continue;
        }
        let mut page = Box::new(Page::zeroed());
        if read_locked(task, zswap, near, &mut page).await.is_ok() {
            let folio = CachedFolio { page, write: None };
            zswap.cache.borrow_mut().folios.insert(near.0, folio);
        }
        folio_unlock(task, zswap, near).await;
    }
}
