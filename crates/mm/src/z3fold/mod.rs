//! z3fold: up to three objects in a page.
//!
//! Like zbud (and gone with it after 6.14), but with a third object in the
//! middle, which can move, so handles are indirect. Objects that leave no
//! room for a second one get a page of their own without a header.
//!
//! 1. A page holds one to three objects, or one headless one; an empty page
//!    is freed at once.
//! 2. Objects of a page do not overlap: first behind the header, last at the
//!    end, the middle one in between.
//! 3. A page takes a new object only if the larger of the gaps beside its
//!    middle object has room.
//! 4. Compaction changes no byte of an object and no handle.
//! 5. A failed allocation leaves the pool as it was.
//!
//! A page belongs to the CPU that allocated it last and is offered to that
//! CPU's allocations; another CPU takes it only if its free space fits
//! exactly.
//!
//! Left out: the locks, and that compaction runs from a work item: here
//! [`Z3foldPool::compact`] does what is pending when it is called.
//!
//! ```
//! use zswap_mm::z3fold::Z3foldPool;
//!
//! let mut pool = Z3foldPool::new("zswap1", 1);
//! for _ in 0..3 {
//!     pool.alloc(0, 1344)?;
//! }
//! assert_eq!(pool.pages(), 1);
//! # Ok::<(), zswap_mm::AllocError>(())
//! ```

mod page;

use crate::fault::{AllocError, AllocSite, Failslab};
use crate::lists::Lists;
use crate::page::{PAGE_SIZE, Page};
use crate::slab::Slab;
use crate::zbud::{CHUNK_SIZE, size_to_chunks};
use page::Z3foldPage;

/// Chunks of a page, the header's included.
pub const TOTAL_CHUNKS: u8 = (PAGE_SIZE / CHUNK_SIZE) as u8;
/// Chunks of the header.
pub const ZHDR_CHUNKS: u8 = 1;
/// Chunks for objects in a page.
pub const NCHUNKS: u8 = TOTAL_CHUNKS - ZHDR_CHUNKS;
/// Objects larger than this many bytes are headless.
pub const HEADLESS_ABOVE: usize = PAGE_SIZE - ZHDR_CHUNKS as usize * CHUNK_SIZE - CHUNK_SIZE;
/// The middle object is moved along if that gains this many chunks.
pub const BIG_CHUNK_GAP: u8 = 3;

/// Which object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buddy {
    /// Has the page for itself, without a header.
    Headless,
    /// Behind the header.
    First,
    /// Somewhere in between.
    Middle,
    /// At the end.
    Last,
}

/// Names an object, wherever it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Z3foldHandle(pub u32);

/// Where an object is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Z3foldLocation {
    /// Number of the page within the pool.
    pub page: u32,
    /// Which of its objects.
    pub buddy: Buddy,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Z3foldCompaction {
    /// Middle objects moved within their page.
    pub moved: u64,
    /// Lone objects merged into another page, whose own page was freed.
    pub merged: u64,
}

/// A z3fold pool.
#[derive(Clone, Debug)]
pub struct Z3foldPool {
    name: String,
    cpus: u32,
    pages: Slab<Z3foldPage>,
    handles: Slab<Option<Z3foldLocation>>,
    /// For each CPU and each number of free chunks the pages that have them.
    unbuddied: Lists,
    /// Pages that compaction should look at, in the order of their changes.
    pending: Vec<u32>,
    faults: Failslab,
}

impl Z3foldPool {
    /// Creates a pool for a machine of so many CPUs.
    pub fn new(name: impl Into<String>, cpus: u32) -> Self {
        let cpus = cpus.max(1);
        Z3foldPool {
            name: name.into(),
            cpus,
            pages: Slab::default(),
            handles: Slab::default(),
            unbuddied: Lists::new((cpus as usize) * (usize::from(NCHUNKS) + 1)),
            pending: Vec::new(),
            faults: Failslab::never(),
        }
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Replaces the injector of allocation failures.
    pub fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }

    fn list(cpu: u32, chunks: u8) -> usize {
        cpu as usize * (usize::from(NCHUNKS) + 1) + usize::from(chunks)
    }

