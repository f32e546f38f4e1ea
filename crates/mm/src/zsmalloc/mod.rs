//! zsmalloc: objects of 1 to 4096 bytes packed into chains of pages.
//!
//! A buddy of two or three objects per page wastes what does not fit. Here a
//! *zspage* is a chain of up to sixteen pages cut into objects of one size
//! class, so an object may begin on one page and end on the next. A *handle*
//! names an object and stays valid while the object moves: it stands for a
//! word that says where the object is now.
//!
//! | file | what |
//! | --- | --- |
//! | [`class`] | which sizes there are, how long their chains are, which are merged |
//! | [`fullness`] | the groups zspages are kept in by how full they are |
//! | [`pool`] | zspages, frames, handles; malloc, free, read, write |
//! | [`compact`] | moving objects together, moving a page |
//! | [`stats`] | counters in the kernel's columns |
//!
//! # Invariants
//!
//! 1. `pages_allocated` = the frames held = the sum over all classes of
//!    zspages × pages per zspage.
//! 2. An object lies within its zspage and overlaps no other; it touches at
//!    most two frames.
//! 3. The first eight bytes of an object are a link of the free list or, if
//!    it is allocated, its handle. The bytes are in the page itself. Only a
//!    huge object (one page, one object) keeps its handle in the descriptor.
//! 4. A zspage is in the list of its class and fullness group, and in one.
//! 5. Allocation takes from the fullest zspage that has room.
//! 6. A failed allocation leaves the pool as it was.
//!
//! # Left out
//!
//! Locks and per-CPU buffers (the crate above adds them), highmem, NUMA
//! nodes, the obsolete modes of mapping an object.

pub mod class;
pub mod compact;
mod frames;
pub mod fullness;
mod object;
pub mod pool;
pub mod stats;

pub use class::{ChainRule, ChainSizeError, ClassIndex, SizeClass, SizeClasses};
pub use compact::{Compaction, MigrateError};
pub use frames::FrameId;
pub use fullness::{FullnessGroup, FullnessRule};
pub use object::ObjSpan;
pub(crate) use object::in_one_piece;
pub use pool::{ObjLocation, ZsHandle, ZsPool, ZsPoolError, ZsPoolOptions, ZspageId, ZspageView};
pub use stats::{ClassStats, ZsPoolStats};

/// Bytes an object takes beside its payload: the handle in front of it.
pub const ZS_HANDLE_SIZE: usize = 8;
/// Size of the smallest class, in bytes.
pub const ZS_MIN_ALLOC_SIZE: usize = 32;
/// Size of the largest class, in bytes.
pub const ZS_MAX_ALLOC_SIZE: usize = crate::page::PAGE_SIZE;
/// Bytes between two neighbouring size slots.
pub const ZS_SIZE_CLASS_DELTA: usize = crate::page::PAGE_SIZE >> 8;
/// Number of size slots.
pub const ZS_SIZE_CLASSES: usize =
    (ZS_MAX_ALLOC_SIZE - ZS_MIN_ALLOC_SIZE).div_ceil(ZS_SIZE_CLASS_DELTA) + 1;
