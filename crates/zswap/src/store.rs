//! `zswap_store`: a page on its way into compressed memory.

use crate::compress::crypto_acomp_compress;
use crate::invalidate::zswap_entry_free;
use crate::probe::{ObjectPlace, Probe};
use crate::zswap::{Zswap, ZswapEntry, is_raw};
use core::fmt;
use kernel_sim::{CpuId, Task};
use zswap_mm::{AllocError, Page, SwapIndex, SwapSlot};

/// Why a page was not stored; it stays where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// There is no memory for the compressed data or the index.
    Alloc(AllocError),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Alloc(error) => write!(f, "the page was not stored: {error}"),
        }
    }
}

impl core::error::Error for StoreError {}

/// Stores a page under a swap slot, in the caller's context and priority.
///
/// # Errors
/// If an allocation fails. An older copy under the slot is then dropped, so
/// that it can never be mistaken for this one.
pub async fn zswap_store(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &Page,
) -> Result<(), StoreError> {
    let (before_ns, after_ns) = zswap.costs.store_outside();
    task.probe(Probe::StoreBegin as u16, slot.0);
    task.run_kernel(before_ns).await;

    let cpu = task.cpu();
    let mutex = zswap.acomp_ctx(cpu).mutex;
    task.mutex_lock(mutex).await;
    let stored = zswap_compress(task, zswap, cpu, slot, page).await;
    task.mutex_unlock(mutex).await;

    let inserted = stored.and_then(|entry| insert(task, zswap, slot, entry));
    task.run_kernel(after_ns).await;
    match inserted {
        Ok(()) => task.probe(Probe::StoreEnd as u16, slot.0),
        Err(_) => reject(task, zswap, slot),
    }
    inserted.map_err(StoreError::Alloc)
}

/// `zswap_compress`: compresses the page and puts the data into the pool, all
/// under the mutex.
async fn zswap_compress(
    task: &Task,
    zswap: &Zswap,
    cpu: CpuId,
    slot: SwapSlot,
    page: &Page,
) -> Result<ZswapEntry, AllocError> {
    let (before_ns, after_ns) = zswap.costs.store_inside();
    task.run_kernel(before_ns).await;
    crypto_acomp_compress(task, zswap, cpu, slot, page).await;
    task.run_kernel(after_ns).await;
    zs_store(task, zswap, &zswap.buffers[cpu.index()].borrow())
}

/// Allocates an object of the right size class and copies the data into it.
fn zs_store(task: &Task, zswap: &Zswap, data: &[u8]) -> Result<ZswapEntry, AllocError> {
    let mut pool = zswap.pool.borrow_mut();
    let handle = pool.zs_malloc(data.len())?;
    pool.zs_obj_write(handle, data);
    let place = ObjectPlace::of(pool.location(handle));
    task.probe(Probe::ObjectAlloc as u16, place.to_arg());
    Ok(ZswapEntry {
        handle,
        length: data.len(),
    })
}

/// Enters the page into the index; a copy that is there already is freed.
fn insert(task: &Task, zswap: &Zswap, slot: SwapSlot, entry: ZswapEntry) -> Result<(), AllocError> {
    let stored = zswap.index.borrow_mut().store(slot, entry);
    let old = match stored {
        Ok(old) => old,
        Err(error) => {
            zswap_entry_free(task, zswap, entry, false);
            return Err(error);
        }
    };
    task.probe(Probe::IndexStore as u16, slot.0);
    zswap.count(|counters| {
        counters.stored_pages += 1;
        counters.zswpout += 1;
        counters.stored_incompressible_pages += u64::from(is_raw(entry.length));
    });
    if let Some(old) = old {
        zswap_entry_free(task, zswap, old, true);
    }
    Ok(())
}

fn reject(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    zswap.count(|counters| counters.reject_alloc_fail += 1);
    crate::invalidate::zswap_invalidate(task, zswap, slot);
    task.probe(Probe::StoreRejected as u16, slot.0);
}
