//! zbud: at most two objects in a page.
//!
//! The first allocator zswap had (until 6.14), and the simplest: a page is 64
//! chunks of 64 bytes, one for a header; one object begins right behind the
//! header, the other ends at the end of the page. So two pages never shrink
//! to less than one, and a lookup is a plain pointer.
//!
//! 1. A page holds one or two objects; an empty page is freed at once.
//! 2. An object of *n* bytes takes ⌈*n*/64⌉ chunks; both of a page take 63 at
//!    most, so they never overlap.
//! 3. Allocation takes the page with the least free space that suffices, and
//!    among those the one that got into its list last.
//! 4. A failed allocation leaves the pool as it was.
//!
//! Left out: reclaim from within the allocator (dropped in 6.5).
//!
//! ```
//! use zswap_mm::zbud::ZbudPool;
//!
//! let mut pool = ZbudPool::new("zswap1");
//! let small = pool.alloc(100)?;
//! let large = pool.alloc(3900)?;
//! assert_eq!(pool.pages(), 1);
//! assert!(pool.alloc(3969).is_err());
//! # Ok::<(), zswap_mm::AllocError>(())
//! ```

use crate::fault::{AllocError, AllocSite, Failslab};
use crate::lists::Lists;
use crate::page::{PAGE_SIZE, Page};
use crate::slab::Slab;

/// Bytes of a chunk.
pub const CHUNK_SIZE: usize = PAGE_SIZE >> 6;
/// Bytes of the header: one chunk.
pub const ZHDR_SIZE_ALIGNED: usize = CHUNK_SIZE;
/// Chunks for objects in a page.
pub const NCHUNKS: usize = (PAGE_SIZE - ZHDR_SIZE_ALIGNED) / CHUNK_SIZE;
/// The largest object, in bytes: one chunk is kept for a second one.
pub const ZBUD_MAX_SIZE: usize = PAGE_SIZE - ZHDR_SIZE_ALIGNED - CHUNK_SIZE;

/// The list of pages with two objects: no page has 0 free chunks otherwise.
const BUDDIED: usize = 0;

/// Which of the two objects of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buddy {
    /// The one behind the header.
    First,
    /// The one at the end.
    Last,
}

/// Names an object: its page and which of the two it is. Objects never move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZbudHandle {
    /// Number of the page within the pool.
    pub page: u32,
    /// Which of its objects.
    pub buddy: Buddy,
}

#[derive(Clone, Debug)]
struct ZbudPage {
    page: Option<Box<Page>>,
    first_chunks: u8,
    last_chunks: u8,
}

impl ZbudPage {
    fn free_chunks(&self) -> usize {
        NCHUNKS - usize::from(self.first_chunks) - usize::from(self.last_chunks)
    }
}

/// A zbud pool.
#[derive(Clone, Debug)]
pub struct ZbudPool {
    name: String,
    pages: Slab<ZbudPage>,
    /// List *n* has the pages with one object and *n* free chunks.
    unbuddied: Lists,
    objects: usize,
    faults: Failslab,
}

/// Chunks an object of `size` bytes takes.
pub(crate) fn size_to_chunks(size: usize) -> u8 {
    size.div_ceil(CHUNK_SIZE) as u8
}

