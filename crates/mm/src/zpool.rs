//! One allocator interface, and one pool or thirty-two.
//!
//! zswap used to reach its allocators through a layer named zpool. From 6.6
//! to 6.10 it also kept 32 of them per pool, because one zsmalloc pool had a
//! single lock: the entry's address decided which one. Since 6.11 one is
//! enough again.
//!
//! 1. The pool of an entry depends on its address only.
//! 2. Every pool has a name of its own: `zswap` and a number in hexadecimal.
//! 3. A set that cannot be created whole is not created: pools made before
//!    the failure are gone, and only their numbers are used up.
//!
//! ```
//! use zswap_mm::zpool::{PoolNames, ZpoolKind, ZpoolSet, ZpoolSetOptions};
//!
//! let mut names = PoolNames::default();
//! let options = ZpoolSetOptions { pools: 32, ..ZpoolSetOptions::new(ZpoolKind::Zsmalloc) };
//! let set = ZpoolSet::new(options, &mut names)?;
//! assert_eq!(set.names().last(), Some("zswap20"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::fault::{AllocError, AllocSite, Failslab};
use crate::z3fold::{Z3foldHandle, Z3foldPool};
use crate::zbud::{ZbudHandle, ZbudPool};
use crate::zsmalloc::in_one_piece;
use crate::zsmalloc::{ZsHandle, ZsPool, ZsPoolError, ZsPoolOptions};
use serde::{Deserialize, Serialize};

/// Pools per zswap pool from 6.6 to 6.10.
pub const ZSWAP_NR_ZPOOLS: usize = 32;

/// Which allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZpoolKind {
    /// [`crate::zsmalloc`].
    Zsmalloc,
    /// [`crate::zbud`] (until 6.14).
    Zbud,
    /// [`crate::z3fold`] (until 6.14).
    Z3fold,
}

/// A name that is no allocator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown allocator `{0}`: use zsmalloc, zbud or z3fold")]
pub struct UnknownZpool(pub String);

impl ZpoolKind {
    /// Every kind.
    pub const ALL: [ZpoolKind; 3] = [ZpoolKind::Zsmalloc, ZpoolKind::Zbud, ZpoolKind::Z3fold];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            ZpoolKind::Zsmalloc => "zsmalloc",
            ZpoolKind::Zbud => "zbud",
            ZpoolKind::Z3fold => "z3fold",
        }
    }
}

impl std::fmt::Display for ZpoolKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for ZpoolKind {
    type Err = UnknownZpool;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        ZpoolKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownZpool(name.to_owned()))
    }
}

/// An object of one pool, whatever its allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZpoolHandle {
    /// Of a zsmalloc pool.
    Zsmalloc(ZsHandle),
    /// Of a zbud pool.
    Zbud(ZbudHandle),
    /// Of a z3fold pool.
    Z3fold(Z3foldHandle),
}

/// A pool of any of the three allocators.
#[derive(Clone, Debug)]
pub enum Zpool {
    /// A zsmalloc pool.
    Zsmalloc(Box<ZsPool>),
    /// A zbud pool.
    Zbud(ZbudPool),
    /// A z3fold pool.
    Z3fold(Z3foldPool),
}

/// What a wrong handle is answered with.
const FOREIGN: &str = "the handle belongs to a pool of this allocator";

impl Zpool {
    /// Which allocator it is.
    pub fn kind(&self) -> ZpoolKind {
        match self {
            Zpool::Zsmalloc(_) => ZpoolKind::Zsmalloc,
            Zpool::Zbud(_) => ZpoolKind::Zbud,
            Zpool::Z3fold(_) => ZpoolKind::Z3fold,
        }
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        match self {
            Zpool::Zsmalloc(pool) => pool.name(),
            Zpool::Zbud(pool) => pool.name(),
            Zpool::Z3fold(pool) => pool.name(),
        }
    }

    /// Allocates an object on a CPU (only z3fold asks which).
    ///
    /// # Errors
    ///
    /// As the allocator's own function.
    pub fn malloc(&mut self, cpu: u32, size: usize) -> Result<ZpoolHandle, AllocError> {
        match self {
            Zpool::Zsmalloc(pool) => pool.zs_malloc(size).map(ZpoolHandle::Zsmalloc),
            Zpool::Zbud(pool) => pool.alloc(size).map(ZpoolHandle::Zbud),
            Zpool::Z3fold(pool) => pool.alloc(cpu, size).map(ZpoolHandle::Z3fold),
        }
    }