    /// Allocates an object of `size` bytes on a CPU.
    ///
    /// # Errors
    ///
    /// [`AllocError::Empty`], [`AllocError::TooLarge`] above a page, and
    /// [`AllocError::NoMemory`] if a failure is injected.
    ///
    /// # Panics
    ///
    /// If the machine has no such CPU.
    pub fn alloc(&mut self, cpu: u32, size: usize) -> Result<Z3foldHandle, AllocError> {
        assert!(cpu < self.cpus, "CPU {cpu} of {}", self.cpus);
        if size == 0 {
            return Err(AllocError::Empty);
        }
        if size > PAGE_SIZE {
            return Err(AllocError::TooLarge {
                size,
                max: PAGE_SIZE,
            });
        }
        self.faults.check(AllocSite::ZsHandle)?;
        if size > HEADLESS_ABOVE {
            let page = self.new_page(cpu, true)?;
            return Ok(self.place(page, Buddy::Headless, TOTAL_CHUNKS));
        }
        let chunks = size_to_chunks(size);
        let page = match self.find(cpu, chunks) {
            Some(page) => page,
            None => self.new_page(cpu, false)?,
        };
        self.unbuddied.remove(page);
        self.pages[page].cpu = cpu;
        let buddy = self.pages[page].free_buddy(chunks);
        let handle = self.place(page, buddy, chunks);
        self.relist(page);
        Ok(handle)
    }

    fn find(&self, cpu: u32, chunks: u8) -> Option<u32> {
        let own = (chunks..NCHUNKS).find_map(|free| self.unbuddied.first(Self::list(cpu, free)));
        let others = || (0..self.cpus).filter(|other| *other != cpu);
        own.or_else(|| others().find_map(|other| self.unbuddied.first(Self::list(other, chunks))))
    }

    fn new_page(&mut self, cpu: u32, headless: bool) -> Result<u32, AllocError> {
        self.faults.check(AllocSite::PageFrame)?;
        Ok(self.pages.insert(Z3foldPage {
            page: Some(Box::new(Page::zeroed())),
            headless,
            first_chunks: 0,
            middle_chunks: 0,
            last_chunks: 0,
            start_middle: 0,
            cpu,
            pending: false,
            handles: [None; 3],
        }))
    }

    fn place(&mut self, page: u32, buddy: Buddy, chunks: u8) -> Z3foldHandle {
        let handle = Z3foldHandle(self.handles.insert(Some(Z3foldLocation { page, buddy })));
        let record = &mut self.pages[page];
        record.set_chunks(buddy, chunks);
        *record.handle_mut(buddy) = Some(handle);
        handle
    }

    /// Puts a page that is in no list where its free space belongs; a page
    /// that has no room for another object stays in none.
    fn relist(&mut self, page: u32) {
        let record = &self.pages[page];
        if !record.headless && record.objects() < 3 && record.free_chunks() > 0 {
            self.unbuddied
                .push(Self::list(record.cpu, record.free_chunks()), page);
        }
    }

    /// Frees an object, and its page if it was alone there; else the page is
    /// left for compaction to look at.
    ///
    /// # Panics
    ///
    /// If the handle was freed before.
    pub fn free(&mut self, handle: Z3foldHandle) {
        let Z3foldLocation { page, buddy } = self.location(handle);
        self.handles[handle.0] = None;
        self.handles.release(handle.0);
        self.unbuddied.remove(page);
        let record = &mut self.pages[page];
        record.set_chunks(buddy, 0);
        *record.handle_mut(buddy) = None;
        if record.objects() == 0 {
            self.free_page(page);
            return;
        }
        if !std::mem::replace(&mut record.pending, true) {
            self.pending.push(page);
        }
        self.relist(page);
    }

    fn free_page(&mut self, page: u32) {
        self.pages[page].page = None;
        self.pages[page].pending = false;
        self.pages.release(page);
    }

