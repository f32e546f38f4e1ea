//! The callers that make stores happen: `MADV_PAGEOUT` and `memory.max`, both
//! in the caller's own context and priority.
//!
//! 1. A page is in memory or its slot has it.
//! 2. What a fault brings back equals what went out, or the run stops.

use crate::load::LoadError;
use crate::shrink::{zswap_shrinker_count, zswap_shrinker_scan};
use crate::swap::{Folio, swap_read_folio, swap_writeout};
use crate::swapfile::swap_cluster_readahead;
use crate::zswap::Zswap;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use kernel_sim::Task;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::{Page, SwapSlot};

/// Pages that direct reclaim frees in one go.
const SWAP_CLUSTER_MAX: usize = 32;

/// The anonymous memory of a task: page `i` has swap slot `first_slot + i`.
#[derive(Debug)]
pub struct Mm {
    /// Whose it is.
    pub cgroup: CgroupId,
    /// The slot of the first page.
    pub first_slot: SwapSlot,
    /// `memory.max` in pages: no more are in memory at a time.
    pub max_pages: usize,
    /// `vm.page-cluster`.
    pub page_cluster: u32,
    /// Whether reclaim also calls zswap's dynamic shrinker.
    pub shrinker_enabled: bool,
    pages: RefCell<Vec<Page>>,
    resident: Vec<Cell<bool>>,
    hand: Cell<usize>,
}

impl Mm {
    /// Pages that are in memory, without a limit.
    #[must_use]
    pub fn new(cgroup: CgroupId, first_slot: SwapSlot, pages: Vec<Page>) -> Mm {
        Mm {
            cgroup,
            first_slot,
            max_pages: pages.len(),
            page_cluster: 0,
            shrinker_enabled: false,
            resident: pages.iter().map(|_| Cell::new(true)).collect(),
            pages: RefCell::new(pages),
            hand: Cell::new(0),
        }
    }

    /// How many pages it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.resident.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resident.is_empty()
    }

    /// How many pages are in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.resident.iter().filter(|page| page.get()).count()
    }

    /// The slot of a page.
    #[must_use]
    pub fn slot(&self, page: usize) -> SwapSlot {
        SwapSlot(self.first_slot.0 + page as u64)
    }

    /// Whether a page is in memory.
    #[must_use]
    pub fn is_resident(&self, page: usize) -> bool {
        self.resident[page].get()
    }

    /// What a page contains, wherever it is.
    #[must_use]
    pub fn contents(&self, page: usize) -> Page {
        self.pages.borrow()[page].clone()
    }

    /// A page is in memory again by other means than a fault.
    pub fn bring_in(&self, page: usize) {
        self.resident[page].set(true);
    }

    /// Changes a page, which must be in memory.
    pub fn write(&self, page: usize, change: impl FnOnce(&mut Page)) {
        assert!(self.is_resident(page), "a page is written in memory");
        change(&mut self.pages.borrow_mut()[page]);
    }
}

/// `MADV_PAGEOUT`: reclaims the pages of a range. What can be stored nowhere
/// stays in memory. Returns how many went out.
pub async fn madvise_pageout(task: &Task, zswap: &Zswap, mm: &Mm, range: Range<usize>) -> usize {
    let mut out = 0;
    for page in range {
        out += usize::from(mm.is_resident(page) && pageout(task, zswap, mm, page).await);
    }
    out
}

async fn pageout(task: &Task, zswap: &Zswap, mm: &Mm, page: usize) -> bool {
    let contents = mm.contents(page);
    let folio = Folio {
        cgroup: mm.cgroup,
        ..Folio::of(mm.slot(page), &contents)
    };
    let written = swap_writeout(task, zswap, &folio).await;
    mm.resident[page].set(written.is_err());
    written.is_ok()
}

/// `try_charge`: room for a page, by direct reclaim if `memory.max` is reached.
/// If nothing can be reclaimed the limit is overrun.
async fn try_charge(task: &Task, zswap: &Zswap, mm: &Mm) {
    if mm.resident() < mm.max_pages {
        return;
    }
    let (mut freed, mut looked_at) = (0, 0);
    while freed < SWAP_CLUSTER_MAX.min(mm.max_pages) && looked_at < mm.len() {
        let page = mm.hand.get();
        mm.hand.set((page + 1) % mm.len());
        looked_at += 1;
        freed += usize::from(mm.is_resident(page) && pageout(task, zswap, mm, page).await);
    }
    if mm.shrinker_enabled {
        let count = zswap_shrinker_count(zswap, mm.cgroup);
        zswap_shrinker_scan(task, zswap, mm.cgroup, count.min(SWAP_CLUSTER_MAX as u64)).await;
    }
}

/// `do_swap_page`: brings a page back if it is out.
///
/// # Errors
/// If it cannot be read; it stays out, and the kernel would kill the task.
pub async fn do_swap_page(
    task: &Task,
    zswap: &Zswap,
    mm: &Mm,
    page: usize,
) -> Result<(), LoadError> {
    if mm.is_resident(page) {
        return Ok(());
    }
    try_charge(task, zswap, mm).await;
    let slot = mm.slot(page);
    let mut landing = Box::new(Page::zeroed());
    swap_read_folio(task, zswap, slot, &mut landing).await?;
    if *landing != mm.contents(page) {
        task.fail(format!(
            "slot {} holds other bytes than it was given",
            slot.0
        ));
    }
    mm.bring_in(page);
    swap_cluster_readahead(task, zswap, slot, mm.page_cluster).await;
    Ok(())
}
