//! The per-CPU streams, and the compressor behind them.
//!
//! 1. A stream is that of the CPU on which a task was when it asked. Who waits
//!    for its mutex may move to another CPU meanwhile and keeps the stream.
//! 2. Whoever has a stream has its buffer and its context until it is put.
//!
//! zram's compressors are called directly: there is no lock of the crypto code
//! below the stream's, so where that is a mutex a task can be preempted in the
//! middle of a compression.

use super::{Zram, ZramDesign, ZramOptions};
use crate::costs::Costs;
use crate::probe::Probe;
use core::cell::RefCell;
use kernel_sim::{CpuId, Machine, Mutex, PlainSpinLock, Stream, Task};
use zswap_mm::{CodecMemo, CodecMemoOptions, CompressError, PAGE_SIZE, Page, ZsHandle};

/// What keeps others off a stream.
#[derive(Clone, Copy, Debug)]
enum StreamLock {
    /// A local lock: preemption is off while the stream is used. Only tasks of
    /// its CPU take it, so nobody ever spins.
    Local(PlainSpinLock),
    Mutex(Mutex),
}

/// `struct zcomp_strm`.
#[derive(Debug)]
pub(super) struct ZcompStrm {
    lock: StreamLock,
    /// Where a page is compressed to: two pages, since the result may be larger
    /// than the page.
    pub buffer: RefCell<Vec<u8>>,
    /// Where an object on two pages is joined to be decompressed from.
    local_copy: RefCell<Vec<u8>>,
}

/// What a stream is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Compress,
    Decompress,
}

/// `struct zcomp`: the compressor of a device.
pub(super) struct Zcomp {
    /// The streams for compression by CPU; for both directions where there are
    /// no others.
    cstreams: Vec<ZcompStrm>,
    /// The streams for decompression only.
    dstreams: Vec<ZcompStrm>,
    codec: RefCell<CodecMemo>,
    times: RefCell<[Stream; 2]>,
}

impl Zcomp {
    pub(super) fn new(machine: &mut Machine, options: &ZramOptions) -> Zcomp {
        let design = options.design;
        let mut streams = |what: &str| -> Vec<ZcompStrm> {
            let cpus = machine.cpus();
            let names = cpus.iter().map(|cpu| format!("{what} of CPU {cpu}"));
            let stream = |name| ZcompStrm::new(machine, design, name);
            names.map(stream).collect()
        };
        let (cstreams, dstreams) = match design {
            ZramDesign::LocalLock | ZramDesign::Shared => (streams("zcomp_strm"), Vec::new()),
            ZramDesign::Split => (streams("zcomp_cstrm"), streams("zcomp_dstrm")),
        };
        let codec = options.algorithm.new_compressor();
        Zcomp {
            cstreams,
            dstreams,
            codec: RefCell::new(CodecMemo::new(codec, CodecMemoOptions::default())),
            times: RefCell::new(
                ["compress", "decompress"].map(|what| Stream::new(options.seed, what)),
            ),
        }
    }

    fn zcomp_cstream(&self, cpu: CpuId) -> &ZcompStrm {
        &self.cstreams[cpu.index()]
    }

    fn zcomp_dstream(&self, cpu: CpuId) -> &ZcompStrm {
        let own = self.dstreams.get(cpu.index());
        own.unwrap_or_else(|| self.zcomp_cstream(cpu))
    }

    fn time_ns(&self, direction: Direction, mean_ns: u64) -> u64 {
        Costs::jittered(&mut self.times.borrow_mut()[direction as usize], mean_ns)
    }
}

impl ZcompStrm {
    fn new(machine: &mut Machine, design: ZramDesign, name: String) -> ZcompStrm {
        ZcompStrm {
            lock: match design {
                ZramDesign::LocalLock => StreamLock::Local(machine.plain_spin_lock(name)),
                ZramDesign::Shared | ZramDesign::Split => StreamLock::Mutex(machine.mutex(name)),
            },
            buffer: RefCell::new(Vec::with_capacity(2 * PAGE_SIZE)),
            local_copy: RefCell::default(),
        }
    }
}

/// `zcomp_stream_get`: the stream of the CPU that the task is on now, locked.
pub(super) async fn zcomp_stream_get<'z>(
    task: &Task,
    zcomp: &'z Zcomp,
    direction: Direction,
) -> &'z ZcompStrm {
    let zstrm = match direction {
        Direction::Compress => zcomp.zcomp_cstream(task.cpu()),
        Direction::Decompress => zcomp.zcomp_dstream(task.cpu()),
    };
    match zstrm.lock {
        StreamLock::Local(lock) => task.spin_lock(lock).await,
        StreamLock::Mutex(mutex) => task.mutex_lock(mutex).await,
    }
    zstrm
}

/// `zcomp_stream_put`: the stream is free for others.
pub(super) async fn zcomp_stream_put(task: &Task, zstrm: &ZcompStrm) {
    match zstrm.lock {
        StreamLock::Local(lock) => task.spin_unlock(lock).await,
        StreamLock::Mutex(mutex) => task.mutex_unlock(mutex).await,
    }
}

/// `zcomp_compress`: compresses a page into the buffer of the stream and
/// returns the length.
pub(super) async fn zcomp_compress(
    task: &Task,
    zram: &Zram,
    zstrm: &ZcompStrm,
    index: u32,
    page: &Page,
) -> Result<usize, CompressError> {
    task.probe(Probe::CompressBegin as u16, index.into());
    let length = {
        let buffer = &mut *zstrm.buffer.borrow_mut();
        zram.zcomp.codec.borrow_mut().compress(page, buffer)
    };
    let mean_ns = zram.costs.compress_ns;
    let ns = zram.zcomp.time_ns(Direction::Compress, mean_ns);
    task.run_kernel(ns).await;
    task.probe(Probe::CompressEnd as u16, length.unwrap_or(0) as u64);
    length
}

/// `zcomp_decompress`: decompresses an object, which somebody keeps in place,
/// into a page. Says whether the data were good.
pub(super) async fn zcomp_decompress(
    task: &Task,
    zram: &Zram,
    zstrm: &ZcompStrm,
    index: u32,
    (handle, size): (ZsHandle, u16),
    page: &mut Page,
) -> bool {
    task.probe(Probe::DecompressBegin as u16, index.into());
    let good = {
        let pool = zram.mem_pool.pool.borrow();
        let local_copy = &mut *zstrm.local_copy.borrow_mut();
        let data = pool.zs_obj_read_begin(handle, usize::from(size), local_copy);
        zram.zcomp.codec.borrow_mut().decompress(data, page).is_ok()
    };
    let mean_ns = zram.costs.decompress_ns;
    let ns = zram.zcomp.time_ns(Direction::Decompress, mean_ns);
    task.run_kernel(ns).await;
    task.probe(Probe::DecompressEnd as u16, size.into());
    good
}
