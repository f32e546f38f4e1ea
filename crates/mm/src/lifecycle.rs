//! The life of zswap pools.
//!
//! A zswap pool is a compressor and an allocator. Changing the compressor
//! makes another pool the current one; the old pool stays until the last
//! entry stored in it is gone, because only its compressor can read them. If
//! the old compressor is chosen again meanwhile, the old pool comes back.
//!
//! 1. There is at most one current pool, and it is alive.
//! 2. A pool is freed when it is not current and no entry refers to it, and
//!    then exactly once, from a work item after a grace period.
//! 3. No two live pools have the same compressor, unless the older one was
//!    already without a reference.
//! 4. Creation that fails frees what it had allocated ([`Ledger`] counts).
//!
//! The last was broken once, in a version of the patch that went from 32
//! allocator pools to one: the new error path returned at once where it had
//! to undo. [`ErrorPath`] has both.
//!
//! ```
//! use zswap_mm::lifecycle::ZswapPools;
//! use zswap_mm::zpool::{ZpoolKind, ZpoolSetOptions};
//! use zswap_mm::Algorithm;
//!
//! let mut pools = ZswapPools::new();
//! let options = ZpoolSetOptions::new(ZpoolKind::Zsmalloc);
//! let lzo = pools.switch(Algorithm::Lzo, &options)?;
//! pools.get(lzo); // an entry is stored
//! let zstd = pools.switch(Algorithm::Zstd, &options)?;
//! assert_eq!(pools.live().collect::<Vec<_>>(), [lzo, zstd]);
//! pools.put(lzo); // and freed
//! pools.run_release_work();
//! assert_eq!(pools.live().collect::<Vec<_>>(), [zstd]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::compressor::Algorithm;
use crate::fault::{AllocError, AllocSite, Failslab};
use crate::zpool::{PoolNames, ZpoolKind, ZpoolSet, ZpoolSetError, ZpoolSetOptions};
use std::collections::BTreeMap;

/// A zswap pool, by the number the entries keep. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u8);

/// The most pools that can be alive at a time.
pub const MAX_POOLS: usize = 255;

/// What creation does when the allocator pool cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorPath {
    /// Returns at once and leaks the zswap pool: the second version of the
    /// one-pool patch, as found in review on 24 June 2024.
    ReturnNull,
    /// Goes to the common error path, which destroys an allocator pool that
    /// was never made: what the same review warned of.
    GotoErrorUnchecked,
    /// Goes to the common error path, which leaves out what was not made:
    /// the third version, and the code since.
    #[default]
    GotoError,
}

/// How far a pool's life got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// New entries go to it.
    Current,
    /// It waits for its entries to go.
    Killed,
    /// Its last reference is gone; a work item will free it.
    Releasing,
}

/// A zswap pool.
#[derive(Clone, Debug)]
pub struct ZswapPool {
    /// Its compressor.
    pub algorithm: Algorithm,
    /// Its allocator, one pool or 32.
    pub zpools: ZpoolSet,
    refs: u64,
    state: PoolState,
}

impl ZswapPool {
    /// References: one for being current, one for each entry and each store
    /// under way.
    pub fn refs(&self) -> u64 {
        self.refs
    }

    /// How far its life got.
    pub fn state(&self) -> PoolState {
        self.state
    }
}

/// What is allocated for pools at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// `struct zswap_pool`s.
    pub zswap_pools: u64,
    /// Sets of per-CPU contexts.
    pub acomp_ctxs: u64,
    /// Allocator pools.
    pub zpools: u64,
}

/// Why no pool could be created or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// No memory, or all numbers are taken.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The allocator pools could not be created.
    #[error(transparent)]
    Zpools(#[from] ZpoolSetError),
}

/// A pool on its way: what its creation has allocated so far. Dropping it
/// frees nothing from the [`Ledger`], as losing a pointer does not.
#[derive(Debug)]
#[must_use = "publish it or free it"]
pub struct PoolDraft {
    algorithm: Algorithm,
    zpools: Option<ZpoolSet>,
    contexts: bool,
}

impl PoolDraft {
    /// Whether its allocator pools were created.
    pub fn has_zpools(&self) -> bool {
        self.zpools.is_some()
    }
}

