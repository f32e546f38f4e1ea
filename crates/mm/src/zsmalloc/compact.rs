//! Compaction and page migration.
//!
//! Freeing objects at random leaves zspages half empty. Compaction moves the
//! objects of the emptiest zspages of a class into the fullest ones and frees
//! what becomes empty. Migration moves one page of a zspage to another frame,
//! as memory hot-unplug and the page compactor ask for. Both keep every
//! handle valid.
//!
//! 1. Compaction of a class frees exactly the pages
//!    [`zs_can_compact`](ZsPool::zs_can_compact) says, unless a pin stops it.
//! 2. Neither changes an object's bytes or how many objects there are.
//! 3. A pinned zspage is neither emptied nor migrated.

use super::class::ClassIndex;
use super::frames::{FrameId, NONE};
use super::fullness::FullnessGroup;
use super::object::{Obj, copy_object, page_and_offset};
use super::pool::{ZsPool, ZspageId};
use crate::fault::{AllocError, AllocSite};

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Pages given back.
    pub pages_freed: u64,
    /// Objects that moved.
    pub objects_moved: u64,
}

impl std::ops::AddAssign for Compaction {
    fn add_assign(&mut self, other: Self) {
        self.pages_freed += other.pages_freed;
        self.objects_moved += other.objects_moved;
    }
}

/// Why a page could not be migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// There is no such page.
    #[error("zspage {zspage} has no page {page}")]
    NoSuchPage {
        /// The zspage asked for.
        zspage: u32,
        /// The page asked for.
        page: usize,
    },
    /// Somebody reads an object of the zspage (`-EINVAL` of the trylock).
    #[error("zspage {zspage} is pinned: an object of it is being read")]
    Pinned {
        /// The zspage asked for.
        zspage: u32,
    },
    /// No frame to move to.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

impl ZsPool {
    /// Pages that compaction of a class would free: unused objects in whole
    /// zspages.
    pub fn zs_can_compact(&self, class: ClassIndex) -> u64 {
        self.classes
            .position_of_slot(class)
            .map_or(0, |position| self.can_compact(position))
    }

    fn can_compact(&self, class: usize) -> u64 {
        let table = &self.classes.classes()[class];
        let lists = &self.lists[class];
        let unused = lists.objs_allocated - lists.objs_inuse;
        unused / u64::from(table.objs_per_zspage) * u64::from(table.pages_per_zspage)
    }

    /// Compacts all classes, the largest first.
    pub fn zs_compact(&mut self) -> Compaction {
        let mut total = Compaction::default();
        for class in (0..self.lists.len()).rev() {
            total += self.compact_position(class);
        }
        total
    }

    /// Compacts one class.
    pub fn zs_compact_class(&mut self, class: ClassIndex) -> Compaction {
        match self.classes.position_of_slot(class) {
            Some(position) => self.compact_position(position),
            None => Compaction::default(),
        }
    }

    fn compact_position(&mut self, class: usize) -> Compaction {
        let mut done = Compaction::default();
        let mut destination = None;
        while self.can_compact(class) > 0 {
            let dst = match destination {
                Some(dst) => dst,
                None => match self.isolate_dst_zspage(class) {
                    Some(dst) => dst,
                    None => break,
                },
            };
            destination = Some(dst);
            let Some(src) = self.isolate_src_zspage(class) else {
                break;
            };
            if self.zspages[src.0].pins > 0 {
                self.putback(src);
                break;
            }
            done.objects_moved += self.migrate_zspage(src, dst);
            if self.putback(src) == FullnessGroup::EMPTY {
                done.pages_freed += u64::from(self.classes.classes()[class].pages_per_zspage);
                self.free_zspage(src);
            }
            if self.free_objects(dst) == 0 {
                self.putback(dst);
                destination = None;
            }
        }
        if let Some(dst) = destination {
            self.putback(dst);
        }
        self.counters.pages_compacted += done.pages_freed;
        self.counters.objects_moved += done.objects_moved;
        done
    }

    fn free_objects(&self, zspage: ZspageId) -> u16 {
        let record = &self.zspages[zspage.0];
        self.classes.classes()[usize::from(record.class)].objs_per_zspage - record.inuse
    }

    /// The fullest zspage that has room, out of its list.
    fn isolate_dst_zspage(&mut self, class: usize) -> Option<ZspageId> {
        let groups = (1..self.fullness.full().0).rev();
        self.isolate_first(class, groups)
    }

    /// The emptiest zspage that has objects, out of its list.
    fn isolate_src_zspage(&mut self, class: usize) -> Option<ZspageId> {
        self.isolate_first(class, 1..self.fullness.full().0)
    }

