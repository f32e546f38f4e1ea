//! `zswap_load`: a page on its way back.

use crate::acomp_ctx::{For, acomp_ctx_get_cpu_lock};
use crate::compress::crypto_acomp_decompress;
use crate::design::Mapping;
use crate::invalidate::{zswap_entry_free, zswap_invalidate};
use crate::probe::Probe;
use crate::tree::{tree_erase, tree_search};
use crate::zpool::{zs_map_object, zs_unmap_object};
use crate::zswap::Zswap;
use core::fmt;
use kernel_sim::Task;
use zswap_mm::entry::{EntryData, EntryId};
use zswap_mm::{Page, SwapSlot};

/// Why there is no page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// Nothing is stored under the slot (`-ENOENT`).
    NotFound,
    /// The data did not decompress, or the device did not read (`-EIO`); they
    /// stay where they are.
    Io,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadError::NotFound => "nothing is stored under this swap slot",
            LoadError::Io => "the stored data cannot be read",
        })
    }
}

impl core::error::Error for LoadError {}

/// Loads the page of a swap slot into `page`; its folio is locked. A load is
/// exclusive: afterwards the page is no longer in zswap.
///
/// # Errors
/// If nothing is stored under the slot, or its data do not decompress.
pub async fn zswap_load(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    let outside = zswap.costs.load_outside;
    task.probe(Probe::LoadBegin as u16, slot.0);
    task.run_kernel(outside.before_ns).await;

    let loaded = load_exclusive(task, zswap, slot, page).await;
    if loaded.is_ok() {
        zswap.count(|counters| counters.zswpin += 1);
        task.run_kernel(outside.after_ns).await;
    }
    task.probe(Probe::LoadEnd as u16, slot.0);
    loaded
}

/// Decompresses the entry and takes it out: since 6.18 in this order, so that
/// data which do not decompress stay; before, the other way round.
async fn load_exclusive(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    if zswap.design.erases_first() {
        let entry = tree_erase(task, zswap, slot)
            .await
            .ok_or(LoadError::NotFound)?;
        if !zswap_decompress(task, zswap, entry, page).await {
            task.fail(format!("BUG_ON: slot {} does not decompress", slot.0));
        }
        zswap_entry_free(task, zswap, entry).await;
        return Ok(());
    }
    let entry = tree_search(task, zswap, slot)
        .await
        .ok_or(LoadError::NotFound)?;
    if !zswap_decompress(task, zswap, entry, page).await {
        zswap.count(|counters| counters.decompress_fail += 1);
        return Err(LoadError::Io);
    }
    zswap_invalidate(task, zswap, slot).await;
    Ok(())
}

/// `zswap_decompress`: with a request on the stack it needs no mutex, else it
/// takes that of its direction. Says whether the data were good.
pub(crate) async fn zswap_decompress(
    task: &Task,
    zswap: &Zswap,
    id: EntryId,
    page: &mut Page,
) -> bool {
    let entry = zswap.entry(id);
    let handle = match entry.data {
        EntryData::Stored(handle) => handle,
        EntryData::SameFilled(word) => {
            page.fill_word(word);
            return true;
        }
    };
    let inside = zswap.costs.load_inside;
    let mapping = zswap.design.mapping();
    let algorithm = zswap.algorithm_of(entry.pool);
    let on_stack = zswap.design.decompresses_on_stack(algorithm);
    if mapping == Mapping::CopiedBeforeTheMutex {
        zs_map_object(task, zswap, entry.pool, handle, inside.map_ns).await;
    }
    let mut mutex = None;
    if !on_stack {
        let ctx = acomp_ctx_get_cpu_lock(task, zswap, entry.pool, For::Decompress).await;
        mutex = Some(ctx.decompress_mutex);
    }
    task.run_kernel(inside.before_ns).await;
    if mapping != Mapping::CopiedBeforeTheMutex {
        zs_map_object(task, zswap, entry.pool, handle, inside.map_ns).await;
    }
    let good = crypto_acomp_decompress(task, zswap, algorithm, entry, page).await;
    if mapping == Mapping::Held {
        zs_unmap_object(task, zswap, entry.pool, handle);
    }
    task.run_kernel(inside.after_ns).await;
    if let Some(mutex) = mutex {
        task.mutex_unlock(mutex).await;
    }
    good
}