impl ZbudPool {
    /// Creates a pool.
    pub fn new(name: impl Into<String>) -> Self {
        ZbudPool {
            name: name.into(),
            pages: Slab::default(),
            unbuddied: Lists::new(NCHUNKS),
            objects: 0,
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

    /// Allocates an object of `size` bytes.
    ///
    /// # Errors
    ///
    /// [`AllocError::Empty`], [`AllocError::TooLarge`] above 3968 bytes, and
    /// [`AllocError::NoMemory`] if a failure is injected.
    pub fn alloc(&mut self, size: usize) -> Result<ZbudHandle, AllocError> {
        if size == 0 {
            return Err(AllocError::Empty);
        }
        if size > ZBUD_MAX_SIZE {
            return Err(AllocError::TooLarge {
                size,
                max: ZBUD_MAX_SIZE,
            });
        }
        let chunks = size_to_chunks(size);
        let found = (usize::from(chunks)..NCHUNKS).find_map(|free| self.unbuddied.first(free));
        let page = match found {
            Some(page) => {
                self.unbuddied.remove(page);
                page
            }
            None => {
                self.faults.check(AllocSite::PageFrame)?;
                let page = Some(Box::new(Page::zeroed()));
                self.pages.insert(ZbudPage {
                    page,
                    first_chunks: 0,
                    last_chunks: 0,
                })
            }
        };
        let record = &mut self.pages[page];
        let buddy = if record.first_chunks == 0 {
            record.first_chunks = chunks;
            Buddy::First
        } else {
            record.last_chunks = chunks;
            Buddy::Last
        };
        self.list(page);
        self.objects += 1;
        Ok(ZbudHandle { page, buddy })
    }

    /// Puts a page into the list its free space asks for.
    fn list(&mut self, page: u32) {
        let record = &self.pages[page];
        let buddied = record.first_chunks > 0 && record.last_chunks > 0;
        let list = if buddied {
            BUDDIED
        } else {
            record.free_chunks()
        };
        self.unbuddied.push(list, page);
    }

    /// Frees an object, and its page if it was alone there.
    ///
    /// # Panics
    ///
    /// If the handle was freed before.
    pub fn free(&mut self, handle: ZbudHandle) {
        let _ = self.range(handle, 0);
        self.unbuddied.remove(handle.page);
        let record = &mut self.pages[handle.page];
        match handle.buddy {
            Buddy::First => record.first_chunks = 0,
            Buddy::Last => record.last_chunks = 0,
        }
        if record.first_chunks == 0 && record.last_chunks == 0 {
            record.page = None;
            self.pages.release(handle.page);
        } else {
            self.list(handle.page);
        }
        self.objects -= 1;
    }

    /// The first `length` bytes of an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn bytes(&self, handle: ZbudHandle, length: usize) -> &[u8] {
        let range = self.range(handle, length);
        let page = self.pages[handle.page]
            .page
            .as_ref()
            .expect("the page has an object");
        &page.bytes()[range]
    }

    /// Writes to the beginning of an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is too short.
    pub fn write(&mut self, handle: ZbudHandle, bytes: &[u8]) {
        let range = self.range(handle, bytes.len());
        let page = self.pages[handle.page]
            .page
            .as_mut()
            .expect("the page has an object");
        page.bytes_mut()[range].copy_from_slice(bytes);
    }

    /// Where in its page the first `length` bytes of an object are.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn range(&self, handle: ZbudHandle, length: usize) -> std::ops::Range<usize> {
        let record = &self.pages[handle.page];
        let chunks = match handle.buddy {
            Buddy::First => record.first_chunks,
            Buddy::Last => record.last_chunks,
        };
        let room = usize::from(chunks) * CHUNK_SIZE;
        assert!(room > 0, "{handle:?} was freed before");
        assert!(length <= room, "{length} bytes for an object of {room}");
        let begin = match handle.buddy {
            Buddy::First => ZHDR_SIZE_ALIGNED,
            Buddy::Last => PAGE_SIZE - room,
        };
        begin..begin + length
    }

    /// Pages held.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Objects allocated.
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Bytes of the pages that no object covers, headers included.
    pub fn bytes_wasted(&self) -> u64 {
        let pages = (0..self.pages.numbers()).map(|page| &self.pages[page]);
        let used: usize = pages
            .filter(|record| record.page.is_some())
            .map(|record| (NCHUNKS - record.free_chunks()) * CHUNK_SIZE)
            .sum();
        self.pages() * PAGE_SIZE as u64 - used as u64
    }

    /// Bytes of memory the pool takes beside its pages.
    pub fn overhead_bytes(&self) -> usize {
        self.pages.heap_bytes() + self.unbuddied.heap_bytes() + size_of::<ZbudPool>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_the_kernels() {
        assert_eq!((CHUNK_SIZE, NCHUNKS, ZBUD_MAX_SIZE), (64, 63, 3968));
        let mut pool = ZbudPool::new("zswap1");
        assert_eq!(pool.alloc(0), Err(AllocError::Empty));
        assert!(pool.alloc(3968).is_ok());
        let refused = pool.alloc(3969).map_err(|error| error.errno());
        assert_eq!(refused, Err("ENOSPC"));
    }

    #[test]
    fn the_page_with_the_least_room_that_suffices_is_taken() -> Result<(), AllocError> {
        let mut pool = ZbudPool::new("zswap1");
        // 33 and 22 chunks are left.
        let roomy = pool.alloc(30 * 64)?;
        let tight = pool.alloc(40 * 64 + 1)?;
        assert_ne!(roomy.page, tight.page);
        assert_eq!(
            pool.alloc(22 * 64)?,
            ZbudHandle {
                page: tight.page,
                buddy: Buddy::Last
            }
        );
        assert_eq!(
            pool.alloc(22 * 64)?,
            ZbudHandle {
                page: roomy.page,
                buddy: Buddy::Last
            }
        );
        assert_eq!(pool.pages(), 2);
        // The freed place in front is found again.
        pool.free(tight);
        assert_eq!(
            pool.alloc(41 * 64)?,
            ZbudHandle {
                page: tight.page,
                buddy: Buddy::First
            }
        );
        Ok(())
    }
}
