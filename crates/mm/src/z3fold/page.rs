//! A page of a z3fold pool: which chunks its objects take.

use super::{BIG_CHUNK_GAP, Buddy, NCHUNKS, TOTAL_CHUNKS, Z3foldHandle, ZHDR_CHUNKS};
use crate::page::Page;
use crate::zbud::CHUNK_SIZE;

#[derive(Clone, Debug)]
pub(super) struct Z3foldPage {
    pub(super) page: Option<Box<Page>>,
    pub(super) headless: bool,
    pub(super) first_chunks: u8,
    pub(super) middle_chunks: u8,
    pub(super) last_chunks: u8,
    pub(super) start_middle: u8,
    pub(super) cpu: u32,
    pub(super) pending: bool,
    /// Handles of the first, middle and last object; of a headless one first.
    pub(super) handles: [Option<Z3foldHandle>; 3],
}

impl Z3foldPage {
    pub(super) fn chunks(&self, buddy: Buddy) -> u8 {
        match buddy {
            Buddy::Headless => TOTAL_CHUNKS,
            Buddy::First => self.first_chunks,
            Buddy::Middle => self.middle_chunks,
            Buddy::Last => self.last_chunks,
        }
    }

    pub(super) fn begin(&self, buddy: Buddy) -> u8 {
        match buddy {
            Buddy::Headless => 0,
            Buddy::First => ZHDR_CHUNKS,
            Buddy::Middle => self.start_middle,
            Buddy::Last => TOTAL_CHUNKS - self.last_chunks,
        }
    }

    pub(super) fn handle_mut(&mut self, buddy: Buddy) -> &mut Option<Z3foldHandle> {
        &mut self.handles[match buddy {
            Buddy::Headless | Buddy::First => 0,
            Buddy::Middle => 1,
            Buddy::Last => 2,
        }]
    }

    pub(super) fn objects(&self) -> usize {
        self.handles.iter().flatten().count()
    }

    /// Chunks a new object can have.
    pub(super) fn free_chunks(&self) -> u8 {
        if self.middle_chunks == 0 {
            return NCHUNKS - self.first_chunks - self.last_chunks;
        }
        let before = if self.first_chunks > 0 {
            0
        } else {
            self.start_middle - ZHDR_CHUNKS
        };
        let after = if self.last_chunks > 0 {
            0
        } else {
            TOTAL_CHUNKS - (self.start_middle + self.middle_chunks)
        };
        before.max(after)
    }

    /// The place for an object of so many chunks, which must have room.
    pub(super) fn free_buddy(&self, chunks: u8) -> Buddy {
        if self.middle_chunks > 0 {
            let before = self.start_middle - ZHDR_CHUNKS;
            if self.first_chunks == 0 && chunks <= before {
                Buddy::First
            } else {
                Buddy::Last
            }
        } else if self.first_chunks == 0 {
            Buddy::First
        } else if self.last_chunks == 0 {
            Buddy::Last
        } else {
            Buddy::Middle
        }
    }

    pub(super) fn set_chunks(&mut self, buddy: Buddy, chunks: u8) {
        match buddy {
            Buddy::Headless => {}
            Buddy::First => self.first_chunks = chunks,
            Buddy::Last => self.last_chunks = chunks,
            Buddy::Middle => {
                self.middle_chunks = chunks;
                self.start_middle = if chunks > 0 {
                    self.first_chunks + ZHDR_CHUNKS
                } else {
                    0
                };
            }
        }
    }

    fn move_middle(&mut self, start: u8) {
        let from = usize::from(self.start_middle) * CHUNK_SIZE;
        let length = usize::from(self.middle_chunks) * CHUNK_SIZE;
        let page = self.page.as_mut().expect("the page has an object");
        page.bytes_mut()
            .copy_within(from..from + length, usize::from(start) * CHUNK_SIZE);
        self.start_middle = start;
    }

    /// Moves the middle object if it is worth it. Tells whether the object
    /// became the first.
    pub(super) fn compact_page(&mut self) -> Option<bool> {
        if self.middle_chunks == 0 {
            return None;
        }
        if self.first_chunks == 0 && self.last_chunks == 0 {
            self.move_middle(ZHDR_CHUNKS);
            self.first_chunks = self.middle_chunks;
            self.middle_chunks = 0;
            self.start_middle = 0;
            self.handles[0] = self.handles[1].take();
            return Some(true);
        }
        if self.last_chunks == 0 {
            let start = self.first_chunks + ZHDR_CHUNKS;
            if self.start_middle - start >= BIG_CHUNK_GAP {
                self.move_middle(start);
                return Some(false);
            }
        } else if self.first_chunks == 0 {
            let start = TOTAL_CHUNKS - self.last_chunks - self.middle_chunks;
            if start - self.start_middle >= BIG_CHUNK_GAP {
                self.move_middle(start);
                return Some(false);
            }
        }
        None
    }
}
