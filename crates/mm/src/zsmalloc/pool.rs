//! A zsmalloc pool: zspages, handles, `zs_malloc` and `zs_free`.
//!
//! ```
//! use zswap_mm::{ZsPool, ZsPoolOptions};
//!
//! let mut pool = ZsPool::new("zswap0", ZsPoolOptions::default())?;
//! let handle = pool.zs_malloc(1000)?;
//! pool.zs_obj_write(handle, &[7; 1000]);
//! assert_eq!(pool.zs_obj_read_sg(handle, 1000)[0], [7; 1000]);
//! assert_eq!(pool.pages_allocated(), 1);
//! pool.zs_free(handle);
//! assert_eq!(pool.pages_allocated(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::class::{ChainRule, ChainSizeError, ClassIndex, SizeClass, SizeClasses};
use super::frames::{FrameId, Frames, NONE};
use super::fullness::{FullnessGroup, FullnessRule};
use super::object::{
    FREELIST_END, Obj, allocated_word, free_word, header, link_in, page_and_offset, set_header,
};
use super::stats::PoolCounters;
use crate::fault::{AllocError, AllocSite, Failslab};
use crate::slab::Slab;

/// Names an object. Valid from [`ZsPool::zs_malloc`] to [`ZsPool::zs_free`],
/// wherever the object moves meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZsHandle(pub u32);

/// Number of a zspage within its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZspageId(pub u32);

/// Where an object is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjLocation {
    /// Its size class.
    pub class: ClassIndex,
    /// Its zspage.
    pub zspage: ZspageId,
    /// Its number within the zspage.
    pub object: u16,
}

/// How a pool is set up.
#[derive(Clone, Debug)]
pub struct ZsPoolOptions {
    /// Longest chain, in pages: 4 to 16 (`CONFIG_ZSMALLOC_CHAIN_SIZE`).
    pub chain_size: u8,
    /// How chains are chosen.
    pub rule: ChainRule,
    /// How many fullness groups there are.
    pub fullness: FullnessRule,
    /// Which allocations fail.
    pub faults: Failslab,
}

impl Default for ZsPoolOptions {
    /// What a kernel since 6.3 does by default; nothing fails.
    fn default() -> Self {
        ZsPoolOptions {
            chain_size: SizeClasses::DEFAULT_CHAIN_SIZE,
            rule: ChainRule::Current,
            fullness: FullnessRule::Twelve,
            faults: Failslab::never(),
        }
    }
}

/// Why a pool could not be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZsPoolError {
    /// The chain size is impossible.
    #[error(transparent)]
    ChainSize(#[from] ChainSizeError),
    /// No memory for the pool.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// A chain of pages of one class.
#[derive(Clone, Debug)]
pub(super) struct Zspage {
    /// First frame of the chain; [`NONE`] while the number is not in use.
    pub(super) first: u32,
    /// Neighbours in the fullness list.
    next: u32,
    prev: u32,
    /// Head of the free list.
    freeobj: u16,
    pub(super) inuse: u16,
    /// Position of the class in the table.
    pub(super) class: u8,
    pub(super) fullness: FullnessGroup,
    /// How many hold a page of it locked: it can be neither freed nor moved.
    pub(super) pins: u8,
    /// The handle of a huge object, which has no room for it.
    huge_handle: u32,
}

/// The zspages of one class.
#[derive(Clone, Debug)]
pub(super) struct ClassLists {
    /// A bit for each group with zspages.
    present: u16,
    heads: [u32; FullnessGroup::MAX_GROUPS],
    pub(super) zspages: [u32; FullnessGroup::MAX_GROUPS],
    pub(super) objs_inuse: u64,
    pub(super) objs_allocated: u64,
}

/// What there is to see of a zspage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZspageView {
    /// Its number.
    pub id: ZspageId,
    /// Its class.
    pub class: ClassIndex,
    /// Its fullness group.
    pub fullness: FullnessGroup,
    /// Objects allocated.
    pub inuse: u16,
    /// The frames of the chain, in order.
    pub frames: Vec<FrameId>,
    /// For each object its handle, or none if it is free.
    pub objects: Vec<Option<ZsHandle>>,
}

/// A zsmalloc pool.
#[derive(Clone, Debug)]
pub struct ZsPool {
    name: String,
    pub(super) classes: SizeClasses,
    pub(super) fullness: FullnessRule,
    pub(super) faults: Failslab,
    pub(super) lists: Vec<ClassLists>,
    pub(super) zspages: Slab<Zspage>,
    pub(super) frames: Frames,
    pub(super) handles: Slab<Obj>,
    pub(super) counters: PoolCounters,
    /// Empty zspages that could not be freed because a page was locked.
    pub(super) deferred: Vec<ZspageId>,
}

