//! `zswap_store`: a folio on its way into compressed memory.

use crate::acomp_ctx::{For, acomp_ctx_get_cpu_lock};
use crate::compress::crypto_acomp_compress;
use crate::invalidate::{zswap_entry_free, zswap_invalidate};
use crate::lru::zswap_lru_add;
use crate::probe::Probe;
use crate::shrink::shrink_memcg;
use crate::swap::Folio;
use crate::zpool::{zs_malloc, zs_obj_write};
use crate::zswap::Zswap;
use core::fmt;
use kernel_sim::Task;
use zswap_mm::cgroup::ZswapEvent;
use zswap_mm::entry::{EntryData, EntryId};
use zswap_mm::fill::{Refusal, StoreForm};
use zswap_mm::lifecycle::PoolId;
use zswap_mm::zpool::SetHandle;
use zswap_mm::{AllocError, Page, SwapSlot};

/// Why a page was not stored; it stays where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// zswap is switched off, or has no pool.
    Disabled,
    /// The cgroup has reached its `memory.zswap.max`.
    CgroupLimit,
    /// The pools have reached the limit, and not gone below the threshold since.
    PoolLimit,
    /// The page did not compress.
    Compress(Refusal),
    /// There is no memory for the entry, the compressed data or the index.
    Alloc(AllocError),
    /// zswap refused the page, and the swap device failed to write it.
    Device,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the page was not stored: ")?;
        match self {
            StoreError::Disabled => f.write_str("zswap is off or has no pool"),
            StoreError::CgroupLimit => f.write_str("its cgroup has reached memory.zswap.max"),
            StoreError::PoolLimit => f.write_str("the pools have reached their limit"),
            StoreError::Compress(Refusal::CompressPoor) => f.write_str("it compresses too poorly"),
            StoreError::Compress(Refusal::CompressFail) => f.write_str("the compressor failed"),
            StoreError::Alloc(error) => error.fmt(f),
            StoreError::Device => f.write_str("the swap device failed to write it"),
        }
    }
}

impl core::error::Error for StoreError {}

/// Stores a folio under its swap slots, in the caller's context and priority,
/// page by page; no lock but the folio's is held from one page to the next.
///
/// # Errors
/// If zswap is off or full, a page does not compress, or an allocation fails.
/// Older copies under the slots are then dropped, so that they can never be
/// mistaken for the folio.
pub async fn zswap_store(task: &Task, zswap: &Zswap, folio: &Folio<'_>) -> Result<(), StoreError> {
    let outside = zswap.costs.store_outside;
    task.probe(Probe::StoreBegin as u16, folio.slot.0);
    task.run_kernel(outside.before_ns).await;

    let stored = zswap_store_folio(task, zswap, folio).await;
    if stored.is_err() {
        if zswap.limits.borrow().reached_full {
            zswap.queue_shrink_work(task).await;
        }
        for slot in folio.slots() {
            zswap_invalidate(task, zswap, slot).await;
        }
    }

    task.run_kernel(outside.after_ns).await;
    let end = if stored.is_ok() {
        Probe::StoreEnd
    } else {
        Probe::StoreRejected
    };
    task.probe(end as u16, folio.slot.0);
    stored
}

async fn zswap_store_folio(
    task: &Task,
    zswap: &Zswap,
    folio: &Folio<'_>,
) -> Result<(), StoreError> {
    if !zswap.enabled.get() {
        return Err(StoreError::Disabled);
    }
    if !zswap.cgroups.borrow().may_zswap(folio.cgroup) {
        let shrunk = shrink_memcg(task, zswap, folio.cgroup).await;
        shrunk.map_err(|_| StoreError::CgroupLimit)?;
    }
    if zswap.zswap_check_limits() {
        return Err(StoreError::PoolLimit);
    }
    let pool = zswap.pool_current_get().ok_or(StoreError::Disabled)?;
    let mut stored = zswap.memcg_list_lru_alloc(pool, folio.cgroup);
    for (slot, page) in folio.slots().zip(folio.pages) {
        if stored.is_ok() {
            stored = zswap_store_page(task, zswap, pool, (folio, slot), page).await;
        }
    }
    if stored.is_ok() {
        let pages = folio.pages.len() as u64;
        zswap.count(|counters| counters.zswpout += pages);
        let mut cgroups = zswap.cgroups.borrow_mut();
        cgroups.count(folio.cgroup, ZswapEvent::Zswpout, pages);
    }
    zswap.pool_put(task, pool);
    stored
}

