//! `zram_write_page`: a page on its way into a slot.

use super::slot::{Entry, slot_set};
use super::zcomp::{Direction, zcomp_compress, zcomp_stream_get, zcomp_stream_put};
use super::zspool::{zs_free, zs_malloc, zs_obj_write};
use super::{Zram, ZramError};
use crate::probe::Probe;
use kernel_sim::Task;
use zswap_mm::{PAGE_SIZE, Page, ZsHandle};

/// `zram_bio_write`: a request of the block layer to write one page.
///
/// # Errors
/// If there is no such slot, or as [`zram_write_page`].
pub async fn zram_bio_write(
    task: &Task,
    zram: &Zram,
    index: u32,
    page: &Page,
) -> Result<(), ZramError> {
    if index >= zram.pages() {
        return Err(ZramError::BeyondTheEnd);
    }
    task.probe(Probe::StoreBegin as u16, index.into());
    task.run_kernel(zram.costs.bio_ns).await;
    let written = zram_write_page(task, zram, index, page).await;
    let end = match written {
        Ok(()) => Probe::StoreEnd,
        Err(_) => Probe::StoreRejected,
    };
    task.probe(end as u16, index.into());
    zram.count(|stats| stats.failed_writes += u64::from(written.is_err()));
    written
}

/// Compresses a page and puts it into a slot. The stream is held until the data
/// are in the pool; the slot is locked only to change what it refers to.
///
/// # Errors
/// If the compressor fails or there is no memory. The slot then keeps what it
/// had.
pub async fn zram_write_page(
    task: &Task,
    zram: &Zram,
    index: u32,
    page: &Page,
) -> Result<(), ZramError> {
    if let Some(word) = page.same_filled() {
        slot_set(task, zram, index, Entry::Same(word)).await;
        return Ok(());
    }
    let zstrm = zcomp_stream_get(task, &zram.zcomp, Direction::Compress).await;
    let comp_len = match zcomp_compress(task, zram, zstrm, index, page).await {
        Ok(comp_len) => comp_len,
        Err(error) => {
            zcomp_stream_put(task, zstrm).await;
            return Err(ZramError::Compress(error));
        }
    };
    if comp_len >= zram.huge_class_size() {
        zcomp_stream_put(task, zstrm).await;
        return write_incompressible_page(task, zram, index, page).await;
    }
    let handle = match zs_malloc(task, zram, comp_len).await {
        Ok(handle) => handle,
        Err(error) => {
            zcomp_stream_put(task, zstrm).await;
            return Err(ZramError::Alloc(error));
        }
    };
    if !zram.zram_can_store_page() {
        zcomp_stream_put(task, zstrm).await;
        zs_free(task, zram, handle).await;
        return Err(ZramError::Limit);
    }
    let data = zstrm.buffer.take();
    zs_obj_write(task, zram, handle, &data).await;
    zstrm.buffer.replace(data);
    zcomp_stream_put(task, zstrm).await;

    slot_set(task, zram, index, compressed(handle, comp_len)).await;
    Ok(())
}

/// A page that would take a whole page anyway is kept as it is: reading it then
/// needs neither stream nor compressor.
async fn write_incompressible_page(
    task: &Task,
    zram: &Zram,
    index: u32,
    page: &Page,
) -> Result<(), ZramError> {
    let allocated = zs_malloc(task, zram, PAGE_SIZE).await;
    let handle = allocated.map_err(ZramError::Alloc)?;
    if !zram.zram_can_store_page() {
        zs_free(task, zram, handle).await;
        return Err(ZramError::Limit);
    }
    zs_obj_write(task, zram, handle, page.bytes()).await;
    slot_set(task, zram, index, Entry::Huge(handle)).await;
    Ok(())
}

fn compressed(handle: ZsHandle, comp_len: usize) -> Entry {
    let size = u16::try_from(comp_len).expect("less than a page");
    Entry::Compressed(handle, size)
}