impl ZsPool {
    /// Creates a pool (`zs_create_pool`).
    ///
    /// # Errors
    ///
    /// [`ZsPoolError`] if the chain size is not 4 to 16 pages or a failure is
    /// injected at [`AllocSite::Zpool`].
    pub fn new(name: impl Into<String>, mut options: ZsPoolOptions) -> Result<Self, ZsPoolError> {
        let classes = SizeClasses::new(options.chain_size, options.rule)?;
        options.faults.check(AllocSite::Zpool)?;
        let lists = ClassLists {
            present: 0,
            heads: [NONE; FullnessGroup::MAX_GROUPS],
            zspages: [0; FullnessGroup::MAX_GROUPS],
            objs_inuse: 0,
            objs_allocated: 0,
        };
        Ok(ZsPool {
            name: name.into(),
            lists: vec![lists; classes.classes().len()],
            classes,
            fullness: options.fullness,
            faults: options.faults,
            zspages: Slab::default(),
            frames: Frames::default(),
            handles: Slab::default(),
            counters: PoolCounters::default(),
            deferred: Vec::new(),
        })
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The size classes of the pool.
    pub fn classes(&self) -> &SizeClasses {
        &self.classes
    }

    /// How zspages are grouped by fullness.
    pub fn fullness_rule(&self) -> FullnessRule {
        self.fullness
    }

    /// The injector asked before each allocation.
    pub fn faults(&self) -> &Failslab {
        &self.faults
    }

    /// Replaces the injector.
    pub fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }

    /// Allocates an object of `size` bytes.
    ///
    /// # Errors
    ///
    /// [`AllocError::Empty`] for 0 bytes, [`AllocError::TooLarge`] for more
    /// than 4096, [`AllocError::NoMemory`] if a failure is injected,
    /// [`AllocError::Busy`] with two million zspages. The pool is unchanged
    /// then.
    pub fn zs_malloc(&mut self, size: usize) -> Result<ZsHandle, AllocError> {
        let class = self.classes.position_for(size)?;
        self.faults.check(AllocSite::ZsHandle)?;
        let zspage = match self.find_get_zspage(class) {
            Some(zspage) => zspage,
            None => self.alloc_zspage(class)?,
        };
        let handle = ZsHandle(self.handles.insert(Obj::NONE));
        self.obj_malloc(zspage, handle);
        self.fix_fullness_group(zspage);
        Ok(handle)
    }

    /// Frees an object, and its zspage if it was the last one there.
    ///
    /// A zspage with a pinned page stays, empty, until
    /// [`async_free_zspage`](Self::async_free_zspage).
    ///
    /// # Panics
    ///
    /// If the handle was freed before.
    pub fn zs_free(&mut self, handle: ZsHandle) {
        let obj = self.obj(handle);
        let zspage = obj.zspage();
        self.obj_free(zspage, obj, handle);
        self.handles[handle.0] = Obj::NONE;
        self.handles.release(handle.0);
        self.fix_fullness_group(zspage);
        if self.zspages[zspage.0].inuse == 0 {
            if self.zspages[zspage.0].pins == 0 {
                self.free_zspage(zspage);
            } else {
                self.deferred.push(zspage);
            }
        }
    }

    /// Where an object is.
    ///
    /// # Panics
    ///
    /// If the handle was freed.
    pub fn location(&self, handle: ZsHandle) -> ObjLocation {
        let obj = self.obj(handle);
        ObjLocation {
            class: self.class_of(obj).index,
            zspage: obj.zspage(),
            object: obj.object(),
        }
    }

    /// Whether a handle stands for an object.
    pub fn is_allocated(&self, handle: ZsHandle) -> bool {
        handle.0 < self.handles.numbers() && self.handles[handle.0] != Obj::NONE
    }

    /// Objects allocated.
    pub fn objects(&self) -> usize {
        self.handles.len()
    }

    /// Page frames held (`zs_get_total_pages`).
    pub fn pages_allocated(&self) -> u64 {
        self.counters.pages_allocated
    }