    /// Does the compaction that is pending.
    pub fn compact(&mut self) -> Z3foldCompaction {
        let mut done = Z3foldCompaction::default();
        for page in std::mem::take(&mut self.pending) {
            // Freed since, or freed and in use again.
            if self.pages[page].page.is_none() || !self.pages[page].pending {
                continue;
            }
            self.pages[page].pending = false;
            self.unbuddied.remove(page);
            if self.pages[page].objects() == 1 && self.compact_single_buddy(page) {
                done.merged += 1;
                continue;
            }
            if let Some(became_first) = self.pages[page].compact_page() {
                done.moved += 1;
                if let (true, Some(handle)) = (became_first, self.pages[page].handles[0]) {
                    self.handles[handle.0] = Some(Z3foldLocation {
                        page,
                        buddy: Buddy::First,
                    });
                }
            }
            self.relist(page);
        }
        done
    }

    /// Moves the only object of a page into another page that has room.
    fn compact_single_buddy(&mut self, page: u32) -> bool {
        let record = &self.pages[page];
        let Some(handle) = record.handles.iter().flatten().next().copied() else {
            return false;
        };
        let Z3foldLocation { buddy, .. } = self.location(handle);
        let (chunks, cpu) = (record.chunks(buddy), record.cpu);
        let Some(target) = self.find(cpu, chunks) else {
            return false;
        };
        let bytes = self
            .bytes(handle, usize::from(chunks) * CHUNK_SIZE)
            .to_vec();
        self.unbuddied.remove(target);
        let place = self.pages[target].free_buddy(chunks);
        self.pages[target].set_chunks(place, chunks);
        *self.pages[target].handle_mut(place) = Some(handle);
        self.handles[handle.0] = Some(Z3foldLocation {
            page: target,
            buddy: place,
        });
        self.write(handle, &bytes);
        self.relist(target);
        self.free_page(page);
        true
    }

    /// Where an object is.
    ///
    /// # Panics
    ///
    /// If the handle was freed.
    pub fn location(&self, handle: Z3foldHandle) -> Z3foldLocation {
        self.handles[handle.0].expect("the z3fold handle stands for an object")
    }

