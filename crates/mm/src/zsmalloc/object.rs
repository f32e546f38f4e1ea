//! The bytes of objects.
//!
//! Where an object is follows from its number: object *i* of a class begins
//! *i* × size bytes into the chained pages. Sizes are multiples of 16, so the
//! eight bytes in front never straddle two pages, but the payload may.

use super::ZS_HANDLE_SIZE;
use super::class::SizeClass;
use super::frames::{FrameId, Frames};
use super::pool::{ZsHandle, ZsPool, ZspageId};
use crate::page::{PAGE_SHIFT, PAGE_SIZE};

/// Bits of a location word that hold the object's number. The longest chain
/// has 16 × 4096 / 48 = 1365 objects.
const OBJ_INDEX_BITS: u32 = 11;
/// Set in the first word of an allocated object.
const OBJ_ALLOCATED_TAG: u64 = 1;
/// How far a link or a handle is shifted to make room for the tag.
const OBJ_TAG_BITS: u32 = 1;
/// The end of a free list.
pub(super) const FREELIST_END: u16 = u16::MAX;

/// Where an object is, as a handle's word has it: the frame it begins on, its
/// zspage, and its number there. The zspage could be looked up through the
/// frame; with both in the word the two records are fetched at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Obj {
    frame: u32,
    zspage_and_object: u32,
}

impl Obj {
    /// The word of a handle that stands for nothing.
    pub(super) const NONE: Obj = Obj {
        frame: u32::MAX,
        zspage_and_object: u32::MAX,
    };

    /// Zspages a pool can have.
    pub(super) const MAX_ZSPAGES: usize = 1 << (u32::BITS - OBJ_INDEX_BITS);

    pub(super) fn new(frame: FrameId, zspage: ZspageId, object: u16) -> Self {
        Obj {
            frame: frame.0,
            zspage_and_object: zspage.0 << OBJ_INDEX_BITS | u32::from(object),
        }
    }

    #[inline]
    pub(super) fn frame(self) -> FrameId {
        FrameId(self.frame)
    }

    #[inline]
    pub(super) fn zspage(self) -> ZspageId {
        ZspageId(self.zspage_and_object >> OBJ_INDEX_BITS)
    }

    #[inline]
    pub(super) fn object(self) -> u16 {
        (self.zspage_and_object & ((1 << OBJ_INDEX_BITS) - 1)) as u16
    }
}

/// The part of memory an object's payload covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjSpan {
    /// The frame the payload begins on.
    pub frame: FrameId,
    /// Where on that frame, in bytes.
    pub offset: usize,
    /// Bytes on that frame.
    pub length: usize,
    /// The frame the rest is on, from its first byte on, and how many bytes
    /// that is.
    pub rest: Option<(FrameId, usize)>,
}

/// Page of the zspage, and byte on that page, at which an object begins.
#[inline]
pub(super) fn page_and_offset(size: u16, object: u16) -> (usize, usize) {
    let byte = usize::from(size) * usize::from(object);
    (byte >> PAGE_SHIFT, byte & (PAGE_SIZE - 1))
}

/// The first word of an object.
#[inline]
pub(super) fn header(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; ZS_HANDLE_SIZE];
    word.copy_from_slice(&bytes[offset..offset + ZS_HANDLE_SIZE]);
    u64::from_le_bytes(word)
}

#[inline]
pub(super) fn set_header(bytes: &mut [u8], offset: usize, word: u64) {
    bytes[offset..offset + ZS_HANDLE_SIZE].copy_from_slice(&word.to_le_bytes());
}

#[inline]
pub(super) fn allocated_word(handle: ZsHandle) -> u64 {
    u64::from(handle.0) << OBJ_TAG_BITS | OBJ_ALLOCATED_TAG
}

#[inline]
pub(super) fn free_word(next: u16) -> u64 {
    u64::from(next) << OBJ_TAG_BITS
}

/// The handle in an object's first word, if the object is allocated.
pub(super) fn handle_in(word: u64) -> Option<ZsHandle> {
    (word & OBJ_ALLOCATED_TAG != 0).then_some(ZsHandle((word >> OBJ_TAG_BITS) as u32))
}

/// The link in a free object's first word.
pub(super) fn link_in(word: u64) -> u16 {
    (word >> OBJ_TAG_BITS) as u16
}