    /// Frees an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed before or is of another allocator.
    pub fn free(&mut self, handle: ZpoolHandle) {
        match (self, handle) {
            (Zpool::Zsmalloc(pool), ZpoolHandle::Zsmalloc(handle)) => pool.zs_free(handle),
            (Zpool::Zbud(pool), ZpoolHandle::Zbud(handle)) => pool.free(handle),
            (Zpool::Z3fold(pool), ZpoolHandle::Z3fold(handle)) => pool.free(handle),
            _ => panic!("{FOREIGN}"),
        }
    }

    /// Writes to the beginning of an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed or is of another allocator, or the object is
    /// too short.
    pub fn write(&mut self, handle: ZpoolHandle, bytes: &[u8]) {
        match (self, handle) {
            (Zpool::Zsmalloc(pool), ZpoolHandle::Zsmalloc(handle)) => {
                pool.zs_obj_write(handle, bytes);
            }
            (Zpool::Zbud(pool), ZpoolHandle::Zbud(handle)) => pool.write(handle, bytes),
            (Zpool::Z3fold(pool), ZpoolHandle::Z3fold(handle)) => pool.write(handle, bytes),
            _ => panic!("{FOREIGN}"),
        }
    }

    /// The first `length` bytes of an object, in one part or, of zsmalloc,
    /// two.
    ///
    /// # Panics
    ///
    /// If the handle was freed or is of another allocator, or the object is
    /// shorter.
    pub fn read_sg(&self, handle: ZpoolHandle, length: usize) -> [&[u8]; 2] {
        match (self, handle) {
            (Zpool::Zsmalloc(pool), ZpoolHandle::Zsmalloc(handle)) => {
                pool.zs_obj_read_sg(handle, length)
            }
            (Zpool::Zbud(pool), ZpoolHandle::Zbud(handle)) => [pool.bytes(handle, length), &[]],
            (Zpool::Z3fold(pool), ZpoolHandle::Z3fold(handle)) => [pool.bytes(handle, length), &[]],
            _ => panic!("{FOREIGN}"),
        }
    }

    /// The first `length` bytes of an object in one piece: borrowed, or
    /// copied to `local_copy` if they are in two parts.
    ///
    /// # Panics
    ///
    /// As [`read_sg`](Self::read_sg).
    pub fn read_begin<'a>(
        &'a self,
        handle: ZpoolHandle,
        length: usize,
        local_copy: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        in_one_piece(self.read_sg(handle, length), local_copy)
    }

    /// Pages held.
    pub fn total_pages(&self) -> u64 {
        match self {
            Zpool::Zsmalloc(pool) => pool.pages_allocated(),
            Zpool::Zbud(pool) => pool.pages(),
            Zpool::Z3fold(pool) => pool.pages(),
        }
    }

    /// Objects allocated.
    pub fn objects(&self) -> usize {
        match self {
            Zpool::Zsmalloc(pool) => pool.objects(),
            Zpool::Zbud(pool) => pool.objects(),
            Zpool::Z3fold(pool) => pool.objects(),
        }
    }

    /// Bytes of the pages that no object covers.
    pub fn bytes_wasted(&self) -> u64 {
        match self {
            Zpool::Zsmalloc(pool) => pool.stats().bytes_wasted,
            Zpool::Zbud(pool) => pool.bytes_wasted(),
            Zpool::Z3fold(pool) => pool.bytes_wasted(),
        }
    }

    /// Whether a mapped object may be slept with: zbud's and z3fold's are
    /// plain pointers, zsmalloc's were not (until 6.15).
    pub fn sleep_mapped(&self) -> bool {
        !matches!(self, Zpool::Zsmalloc(_))
    }

    /// Replaces the injector of allocation failures.
    pub fn set_faults(&mut self, faults: Failslab) {
        match self {
            Zpool::Zsmalloc(pool) => pool.set_faults(faults),
            Zpool::Zbud(pool) => pool.set_faults(faults),
            Zpool::Z3fold(pool) => pool.set_faults(faults),
        }
    }
}

/// Gives every allocator pool a name of its own.
#[derive(Clone, Debug, Default)]
pub struct PoolNames {
    count: u32,
}