async fn zswap_store_page(
    task: &Task,
    zswap: &Zswap,
    pool: PoolId,
    (folio, slot): (&Folio<'_>, SwapSlot),
    page: &Page,
) -> Result<(), StoreError> {
    if zswap.tree_lock_is_outermost() && zswap.peek(slot).is_some() {
        zswap.count(|counters| counters.duplicate_entry += 1);
        zswap_invalidate(task, zswap, slot).await;
    }
    let entry = zswap.entry_cache_alloc(slot, pool, folio.cgroup)?;
    let compressed = match zswap.design.same_filled.word_to_keep(page) {
        Some(word) => Ok((EntryData::SameFilled(word), 0)),
        None => zswap_compress(task, zswap, entry, page).await,
    };
    match compressed {
        Ok((data, length)) => {
            zswap.fill_entry(entry, data, length);
            insert(task, zswap, slot, entry).await
        }
        Err(error) => {
            zswap.entries.borrow_mut().free(entry);
            Err(error)
        }
    }
}

/// `zswap_compress`: compresses the page and puts the data into the pool, all
/// under the mutex of this CPU.
async fn zswap_compress(
    task: &Task,
    zswap: &Zswap,
    id: EntryId,
    page: &Page,
) -> Result<(EntryData, usize), StoreError> {
    let entry = zswap.entry(id);
    let ctx = acomp_ctx_get_cpu_lock(task, zswap, entry.pool, For::Compress).await;
    task.run_kernel(zswap.costs.store_inside.before_ns).await;
    let algorithm = zswap.algorithm_of(entry.pool);
    let length = crypto_acomp_compress(task, zswap, ctx, algorithm, entry.swpentry, page).await;
    let writeback = zswap.cgroups.borrow().writeback_enabled(entry.objcg);
    let stored = match zswap.design.incompressible.decide(length, writeback) {
        StoreForm::Compressed(_) => {
            let data = ctx.buffer.take();
            let stored = zs_store(task, zswap, id, &data).await;
            ctx.buffer.replace(data);
            stored
        }
        StoreForm::Raw => zs_store(task, zswap, id, page.bytes()).await,
        StoreForm::Refuse(refusal) => Err(StoreError::Compress(refusal)),
    };
    zswap.count_refusal(stored.err());
    task.mutex_unlock(ctx.mutex).await;
    stored
}

/// Allocates an object and copies the data into it.
async fn zs_store(
    task: &Task,
    zswap: &Zswap,
    id: EntryId,
    data: &[u8],
) -> Result<(EntryData, usize), StoreError> {
    let pool = zswap.entry(id).pool;
    let handle: SetHandle = match zs_malloc(task, zswap, pool, id, data.len()).await {
        Ok(handle) => handle,
        Err(AllocError::TooLarge { .. }) => {
            return Err(StoreError::Compress(Refusal::CompressPoor));
        }
        Err(error) => return Err(StoreError::Alloc(error)),
    };
    zs_obj_write(task, zswap, pool, handle, data).await;
    Ok((EntryData::Stored(handle), data.len()))
}

/// Enters the page into the tree; a copy that is there already is freed. Into
/// the list it comes last, so that it is not written back half made.
async fn insert(task: &Task, zswap: &Zswap, slot: SwapSlot, id: EntryId) -> Result<(), StoreError> {
    let tree = zswap.tree_lock(slot);
    task.spin_lock(tree).await;
    let old = zswap.index.borrow_mut().store(slot, id);
    if old.is_ok() {
        task.probe(Probe::IndexStore as u16, slot.0);
    }
    task.run_kernel(zswap.costs.store_outside.tree_ns).await;
    if zswap.tree_lock_is_outermost() && old.is_ok() {
        zswap_lru_add(task, zswap, id).await;
    }
    task.spin_unlock(tree).await;
    match old {
        Err(error) => {
            zswap.count(|counters| counters.reject_alloc_fail += 1);
            zswap_entry_free(task, zswap, id).await;
            return Err(StoreError::Alloc(error));
        }
        Ok(Some(old)) => zswap_entry_free(task, zswap, old).await,
        Ok(None) => {}
    }
    if !zswap.tree_lock_is_outermost() {
        zswap_lru_add(task, zswap, id).await;
    }
    Ok(())
}
