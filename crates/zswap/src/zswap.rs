//! The state of zswap that its paths share.
//!
//! 1. Nothing of it is borrowed across an await.
//! 2. With no path under way, what is allocated is what the entries refer to
//!    ([`Zswap::check`]).

use crate::acomp_ctx::AcompCtxs;
use crate::costs::{Costs, Parts};
use crate::design::{Design, LruDesign};
use crate::store::StoreError;
use crate::swap_cache::SwapCache;
use crate::zpool::ZpoolLocks;
use core::cell::{Cell, RefCell};
use kernel_sim::{Accelerator, AcceleratorOptions, Deferred, Device, Machine, Mutex};
use kernel_sim::{PlainSpinLock, Stream, Task, Work};
use std::collections::BTreeMap;
use zswap_mm::cgroup::{CgroupId, Cgroups};
use zswap_mm::counters::ZswapCounters;
use zswap_mm::entry::{EntryCache, EntryData, EntryId, ZswapEntry};
use zswap_mm::fill::{Refusal, Zeromap};
use zswap_mm::layout::EntryEra;
use zswap_mm::lifecycle::{PoolError, PoolId, ZswapPools};
use zswap_mm::limits::Limits;
use zswap_mm::lru::ZswapLru;
use zswap_mm::zpool::ZpoolSetOptions;
use zswap_mm::{
    Algorithm, CodecMemo, CodecMemoOptions, Compressor, Failslab, IndexKind, SwapIndex, SwapSlot,
};

/// What zswap is made of.
#[derive(Clone, Debug)]
pub struct ZswapOptions {
    /// The design.
    pub design: Design,
    /// Mean costs of the steps.
    pub costs: Costs,
    /// Slots of the swap device.
    pub slots: u64,
    /// Seed of the jitter of the costs.
    pub seed: u64,
    /// Memory of the machine, in pages, of which the pools may hold a part.
    pub totalram_pages: u64,
    /// zswap pools that can be alive at a time; each has locks of its own.
    pub pools: u8,
    /// Compressors that can be switched to, beside the first.
    pub algorithms: Vec<Algorithm>,
    /// What makes those; without it there is only the first. A program that
    /// names none of them need not hold their codecs.
    pub new_compressor: Option<fn(Algorithm) -> Box<dyn Compressor>>,
    /// The swap device; without one a page that zswap refuses stays in memory.
    pub device: Option<Device>,
    /// The hardware of asynchronous compressors.
    pub accelerator: AcceleratorOptions,
}

impl ZswapOptions {
    /// One pool, no limit, no device.
    #[must_use]
    pub fn new(design: Design, costs: Costs, slots: u64, seed: u64) -> ZswapOptions {
        ZswapOptions {
            design,
            costs,
            slots,
            seed,
            totalram_pages: 1 << 40,
            pools: 1,
            algorithms: Vec::new(),
            new_compressor: None,
            device: None,
            accelerator: AcceleratorOptions::default(),
        }
    }
}

/// Counters, named as in debugfs and vmstat.
pub type Counters = ZswapCounters;

/// The work items of zswap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Works {
    pub shrink: Work,
    pub release: Work,
}

/// A machine's zswap, with the swap cache and the device around it.
pub struct Zswap {
    pub(crate) design: Design,
    pub(crate) costs: Parts,
    pub(crate) slots: u64,
    pub(crate) enabled: Cell<bool>,
    pub(crate) contexts: AcompCtxs,
    pub(crate) zpool_locks: Vec<ZpoolLocks>,
    pub(crate) tree_locks: Vec<PlainSpinLock>,
    pub(crate) lru_locks: Vec<PlainSpinLock>,
    /// Held over a change of a module parameter (`param_lock`).
    pub(crate) param_lock: Mutex,
    pub(crate) pools: RefCell<ZswapPools>,
    pub(crate) pool_options: RefCell<ZpoolSetOptions>,
    pub(crate) entries: RefCell<EntryCache>,
    pub(crate) index: RefCell<Box<dyn SwapIndex<EntryId>>>,
    pub(crate) lrus: RefCell<Vec<ZswapLru>>,
    pub(crate) limits: RefCell<Limits>,
    pub(crate) cgroups: RefCell<Cgroups>,
    /// `nr_disk_swapins` of each cgroup.
    pub(crate) disk_swapins: RefCell<BTreeMap<CgroupId, u64>>,
    /// `zswap_next_shrink`: the cgroup that was shrunk last.
    pub(crate) next_shrink: Cell<CgroupId>,
    pub(crate) works: Cell<Option<Works>>,
    pub(crate) accelerator: Option<Accelerator>,
    pub(crate) device: Option<Device>,
    pub(crate) cache: RefCell<SwapCache>,
    pub(crate) zeromap: RefCell<Zeromap>,
    pub(crate) counters: Cell<Counters>,
    codecs: RefCell<Vec<CodecMemo>>,
    new_compressor: Option<fn(Algorithm) -> Box<dyn Compressor>>,
    /// For data on their way from the pool to the compressor.
    pub(crate) scratch: RefCell<Vec<u8>>,
    compress_times: RefCell<Stream>,
    decompress_times: RefCell<Stream>,
}