    fn isolate_first(
        &mut self,
        class: usize,
        mut groups: impl Iterator<Item = u8>,
    ) -> Option<ZspageId> {
        let zspage = groups.find_map(|group| self.head(class, FullnessGroup(group)))?;
        self.isolate(zspage);
        Some(zspage)
    }

    /// Moves objects in order of their numbers until the source is empty or
    /// the destination full.
    fn migrate_zspage(&mut self, src: ZspageId, dst: ZspageId) -> u64 {
        let class = self.classes.classes()[usize::from(self.zspages[src.0].class)];
        let mut moved = 0;
        for object in 0..class.objs_per_zspage {
            if self.free_objects(dst) == 0 || self.zspages[src.0].inuse == 0 {
                break;
            }
            let Some(handle) = self.handle_of(src, object) else {
                continue;
            };
            let from = self.obj(handle);
            let to = self.obj_malloc(dst, handle);
            copy_object(&mut self.frames, &class, from, to);
            self.obj_free(src, from, handle);
            moved += 1;
        }
        moved
    }

    /// Moves page number `page` of a zspage to a new frame
    /// (`zs_page_migrate`) and returns that frame.
    ///
    /// # Errors
    ///
    /// [`MigrateError`]; the zspage is unchanged then.
    pub fn zs_page_migrate(
        &mut self,
        zspage: ZspageId,
        page: usize,
    ) -> Result<FrameId, MigrateError> {
        let exists = zspage.0 < self.zspages.numbers() && self.zspages[zspage.0].first != NONE;
        let chain = if exists {
            self.chain(zspage)
        } else {
            Vec::new()
        };
        let no_such_page = MigrateError::NoSuchPage {
            zspage: zspage.0,
            page,
        };
        let old = *chain.get(page).ok_or(no_such_page)?;
        if self.zspages[zspage.0].pins > 0 {
            return Err(MigrateError::Pinned { zspage: zspage.0 });
        }
        self.faults
            .check(AllocSite::PageFrame)
            .map_err(MigrateError::Alloc)?;
        let new = self.frames.alloc();
        self.move_frame(zspage, &chain, page, new);
        self.rewrite_handles(zspage, page, new);
        self.frames.free(old);
        self.counters.pages_migrated += 1;
        Ok(new)
    }

    /// Copies a frame and puts the copy in its place in the chain.
    fn move_frame(&mut self, zspage: ZspageId, chain: &[FrameId], page: usize, new: FrameId) {
        let bytes = self.frames.bytes(chain[page]).to_vec();
        self.frames.bytes_mut(new).copy_from_slice(&bytes);
        self.frames.set_next(new, chain.get(page + 1).copied());
        match page.checked_sub(1) {
            None => self.zspages[zspage.0].first = new.0,
            Some(before) => self.frames.set_next(chain[before], Some(new)),
        }
    }

    /// Lets the handles of all objects that begin on a page say the new frame.
    fn rewrite_handles(&mut self, zspage: ZspageId, page: usize, new: FrameId) {
        let class = self.classes.classes()[usize::from(self.zspages[zspage.0].class)];
        for object in 0..class.objs_per_zspage {
            if page_and_offset(class.size, object).0 != page {
                continue;
            }
            if let Some(handle) = self.handle_of(zspage, object) {
                self.handles[handle.0] = Obj::new(new, zspage, object);
            }
        }
    }

    /// Holds the pages of a zspage in place, as a reader of one of its
    /// objects does.
    ///
    /// # Panics
    ///
    /// If more than 255 readers hold it.
    pub fn pin_zspage(&mut self, zspage: ZspageId) {
        let pins = &mut self.zspages[zspage.0].pins;
        *pins = pins.checked_add(1).expect("at most 255 pins on a zspage");
    }

    /// Gives up a pin.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn unpin_zspage(&mut self, zspage: ZspageId) {
        let pins = &mut self.zspages[zspage.0].pins;
        *pins = pins.checked_sub(1).expect("the zspage is pinned");
    }

    /// Frees the zspages that [`zs_free`](Self::zs_free) had to leave, empty,
    /// because they were pinned. Those that have objects again or are still
    /// pinned stay.
    pub fn async_free_zspage(&mut self) {
        for zspage in std::mem::take(&mut self.deferred) {
            let record = &self.zspages[zspage.0];
            if record.first == NONE || record.inuse > 0 || self.deferred.contains(&zspage) {
                continue;
            }
            if record.pins > 0 {
                self.deferred.push(zspage);
            } else {
                self.free_zspage(zspage);
            }
        }
    }
}