/// An allocator pool that is not there was to be destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("destroys the allocator pool at NULL; check first whether it was created")]
pub struct NullZpool;

/// All zswap pools of a machine.
#[derive(Clone, Debug, Default)]
pub struct ZswapPools {
    max: Option<u8>,
    pools: BTreeMap<PoolId, ZswapPool>,
    current: Option<PoolId>,
    names: PoolNames,
    ledger: Ledger,
    error_path: ErrorPath,
    faults: Failslab,
}

impl ZswapPools {
    /// None yet.
    pub fn new() -> Self {
        ZswapPools::default()
    }

    /// Allows fewer than [`MAX_POOLS`] pools at a time.
    pub fn set_max(&mut self, max: u8) {
        self.max = Some(max);
    }

    /// What a failed creation does.
    pub fn error_path(&self) -> ErrorPath {
        self.error_path
    }

    /// Chooses what a failed creation does.
    pub fn set_error_path(&mut self, error_path: ErrorPath) {
        self.error_path = error_path;
    }

    /// Replaces the injector of allocation failures.
    pub fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }

    /// The pool new entries go to.
    pub fn current(&self) -> Option<PoolId> {
        self.current
    }

    /// Numbers of the pools that are not freed, ascending.
    pub fn live(&self) -> impl Iterator<Item = PoolId> + '_ {
        self.pools.keys().copied()
    }

    /// A pool; none if it was freed.
    pub fn pool(&self, id: PoolId) -> Option<&ZswapPool> {
        self.pools.get(&id)
    }

    /// A pool, to allocate in it.
    pub fn pool_mut(&mut self, id: PoolId) -> Option<&mut ZswapPool> {
        self.pools.get_mut(&id)
    }

    /// What is allocated.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Pages held by all pools.
    pub fn total_pages(&self) -> u64 {
        self.pools
            .values()
            .map(|pool| pool.zpools.total_pages())
            .sum()
    }

    /// Makes the pool of an algorithm the current one: one that is still
    /// there, or a new one. The former current pool is killed.
    ///
    /// # Errors
    ///
    /// [`PoolError`]; the current pool stays current then.
    pub fn switch(
        &mut self,
        algorithm: Algorithm,
        options: &ZpoolSetOptions,
    ) -> Result<PoolId, PoolError> {
        let next = match self.find_get(algorithm, options.kind) {
            Some(found) => found,
            None => self.create(algorithm, options)?,
        };
        self.make_current(next);
        Ok(next)
    }

    /// Makes a pool the current one and kills the one that was.
    pub fn make_current(&mut self, next: PoolId) {
        if self.current == Some(next) {
            return;
        }
        if let Some(old) = self.current.replace(next) {
            self.kill(old);
        }
    }

    /// A pool that fits and has a reference left, revived, to become the
    /// current one.
    pub fn find_get(&mut self, algorithm: Algorithm, kind: ZpoolKind) -> Option<PoolId> {
        let (id, pool) = self.pools.iter_mut().find(|(_, pool)| {
            let same_kind = pool.zpools.zpools()[0].kind() == kind;
            pool.algorithm == algorithm && same_kind && pool.state != PoolState::Releasing
        })?;
        if pool.state == PoolState::Killed {
            pool.refs += 1;
            pool.state = PoolState::Current;
        }
        Some(*id)
    }

    fn create(
        &mut self,
        algorithm: Algorithm,
        options: &ZpoolSetOptions,
    ) -> Result<PoolId, PoolError> {
        let mut draft = self.draft(algorithm)?;
        if let Err(error) = self.create_zpools(&mut draft, options) {
            match self.error_path {
                ErrorPath::ReturnNull => drop(draft),
                ErrorPath::GotoError | ErrorPath::GotoErrorUnchecked => self.free_draft(draft),
            }
            return Err(error.into());
        }
        if let Err(error) = self.alloc_contexts(&mut draft) {
            self.free_draft(draft);
            return Err(error.into());
        }
        match self.publish(draft) {
            Ok(id) => Ok(id),
            Err((draft, error)) => {
                self.free_draft(draft);
                Err(error.into())
            }
        }
    }

    /// Allocates a `struct zswap_pool`.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if a failure is injected.
    pub fn draft(&mut self, algorithm: Algorithm) -> Result<PoolDraft, AllocError> {
        self.faults.check(AllocSite::ZswapPool)?;
        self.ledger.zswap_pools += 1;
        Ok(PoolDraft {
            algorithm,
            zpools: None,
            contexts: false,
        })
    }

    /// Creates the allocator pools of a new zswap pool.
    ///
    /// # Errors
    ///
    /// As [`ZpoolSet::new`]; none is there then.
    pub fn create_zpools(
        &mut self,
        draft: &mut PoolDraft,
        options: &ZpoolSetOptions,
    ) -> Result<(), ZpoolSetError> {
        let zpools = ZpoolSet::new(options.clone(), &mut self.names)?;
        self.ledger.zpools += zpools.zpools().len() as u64;
        draft.zpools = Some(zpools);
        Ok(())
    }

    /// Allocates the per-CPU contexts of a new zswap pool.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if a failure is injected.
    pub fn alloc_contexts(&mut self, draft: &mut PoolDraft) -> Result<(), AllocError> {
        self.faults.check(AllocSite::ZswapPool)?;
        self.ledger.acomp_ctxs += 1;
        draft.contexts = true;
        Ok(())
    }

    /// Gives a new pool its number and its first reference.
    ///
    /// # Errors
    ///
    /// The pool back, with [`AllocError::Busy`] if all numbers are taken.
    ///
    /// # Panics
    ///
    /// If it has no allocator pools.
    pub fn publish(&mut self, mut draft: PoolDraft) -> Result<PoolId, (PoolDraft, AllocError)> {
        let max = self.max.unwrap_or(MAX_POOLS as u8);
        let free = (1..=max)
            .map(PoolId)
            .find(|id| !self.pools.contains_key(id));
        let Some(id) = free else {
            let busy = AllocError::Busy {
                what: "zswap pools",
                max: usize::from(max),
            };
            return Err((draft, busy));
        };
        let zpools = draft.zpools.take();
        let zpools = zpools.expect("the allocator pools were created before");
        let pool = ZswapPool {
            algorithm: draft.algorithm,
            zpools,
            refs: 1,
            state: PoolState::Current,
        };
        self.pools.insert(id, pool);
        Ok(id)
    }

    /// Destroys the allocator pools of a pool that will not be.
    ///
    /// # Errors
    ///
    /// [`NullZpool`] if they were not created: the kernel would crash.
    pub fn destroy_zpools(&mut self, draft: &mut PoolDraft) -> Result<(), NullZpool> {
        let zpools = draft.zpools.take().ok_or(NullZpool)?;
        self.ledger.zpools -= zpools.zpools().len() as u64;
        Ok(())
    }

    /// Frees the rest of a pool that will not be, and its contexts if there
    /// are any.
    pub fn free_draft(&mut self, mut draft: PoolDraft) {
        if draft.zpools.is_some() {
            // It is there, so this cannot fail.
            let _ = self.destroy_zpools(&mut draft);
        }
        self.ledger.acomp_ctxs -= u64::from(draft.contexts);
        self.ledger.zswap_pools -= 1;
    }

    /// Takes the reference for being current away.
    fn kill(&mut self, id: PoolId) {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.state = PoolState::Killed;
        }
        self.put(id);
    }

    /// Takes a reference for an entry or a store.
    ///
    /// # Panics
    ///
    /// If the pool's last reference is gone.
    pub fn get(&mut self, id: PoolId) {
        let pool = self.pools.get_mut(&id).filter(|pool| pool.refs > 0);
        pool.expect("a reference is taken from a live pool").refs += 1;
    }

    /// Gives a reference back.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn put(&mut self, id: PoolId) {
        let pool = self.pools.get_mut(&id).filter(|pool| pool.refs > 0);
        let pool = pool.expect("a reference is given back to a live pool");
        pool.refs -= 1;
        if pool.refs == 0 {
            assert!(
                pool.state == PoolState::Killed,
                "the current pool keeps a reference"
            );
            pool.state = PoolState::Releasing;
        }
    }

    /// Frees the pools without references, as the work item does after the
    /// grace period, and returns their numbers.
    pub fn run_release_work(&mut self) -> Vec<PoolId> {
        let gone: Vec<PoolId> = self
            .pools
            .iter()
            .filter(|(_, pool)| pool.state == PoolState::Releasing)
            .map(|(id, _)| *id)
            .collect();
        for id in &gone {
            if let Some(pool) = self.pools.remove(id) {
                self.ledger.zswap_pools -= 1;
                self.ledger.acomp_ctxs -= 1;
                self.ledger.zpools -= pool.zpools.zpools().len() as u64;
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zpool::ZpoolKind;

    fn options(pools: usize) -> ZpoolSetOptions {
        ZpoolSetOptions {
            pools,
            ..ZpoolSetOptions::new(ZpoolKind::Zsmalloc)
        }
    }

    #[test]
    fn an_old_pool_comes_back_while_entries_keep_it() -> Result<(), PoolError> {
        let mut pools = ZswapPools::new();
        let lzo = pools.switch(Algorithm::Lzo, &options(1))?;
        pools.get(lzo);
        let zstd = pools.switch(Algorithm::Zstd, &options(1))?;
        assert_eq!(
            pools.pool(lzo).map(|pool| (pool.refs(), pool.state())),
            Some((1, PoolState::Killed))
        );
        assert_eq!(pools.switch(Algorithm::Lzo, &options(1))?, lzo);
        assert_eq!(pools.pool(lzo).map(ZswapPool::refs), Some(2));
        assert_eq!(pools.run_release_work(), [zstd]);
        // A pool without references does not come back, even before the work
        // item ran.
        pools.put(lzo);
        let zstd = pools.switch(Algorithm::Zstd, &options(1))?;
        let again = pools.switch(Algorithm::Lzo, &options(1))?;
        assert_ne!(again, lzo);
        assert_eq!(pools.run_release_work(), [lzo, zstd]);
        assert_eq!(pools.live().collect::<Vec<_>>(), [again]);
        Ok(())
    }

    #[test]
    fn a_failed_creation_leaks_only_with_the_reviewed_error_path() {
        for (path, leaked) in [(ErrorPath::ReturnNull, 1), (ErrorPath::GotoError, 0)] {
            let mut pools = ZswapPools::new();
            pools.set_error_path(path);
            let mut failing = options(1);
            failing.faults = Failslab::nth(1);
            assert!(pools.switch(Algorithm::Zstd, &failing).is_err());
            let expected = Ledger {
                zswap_pools: leaked,
                acomp_ctxs: 0,
                zpools: 0,
            };
            assert_eq!(pools.ledger(), expected, "{path:?}");
            assert_eq!(pools.current(), None);
        }
    }

    #[test]
    fn creation_can_fail_at_each_allocation_and_leaves_the_current_pool() -> Result<(), PoolError> {
        let mut pools = ZswapPools::new();
        let lzo = pools.switch(Algorithm::Lzo, &options(32))?;
        let before = pools.ledger();
        assert_eq!(
            before,
            Ledger {
                zswap_pools: 1,
                acomp_ctxs: 1,
                zpools: 32
            }
        );
        for nth in 1..=2 {
            pools.set_faults(Failslab::nth(nth));
            assert!(pools.switch(Algorithm::Zstd, &options(32)).is_err());
            assert_eq!((pools.ledger(), pools.current()), (before, Some(lzo)));
        }
        for nth in 1..=32 {
            let mut failing = options(32);
            failing.faults = Failslab::nth(nth);
            assert!(pools.switch(Algorithm::Zstd, &failing).is_err());
            assert_eq!((pools.ledger(), pools.current()), (before, Some(lzo)));
        }
        Ok(())
    }

    #[test]
    fn there_are_255_pools_at_most() -> Result<(), PoolError> {
        let mut pools = ZswapPools::new();
        // Each switch creates a pool, as the one before keeps no reference
        // but is not freed either.
        for turn in 0..MAX_POOLS {
            pools.switch([Algorithm::Lzo, Algorithm::Zstd][turn % 2], &options(1))?;
        }
        let busy = pools.switch(Algorithm::Lz4, &options(1));
        assert!(matches!(
            busy,
            Err(PoolError::Alloc(AllocError::Busy { .. }))
        ));
        assert_eq!(pools.ledger().zpools, MAX_POOLS as u64);
        pools.run_release_work();
        assert!(pools.switch(Algorithm::Lz4, &options(1)).is_ok());
        Ok(())
    }
}
