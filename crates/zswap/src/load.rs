//! `zswap_load`: a page on its way back.

use crate::compress::crypto_acomp_decompress;
use crate::invalidate::zswap_invalidate;
use crate::probe::Probe;
use crate::zswap::{Zswap, ZswapEntry};
use core::fmt;
use kernel_sim::Task;
use zswap_mm::{Page, SwapSlot};

/// Why there is no page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// Nothing is stored under the slot (`-ENOENT`).
    NotFound,
    /// The data did not decompress; they stay (`-EIO`).
    Io,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadError::NotFound => "nothing is stored under this swap slot",
            LoadError::Io => "the stored data did not decompress",
        })
    }
}

impl core::error::Error for LoadError {}

/// Loads the page of a swap slot into `page`. A load is exclusive: afterwards
/// the page is no longer in zswap.
///
/// # Errors
/// If nothing is stored under the slot, or its data do not decompress.
pub async fn zswap_load(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    page: &mut Page,
) -> Result<(), LoadError> {
    let (before_ns, after_ns) = zswap.costs.load_outside();
    task.probe(Probe::LoadBegin as u16, slot.0);
    task.run_kernel(before_ns).await;

    let entry = zswap.entry(slot).ok_or(LoadError::NotFound)?;
    let good = zswap_decompress(task, zswap, slot, entry, page).await;
    if !good {
        zswap.count(|counters| counters.decompress_fail += 1);
        return Err(LoadError::Io);
    }
    zswap.count(|counters| counters.zswpin += 1);
    zswap_invalidate(task, zswap, slot);

    task.run_kernel(after_ns).await;
    task.probe(Probe::LoadEnd as u16, slot.0);
    Ok(())
}

/// `zswap_decompress`: with a request on the stack it needs no mutex, else it
/// takes that of its direction.
async fn zswap_decompress(
    task: &Task,
    zswap: &Zswap,
    slot: SwapSlot,
    entry: ZswapEntry,
    page: &mut Page,
) -> bool {
    let (before_ns, after_ns) = zswap.costs.load_inside();
    let ctx = zswap.acomp_ctx(task.cpu());
    let on_stack = zswap.design.loads_on_stack();
    if !on_stack {
        task.mutex_lock(ctx.decompress_mutex).await;
    }
    task.run_kernel(before_ns).await;
    let good = crypto_acomp_decompress(task, zswap, ctx, slot, entry, page).await;
    task.run_kernel(after_ns).await;
    if !on_stack {
        task.mutex_unlock(ctx.decompress_mutex).await;
    }
    good
}
