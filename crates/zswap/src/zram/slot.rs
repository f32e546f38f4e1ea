//! The slots of a device: one per page, each with a lock.
//!
//! 1. What a slot refers to changes only under its lock.
//! 2. What is put into a slot replaces what was there, under the same hold of
//!    the lock: two that write a slot at once leave one object, not two.
//! 3. A slot's lock is outside the stream's and the pool's.

use super::zspool::zs_free;
use super::{Zram, ZramDesign};
use core::cell::Cell;
use kernel_sim::{Machine, Mutex, PlainSpinLock, Task};
use zswap_mm::{PAGE_SIZE, ZsHandle};

/// What a slot refers to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Entry {
    /// Nothing; it reads as zeroes.
    #[default]
    Empty,
    /// A page of this word over and over (`ZRAM_SAME`).
    Same(u64),
    /// A page as it is, since it does not compress well (`ZRAM_HUGE`).
    Huge(ZsHandle),
    /// So many bytes of a compressed page.
    Compressed(ZsHandle, u16),
}

impl Entry {
    pub(super) fn handle(self) -> Option<ZsHandle> {
        match self {
            Entry::Empty | Entry::Same(_) => None,
            Entry::Huge(handle) | Entry::Compressed(handle, _) => Some(handle),
        }
    }

    /// Bytes in the pool.
    pub(super) fn size(self) -> u64 {
        match self {
            Entry::Empty | Entry::Same(_) => 0,
            Entry::Huge(_) => PAGE_SIZE as u64,
            Entry::Compressed(_, size) => size.into(),
        }
    }
}

/// The kernel's is one bit of the slot. Since 6.15 who finds it set sleeps,
/// without spinning first and without being handed it by name; the mutex that
/// stands for it here does both.
#[derive(Clone, Copy, Debug)]
enum SlotLock {
    Spinning(PlainSpinLock),
    Sleeping(Mutex),
}

/// `struct zram_table_entry`.
#[derive(Debug)]
pub(super) struct Slot {
    lock: SlotLock,
    /// How many have the lock or wait for it.
    users: Cell<u32>,
    pub entry: Cell<Entry>,
}

impl Slot {
    pub(super) fn new(machine: &mut Machine, design: ZramDesign, index: u32) -> Slot {
        let name = format!("zram0 slot {index}");
        Slot {
            lock: match design {
                ZramDesign::LocalLock => SlotLock::Spinning(machine.plain_spin_lock(name)),
                ZramDesign::Shared | ZramDesign::Split => SlotLock::Sleeping(machine.mutex(name)),
            },
            users: Cell::new(0),
            entry: Cell::default(),
        }
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.users.get() > 0
    }
}

/// `slot_lock`.
pub(super) async fn slot_lock(task: &Task, slot: &Slot) {
    slot.users.update(|users| users + 1);
    match slot.lock {
        SlotLock::Spinning(lock) => task.spin_lock(lock).await,
        SlotLock::Sleeping(mutex) => task.mutex_lock(mutex).await,
    }
}

/// `slot_trylock`: locks the slot if that takes no waiting. It also gives up
/// where others wait for a lock that is free at this moment.
async fn slot_trylock(task: &Task, slot: &Slot) -> bool {
    let free = !slot.is_in_use();
    if free {
        slot_lock(task, slot).await;
    }
    free
}

/// `slot_unlock`.
pub(super) async fn slot_unlock(task: &Task, slot: &Slot) {
    slot.users.update(|users| users - 1);
    match slot.lock {
        SlotLock::Spinning(lock) => task.spin_unlock(lock).await,
        SlotLock::Sleeping(mutex) => task.mutex_unlock(mutex).await,
    }
}

/// `slot_free`: empties a slot that the caller has locked.
pub(super) async fn slot_free(task: &Task, zram: &Zram, slot: &Slot) {
    let entry = slot.entry.take();
    if let Some(handle) = entry.handle() {
        zs_free(task, zram, handle).await;
    }
    zram.count(|stats| {
        stats.pages_stored -= u64::from(entry != Entry::Empty);
        stats.same_pages -= u64::from(matches!(entry, Entry::Same(_)));
        stats.huge_pages -= u64::from(matches!(entry, Entry::Huge(_)));
        stats.compr_data_size -= entry.size();
    });
}

/// Puts a new entry into a slot, whose old one is freed.
pub(super) async fn slot_set(task: &Task, zram: &Zram, index: u32, entry: Entry) {
    let slot = zram.slot(index);
    slot_lock(task, slot).await;
    slot_free(task, zram, slot).await;
    slot.entry.set(entry);
    task.run_kernel(zram.costs.slot_ns).await;
    zram.count(|stats| {
        stats.pages_stored += 1;
        stats.same_pages += u64::from(matches!(entry, Entry::Same(_)));
        stats.huge_pages += u64::from(matches!(entry, Entry::Huge(_)));
        stats.huge_pages_since += u64::from(matches!(entry, Entry::Huge(_)));
        stats.compr_data_size += entry.size();
    });
    slot_unlock(task, slot).await;
}

/// `zram_bio_discard`: the contents of `pages` slots from `first` on are no
/// longer needed.
pub async fn zram_bio_discard(task: &Task, zram: &Zram, first: u32, pages: u32) {
    task.run_kernel(zram.costs.bio_ns).await;
    let end = first.saturating_add(pages).min(zram.pages());
    for index in first..end {
        let slot = zram.slot(index);
        slot_lock(task, slot).await;
        slot_free(task, zram, slot).await;
        slot_unlock(task, slot).await;
        zram.count(|stats| stats.notify_free += 1);
    }
}

/// `zram_slot_free_notify`: the swap code needs a slot no longer. It cannot
/// sleep, so a slot that is in use is left as it is and freed by the next write.
pub async fn zram_slot_free_notify(task: &Task, zram: &Zram, index: u32) {
    zram.count(|stats| stats.notify_free += 1);
    let slot = zram.slot(index);
    if !slot_trylock(task, slot).await {
        zram.count(|stats| stats.miss_free += 1);
        return;
    }
    slot_free(task, zram, slot).await;
    slot_unlock(task, slot).await;
}
