//! `zram_read_page`: a page on its way out of a slot.

use super::slot::{Entry, slot_lock, slot_unlock};
use super::zcomp::{Direction, zcomp_decompress, zcomp_stream_get, zcomp_stream_put};
use super::zspool::{zs_obj_read_begin, zs_obj_read_end};
use super::{Zram, ZramError};
use crate::probe::Probe;
use kernel_sim::Task;
use zswap_mm::{Page, ZsHandle};

/// `zram_bio_read`: a request of the block layer to read one page.
///
/// # Errors
/// If there is no such slot, or as [`zram_read_page`].
pub async fn zram_bio_read(
    task: &Task,
    zram: &Zram,
    index: u32,
    page: &mut Page,
) -> Result<(), ZramError> {
    if index >= zram.pages() {
        return Err(ZramError::BeyondTheEnd);
    }
    task.probe(Probe::LoadBegin as u16, index.into());
    task.run_kernel(zram.costs.bio_ns).await;
    let read = zram_read_page(task, zram, index, page).await;
    task.probe(Probe::LoadEnd as u16, index.into());
    zram.count(|stats| stats.failed_reads += u64::from(read.is_err()));
    read
}

/// Reads a slot, which stays as it is. Its lock is held meanwhile, so that
/// nobody frees the object.
///
/// # Errors
/// If the data do not decompress.
pub async fn zram_read_page(
    task: &Task,
    zram: &Zram,
    index: u32,
    page: &mut Page,
) -> Result<(), ZramError> {
    let slot = zram.slot(index);
    slot_lock(task, slot).await;
    task.run_kernel(zram.costs.slot_ns).await;
    let good = match slot.entry.get() {
        Entry::Empty => read_same_filled_page(task, zram, 0, page).await,
        Entry::Same(word) => read_same_filled_page(task, zram, word, page).await,
        Entry::Huge(handle) => read_incompressible_page(task, zram, handle, page).await,
        Entry::Compressed(handle, size) => {
            read_compressed_page(task, zram, index, (handle, size), page).await
        }
    };
    slot_unlock(task, slot).await;
    if good { Ok(()) } else { Err(ZramError::Io) }
}

async fn read_same_filled_page(task: &Task, zram: &Zram, word: u64, page: &mut Page) -> bool {
    page.fill_word(word);
    task.run_kernel(zram.costs.copy_ns).await;
    true
}

async fn read_incompressible_page(
    task: &Task,
    zram: &Zram,
    handle: ZsHandle,
    page: &mut Page,
) -> bool {
    zs_obj_read_begin(task, zram, handle).await;
    zram.mem_pool.copy_page(handle, page);
    task.run_kernel(zram.costs.copy_ns).await;
    zs_obj_read_end(task, zram, handle);
    true
}

async fn read_compressed_page(
    task: &Task,
    zram: &Zram,
    index: u32,
    (handle, size): (ZsHandle, u16),
    page: &mut Page,
) -> bool {
    let zstrm = zcomp_stream_get(task, &zram.zcomp, Direction::Decompress).await;
    zs_obj_read_begin(task, zram, handle).await;
    let good = zcomp_decompress(task, zram, zstrm, index, (handle, size), page).await;
    zs_obj_read_end(task, zram, handle);
    zcomp_stream_put(task, zstrm).await;
    good
}
