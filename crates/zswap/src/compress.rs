//! The compressor at work, under the locks.

use crate::acomp_ctx::AcompCtx;
use crate::probe::Probe;
use crate::zswap::{Zswap, ZswapEntry, is_raw};
use kernel_sim::{CpuId, Task};
use zswap_mm::{PAGE_SIZE, Page, SwapSlot};

/// Compresses a page into the buffer of a CPU's context. The stream lock keeps
/// preemption off for as long as that takes, so a preemption that is due
/// strikes at its release.
pub(crate) async fn crypto_acomp_compress(
    task: &Task,
    zswap: &Zswap,
    cpu: CpuId,
    slot: SwapSlot,
    page: &Page,
) {
    let ctx = zswap.acomp_ctx(cpu);
    task.spin_lock_bh(ctx.stream).await;
    task.probe(Probe::CompressBegin as u16, slot.0);
    let length = compress_or_copy(zswap, cpu, page);
    task.run_kernel(zswap.compress_ns()).await;
    task.probe(Probe::CompressEnd as u16, length as u64);
    task.spin_unlock_bh(ctx.stream).await;
}

/// A page that does not get smaller is kept raw.
fn compress_or_copy(zswap: &Zswap, cpu: CpuId, page: &Page) -> usize {
    let mut codec = zswap.codec.borrow_mut();
    let data = match codec.compressed(page) {
        Ok(data) if data.len() < PAGE_SIZE => data,
        _ => page.bytes(),
    };
    let buffer = &mut *zswap.buffers[cpu.index()].borrow_mut();
    buffer.clear();
    buffer.extend_from_slice(data);
    buffer.len()
}

/// Decompresses the data of an entry into `page`, under the stream lock. A page
/// that was stored raw is only copied, which needs no compressor.
///
/// Says whether the data were good.
pub(crate) async fn crypto_acomp_decompress(
    task: &Task,
    zswap: &Zswap,
    ctx: AcompCtx,
    slot: SwapSlot,
    entry: ZswapEntry,
    page: &mut Page,
) -> bool {
    if is_raw(entry.length) {
        return decompress_or_copy(zswap, entry, page);
    }
    task.spin_lock_bh(ctx.stream).await;
    task.probe(Probe::DecompressBegin as u16, slot.0);
    let good = decompress_or_copy(zswap, entry, page);
    task.run_kernel(zswap.decompress_ns()).await;
    task.probe(Probe::DecompressEnd as u16, entry.length as u64);
    task.spin_unlock_bh(ctx.stream).await;
    good
}

/// Reads straight from the one or two pages that the object lies in.
fn decompress_or_copy(zswap: &Zswap, entry: ZswapEntry, page: &mut Page) -> bool {
    let mut joined = Vec::new();
    let pool = zswap.pool.borrow();
    let data = pool.zs_obj_read_begin(entry.handle, entry.length, &mut joined);
    if is_raw(entry.length) {
        page.bytes_mut().copy_from_slice(data);
        return true;
    }
    zswap.codec.borrow_mut().decompress(data, page).is_ok()
}