impl Zswap {
    /// A fresh zswap whose locks belong to `machine` and whose pages go through
    /// `codec`, a transform of the design's algorithm.
    ///
    /// # Errors
    /// If the first pool cannot be created.
    pub fn new(
        machine: &mut Machine,
        options: ZswapOptions,
        codec: Box<dyn Compressor>,
    ) -> Result<Zswap, PoolError> {
        let design = options.design;
        // The contexts come first: their locks have the smallest numbers.
        let contexts = AcompCtxs::new(machine, &options);
        let zpool_locks = ZpoolLocks::all(machine, &options);
        let index = design.index.new_index(options.slots);
        let cpus = u32::try_from(machine.cpus().len()).unwrap_or(u32::MAX);
        let tree =
            |number| machine.plain_spin_lock(format!("{} {number}", tree_name(design.index)));
        let lists = match design.lru {
            LruDesign::PerPool => options.pools,
            LruDesign::Global => 1,
        };
        let tree_locks = (0..index.trees().max(1)).map(tree).collect();
        let lru = |number| machine.plain_spin_lock(format!("{} {number}", lru_name(design.lru)));
        let lru_locks = (0..lists).map(lru).collect();
        let mut limits = Limits::new(options.totalram_pages);
        limits.rule = design.limit_rule;
        let pool_options = ZpoolSetOptions {
            pools: usize::from(design.zpools),
            cpus,
            ..ZpoolSetOptions::new(design.allocator.kind())
        };
        let mut pools = ZswapPools::new();
        pools.set_max(options.pools);
        pools.switch(design.algorithm, &pool_options)?;
        let used = || options.algorithms.iter().copied().chain([design.algorithm]);
        let hardware = used().any(Algorithm::is_async);
        let options_of_hardware = options.accelerator.clone();
        Ok(Zswap {
            design,
            costs: options.costs.into(),
            slots: options.slots,
            enabled: Cell::new(true),
            contexts,
            zpool_locks,
            tree_locks,
            lru_locks,
            param_lock: machine.mutex("param_lock"),
            pools: RefCell::new(pools),
            pool_options: RefCell::new(pool_options),
            entries: RefCell::new(EntryCache::new(entry_era(design.index))),
            index: RefCell::new(index),
            lrus: RefCell::new((0..lists).map(|_| ZswapLru::new()).collect()),
            limits: RefCell::new(limits),
            cgroups: RefCell::default(),
            disk_swapins: RefCell::default(),
            next_shrink: Cell::new(CgroupId::ROOT),
            works: Cell::new(None),
            accelerator: hardware.then(|| machine.accelerator("iaa", options_of_hardware)),
            device: options.device,
            cache: RefCell::new(SwapCache::new(machine, options.slots)),
            zeromap: RefCell::new(Zeromap::new(options.slots)),
            counters: Cell::default(),
            codecs: RefCell::new(vec![CodecMemo::new(codec, CodecMemoOptions::default())]),
            new_compressor: options.new_compressor,
            scratch: RefCell::default(),
            compress_times: RefCell::new(Stream::new(options.seed, "compress")),
            decompress_times: RefCell::new(Stream::new(options.seed, "decompress")),
        })
    }

