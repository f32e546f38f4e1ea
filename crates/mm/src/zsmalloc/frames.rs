//! Page frames: the memory zspages are made of.
//!
//! Frames come in arenas of sixteen, so that finding a frame's bytes takes a
//! look at a small table instead of a pointer per frame, and the frames of a
//! chain are neighbours more often than not.
//!
//! 1. A frame is followed by at most one frame.
//! 2. Arenas whose frames are all free are given back, but for one in
//!    sixteen, so that a pool that breathes a little does not ask for memory
//!    with every breath. An arena with a frame in use is kept whole: a pool
//!    that lost most of its objects can hold more memory than the pages it
//!    counts.
//! 3. A frame that is allocated again keeps what it had: the kernel does not
//!    clear zspages either.

use crate::lists::Lists;
use crate::page::Page;

/// Number of a page frame within its pool, as a PFN is within a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// No frame, no zspage.
pub(super) const NONE: u32 = u32::MAX;

/// Frames of an arena.
const ARENA_FRAMES: usize = 16;
const ARENA_SHIFT: u32 = ARENA_FRAMES.trailing_zeros();
/// The list of arenas with free frames.
const WITH_ROOM: usize = 0;
/// The list of arena numbers whose memory was given back.
const GONE: usize = 1;
/// The list of arenas without a frame in use that are kept.
const SPARE: usize = 2;
/// One in so many arenas is kept though empty, and one in any case.
const SPARE_PART: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Frames {
    arenas: Vec<Box<[Page]>>,
    /// A bit for each free frame of an arena.
    free: Vec<u16>,
    lists: Lists,
    /// The frame that follows in the chain, for each frame.
    next: Vec<u32>,
    live: usize,
    /// Arenas that have their memory, and how many of them are spare.
    present: usize,
    spare: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Frames {
            arenas: Vec::new(),
            free: Vec::new(),
            lists: Lists::new(3),
            next: Vec::new(),
            live: 0,
            present: 0,
            spare: 0,
        }
    }
}

impl Frames {
    pub(super) fn alloc(&mut self) -> FrameId {
        let arena = match self.lists.first(WITH_ROOM) {
            Some(arena) => arena,
            None => self.empty_arena(),
        };
        let free = &mut self.free[arena as usize];
        let at = free.trailing_zeros();
        *free &= *free - 1;
        if *free == 0 {
            self.lists.remove(arena);
        }
        self.live += 1;
        let frame = FrameId((arena << ARENA_SHIFT) + at);
        self.next[frame.0 as usize] = NONE;
        frame
    }

    /// An arena without a frame in use, in the list of those with room.
    fn empty_arena(&mut self) -> u32 {
        let arena = match self.lists.first(SPARE) {
            Some(arena) => {
                self.lists.remove(arena);
                self.spare -= 1;
                arena
            }
            None => self.alloc_arena(),
        };
        self.lists.push(WITH_ROOM, arena);
        arena
    }

    fn alloc_arena(&mut self) -> u32 {
        self.present += 1;
        let pages = vec![Page::zeroed(); ARENA_FRAMES].into_boxed_slice();
        let arena = match self.lists.first(GONE) {
            Some(arena) => {
                self.lists.remove(arena);
                self.arenas[arena as usize] = pages;
                arena
            }
            None => {
                self.arenas.push(pages);
                self.free.push(0);
                self.next.resize(self.arenas.len() * ARENA_FRAMES, NONE);
                u32::try_from(self.arenas.len() - 1).expect("at most 2^32 arenas")
            }
        };
        self.free[arena as usize] = u16::MAX;
        arena
    }

    pub(super) fn free(&mut self, frame: FrameId) {
        let arena = frame.0 >> ARENA_SHIFT;
        let free = &mut self.free[arena as usize];
        let before = *free;
        *free |= 1 << (frame.0 as usize & (ARENA_FRAMES - 1));
        debug_assert_ne!(before, *free, "frame {} was freed before", frame.0);
        let all_free = *free == u16::MAX;
        self.live -= 1;
        if all_free {
            self.lists.remove(arena);
            self.lists.push(SPARE, arena);
            self.spare += 1;
            self.give_back();
        } else if before == 0 {
            self.lists.push(WITH_ROOM, arena);
        }
    }

    /// Gives spare arenas back until no more than the part to be kept is left.
    fn give_back(&mut self) {
        while self.spare > self.present / SPARE_PART + 1 {
            let Some(arena) = self.lists.first(SPARE) else {
                return;
            };
            self.lists.remove(arena);
            self.lists.push(GONE, arena);
            self.arenas[arena as usize] = Box::default();
            self.spare -= 1;
            self.present -= 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    pub(super) fn bytes(&self, frame: FrameId) -> &[u8] {
        let arena = &self.arenas[(frame.0 >> ARENA_SHIFT) as usize];
        arena[frame.0 as usize & (ARENA_FRAMES - 1)].bytes()
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, frame: FrameId) -> &mut [u8] {
        let arena = &mut self.arenas[(frame.0 >> ARENA_SHIFT) as usize];
        arena[frame.0 as usize & (ARENA_FRAMES - 1)].bytes_mut()
    }

    pub(super) fn next(&self, frame: FrameId) -> Option<FrameId> {
        let next = self.next[frame.0 as usize];
        (next != NONE).then_some(FrameId(next))
    }

    pub(super) fn set_next(&mut self, frame: FrameId, next: Option<FrameId>) {
        self.next[frame.0 as usize] = next.map_or(NONE, |next| next.0);
    }

    /// The frame `steps` after `frame`, which must exist.
    #[inline]
    pub(super) fn nth(&self, mut frame: FrameId, steps: usize) -> FrameId {
        for _ in 0..steps {
            frame = FrameId(self.next[frame.0 as usize]);
        }
        frame
    }

    /// Bytes beside the pages in use: tables, and the free frames of arenas.
    pub(super) fn heap_bytes(&self) -> usize {
        let arenas = self
            .arenas
            .iter()
            .map(|arena| size_of_val(&**arena))
            .sum::<usize>();
        arenas - self.live * size_of::<Page>()
            + self.arenas.capacity() * size_of::<Box<[Page]>>()
            + self.free.capacity() * size_of::<u16>()
            + self.next.capacity() * size_of::<u32>()
            + self.lists.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arenas_are_given_back_but_for_a_spare_one() {
        let mut frames = Frames::default();
        let all: Vec<FrameId> = (0..40).map(|_| frames.alloc()).collect();
        assert!(all.iter().map(|frame| frame.0).eq(0..40));
        for frame in &all[..32] {
            frames.free(*frame);
        }
        let kept: Vec<usize> = frames.arenas.iter().map(|arena| arena.len()).collect();
        assert_eq!((frames.len(), kept), (8, vec![16, 0, 16]));
        // The arena with frames in use has eight left; then the spare one,
        // then the number that has no memory.
        for number in (40..48).chain(0..32) {
            assert_eq!(frames.alloc(), FrameId(number));
        }
        frames.free(FrameId(20));
        assert_eq!(frames.alloc(), FrameId(20));
    }
}
