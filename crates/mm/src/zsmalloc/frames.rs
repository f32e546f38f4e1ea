//! Page frames: the memory zspages are made of.
//!
//! 1. A frame belongs to one zspage and is followed by at most one frame.
//! 2. Freeing a frame returns its memory.

use super::pool::ZspageId;
use crate::page::Page;
use crate::slab::Slab;

/// Number of a page frame within its pool, as a PFN is within a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// No frame, no zspage.
pub(super) const NONE: u32 = u32::MAX;

/// What the kernel keeps in a page's descriptor.
#[derive(Clone, Debug)]
struct Frame {
    /// The bytes; none while the number is not in use.
    page: Option<Box<Page>>,
    zspage: ZspageId,
    next: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    frames: Slab<Frame>,
}

impl Frames {
    pub(super) fn alloc(&mut self) -> FrameId {
        let page = Some(Box::new(Page::zeroed()));
        FrameId(self.frames.insert(Frame {
            page,
            zspage: ZspageId(NONE),
            next: NONE,
        }))
    }

    pub(super) fn free(&mut self, frame: FrameId) {
        self.frames[frame.0].page = None;
        self.frames.release(frame.0);
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    #[inline]
    pub(super) fn bytes(&self, frame: FrameId) -> &[u8] {
        self.frames[frame.0]
            .page
            .as_ref()
            .expect("the frame is in use")
            .bytes()
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, frame: FrameId) -> &mut [u8] {
        self.frames[frame.0]
            .page
            .as_mut()
            .expect("the frame is in use")
            .bytes_mut()
    }

    #[inline]
    pub(super) fn zspage(&self, frame: FrameId) -> ZspageId {
        self.frames[frame.0].zspage
    }

    pub(super) fn next(&self, frame: FrameId) -> Option<FrameId> {
        let next = self.frames[frame.0].next;
        (next != NONE).then_some(FrameId(next))
    }

    pub(super) fn set_zspage(&mut self, frame: FrameId, zspage: ZspageId) {
        self.frames[frame.0].zspage = zspage;
    }

    pub(super) fn set_next(&mut self, frame: FrameId, next: Option<FrameId>) {
        self.frames[frame.0].next = next.map_or(NONE, |next| next.0);
    }

    /// The frame `steps` after `frame`, which must exist.
    #[inline]
    pub(super) fn nth(&self, mut frame: FrameId, steps: usize) -> FrameId {
        for _ in 0..steps {
            frame = FrameId(self.frames[frame.0].next);
        }
        frame
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.frames.heap_bytes()
    }
}
