//! The swap cache: the folios of swap slots that are on their way, and their
//! locks.
//!
//! 1. A folio is locked over everything that is done to its slot: two stores,
//!    or a store, a load and a writeback of one slot exclude each other.
//! 2. A folio that is in the cache with contents is newer than, or the same as,
//!    whatever zswap and the device have under its slot.
//! 3. Who waits for a folio is woken by its unlock, and looks again. Folios
//!    share a few wait queues, as the kernel's share a table of them.
//!
//! Left out: that memory for the cache can run out.

use crate::zswap::Zswap;
use kernel_sim::{Completion, Machine, Request, Task};
use std::collections::BTreeMap;
use zswap_mm::{Page, SwapSlot};

/// Wait queues of a machine's folios; the kernel has 256.
const WAIT_QUEUES: u64 = 16;

/// A folio that stays in the cache while nobody has it locked.
#[derive(Debug)]
pub(crate) struct CachedFolio {
    pub page: Box<Page>,
    /// It is being written (`PG_writeback`).
    pub write: Option<Request>,
}

/// The cache, and what the device has.
#[derive(Debug)]
pub(crate) struct SwapCache {
    /// One bit per slot: its folio is locked.
    locks: Vec<u64>,
    locked: u64,
    pub folios: BTreeMap<u64, CachedFolio>,
    /// What the swap device has.
    pub device: BTreeMap<u64, Box<Page>>,
    queues: Vec<WaitQueue>,
}

#[derive(Debug)]
struct WaitQueue {
    waiters: u32,
    unlocked: Completion,
}

impl SwapCache {
    pub(crate) fn new(machine: &mut Machine, slots: u64) -> SwapCache {
        let words = usize::try_from(slots.div_ceil(64)).unwrap_or(0);
        let queue = |number| WaitQueue {
            waiters: 0,
            unlocked: machine.completion(format!("folio unlocked, queue {number}")),
        };
        SwapCache {
            locks: vec![0; words],
            locked: 0,
            folios: BTreeMap::new(),
            device: BTreeMap::new(),
            queues: (0..WAIT_QUEUES).map(queue).collect(),
        }
    }

    fn bit(&mut self, slot: SwapSlot) -> (&mut u64, u64) {
        let word = usize::try_from(slot.0 / 64).unwrap_or(usize::MAX);
        (&mut self.locks[word], 1 << (slot.0 % 64))
    }

    fn try_lock(&mut self, slot: SwapSlot) -> bool {
        let (word, bit) = self.bit(slot);
        let free = *word & bit == 0;
        *word |= bit;
        self.locked += u64::from(free);
        free
    }

    fn queue(&mut self, slot: SwapSlot) -> &mut WaitQueue {
        let number = usize::try_from(slot.0 % WAIT_QUEUES).unwrap_or(0);
        &mut self.queues[number]
    }

    /// How many folios are locked.
    pub(crate) fn locked(&self) -> u64 {
        self.locked
    }
}

/// `folio_trylock` of a folio that is made for the slot: not if there is one.
pub(crate) fn folio_add_locked(zswap: &Zswap, slot: SwapSlot) -> bool {
    let mut cache = zswap.cache.borrow_mut();
    !cache.folios.contains_key(&slot.0) && cache.try_lock(slot)
}

/// `folio_lock`: sleeps while another has it.
pub(crate) async fn folio_lock(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    while !zswap.cache.borrow_mut().try_lock(slot) {
        let unlocked = {
            let mut cache = zswap.cache.borrow_mut();
            let queue = cache.queue(slot);
            queue.waiters += 1;
            queue.unlocked
        };
        task.wait_for_completion(unlocked).await;
    }
}

/// `folio_unlock`: wakes all who wait in the folio's queue.
pub(crate) async fn folio_unlock(task: &Task, zswap: &Zswap, slot: SwapSlot) {
    let (waiters, unlocked) = {
        let mut cache = zswap.cache.borrow_mut();
        let (word, bit) = cache.bit(slot);
        *word &= !bit;
        cache.locked -= 1;
        let queue = cache.queue(slot);
        (core::mem::take(&mut queue.waiters), queue.unlocked)
    };
    for _ in 0..waiters {
        task.complete(unlocked).await;
    }
}

impl SwapCache {
    /// A write that is done, taken out of its folio.
    fn finished(&mut self, task: &Task) -> Option<(u64, Request)> {
        self.folios.iter_mut().find_map(|(slot, folio)| {
            let write = folio.write.take_if(|write| task.request_done(write))?;
            Some((*slot, write))
        })
    }
}

/// Lets go of the folios whose write is done: the device has the page then. A
/// page whose write has failed stays in the cache, dirty.
pub(crate) async fn end_swap_writes(task: &Task, zswap: &Zswap) {
    loop {
        let finished = zswap.cache.borrow_mut().finished(task);
        let Some((slot, write)) = finished else {
            return;
        };
        // It is done, so this does not wait.
        let written = task.wait_for_request(write).await;
        let mut cache = zswap.cache.borrow_mut();
        if written.is_ok()
            && let Some(folio) = cache.folios.remove(&slot)
        {
            cache.device.insert(slot, folio.page);
        }
    }
}
