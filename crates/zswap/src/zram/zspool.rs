//! The zsmalloc pool of a device under its locks: one reader/writer lock, and a
//! spinlock for each size class (6.11 and later).
//!
//! 1. Lock order: pool, class.
//! 2. An object that is read or written is neither freed nor moved: its zspage
//!    is held. Writers only try the lock of a zspage, so nobody waits for it;
//!    it is a count with a record of its own.

use super::Zram;
use crate::probe::{ObjectPlace, Probe};
use core::cell::RefCell;
use kernel_sim::{Machine, PlainSpinLock, RwLock, Task};
use zswap_mm::zsmalloc::ZsPoolError;
use zswap_mm::{AllocError, ClassIndex, PAGE_SIZE, Page, ZsHandle, ZsPool, ZsPoolOptions};

/// A pool with its locks.
pub(super) struct ZspoolWithLocks {
    pub pool: RefCell<ZsPool>,
    lock: RwLock,
    /// By the index of the class.
    classes: Vec<Option<PlainSpinLock>>,
}

impl ZspoolWithLocks {
    pub(super) fn new(machine: &mut Machine) -> Result<ZspoolWithLocks, ZsPoolError> {
        let pool = ZsPool::new("zram0", ZsPoolOptions::default())?;
        let lock = machine.rw_lock("zram0 pool->lock");
        let mut classes = vec![None; 256];
        for class in pool.classes().classes() {
            let ClassIndex(index) = class.index;
            let name = format!("zram0 class->lock {index}");
            classes[usize::from(index)] = Some(machine.plain_spin_lock(name));
        }
        Ok(ZspoolWithLocks {
            pool: RefCell::new(pool),
            lock,
            classes,
        })
    }

    fn class_lock(&self, ClassIndex(class): ClassIndex) -> PlainSpinLock {
        self.classes[usize::from(class)].expect("every class has a lock")
    }

    /// The lock of the class that so many bytes are allocated from.
    fn lock_for(&self, size: usize) -> Result<PlainSpinLock, AllocError> {
        let class = self.pool.borrow().classes().class_for(size)?.index;
        Ok(self.class_lock(class))
    }

    /// Copies an object of a whole page.
    pub(super) fn copy_page(&self, handle: ZsHandle, page: &mut Page) {
        let pool = self.pool.borrow();
        let [first, second] = pool.zs_obj_read_sg(handle, PAGE_SIZE);
        let (head, tail) = page.bytes_mut().split_at_mut(first.len());
        head.copy_from_slice(first);
        tail.copy_from_slice(second);
    }

    /// Leaves a record about an object.
    fn record(&self, task: &Task, what: Probe, handle: ZsHandle) {
        let location = self.pool.borrow().location(handle);
        let place = ObjectPlace {
            class: location.class.0,
            zspage: location.zspage.0,
            object: location.object,
        };
        task.probe(what as u16, place.to_arg());
    }
}

/// `zs_malloc`: an object for so many bytes.
pub(super) async fn zs_malloc(
    task: &Task,
    zram: &Zram,
    size: usize,
) -> Result<ZsHandle, AllocError> {
    let mem_pool = &zram.mem_pool;
    let class = mem_pool.lock_for(size)?;
    task.spin_lock(class).await;
    let allocated = mem_pool.pool.borrow_mut().zs_malloc(size);
    if let Ok(handle) = allocated {
        mem_pool.record(task, Probe::ObjectAlloc, handle);
    }
    task.run_kernel(zram.costs.malloc_ns).await;
    task.spin_unlock(class).await;
    allocated
}

/// `zs_obj_write`: copies bytes into an object.
pub(super) async fn zs_obj_write(task: &Task, zram: &Zram, handle: ZsHandle, bytes: &[u8]) {
    zs_obj_read_begin(task, zram, handle).await;
    zram.mem_pool.pool.borrow_mut().zs_obj_write(handle, bytes);
    task.run_kernel(zram.costs.copy_ns).await;
    zs_obj_read_end(task, zram, handle);
}

/// `zs_obj_read_begin`: finds an object and keeps it in place. The bytes are
/// looked at by who asked; a borrow of them would not outlive an await.
pub(super) async fn zs_obj_read_begin(task: &Task, zram: &Zram, handle: ZsHandle) {
    let mem_pool = &zram.mem_pool;
    task.read_lock(mem_pool.lock).await;
    task.run_kernel(zram.costs.find_ns).await;
    let zspage = mem_pool.pool.borrow().location(handle).zspage;
    mem_pool.pool.borrow_mut().pin_zspage(zspage);
    mem_pool.record(task, Probe::ZspageHold, handle);
    task.read_unlock(mem_pool.lock).await;
}

/// `zs_obj_read_end`: the object may go or move again.
pub(super) fn zs_obj_read_end(task: &Task, zram: &Zram, handle: ZsHandle) {
    zram.mem_pool.record(task, Probe::ZspageLetGo, handle);
    let pool = &mut *zram.mem_pool.pool.borrow_mut();
    let zspage = pool.location(handle).zspage;
    pool.unpin_zspage(zspage);
    pool.async_free_zspage();
}

/// `zs_free`: gives an object back. The lock of the pool keeps it from moving
/// until the lock of its class is held.
pub(super) async fn zs_free(task: &Task, zram: &Zram, handle: ZsHandle) {
    let mem_pool = &zram.mem_pool;
    task.read_lock(mem_pool.lock).await;
    task.run_kernel(zram.costs.find_ns).await;
    let class = mem_pool.pool.borrow().location(handle).class;
    let class = mem_pool.class_lock(class);
    task.spin_lock(class).await;
    task.read_unlock(mem_pool.lock).await;
    mem_pool.record(task, Probe::ObjectFree, handle);
    mem_pool.pool.borrow_mut().zs_free(handle);
    task.run_kernel(zram.costs.free_ns).await;
    task.spin_unlock(class).await;
}