impl PoolNames {
    /// The next name. Numbers are never used again.
    pub fn next_name(&mut self) -> String {
        self.count += 1;
        format!("zswap{:x}", self.count)
    }
}

/// How a set of pools is set up.
#[derive(Clone, Debug)]
pub struct ZpoolSetOptions {
    /// Which allocator.
    pub kind: ZpoolKind,
    /// How many pools: a power of two, 1 or [`ZSWAP_NR_ZPOOLS`] in kernels.
    pub pools: usize,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Set-up of zsmalloc pools. Each pool gets an injector of its own that
    /// begins like the one given here.
    pub zsmalloc: ZsPoolOptions,
    /// Which pool creations fail.
    pub faults: Failslab,
}

impl ZpoolSetOptions {
    /// One pool of an allocator on one CPU.
    pub fn new(kind: ZpoolKind) -> Self {
        ZpoolSetOptions {
            kind,
            pools: 1,
            cpus: 1,
            zsmalloc: ZsPoolOptions::default(),
            faults: Failslab::never(),
        }
    }
}

/// An object of a set of pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetHandle {
    /// Which pool of the set.
    pub zpool: u8,
    /// The object there.
    pub handle: ZpoolHandle,
}

/// The allocator pools of a zswap pool.
#[derive(Clone, Debug)]
pub struct ZpoolSet {
    zpools: Vec<Zpool>,
}

/// Why a set could not be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZpoolSetError {
    /// The number of pools cannot be hashed to.
    #[error("{0} pools: the hash of an entry picks one of 1, 2, 4 … 128")]
    Pools(usize),
    /// A pool could not be created.
    #[error(transparent)]
    Pool(#[from] ZsPoolError),
}

impl ZpoolSet {
    /// Creates all pools or none.
    ///
    /// # Errors
    ///
    /// [`ZpoolSetError`] if the number of pools is not a power of two up to
    /// 128, a zsmalloc option is impossible, or a failure is injected at
    /// [`AllocSite::Zpool`].
    pub fn new(mut options: ZpoolSetOptions, names: &mut PoolNames) -> Result<Self, ZpoolSetError> {
        if !options.pools.is_power_of_two() || options.pools > 128 {
            return Err(ZpoolSetError::Pools(options.pools));
        }
        let mut zpools = Vec::with_capacity(options.pools);
        for _ in 0..options.pools {
            // Returning drops the pools made so far: what the kernel's error
            // path has to do by hand.
            options
                .faults
                .check(AllocSite::Zpool)
                .map_err(ZsPoolError::from)?;
            let name = names.next_name();
            zpools.push(match options.kind {
                ZpoolKind::Zsmalloc => {
                    Zpool::Zsmalloc(Box::new(ZsPool::new(name, options.zsmalloc.clone())?))
                }
                ZpoolKind::Zbud => Zpool::Zbud(ZbudPool::new(name)),
                ZpoolKind::Z3fold => Zpool::Z3fold(Z3foldPool::new(name, options.cpus)),
            });
        }
        Ok(ZpoolSet { zpools })
    }

    /// The pools.
    pub fn zpools(&self) -> &[Zpool] {
        &self.zpools
    }

    /// The pools, to change them.
    pub fn zpools_mut(&mut self) -> &mut [Zpool] {
        &mut self.zpools
    }

