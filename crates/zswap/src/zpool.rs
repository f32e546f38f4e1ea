//! The allocator's functions under its locks.
//!
//! | design | allocate | find an object | free |
//! | --- | --- | --- | --- |
//! | one lock per pool, zbud, z3fold | the lock | the lock | the lock |
//! | locks per size class | class lock | pool lock (read), zspage lock (read) | pool lock (read), class lock; the former is released first |
//!
//! 1. Lock order: pool, class, zspage.
//! 2. A zspage that is read is neither freed nor moved. Writers only try its
//!    lock, so nobody ever waits for it: it is a count, with a record of its
//!    own, and no lock of the machine.
//!
//! Left out: allocating a zspage outside of the class lock, z3fold's locks of
//! pages and slots, compaction beside the paths.

use crate::design::Mapping;
use crate::probe::{ObjectPlace, Probe};
use crate::zswap::{Zswap, ZswapOptions};
use kernel_sim::{Machine, PlainSpinLock, RwLock, Task};
use zswap_mm::entry::EntryId;
use zswap_mm::lifecycle::PoolId;
use zswap_mm::zpool::{SetHandle, Zpool, ZpoolHandle};
use zswap_mm::zsmalloc::SizeClasses;
use zswap_mm::{AllocError, ChainRule, ClassIndex};

/// The locks of an allocator pool.
#[derive(Clone, Debug)]
pub(crate) enum ZpoolLocks {
    /// One for everything.
    One(PlainSpinLock),
    /// A reader/writer lock of the pool, and one for each class by its index.
    PerClass {
        pool: RwLock,
        classes: Vec<Option<PlainSpinLock>>,
    },
}

impl ZpoolLocks {
    /// The locks of all allocator pools that there can be, by pool and number.
    pub(crate) fn all(machine: &mut Machine, options: &ZswapOptions) -> Vec<ZpoolLocks> {
        let mut locks = Vec::new();
        for pool in 1..=options.pools {
            for zpool in 0..options.design.zpools {
                let of = match (options.pools, options.design.zpools) {
                    (1, 1) => String::new(),
                    (_, 1) => format!(" of pool {pool}"),
                    _ => format!(" of pool {pool}.{zpool}"),
                };
                locks.push(ZpoolLocks::new(machine, options, &of));
            }
        }
        locks
    }

    fn new(machine: &mut Machine, options: &ZswapOptions, of: &str) -> ZpoolLocks {
        let classes = SizeClasses::new(SizeClasses::DEFAULT_CHAIN_SIZE, ChainRule::Current);
        let classes = classes
            .ok()
            .filter(|_| options.design.allocator.has_class_locks());
        let Some(classes) = classes else {
            return ZpoolLocks::One(machine.plain_spin_lock(format!("pool->lock{of}")));
        };
        let pool = machine.rw_lock(format!("pool->lock{of}"));
        let mut locks = vec![None; 256];
        for class in classes.classes() {
            let ClassIndex(index) = class.index;
            let name = format!("class->lock {index}{of}");
            locks[usize::from(index)] = Some(machine.plain_spin_lock(name));
        }
        ZpoolLocks::PerClass {
            pool,
            classes: locks,
        }
    }
}

impl Zswap {
    /// The number of an allocator pool among all that there can be.
    fn zpool_number(&self, pool: PoolId, zpool: u8) -> usize {
        (usize::from(pool.0) - 1) * usize::from(self.design.zpools) + usize::from(zpool)
    }

    fn zpool_locks(&self, pool: PoolId, zpool: u8) -> &ZpoolLocks {
        &self.zpool_locks[self.zpool_number(pool, zpool)]
    }

    pub(crate) fn with_zpool<R>(
        &self,
        pool: PoolId,
        zpool: u8,
        f: impl FnOnce(&mut Zpool) -> R,
    ) -> R {
        let mut pools = self.pools.borrow_mut();
        let pool = pools.pool_mut(pool);
        let pool = pool.expect("an entry keeps its pool alive");
        f(&mut pool.zpools.zpools_mut()[usize::from(zpool)])
    }

    /// Where an object is, for records.
    pub(crate) fn place(&self, pool: PoolId, handle: SetHandle) -> ObjectPlace {
        let number = self.zpool_number(pool, handle.zpool);
        self.with_zpool(pool, handle.zpool, |zpool| {
            ObjectPlace::of(number, zpool, handle.handle)
        })
    }

    fn class_lock(&self, pool: PoolId, handle: SetHandle) -> PlainSpinLock {
        match self.zpool_locks(pool, handle.zpool) {
            ZpoolLocks::One(lock) => *lock,
            ZpoolLocks::PerClass { classes, .. } => {
                let class = self.place(pool, handle).class;
                classes[usize::from(class)].expect("every class has a lock")
            }
        }
    }