    /// Where in its page the first `length` bytes of an object are.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn range(&self, handle: Z3foldHandle, length: usize) -> std::ops::Range<usize> {
        let Z3foldLocation { page, buddy } = self.location(handle);
        let record = &self.pages[page];
        let room = usize::from(record.chunks(buddy)) * CHUNK_SIZE;
        assert!(length <= room, "{length} bytes for an object of {room}");
        let begin = usize::from(record.begin(buddy)) * CHUNK_SIZE;
        begin..begin + length
    }

    /// The first `length` bytes of an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn bytes(&self, handle: Z3foldHandle, length: usize) -> &[u8] {
        let range = self.range(handle, length);
        let page = self.pages[self.location(handle).page].page.as_ref();
        &page.expect("the page has an object").bytes()[range]
    }

    /// Writes to the beginning of an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is too short.
    pub fn write(&mut self, handle: Z3foldHandle, bytes: &[u8]) {
        let range = self.range(handle, bytes.len());
        let page = self.location(handle).page;
        let page = self.pages[page].page.as_mut();
        page.expect("the page has an object").bytes_mut()[range].copy_from_slice(bytes);
    }

    /// Pages held.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Objects allocated.
    pub fn objects(&self) -> usize {
        self.handles.len()
    }

    /// Bytes of the pages that no object covers, headers included.
    pub fn bytes_wasted(&self) -> u64 {
        let pages = (0..self.pages.numbers()).map(|page| &self.pages[page]);
        let used: u64 = pages
            .filter(|record| record.page.is_some())
            .map(|record| {
                let chunks = if record.headless {
                    TOTAL_CHUNKS
                } else {
                    record.first_chunks + record.middle_chunks + record.last_chunks
                };
                u64::from(chunks) * CHUNK_SIZE as u64
            })
            .sum();
        self.pages() * PAGE_SIZE as u64 - used
    }

    /// Bytes of memory the pool takes beside its pages.
    pub fn overhead_bytes(&self) -> usize {
        self.pages.heap_bytes()
            + self.handles.heap_bytes()
            + self.unbuddied.heap_bytes()
            + self.pending.capacity() * size_of::<u32>()
            + size_of::<Z3foldPool>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(pool: &mut Z3foldPool, chunks: usize) -> Result<Z3foldHandle, AllocError> {
        let handle = pool.alloc(0, chunks * CHUNK_SIZE)?;
        pool.write(handle, &vec![chunks as u8; chunks * CHUNK_SIZE]);
        Ok(handle)
    }

    #[test]
    fn three_objects_take_their_places_in_turn() -> Result<(), AllocError> {
        let mut pool = Z3foldPool::new("zswap1", 1);
        let handles = [
            chunks(&mut pool, 20)?,
            chunks(&mut pool, 20)?,
            chunks(&mut pool, 23)?,
        ];
        let places = handles.map(|handle| pool.location(handle).buddy);
        assert_eq!(places, [Buddy::First, Buddy::Last, Buddy::Middle]);
        assert_eq!((pool.pages(), pool.bytes_wasted()), (1, 64));
        Ok(())
    }

    #[test]
    fn large_objects_have_a_page_for_themselves() -> Result<(), AllocError> {
        let mut pool = Z3foldPool::new("zswap1", 1);
        let headless = pool.alloc(0, 3969)?;
        assert_eq!(pool.location(headless).buddy, Buddy::Headless);
        assert_eq!(pool.range(headless, 4096), 0..4096);
        let normal = pool.alloc(0, 3968)?;
        assert_eq!(pool.location(normal).buddy, Buddy::First);
        let refused = pool.alloc(0, 4097).map_err(|error| error.errno());
        assert_eq!(refused, Err("ENOSPC"));
        Ok(())
    }

    #[test]
    fn a_gap_beside_the_middle_object_is_closed_if_it_is_wide_enough() -> Result<(), AllocError> {
        for (gap, moved) in [(2, 0), (3, 1)] {
            let mut pool = Z3foldPool::new("zswap1", 1);
            let first = chunks(&mut pool, 10)?;
            let last = chunks(&mut pool, 10)?;
            let middle = chunks(&mut pool, 20)?;
            pool.free(first);
            let first = chunks(&mut pool, 10 - gap)?;
            assert_eq!(pool.location(first).buddy, Buddy::First);
            pool.free(last);
            assert_eq!(pool.compact().moved, moved, "gap {gap}");
            let begin = if moved == 1 { 11 - gap } else { 11 };
            assert_eq!(pool.range(middle, 1).start, begin * CHUNK_SIZE);
            assert_eq!(pool.bytes(middle, 20 * 64), [20; 20 * 64]);
        }
        Ok(())
    }

    #[test]
    fn a_middle_object_left_alone_becomes_the_first() -> Result<(), AllocError> {
        let mut pool = Z3foldPool::new("zswap1", 1);
        let [first, last, middle] = [
            chunks(&mut pool, 10)?,
            chunks(&mut pool, 10)?,
            chunks(&mut pool, 40)?,
        ];
        pool.free(first);
        pool.free(last);
        assert_eq!(pool.location(middle).buddy, Buddy::Middle);
        assert_eq!(pool.compact().moved, 1);
        assert_eq!(pool.location(middle).buddy, Buddy::First);
        assert_eq!(pool.bytes(middle, 40 * 64), [40; 40 * 64]);
        Ok(())
    }

    #[test]
    fn a_lone_object_moves_in_with_others() -> Result<(), AllocError> {
        let mut pool = Z3foldPool::new("zswap1", 1);
        let (_a, lone) = (chunks(&mut pool, 40)?, chunks(&mut pool, 23)?);
        let (b, _c) = (chunks(&mut pool, 30)?, chunks(&mut pool, 24)?);
        assert_eq!(pool.pages(), 2);
        pool.free(b);
        // The 24 chunks left alone fit beside nothing: 40 + 23 is full.
        assert_eq!(pool.compact(), Z3foldCompaction::default());
        pool.free(lone);
        assert_eq!(pool.compact().merged, 0);
        pool.free(_a);
        assert_eq!((pool.pages(), pool.objects()), (1, 1));
        let (d, e) = (chunks(&mut pool, 62)?, chunks(&mut pool, 1)?);
        pool.free(d);
        assert_eq!(pool.compact().merged, 1);
        assert_eq!((pool.pages(), pool.objects()), (1, 2));
        assert_eq!(
            (pool.bytes(_c, 64), pool.bytes(e, 64)),
            (&[24; 64][..], &[1; 64][..])
        );
        Ok(())
    }
}