    pub(crate) fn compress_ns(&self) -> u64 {
        Costs::jittered(
            &mut self.compress_times.borrow_mut(),
            self.costs.mean.compress_ns,
        )
    }

    pub(crate) fn decompress_ns(&self) -> u64 {
        Costs::jittered(
            &mut self.decompress_times.borrow_mut(),
            self.costs.mean.decompress_ns,
        )
    }

    /// The codec of an algorithm, which is made when it is first needed.
    pub(crate) fn with_codec<R>(&self, of: Algorithm, f: impl FnOnce(&mut CodecMemo) -> R) -> R {
        let codecs = &mut *self.codecs.borrow_mut();
        let known = codecs.iter().position(|codec| codec.algorithm() == of);
        let at = known.unwrap_or_else(|| {
            let new = self.new_compressor.map(|new| new(of));
            let new = new.expect("who can switch to a compressor can make it");
            codecs.push(CodecMemo::new(new, CodecMemoOptions::default()));
            codecs.len() - 1
        });
        f(&mut codecs[at])
    }

    pub(crate) fn count(&self, edit: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        edit(&mut counters);
        self.counters.set(counters);
    }

    /// Counts a page that could not be compressed or allocated.
    pub(crate) fn count_refusal(&self, error: Option<StoreError>) {
        self.count(|counters| match error {
            Some(StoreError::Compress(Refusal::CompressPoor)) => counters.reject_compress_poor += 1,
            Some(StoreError::Compress(Refusal::CompressFail)) => counters.reject_compress_fail += 1,
            Some(StoreError::Alloc(_)) => counters.reject_alloc_fail += 1,
            _ => {}
        });
    }

    /// What is known of a stored page.
    pub(crate) fn entry(&self, id: EntryId) -> ZswapEntry {
        let entries = self.entries.borrow();
        *entries
            .get(id)
            .expect("who has an entry's number keeps it alive")
    }

    /// `zswap_entry_cache_alloc`.
    pub(crate) fn entry_cache_alloc(
        &self,
        slot: SwapSlot,
        pool: PoolId,
        objcg: CgroupId,
    ) -> Result<EntryId, StoreError> {
        let entry = ZswapEntry {
            swpentry: slot,
            length: 0,
            referenced: true,
            pool,
            data: EntryData::SameFilled(0),
            objcg,
        };
        let allocated = self.entries.borrow_mut().alloc(entry);
        allocated.map_err(|error| {
            self.count(|counters| counters.reject_kmemcache_fail += 1);
            StoreError::Alloc(error)
        })
    }

    /// Completes an entry: from here on it holds its pool and is charged for.
    pub(crate) fn fill_entry(&self, id: EntryId, data: EntryData, length: usize) {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(id).expect("it was just allocated");
        entry.data = data;
        entry.length = u16::try_from(length).unwrap_or(u16::MAX);
        self.pools.borrow_mut().get(entry.pool);
        self.cgroups.borrow_mut().charge(entry.objcg, length);
        self.count(|counters| {
            counters.stored_pages += 1;
            counters.stored_incompressible_pages += u64::from(entry.is_incompressible());
            counters.same_filled_pages += u64::from(!Zswap::is_listed(data));
        });
    }

    pub(crate) fn find_zpool(&self, pool: PoolId, id: EntryId) -> u8 {
        let pools = self.pools.borrow();
        let pool = pools.pool(pool).expect("a store keeps its pool alive");
        pool.zpools.find_zpool(self.entries.borrow().pointer(id))
    }

    /// The compressor of a pool.
    pub(crate) fn algorithm_of(&self, pool: PoolId) -> Algorithm {
        let pools = self.pools.borrow();
        pools
            .pool(pool)
            .expect("an entry keeps its pool alive")
            .algorithm
    }

    /// `zswap_pool_current_get`.
    pub(crate) fn pool_current_get(&self) -> Option<PoolId> {
        let mut pools = self.pools.borrow_mut();
        let current = pools.current()?;
        pools.get(current);
        Some(current)
    }

