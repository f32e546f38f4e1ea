//! Pages, compressors, allocators and indexes: the data structures zswap is
//! made of, with real bytes in them and without time, tasks or locks.
//!
//! Everything keeps the name it has in the kernel. What a structure costs in
//! time, and who may touch it when, is decided by the crates above this one.
//!
//! | module | what it models |
//! | --- | --- |
//! | [`page`], [`content`] | a 4 KiB page and what pages typically contain |
//! | [`compressor`] | the compression algorithms behind one trait, and a memo of their results |
//! | [`zsmalloc`] | size classes, zspages, handles, compaction |
//! | [`zbud`], [`z3fold`] | the two simpler allocators of older kernels |
//! | [`zpool`] | one allocator interface; 32 pools or one |
//! | [`waste`] | what 32 pools waste against one |
//! | [`index`] | swap slot → entry: one rb-tree, rb-trees per 64 MB, xarrays per 64 MB |
//! | [`entry`], [`lru`] | what is kept about a stored page, and the order of writeback |
//! | [`limits`], [`cgroup`], [`counters`] | how much zswap may take, and what it counts |
//! | [`fill`] | same-filled and incompressible pages, the zeromap |
//! | [`lifecycle`], [`layout`] | zswap pools from creation to release; sizes of the structures |
//! | [`fault`] | allocation failures on demand |
//!
//! # Invariants
//!
//! 1. The same calls with the same seeds give the same results on every
//!    target: integers only, no hash-map iteration, no clock.
//! 2. What was written is read back from the same bytes; a compressed page is
//!    really compressed.
//! 3. Every allocation can fail ([`fault::Failslab`]), and after a failure
//!    nothing is leaked and nothing is lost.
//!
//! # Example
//!
//! A page on its way into compressed memory and out again:
//!
//! ```
//! use zswap_mm::{Algorithm, Page, PageContent, ZsPool, ZsPoolOptions, PAGE_SIZE};
//!
//! let mut page = Page::zeroed();
//! PageContent::Text.fill(7, &mut page);
//!
//! let mut zstd = Algorithm::Zstd.new_compressor();
//! let mut buffer = [0; 2 * PAGE_SIZE];
//! let length = zstd.compress(&page, &mut buffer)?;
//!
//! let mut pool = ZsPool::new("zswap0", ZsPoolOptions::default())?;
//! let handle = pool.zs_malloc(length)?;
//! pool.zs_obj_write(handle, &buffer[..length]);
//!
//! let mut stored = Vec::new();
//! pool.zs_obj_read(handle, &mut stored);
//! let mut loaded = Page::zeroed();
//! zstd.decompress(&stored[..length], &mut loaded)?;
//! assert_eq!(loaded, page);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cgroup;
pub mod compressor;
pub mod content;
pub mod counters;
pub mod entry;
pub mod fault;
pub mod fill;
pub mod index;
pub mod layout;
pub mod lifecycle;
pub mod limits;
pub mod lru;
pub mod page;
pub mod waste;
pub mod z3fold;
pub mod zbud;
pub mod zpool;
pub mod zsmalloc;

mod lists;
mod random;
mod slab;

pub use compressor::memo::{CodecMemo, CodecMemoOptions};
pub use compressor::{Algorithm, CompressError, Compressor, DecompressError};
pub use content::PageContent;
pub use fault::{AllocError, AllocSite, Failslab};
pub use index::{IndexKind, RbTree, RbTreePer64M, SwapIndex, SwapSlot, XarrayPer64M};
pub use page::{PAGE_SHIFT, PAGE_SIZE, Page};
pub use zsmalloc::{ChainRule, ClassIndex, ObjLocation, ZsHandle, ZsPool, ZsPoolOptions, ZspageId};
