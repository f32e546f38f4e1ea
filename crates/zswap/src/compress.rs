//! The compressor at work, under the locks.

use crate::acomp_ctx::AcompCtx;
use crate::probe::Probe;
use crate::zswap::Zswap;
use kernel_sim::{DeviceError, Job, SpinLock, Task};
use zswap_mm::entry::{EntryData, ZswapEntry};
use zswap_mm::{Algorithm, CompressError, Page, SwapSlot};

/// Compresses a page into the buffer of a context and returns the length. The
/// stream lock keeps preemption off for as long as that takes, so a preemption
/// that is due strikes at its release.
pub(crate) async fn crypto_acomp_compress(
    task: &Task,
    zswap: &Zswap,
    ctx: &AcompCtx,
    algorithm: Algorithm,
    slot: SwapSlot,
    page: &Page,
) -> Result<usize, CompressError> {
    if algorithm.is_async() {
        let done = crypto_wait_req(task, zswap, Job::compress(1)).await;
        match done {
            Ok(()) => return compress_into(zswap, ctx, algorithm, page),
            Err(DeviceError::Failed) => return Err(CompressError::Failed(algorithm)),
            Err(DeviceError::Busy) => {}
        }
    }
    let stream = stream_of_this_cpu(task, zswap, algorithm);
    task.spin_lock_bh(stream).await;
    task.probe(Probe::CompressBegin as u16, slot.0);
    let length = compress_into(zswap, ctx, algorithm, page);
    task.run_kernel(zswap.compress_ns()).await;
    task.probe(Probe::CompressEnd as u16, length.unwrap_or(0) as u64);
    task.spin_unlock_bh(stream).await;
    length
}

/// Decompresses the data of an entry into `page`, under the stream lock. A page
/// that was stored raw is only copied, which needs no compressor.
///
/// Says whether the data were good.
pub(crate) async fn crypto_acomp_decompress(
    task: &Task,
    zswap: &Zswap,
    algorithm: Algorithm,
    entry: ZswapEntry,
    page: &mut Page,
) -> bool {
    if entry.is_incompressible() {
        return decompress_from(zswap, algorithm, entry, page);
    }
    if algorithm.is_async() {
        let done = crypto_wait_req(task, zswap, Job::decompress(1)).await;
        match done {
            Ok(()) => return decompress_from(zswap, algorithm, entry, page),
            Err(DeviceError::Failed) => return false,
            Err(DeviceError::Busy) => {}
        }
    }
    let stream = stream_of_this_cpu(task, zswap, algorithm);
    task.spin_lock_bh(stream).await;
    task.probe(Probe::DecompressBegin as u16, entry.swpentry.0);
    let good = decompress_from(zswap, algorithm, entry, page);
    task.run_kernel(zswap.decompress_ns()).await;
    task.probe(Probe::DecompressEnd as u16, entry.length.into());
    task.spin_unlock_bh(stream).await;
    good
}

/// `crypto_wait_req`: the hardware does it; the task sleeps until it is done.
/// With the hardware's queue full the CPU has to do it after all.
async fn crypto_wait_req(task: &Task, zswap: &Zswap, job: Job) -> Result<(), DeviceError> {
    let Some(accelerator) = zswap.accelerator else {
        return Err(DeviceError::Busy);
    };
    let request = task.submit_job(accelerator, job).await;
    task.wait_for_request(request).await
}

fn stream_of_this_cpu(task: &Task, zswap: &Zswap, algorithm: Algorithm) -> SpinLock {
    let stream = zswap.contexts.stream(algorithm, task.cpu());
    stream.expect("a pool has a compressor of this machine")
}

fn compress_into(
    zswap: &Zswap,
    ctx: &AcompCtx,
    algorithm: Algorithm,
    page: &Page,
) -> Result<usize, CompressError> {
    let buffer = &mut *ctx.buffer.borrow_mut();
    zswap.with_codec(algorithm, |codec| codec.compress(page, buffer))
}

/// Reads from the one or two pages that the object lies in.
fn decompress_from(
    zswap: &Zswap,
    algorithm: Algorithm,
    entry: ZswapEntry,
    page: &mut Page,
) -> bool {
    let EntryData::Stored(handle) = entry.data else {
        return false;
    };
    let joined = &mut *zswap.scratch.borrow_mut();
    zswap.with_zpool(entry.pool, handle.zpool, |zpool| {
        let data = zpool.read_begin(handle.handle, usize::from(entry.length), joined);
        if entry.is_incompressible() {
            page.bytes_mut().copy_from_slice(data);
            return true;
        }
        zswap.with_codec(algorithm, |codec| codec.decompress(data, page).is_ok())
    })
}
