//! The state of zswap that its paths share.

use crate::acomp_ctx::AcompCtx;
use crate::costs::Costs;
use crate::design::Design;
use crate::zeromap::Zeromap;
use core::cell::{Cell, RefCell};
use kernel_sim::{CpuId, Machine, Stream};
use serde::{Deserialize, Serialize};
use zswap_mm::zsmalloc::ZsPoolError;
use zswap_mm::{CodecMemo, CodecMemoOptions, Compressor, Failslab, PAGE_SIZE, SwapIndex, SwapSlot};
use zswap_mm::{XarrayPer64M, ZsHandle, ZsPool, ZsPoolOptions};

/// What zswap is made of.
#[derive(Clone, Copy, Debug)]
pub struct ZswapOptions {
    /// The design.
    pub design: Design,
    /// Mean costs of the steps.
    pub costs: Costs,
    /// Slots of the swap device.
    pub slots: u64,
    /// Seed of the jitter of the costs.
    pub seed: u64,
}

/// `struct zswap_entry`: what the index knows of a stored page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZswapEntry {
    /// Where its data are.
    pub handle: ZsHandle,
    /// Their length in bytes; a page's when they are stored raw.
    pub length: usize,
}

/// Counters, named as in debugfs and vmstat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Pages in zswap now.
    pub stored_pages: u64,
    /// Of these, pages that did not compress and are stored raw.
    pub stored_incompressible_pages: u64,
    /// Stores that failed for want of pool memory.
    pub reject_alloc_fail: u64,
    /// Loads whose data did not decompress.
    pub decompress_fail: u64,
    /// Pages loaded.
    pub zswpin: u64,
    /// Pages stored.
    pub zswpout: u64,
}

/// A machine's zswap.
pub struct Zswap {
    pub(crate) design: Design,
    pub(crate) costs: Costs,
    contexts: Vec<AcompCtx>,
    /// `acomp_ctx.buffer` of each CPU, guarded by its compression mutex.
    pub(crate) buffers: Vec<RefCell<Vec<u8>>>,
    pub(crate) pool: RefCell<ZsPool>,
    pub(crate) index: RefCell<XarrayPer64M<ZswapEntry>>,
    pub(crate) codec: RefCell<CodecMemo>,
    pub(crate) zeromap: RefCell<Zeromap>,
    pub(crate) counters: Cell<Counters>,
    compress_times: RefCell<Stream>,
    decompress_times: RefCell<Stream>,
}

impl Zswap {
    /// A fresh zswap whose locks belong to `machine` and whose pages go through
    /// `codec`, a transform of the design's algorithm.
    ///
    /// # Errors
    /// If the pool cannot be created.
    pub fn new(
        machine: &mut Machine,
        options: ZswapOptions,
        codec: Box<dyn Compressor>,
    ) -> Result<Zswap, ZsPoolError> {
        let ZswapOptions {
            design,
            costs,
            slots,
            seed,
        } = options;
        let pool = ZsPool::new("zswap0", ZsPoolOptions::default())?;
        let cpus = machine.cpus();
        let context = |cpu: &CpuId| AcompCtx::new(machine, design, *cpu);
        let contexts: Vec<AcompCtx> = cpus.iter().map(context).collect();
        let buffer = |_| RefCell::new(Vec::with_capacity(PAGE_SIZE));
        Ok(Zswap {
            design,
            costs,
            buffers: contexts.iter().map(buffer).collect(),
            contexts,
            pool: RefCell::new(pool),
            index: RefCell::new(XarrayPer64M::new(slots)),
            codec: RefCell::new(CodecMemo::new(codec, CodecMemoOptions::default())),
            zeromap: RefCell::new(Zeromap::new(slots)),
            counters: Cell::new(Counters::default()),
            compress_times: RefCell::new(Stream::new(seed, "compress")),
            decompress_times: RefCell::new(Stream::new(seed, "decompress")),
        })
    }

    /// The context of a CPU.
    pub(crate) fn acomp_ctx(&self, cpu: CpuId) -> AcompCtx {
        self.contexts[cpu.index()]
    }

    pub(crate) fn compress_ns(&self) -> u64 {
        Costs::jittered(
            &mut self.compress_times.borrow_mut(),
            self.costs.compress_ns,
        )
    }

    pub(crate) fn decompress_ns(&self) -> u64 {
        Costs::jittered(
            &mut self.decompress_times.borrow_mut(),
            self.costs.decompress_ns,
        )
    }

    pub(crate) fn count(&self, edit: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        edit(&mut counters);
        self.counters.set(counters);
    }

    pub(crate) fn entry(&self, slot: SwapSlot) -> Option<ZswapEntry> {
        self.index.borrow().load(slot).copied()
    }

    /// Lets allocations of the pool and of the index fail.
    pub fn inject_faults(&self, pool: Failslab, index: Failslab) {
        self.pool.borrow_mut().set_faults(pool);
        self.index.borrow_mut().set_faults(index);
    }

    /// Pages of memory that the pool is made of.
    #[must_use]
    pub fn pool_pages(&self) -> u64 {
        self.pool.borrow().pages_allocated()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    /// How often the codec worked, and how often the result of a page content
    /// met before was used again.
    #[must_use]
    pub fn codec_work(&self) -> (u64, u64) {
        let codec = self.codec.borrow();
        (codec.misses(), codec.hits())
    }
}

/// Whether data of this length are a page stored raw.
pub(crate) fn is_raw(length: usize) -> bool {
    length == PAGE_SIZE
}