    /// The names of the pools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.zpools.iter().map(Zpool::name)
    }

    /// Which pool an entry's data goes to (`zswap_find_zpool`).
    pub fn find_zpool(&self, entry: EntryPointer) -> u8 {
        match self.zpools.len().trailing_zeros() {
            0 => 0,
            bits => entry.hash_ptr(bits) as u8,
        }
    }

    /// Allocates in the pool of an entry.
    ///
    /// # Errors
    ///
    /// As [`Zpool::malloc`].
    pub fn malloc(
        &mut self,
        entry: EntryPointer,
        cpu: u32,
        size: usize,
    ) -> Result<SetHandle, AllocError> {
        let zpool = self.find_zpool(entry);
        let handle = self.zpools[usize::from(zpool)].malloc(cpu, size)?;
        Ok(SetHandle { zpool, handle })
    }

    /// Frees an object.
    ///
    /// # Panics
    ///
    /// As [`Zpool::free`].
    pub fn free(&mut self, handle: SetHandle) {
        self.zpools[usize::from(handle.zpool)].free(handle.handle);
    }

    /// Writes to the beginning of an object.
    ///
    /// # Panics
    ///
    /// As [`Zpool::write`].
    pub fn write(&mut self, handle: SetHandle, bytes: &[u8]) {
        self.zpools[usize::from(handle.zpool)].write(handle.handle, bytes);
    }

    /// The first `length` bytes of an object in one piece.
    ///
    /// # Panics
    ///
    /// As [`Zpool::read_begin`].
    pub fn read_begin<'a>(
        &'a self,
        handle: SetHandle,
        length: usize,
        local_copy: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        self.zpools[usize::from(handle.zpool)].read_begin(handle.handle, length, local_copy)
    }

    /// Pages held by all pools.
    pub fn total_pages(&self) -> u64 {
        self.zpools.iter().map(Zpool::total_pages).sum()
    }

    /// Bytes of all pools' pages that no object covers.
    pub fn bytes_wasted(&self) -> u64 {
        self.zpools.iter().map(Zpool::bytes_wasted).sum()
    }
}

/// Where a `struct zswap_entry` lies in the kernel's memory, as far as a hash
/// of the address can tell.
///
/// Entries come from a slab cache: entry *n* is in slab page *n* / per page,
/// at a multiple of its size. Slab pages are taken to be one after the other
/// in the direct mapping; real ones are scattered, which spreads the hash no
/// better than this does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPointer(pub u64);

/// Where the direct mapping of physical memory begins on x86-64.
const PAGE_OFFSET: u64 = 0xffff_8880_0000_0000;
/// The kernel's multiplier for hashing 64-bit words.
const GOLDEN_RATIO_64: u64 = 0x61c8_8646_80b5_83eb;

impl EntryPointer {
    /// The address of the entry with a number, in a cache of entries of
    /// `entry_bytes` each.
    ///
    /// # Panics
    ///
    /// If an entry is larger than a page or has no bytes.
    pub fn in_slab(number: u64, entry_bytes: usize) -> Self {
        let page = crate::page::PAGE_SIZE;
        let per_page = (page / entry_bytes) as u64;
        let offset = number / per_page * page as u64 + number % per_page * entry_bytes as u64;
        EntryPointer(PAGE_OFFSET + offset)
    }

    /// The topmost `bits` bits of the address times the golden ratio.
    pub fn hash_ptr(self, bits: u32) -> u64 {
        self.0.wrapping_mul(GOLDEN_RATIO_64) >> (u64::BITS - bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kind: ZpoolKind, pools: usize) -> ZpoolSetOptions {
        ZpoolSetOptions {
            pools,
            ..ZpoolSetOptions::new(kind)
        }
    }

    #[test]
    fn the_hash_spreads_entries_over_all_pools() -> Result<(), ZpoolSetError> {
        let set = ZpoolSet::new(options(ZpoolKind::Zbud, 32), &mut PoolNames::default())?;
        let mut counts = [0_u32; 32];
        for number in 0..32_000 {
            counts[usize::from(set.find_zpool(EntryPointer::in_slab(number, 80)))] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
        Ok(())
    }

    #[test]
    fn names_are_unique_over_all_sets() -> Result<(), ZpoolSetError> {
        let mut names = PoolNames::default();
        let mut seen = std::collections::BTreeSet::new();
        for pools in [32, 1, 32] {
            let set = ZpoolSet::new(options(ZpoolKind::Zsmalloc, pools), &mut names)?;
            assert!(set.names().all(|name| seen.insert(name.to_owned())));
        }
        assert_eq!(seen.len(), 65);
        Ok(())
    }

    #[test]
    fn a_set_is_created_whole_or_not_at_all() {
        let mut names = PoolNames::default();
        let mut failing = options(ZpoolKind::Zsmalloc, 32);
        failing.faults = Failslab::nth(7);
        assert!(ZpoolSet::new(failing, &mut names).is_err());
        // Six names are used up.
        assert_eq!(names.next_name(), "zswap7");
        let error = ZpoolSet::new(options(ZpoolKind::Zbud, 5), &mut names).map(|_| ());
        assert_eq!(error, Err(ZpoolSetError::Pools(5)));
    }
}