    /// Numbers of all zspages, ascending.
    pub fn zspages(&self) -> impl Iterator<Item = ZspageId> + '_ {
        (0..self.zspages.numbers())
            .filter(|number| self.zspages[*number].first != NONE)
            .map(ZspageId)
    }

    /// What there is to see of a zspage; none if the number is not in use.
    pub fn zspage(&self, id: ZspageId) -> Option<ZspageView> {
        if id.0 >= self.zspages.numbers() || self.zspages[id.0].first == NONE {
            return None;
        }
        let zspage = &self.zspages[id.0];
        let class = &self.classes.classes()[usize::from(zspage.class)];
        let frames = self.chain(id);
        let objects = (0..class.objs_per_zspage)
            .map(|object| self.handle_of(id, object))
            .collect();
        Some(ZspageView {
            id,
            class: class.index,
            fullness: zspage.fullness,
            inuse: zspage.inuse,
            frames,
            objects,
        })
    }

    /// The zspages of a class and fullness group in list order: the first
    /// one is allocated from.
    pub fn fullness_list(&self, class: ClassIndex, group: FullnessGroup) -> Vec<ZspageId> {
        let mut ids = Vec::new();
        let position = self.classes.position_of_slot(class);
        let mut at = position.map_or(NONE, |position| {
            self.lists[position]
                .heads
                .get(usize::from(group.0))
                .copied()
                .unwrap_or(NONE)
        });
        while at != NONE {
            ids.push(ZspageId(at));
            at = self.zspages[at].next;
        }
        ids
    }

    /// The word of a handle.
    #[inline]
    pub(super) fn obj(&self, handle: ZsHandle) -> Obj {
        let obj = self.handles[handle.0];
        assert!(obj != Obj::NONE, "handle {} was freed before", handle.0);
        obj
    }

    #[inline]
    pub(super) fn class_of(&self, obj: Obj) -> &SizeClass {
        &self.classes.classes()[usize::from(self.zspages[obj.zspage().0].class)]
    }

    /// The frames of a zspage, in order.
    pub(super) fn chain(&self, zspage: ZspageId) -> Vec<FrameId> {
        let first = FrameId(self.zspages[zspage.0].first);
        std::iter::successors(Some(first), |frame| self.frames.next(*frame)).collect()
    }

    /// Where an object of a zspage begins.
    #[inline]
    pub(super) fn object_at(&self, zspage: ZspageId, object: u16) -> (FrameId, usize) {
        let record = &self.zspages[zspage.0];
        let size = self.classes.classes()[usize::from(record.class)].size;
        let (page, offset) = page_and_offset(size, object);
        (self.frames.nth(FrameId(record.first), page), offset)
    }

    /// The handle of an object of a zspage, if it is allocated.
    pub(super) fn handle_of(&self, zspage: ZspageId, object: u16) -> Option<ZsHandle> {
        let record = &self.zspages[zspage.0];
        if self.classes.classes()[usize::from(record.class)].is_huge() {
            return (record.huge_handle != NONE).then_some(ZsHandle(record.huge_handle));
        }
        let (frame, offset) = self.object_at(zspage, object);
        super::object::handle_in(header(self.frames.bytes(frame), offset))
    }

    /// The fullest zspage of a class that has room.
    #[inline]
    fn find_get_zspage(&self, class: usize) -> Option<ZspageId> {
        let lists = &self.lists[class];
        let with_room = lists.present & !(u16::MAX << self.fullness.full().0);
        let fullest = with_room.checked_ilog2()?;
        Some(ZspageId(lists.heads[fullest as usize]))
    }

    /// Gives a free object of a zspage to a handle.
    #[inline]
    pub(super) fn obj_malloc(&mut self, zspage: ZspageId, handle: ZsHandle) -> Obj {
        let object = self.zspages[zspage.0].freeobj;
        let (frame, offset) = self.object_at(zspage, object);
        let record = &mut self.zspages[zspage.0];
        let class = usize::from(record.class);
        if self.classes.classes()[class].is_huge() {
            record.freeobj = FREELIST_END;
            record.huge_handle = handle.0;
        } else {
            let bytes = self.frames.bytes_mut(frame);
            record.freeobj = link_in(header(bytes, offset));
            set_header(bytes, offset, allocated_word(handle));
        }
        record.inuse += 1;
        self.lists[class].objs_inuse += 1;
        let obj = Obj::new(frame, zspage, object);
        self.handles[handle.0] = obj;
        obj
    }

    /// Puts an object back on its zspage's free list.
    #[inline]
    pub(super) fn obj_free(&mut self, zspage: ZspageId, obj: Obj, handle: ZsHandle) {
        let record = &mut self.zspages[zspage.0];
        let class = usize::from(record.class);
        let table = &self.classes.classes()[class];
        if table.is_huge() {
            record.huge_handle = NONE;
        } else {
            let (_, offset) = page_and_offset(table.size, obj.object());
            let bytes = self.frames.bytes_mut(obj.frame());
            debug_assert_eq!(header(bytes, offset), allocated_word(handle));
            set_header(bytes, offset, free_word(record.freeobj));
        }
        record.freeobj = obj.object();
        record.inuse -= 1;
        self.lists[class].objs_inuse -= 1;
    }

    /// Moves a zspage to the list its fullness asks for.
    #[inline]
    pub(super) fn fix_fullness_group(&mut self, zspage: ZspageId) {
        let record = &self.zspages[zspage.0];
        let objs = self.classes.classes()[usize::from(record.class)].objs_per_zspage;
        let group = self.fullness.group(record.inuse, objs);
        if group != record.fullness {
            self.unlink(zspage);
            self.link(zspage, group);
        }
    }

    /// Takes a zspage out of its list, for compaction to work on.
    pub(super) fn isolate(&mut self, zspage: ZspageId) {
        self.unlink(zspage);
    }

    /// Puts an isolated zspage back where its fullness belongs.
    pub(super) fn putback(&mut self, zspage: ZspageId) -> FullnessGroup {
        let record = &self.zspages[zspage.0];
        let objs = self.classes.classes()[usize::from(record.class)].objs_per_zspage;
        let group = self.fullness.group(record.inuse, objs);
        self.link(zspage, group);
        group
    }

    /// First zspage of a list.
    pub(super) fn head(&self, class: usize, group: FullnessGroup) -> Option<ZspageId> {
        let head = self.lists[class].heads[usize::from(group.0)];
        (head != NONE).then_some(ZspageId(head))
    }

    /// Puts a zspage at the head of a list.
    fn link(&mut self, zspage: ZspageId, group: FullnessGroup) {
        let record = &mut self.zspages[zspage.0];
        let lists = &mut self.lists[usize::from(record.class)];
        let head = &mut lists.heads[usize::from(group.0)];
        record.fullness = group;
        record.prev = NONE;
        record.next = *head;
        let second = std::mem::replace(head, zspage.0);
        lists.present |= 1 << group.0;
        lists.zspages[usize::from(group.0)] += 1;
        if second != NONE {
            self.zspages[second].prev = zspage.0;
        }
    }

    fn unlink(&mut self, zspage: ZspageId) {
        let record = &self.zspages[zspage.0];
        let (class, group) = (usize::from(record.class), usize::from(record.fullness.0));
        let (next, prev) = (record.next, record.prev);
        if prev == NONE {
            let lists = &mut self.lists[class];
            lists.heads[group] = next;
            if next == NONE {
                lists.present &= !(1 << group);
            }
        } else {
            self.zspages[prev].next = next;
        }
        if next != NONE {
            self.zspages[next].prev = prev;
        }
        self.lists[class].zspages[group] -= 1;
    }

    /// Allocates a zspage, page by page; if one page cannot be had, those
    /// before it are given back.
    fn alloc_zspage(&mut self, class: usize) -> Result<ZspageId, AllocError> {
        let table = self.classes.classes()[class];
        self.faults.check(AllocSite::Zspage)?;
        if self.zspages.len() == Obj::MAX_ZSPAGES {
            return Err(AllocError::Busy {
                what: "zspages of a pool",
                max: Obj::MAX_ZSPAGES,
            });
        }
        let mut chain: Vec<FrameId> = Vec::with_capacity(usize::from(table.pages_per_zspage));
        for _ in 0..table.pages_per_zspage {
            if let Err(error) = self.faults.check(AllocSite::PageFrame) {
                for frame in chain.into_iter().rev() {
                    self.frames.free(frame);
                }
                return Err(error);
            }
            chain.push(self.frames.alloc());
        }
        let zspage = ZspageId(self.zspages.insert(Zspage {
            first: chain[0].0,
            next: NONE,
            prev: NONE,
            freeobj: 0,
            inuse: 0,
            class: class as u8,
            fullness: FullnessGroup::EMPTY,
            pins: 0,
            huge_handle: NONE,
        }));
        for (at, frame) in chain.iter().enumerate() {
            self.frames.set_next(*frame, chain.get(at + 1).copied());
        }
        self.init_zspage(&table, &chain);
        self.link(zspage, FullnessGroup::EMPTY);
        self.lists[class].objs_allocated += u64::from(table.objs_per_zspage);
        self.counters.pages_allocated += chain.len() as u64;
        Ok(zspage)
    }

    /// Chains all objects of a new zspage in order.
    fn init_zspage(&mut self, class: &SizeClass, chain: &[FrameId]) {
        if class.is_huge() {
            return;
        }
        for object in 0..class.objs_per_zspage {
            let (page, offset) = page_and_offset(class.size, object);
            let next = if object + 1 == class.objs_per_zspage {
                FREELIST_END
            } else {
                object + 1
            };
            set_header(self.frames.bytes_mut(chain[page]), offset, free_word(next));
        }
    }

    /// Frees an empty zspage and its pages.
    pub(super) fn free_zspage(&mut self, zspage: ZspageId) {
        let class = usize::from(self.zspages[zspage.0].class);
        let chain = self.chain(zspage);
        self.unlink(zspage);
        // Last page first: the frame table gives the first one out again first.
        for frame in chain.iter().rev() {
            self.frames.free(*frame);
        }
        self.zspages[zspage.0].first = NONE;
        self.zspages.release(zspage.0);
        let objs = self.classes.classes()[class].objs_per_zspage;
        self.lists[class].objs_allocated -= u64::from(objs);
        self.counters.pages_allocated -= chain.len() as u64;
    }
}
