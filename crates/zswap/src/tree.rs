//! The index under its locks: one lock per tree.
//!
//! Left out: the read side of RCU around an xarray's lookup. It costs nothing,
//! and the folio lock keeps the entry.

use crate::probe::Probe;
use crate::zswap::Zswap;
use kernel_sim::{PlainSpinLock, Task};
use zswap_mm::entry::EntryId;
use zswap_mm::{IndexKind, SwapSlot};

impl Zswap {
    /// The lock of the tree that a slot belongs to.
    pub(crate) fn tree_lock(&self, slot: SwapSlot) -> PlainSpinLock {
        self.tree_locks[self.index.borrow().tree_of(slot)]
    }

    /// Whether the lock of the tree is held over what is done with an entry:
    /// the LRU and the allocator (rb-trees), or over the tree only (xarrays).
    pub(crate) fn tree_lock_is_outermost(&self) -> bool {
        self.design.index != IndexKind::XarrayPer64M
    }

    /// The entry of a slot, read without a lock.
    pub(crate) fn peek(&self, slot: SwapSlot) -> Option<EntryId> {
        self.index.borrow().load(slot).copied()
    }

    /// Takes the entry of a slot out. Its tree is locked.
    pub(crate) fn erase_locked(&self, task: &Task, slot: SwapSlot) -> Option<EntryId> {
        let erased = self.index.borrow_mut().erase(slot)?;
        task.probe(Probe::IndexErase as u16, slot.0);
        Some(erased)
    }
}

/// Looks up the entry of a slot: an xarray's readers need no lock.
pub(crate) async fn tree_search(task: &Task, zswap: &Zswap, slot: SwapSlot) -> Option<EntryId> {
    if zswap.design.index == IndexKind::XarrayPer64M {
        return zswap.peek(slot);
    }
    let tree = zswap.tree_lock(slot);
    task.spin_lock(tree).await;
    let found = zswap.peek(slot);
    task.spin_unlock(tree).await;
    found
}

/// Takes the entry of a slot out.
pub(crate) async fn tree_erase(task: &Task, zswap: &Zswap, slot: SwapSlot) -> Option<EntryId> {
    let tree = zswap.tree_lock(slot);
    task.spin_lock(tree).await;
    let erased = zswap.erase_locked(task, slot);
    task.run_kernel(zswap.costs.load_outside.tree_ns).await;
    task.spin_unlock(tree).await;
    erased
}
