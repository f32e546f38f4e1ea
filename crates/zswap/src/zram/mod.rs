//! zram: a block device whose pages live, compressed, in a zsmalloc pool.
//!
//! It is zswap's counterpart: the same allocator and the same per-CPU streams
//! with the same trouble, but it is the device itself, so what it holds stays
//! until it is overwritten or discarded, and a read leaves it in place.
//!
//! | path | file |
//! | --- | --- |
//! | write | `write.rs` |
//! | read | `read.rs` |
//! | slots: lock, free, discard | `slot.rs` |
//! | streams and compressor | `zcomp.rs` |
//! | the allocator under its locks | `zspool.rs` |
//!
//! Records are zswap's ([`crate::Probe`]), with the number of the slot as the
//! swap slot: a write is a store, a read is a load.
//!
//! Invariants:
//! 1. A page reads as it was written last; a slot that was never written, or was
//!    discarded, reads as zeroes. A failed write leaves the slot as it was.
//! 2. Lock order: slot, stream, pool, class. A write has put its stream before
//!    it locks the slot.
//! 3. Nothing of the shared state is borrowed across an await.
//! 4. With no path under way all memory is accounted for: [`Zram::check`].
//!
//! Left out: writeback to a backing device, recompression with further
//! algorithms (which the split gives one stream per device), partial pages,
//! levels and dictionaries, CPU hotplug, reset of the device. The design with
//! local locks fails where the kernel's allocates once more outside the stream
//! and compresses again. Kernels of 2025 that emptied a slot before compressing,
//! by which two writers of one slot could leak an object, are not told from those
//! that empty it when it is changed.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//! use std::rc::Rc;
//! use zswap_mm::{Page, PageContent};
//! use zswap_paths::zram::{Zram, ZramOptions, zram_bio_read, zram_bio_write};
//!
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let zram = Rc::new(Zram::new(&mut machine, ZramOptions::default())?);
//! let device = Rc::clone(&zram);
//! machine.spawn("writer", 0, move |task| async move {
//!     let (mut page, mut back) = (Page::zeroed(), Page::zeroed());
//!     PageContent::Text.fill(7, &mut page);
//!     assert_eq!(zram_bio_write(&task, &device, 3, &page).await, Ok(()));
//!     assert_eq!(zram_bio_read(&task, &device, 3, &mut back).await, Ok(()));
//!     assert!(back == page);
//! })?;
//! machine.run_until(1_000_000)?;
//! assert_eq!(zram.stats().pages_stored, 1);
//! assert_eq!(zram.check(), Ok(()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod costs;
mod design;
mod read;
mod slot;
mod write;
mod zcomp;
mod zspool;

pub use costs::ZramCosts;
pub use design::{UnknownZramDesign, ZramDesign};
pub use read::{zram_bio_read, zram_read_page};
pub use slot::{zram_bio_discard, zram_slot_free_notify};
pub use write::{zram_bio_write, zram_write_page};

use core::cell::Cell;
use core::fmt;
use kernel_sim::Machine;
use slot::Slot;
use zcomp::Zcomp;
use zspool::ZspoolWithLocks;
use zswap_mm::zsmalloc::ZsPoolError;
use zswap_mm::{Algorithm, AllocError, CompressError, Failslab};

/// What a device is made of.
#[derive(Clone, Debug)]
pub struct ZramOptions {
    /// The design of its streams.
    pub design: ZramDesign,
    /// The compressor (`comp_algorithm`).
    pub algorithm: Algorithm,
    /// Mean costs of the steps.
    pub costs: ZramCosts,
    /// Its size in pages (`disksize`).
    pub pages: u32,
    /// Pages that the pool may take at most (`mem_limit`); 0 is no limit.
    pub limit_pages: u64,
    /// Seed of the jitter of the costs.
    pub seed: u64,
}

impl Default for ZramOptions {
    /// 256 pages of zstd at level 3, as in 2026 before the split.
    fn default() -> ZramOptions {
        ZramOptions {
            design: ZramDesign::Shared,
            algorithm: Algorithm::Zstd,
            costs: ZramCosts::ZSTD_3,
            pages: 256,
            limit_pages: 0,
            seed: 1,
        }
    }
}