/// The span of the first `length` bytes of an object's payload.
fn span(frames: &Frames, class: &SizeClass, obj: Obj, length: usize) -> ObjSpan {
    assert!(
        length <= class.payload_bytes(),
        "{length} bytes for an object of class {}: it holds {}",
        class.index,
        class.payload_bytes()
    );
    let (_, begin) = page_and_offset(class.size, obj.object());
    let offset = begin + class.header_bytes();
    let on_first = length.min(PAGE_SIZE - offset);
    let rest = if on_first == length {
        None
    } else {
        frames
            .next(obj.frame())
            .map(|next| (next, length - on_first))
    };
    ObjSpan {
        frame: obj.frame(),
        offset,
        length: on_first,
        rest,
    }
}

/// Copies the first `length` bytes of one object's payload to another of the
/// same class, and the first word with it.
pub(super) fn copy_object(frames: &mut Frames, class: &SizeClass, from: Obj, to: Obj) {
    let mut bytes = Vec::with_capacity(usize::from(class.size));
    let source = span(frames, class, from, class.payload_bytes());
    bytes.extend_from_slice(&frames.bytes(source.frame)[source.offset..][..source.length]);
    if let Some((frame, length)) = source.rest {
        bytes.extend_from_slice(&frames.bytes(frame)[..length]);
    }
    write_payload(frames, class, to, &bytes);
}

fn write_payload(frames: &mut Frames, class: &SizeClass, obj: Obj, bytes: &[u8]) {
    let target = span(frames, class, obj, bytes.len());
    let (first, second) = bytes.split_at(target.length);
    frames.bytes_mut(target.frame)[target.offset..][..first.len()].copy_from_slice(first);
    if let Some((frame, length)) = target.rest {
        frames.bytes_mut(frame)[..length].copy_from_slice(second);
    }
}

/// Two parts as one: the first alone, or both copied.
pub(crate) fn in_one_piece<'a>(parts: [&'a [u8]; 2], local_copy: &'a mut Vec<u8>) -> &'a [u8] {
    let [first, second] = parts;
    if second.is_empty() {
        return first;
    }
    local_copy.clear();
    local_copy.extend_from_slice(first);
    local_copy.extend_from_slice(second);
    local_copy
}

impl ZsPool {
    /// Writes to the beginning of an object.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is too short.
    pub fn zs_obj_write(&mut self, handle: ZsHandle, bytes: &[u8]) {
        let obj = self.obj(handle);
        let class = *self.class_of(obj);
        write_payload(&mut self.frames, &class, obj, bytes);
    }

    /// Reads everything an object can hold: what was written, and behind it
    /// whatever is in the rest of the object.
    ///
    /// # Panics
    ///
    /// If the handle was freed.
    pub fn zs_obj_read(&self, handle: ZsHandle, dst: &mut Vec<u8>) {
        let length = self.class_of(self.obj(handle)).payload_bytes();
        dst.clear();
        for part in self.zs_obj_read_sg(handle, length) {
            dst.extend_from_slice(part);
        }
    }

    /// The first `length` bytes of an object where they are: on one page or
    /// on two. The second part is empty if they are on one.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn zs_obj_read_sg(&self, handle: ZsHandle, length: usize) -> [&[u8]; 2] {
        let span = self.object_span(handle, length);
        let first = &self.frames.bytes(span.frame)[span.offset..][..span.length];
        let second = span.rest.map_or(&[][..], |(frame, length)| {
            &self.frames.bytes(frame)[..length]
        });
        [first, second]
    }

    /// The first `length` bytes of an object in one piece: borrowed from the
    /// page, or copied to `local_copy` if they are on two pages.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn zs_obj_read_begin<'a>(
        &'a self,
        handle: ZsHandle,
        length: usize,
        local_copy: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        in_one_piece(self.zs_obj_read_sg(handle, length), local_copy)
    }

    /// Which bytes of which frames the first `length` bytes of an object are.
    ///
    /// # Panics
    ///
    /// If the handle was freed or the object is shorter.
    pub fn object_span(&self, handle: ZsHandle, length: usize) -> ObjSpan {
        let obj = self.obj(handle);
        span(&self.frames, self.class_of(obj), obj, length)
    }
}
