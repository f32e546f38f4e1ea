//! The swap code around zswap: who calls it, and where a page goes or comes
//! from when that is not zswap.
//!
//! Left out: a reclaim that goes on while the device writes; here it waits.

use crate::invalidate::zswap_invalidate;
use crate::load::{LoadError, zswap_load};
use crate::probe::Probe;
use crate::store::{StoreError, zswap_store};
use crate::swap_cache::{folio_lock, folio_unlock};
use crate::zswap::Zswap;
use kernel_sim::{Io, Task};
use zswap_mm::cgroup::CgroupId;
use zswap_mm::{Page, SwapSlot};

/// Pages that go out together: of one cgroup, to slots that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Folio<'a> {
    /// Whose they are.
    pub cgroup: CgroupId,
    /// The slot of the first.
    pub slot: SwapSlot,
    /// The pages.
    pub pages: &'a [Page],
}

impl<'a> Folio<'a> {
    /// A single page of the root cgroup.
    #[must_use]
    pub fn of(slot: SwapSlot, page: &'a Page) -> Folio<'a> {
        Folio {
            cgroup: CgroupId::ROOT,
            slot,
            pages: core::slice::from_ref(page),
        }
    }

    /// Its slots.
    pub fn slots(&self) -> impl Iterator<Item = SwapSlot> + use<> {
        let first = self.slot.0;
        (first..first + self.pages.len() as u64).map(SwapSlot)
    }

    fn is_zero_filled(&self) -> bool {
        self.pages.iter().all(Page::is_zero_filled)
    }
}

/// `swap_writeout`: a folio full of zeroes is only noted in the zeromap (6.12
/// and later); any other is offered to zswap, and what zswap refuses is written
/// to the device.
///
/// # Errors
/// If zswap refuses the folio and it cannot be written to the device; it then
/// stays in memory.
pub async fn swap_writeout(
    task: &Task,
    zswap: &Zswap,
    folio: &Folio<'_>,
) -> Result<(), StoreError> {
    for slot in folio.slots() {
        folio_lock(task, zswap, slot).await;
        drop_cached(task, zswap, slot).await;
    }
    let zeromap = zswap.design.same_filled == zswap_mm::fill::SameFilled::Zeromap;
    let written = if zeromap && folio.is_zero_filled() {
        note_zeroes(task, zswap, folio).await;
        Ok(())
    } else {
        for slot in folio.slots() {
            zswap.zeromap.borrow_mut().set(slot, false);
        }
        match zswap_store(task, zswap, folio).await {
            Err(error) => swap_writepage(task, zswap, folio, error).await,
            stored => stored,
        }
    };
    for slot in folio.slots() {
        folio_unlock(task, zswap, slot).await;
    }
    written
}

async fn note_zeroes(task: &Task, zswap: &Zswap, folio: &Folio<'_>) {
    // The way to zswap and the reclaim around it are the same.
    task.run_kernel(zswap.costs.mean.store_ns).await;
    for slot in folio.slots() {
        zswap_invalidate(task, zswap, slot).await;
        zswap.zeromap.borrow_mut().set(slot, true);
        task.probe(Probe::ZeromapSet as u16, slot.0);
    }
}

/// `__swap_writepage`, unless the cgroup forbids it: the folio then becomes
/// active again, and so it does when the device fails.
async fn swap_writepage(
    task: &Task,
    zswap: &Zswap,
    folio: &Folio<'_>,
    refused: StoreError,
) -> Result<(), StoreError> {
    let allowed = zswap.cgroups.borrow().writeback_enabled(folio.cgroup);
    let Some(device) = zswap.device.filter(|_| allowed) else {
        return Err(refused);
    };
    let io = Io::write(folio.slot.0, folio.pages.len() as u64);
    let request = task.submit_io(device, io).await;
    if task.wait_for_request(request).await.is_err() {
        return Err(StoreError::Device);
    }
    let mut cache = zswap.cache.borrow_mut();
    for (slot, page) in folio.slots().zip(folio.pages) {
        cache.device.insert(slot.0, Box::new(page.clone()));
        task.probe(Probe::DeviceWrite as u16, slot.0);
    }
    Ok(())
}

/// `swap_read_folio`: the swap cache first, then the zeromap, zswap and the
/// device. Zeroes stay noted, and the device keeps the page, until the slot is
/// written anew or given up.
///
/// # Errors
/// If the slot holds nothing, or its data cannot be read.
pub async fn swap_read_folio(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    folio_lock(task, zswap, slot).await;
    let read = read_locked(task, zswap, slot, page).await;
    folio_unlock(task, zswap, slot).await;
    read
}

pub(crate) async fn read_locked(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    let cached = zswap.cache.borrow_mut().folios.remove(&slot.0);
    if let Some(folio) = cached {
        page.bytes_mut().copy_from_slice(folio.page.bytes());
        if let Some(write) = folio.write {
            // The page is in memory again; whether it is written no longer matters.
            task.forget_request(write);
        }
        return Ok(());
    }
    if zswap.zeromap.borrow().test(slot) {
        task.run_kernel(zswap.costs.mean.load_ns).await;
        page.bytes_mut().fill(0);
        return Ok(());
    }
    match zswap_load(task, zswap, slot, page).await {
        Err(LoadError::NotFound) => swap_read_device(task, zswap, slot, page).await,
        loaded => loaded,
    }
}

/// The page has to come from the device, which the shrinker is told
/// (`zswap_folio_swapin`).
async fn swap_read_device(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    let there = zswap.cache.borrow().device.contains_key(&slot.0);
    let device = zswap.device.filter(|_| there).ok_or(LoadError::NotFound)?;
    *zswap
        .disk_swapins
        .borrow_mut()
        .entry(CgroupId::ROOT)
        .or_default() += 1;
    let request = task.submit_io(device, Io::read(slot.0, 1)).await;
    let read = task.wait_for_request(request).await;
    read.map_err(|_| LoadError::Io)?;
    let cache = zswap.cache.borrow();
    let there = cache.device.get(&slot.0).ok_or(LoadError::NotFound)?;
    page.bytes_mut().copy_from_slice(there.bytes());
    task.probe(Probe::DeviceRead as u16, slot.0);
    Ok(())
}

/// Gives a swap slot up.
pub async fn swap_free(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    folio_lock(task, zswap, slot).await;
    drop_cached(task, zswap, slot).await;
    zswap.zeromap.borrow_mut().set(slot, false);
    zswap.cache.borrow_mut().device.remove(&slot.0);
    zswap_invalidate(task, zswap, slot).await;
    folio_unlock(task, zswap, slot).await;
}

/// Takes a folio out of the swap cache; waits until it is written, if it is
/// being written.
async fn drop_cached(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    let cached = zswap.cache.borrow_mut().folios.remove(&slot.0);
    if let Some(write) = cached.and_then(|folio| folio.write) {
        // Whether it succeeds is no longer of interest.
        let _ = task.wait_for_request(write).await;
    }
}