    /// The lock under which so many bytes are allocated.
    fn malloc_lock(
        &self,
        pool: PoolId,
        zpool: u8,
        length: usize,
    ) -> Result<PlainSpinLock, AllocError> {
        match self.zpool_locks(pool, zpool) {
            ZpoolLocks::One(lock) => Ok(*lock),
            ZpoolLocks::PerClass { classes, .. } => {
                let class = self.with_zpool(pool, zpool, |zpool| match zpool {
                    Zpool::Zsmalloc(zsmalloc) => zsmalloc
                        .classes()
                        .class_for(length)
                        .map(|class| class.index),
                    _ => Ok(ClassIndex(0)),
                })?;
                Ok(classes[usize::from(class.0)].expect("every class has a lock"))
            }
        }
    }

    /// Holds the zspage of an object so that it stays, or lets go of it.
    fn pin(&self, pool: PoolId, handle: SetHandle, hold: bool) {
        self.with_zpool(pool, handle.zpool, |zpool| {
            if let (Zpool::Zsmalloc(zsmalloc), ZpoolHandle::Zsmalloc(object)) =
                (zpool, handle.handle)
            {
                let zspage = zsmalloc.location(object).zspage;
                if hold {
                    zsmalloc.pin_zspage(zspage);
                } else {
                    zsmalloc.unpin_zspage(zspage);
                    zsmalloc.async_free_zspage();
                }
            }
        });
    }
}

/// `zs_malloc`: an object for so many bytes, in the allocator pool of an entry.
pub(crate) async fn zs_malloc(
    task: &Task,
    zswap: &Zswap,
    pool: PoolId,
    entry: EntryId,
    length: usize,
) -> Result<SetHandle, AllocError> {
    let zpool = zswap.find_zpool(pool, entry);
    let lock = zswap.malloc_lock(pool, zpool, length)?;
    task.spin_lock(lock).await;
    let cpu = u32::from(task.cpu().0);
    let allocated = zswap.with_zpool(pool, zpool, |zpool| zpool.malloc(cpu, length));
    let allocated = allocated.map(|handle| SetHandle { zpool, handle });
    if let Ok(handle) = allocated {
        task.probe(
            Probe::ObjectAlloc as u16,
            zswap.place(pool, handle).to_arg(),
        );
    }
    task.run_kernel(zswap.costs.store_inside.malloc_ns).await;
    task.spin_unlock(lock).await;
    allocated
}

/// `zs_obj_write`: finds the object, and copies the bytes into it.
pub(crate) async fn zs_obj_write(
    task: &Task,
    zswap: &Zswap,
    pool: PoolId,
    handle: SetHandle,
    bytes: &[u8],
) {
    let inside = zswap.costs.store_inside;
    zs_map_object(task, zswap, pool, handle, inside.map_ns).await;
    zswap.with_zpool(pool, handle.zpool, |zpool| {
        zpool.write(handle.handle, bytes)
    });
    task.run_kernel(inside.copy_ns).await;
    if zswap.design.mapping() == Mapping::Held {
        zs_unmap_object(task, zswap, pool, handle);
    }
}

/// Finds an object and holds its zspage; where the data are copied, only for
/// that long.
pub(crate) async fn zs_map_object(
    task: &Task,
    zswap: &Zswap,
    pool: PoolId,
    handle: SetHandle,
    ns: u64,
) {
    match *zswap.zpool_locks(pool, handle.zpool) {
        ZpoolLocks::One(lock) => {
            task.spin_lock(lock).await;
            task.run_kernel(ns).await;
            task.spin_unlock(lock).await;
        }
        ZpoolLocks::PerClass { pool: lock, .. } => {
            task.read_lock(lock).await;
            task.run_kernel(ns).await;
            zswap.pin(pool, handle, true);
            task.probe(Probe::ZspageHold as u16, zswap.place(pool, handle).to_arg());
            if zswap.design.mapping() != Mapping::Held {
                zs_unmap_object(task, zswap, pool, handle);
            }
            task.read_unlock(lock).await;
        }
    }
}

/// Lets go of the zspage of an object.
pub(crate) fn zs_unmap_object(task: &Task, zswap: &Zswap, pool: PoolId, handle: SetHandle) {
    if zswap.design.allocator.has_class_locks() {
        task.probe(
            Probe::ZspageLetGo as u16,
            zswap.place(pool, handle).to_arg(),
        );
        zswap.pin(pool, handle, false);
    }
}

/// `zs_free`: gives an object back. The lock of the pool keeps it from moving
/// until the lock of its class is held.
pub(crate) async fn zs_free(task: &Task, zswap: &Zswap, pool: PoolId, handle: SetHandle) {
    let free = zswap.costs.load_outside.free;
    let class = zswap.class_lock(pool, handle);
    if let ZpoolLocks::PerClass { pool: lock, .. } = *zswap.zpool_locks(pool, handle.zpool) {
        task.read_lock(lock).await;
        task.run_kernel(free.find_ns).await;
        task.spin_lock(class).await;
        task.read_unlock(lock).await;
    } else {
        task.spin_lock(class).await;
        task.run_kernel(free.find_ns).await;
    }
    task.probe(Probe::ObjectFree as u16, zswap.place(pool, handle).to_arg());
    zswap.with_zpool(pool, handle.zpool, |zpool| zpool.free(handle.handle));
    task.run_kernel(free.free_ns).await;
    task.spin_unlock(class).await;
}