    /// `zswap_pool_put`: with the last reference the pool is freed by a work
    /// item, after a grace period.
    pub(crate) fn pool_put(&self, task: &Task, pool: PoolId) {
        let mut pools = self.pools.borrow_mut();
        pools.put(pool);
        let empty = pools.pool(pool).is_some_and(|pool| pool.refs() == 0);
        if let Some(works) = self.works.get().filter(|_| empty) {
            task.call_rcu(Deferred::Queue(works.release));
        }
    }

    /// `zswap_check_limits`: whether a store must be refused now.
    pub(crate) fn zswap_check_limits(&self) -> bool {
        let pages = self.pool_pages();
        let mut counters = self.counters.get();
        let full = self.limits.borrow_mut().check(pages, &mut counters);
        self.counters.set(counters);
        full
    }

    /// `memcg_list_lru_alloc`: makes the list of a cgroup before it is needed.
    pub(crate) fn memcg_list_lru_alloc(
        &self,
        pool: PoolId,
        cgroup: CgroupId,
    ) -> Result<(), StoreError> {
        let list = self.lru_of(pool);
        let made = self.lrus.borrow_mut()[list].list_alloc(self.listed_under(cgroup));
        made.map_err(StoreError::Alloc)
    }

    /// Lets allocations fail: each structure gets an injector that begins like
    /// this one.
    pub fn inject_faults(&self, faults: &Failslab) {
        let mut pools = self.pools.borrow_mut();
        let live: Vec<PoolId> = pools.live().collect();
        for id in live {
            let zpools = pools.pool_mut(id).map(|pool| &mut pool.zpools);
            for zpool in zpools.into_iter().flat_map(|zpools| zpools.zpools_mut()) {
                zpool.set_faults(faults.clone());
            }
        }
        pools.set_faults(faults.clone());
        let mut options = self.pool_options.borrow_mut();
        options.zsmalloc.faults = faults.clone();
        options.faults = faults.clone();
        self.index.borrow_mut().set_faults(faults.clone());
        self.entries.borrow_mut().set_faults(faults.clone());
        for lru in self.lrus.borrow_mut().iter_mut() {
            lru.set_faults(faults.clone());
        }
    }

    /// `enabled`: whether pages are stored; what is stored can be loaded either
    /// way.
    pub fn set_enabled(&self, enabled: bool) {
        self.enabled.set(enabled);
    }

    /// The cgroups, to create them and to set their limits.
    pub fn with_cgroups<R>(&self, f: impl FnOnce(&mut Cgroups) -> R) -> R {
        f(&mut self.cgroups.borrow_mut())
    }

    /// The limits, to set them.
    pub fn with_limits<R>(&self, f: impl FnOnce(&mut Limits) -> R) -> R {
        f(&mut self.limits.borrow_mut())
    }

    /// The zswap pools, to look at them.
    pub fn with_pools<R>(&self, f: impl FnOnce(&mut ZswapPools) -> R) -> R {
        f(&mut self.pools.borrow_mut())
    }

    /// The design.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The hardware of asynchronous compressors, if one is used.
    #[must_use]
    pub fn accelerator(&self) -> Option<Accelerator> {
        self.accelerator
    }

    /// Slots of the swap device.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Pages of memory that the pools are made of.
    #[must_use]
    pub fn pool_pages(&self) -> u64 {
        self.pools.borrow().total_pages()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    /// How often the codecs worked, and how often the result of a page content
    /// met before was used again.
    #[must_use]
    pub fn codec_work(&self) -> (u64, u64) {
        let codecs = self.codecs.borrow();
        let both = codecs.iter().map(|codec| (codec.misses(), codec.hits()));
        both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// The size of an entry decides its address, and so its allocator pool.
fn entry_era(index: IndexKind) -> EntryEra {
    match index {
        IndexKind::XarrayPer64M => EntryEra::Xarray,
        IndexKind::RbTree | IndexKind::RbTreePer64M => EntryEra::RbTree,
    }
}

fn tree_name(index: IndexKind) -> &'static str {
    match index {
        IndexKind::XarrayPer64M => "xa_lock",
        IndexKind::RbTree | IndexKind::RbTreePer64M => "tree->lock",
    }
}

fn lru_name(lru: LruDesign) -> &'static str {
    match lru {
        LruDesign::PerPool => "pool->lru_lock",
        LruDesign::Global => "list_lru lock",
    }
}