/// Counters, named as the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ZramStats {
    /// Slots that hold a page.
    pub pages_stored: u64,
    /// Of these, slots that only hold a word.
    pub same_pages: u64,
    /// Of these, slots that hold their page as it is.
    pub huge_pages: u64,
    /// Pages that were ever stored as they are.
    pub huge_pages_since: u64,
    /// Bytes of all slots in the pool.
    pub compr_data_size: u64,
    /// Most pages that the pool has had.
    pub max_used_pages: u64,
    /// Reads that failed.
    pub failed_reads: u64,
    /// Writes that failed.
    pub failed_writes: u64,
    /// Slots that were discarded or no longer needed by the swap code.
    pub notify_free: u64,
    /// Of these, slots that were in use and kept their page.
    pub miss_free: u64,
}

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZramError {
    /// The device has no such page.
    BeyondTheEnd,
    /// The compressor failed.
    Compress(CompressError),
    /// There is no memory for the data.
    Alloc(AllocError),
    /// The pool has reached `mem_limit`.
    Limit,
    /// The data did not decompress.
    Io,
}

impl fmt::Display for ZramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZramError::BeyondTheEnd => f.write_str("the device has no such page"),
            ZramError::Compress(error) => error.fmt(f),
            ZramError::Alloc(error) => error.fmt(f),
            ZramError::Limit => f.write_str("the device has reached its mem_limit"),
            ZramError::Io => f.write_str("the stored data cannot be read"),
        }
    }
}

impl core::error::Error for ZramError {}

/// A device.
pub struct Zram {
    design: ZramDesign,
    costs: ZramCosts,
    zcomp: Zcomp,
    mem_pool: ZspoolWithLocks,
    table: Vec<Slot>,
    limit_pages: u64,
    stats: Cell<ZramStats>,
}

impl Zram {
    /// An empty device whose locks belong to `machine`.
    ///
    /// # Errors
    /// If its pool cannot be created.
    pub fn new(machine: &mut Machine, options: ZramOptions) -> Result<Zram, ZsPoolError> {
        let zcomp = Zcomp::new(machine, &options);
        let mem_pool = ZspoolWithLocks::new(machine)?;
        let slot = |index| Slot::new(machine, options.design, index);
        Ok(Zram {
            design: options.design,
            costs: options.costs,
            zcomp,
            mem_pool,
            table: (0..options.pages).map(slot).collect(),
            limit_pages: options.limit_pages,
            stats: Cell::default(),
        })
    }

    fn slot(&self, index: u32) -> &Slot {
        &self.table[index as usize]
    }

    /// `huge_class_size`: data of this length take a page of their own.
    fn huge_class_size(&self) -> usize {
        self.mem_pool.pool.borrow().classes().huge_class_size()
    }

    /// `zram_can_store_page`: whether the pool is within its limit.
    fn zram_can_store_page(&self) -> bool {
        let used = self.used_pages();
        self.count(|stats| stats.max_used_pages = stats.max_used_pages.max(used));
        self.limit_pages == 0 || used <= self.limit_pages
    }

    fn count(&self, edit: impl FnOnce(&mut ZramStats)) {
        let mut stats = self.stats.get();
        edit(&mut stats);
        self.stats.set(stats);
    }

    /// Lets allocations fail.
    pub fn inject_faults(&self, faults: &Failslab) {
        self.mem_pool.pool.borrow_mut().set_faults(faults.clone());
    }

    /// The design.
    #[must_use]
    pub fn design(&self) -> ZramDesign {
        self.design
    }

    /// Its size in pages.
    #[must_use]
    pub fn pages(&self) -> u32 {
        u32::try_from(self.table.len()).unwrap_or(u32::MAX)
    }

    /// Pages of memory that the pool is made of (`mem_used_total`).
    #[must_use]
    pub fn used_pages(&self) -> u64 {
        self.mem_pool.pool.borrow().pages_allocated()
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> ZramStats {
        self.stats.get()
    }
}

/// The source of one of zram's path files.
pub(crate) fn source_of(name: &str) -> Option<&'static str> {
    match name {
        "zram/read.rs" => Some(include_str!("read.rs")),
        "zram/slot.rs" => Some(include_str!("slot.rs")),
        "zram/write.rs" => Some(include_str!("write.rs")),
        "zram/zcomp.rs" => Some(include_str!("zcomp.rs")),
        "zram/zspool.rs" => Some(include_str!("zspool.rs")),
        _ => None,
    }
}
