//! Counters, in the columns of `/sys/kernel/debug/zsmalloc/<pool>/classes`.

use super::class::ClassIndex;
use super::fullness::{FullnessGroup, FullnessRule};
use super::pool::{ZsPool, Zspage};
use crate::page::PAGE_SIZE;
use std::fmt::Write as _;

/// What the pool counts as it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolCounters {
    pub(super) pages_allocated: u64,
    pub(super) pages_compacted: u64,
    pub(super) objects_moved: u64,
    pub(super) pages_migrated: u64,
}

/// One line of the class table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStats {
    /// The class.
    pub class: ClassIndex,
    /// Bytes of an object.
    pub size: u16,
    /// Zspages in each fullness group, as many as the rule has groups.
    pub zspages: Vec<u32>,
    /// Objects there is room for.
    pub obj_allocated: u64,
    /// Objects allocated.
    pub obj_used: u64,
    /// Pages held.
    pub pages_used: u64,
    /// Pages in a zspage.
    pub pages_per_zspage: u8,
    /// Pages that compaction would free.
    pub freeable: u64,
}

/// A pool in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZsPoolStats {
    /// Objects there is room for.
    pub obj_allocated: u64,
    /// Objects allocated.
    pub obj_used: u64,
    /// Pages held.
    pub pages_used: u64,
    /// Pages that compaction would free.
    pub freeable: u64,
    /// Bytes of the pages that no allocated object covers.
    pub bytes_wasted: u64,
    /// Pages that compaction freed so far.
    pub pages_compacted: u64,
    /// Objects that compaction moved so far.
    pub objects_moved: u64,
    /// Pages migrated so far.
    pub pages_migrated: u64,
}

impl ZsPool {
    /// The line of one class; none if the slot does not exist.
    pub fn class_stats(&self, class: ClassIndex) -> Option<ClassStats> {
        self.classes
            .position_of_slot(class)
            .map(|position| self.stats_at(position))
    }

    fn stats_at(&self, position: usize) -> ClassStats {
        let class = &self.classes.classes()[position];
        let lists = &self.lists[position];
        let zspages = lists.objs_allocated / u64::from(class.objs_per_zspage);
        ClassStats {
            class: class.index,
            size: class.size,
            zspages: lists.zspages[..self.fullness.groups()].to_vec(),
            obj_allocated: lists.objs_allocated,
            obj_used: lists.objs_inuse,
            pages_used: zspages * u64::from(class.pages_per_zspage),
            pages_per_zspage: class.pages_per_zspage,
            freeable: self.zs_can_compact(class.index),
        }
    }

    /// The lines of all classes, smallest first.
    pub fn all_class_stats(&self) -> Vec<ClassStats> {
        (0..self.lists.len())
            .map(|position| self.stats_at(position))
            .collect()
    }

    /// The whole pool in numbers.
    pub fn stats(&self) -> ZsPoolStats {
        let mut total = ZsPoolStats {
            pages_compacted: self.counters.pages_compacted,
            objects_moved: self.counters.objects_moved,
            pages_migrated: self.counters.pages_migrated,
            ..ZsPoolStats::default()
        };
        for line in self.all_class_stats() {
            total.obj_allocated += line.obj_allocated;
            total.obj_used += line.obj_used;
            total.pages_used += line.pages_used;
            total.freeable += line.freeable;
            total.bytes_wasted +=
                line.pages_used * PAGE_SIZE as u64 - line.obj_used * u64::from(line.size);
        }
        total
    }

    /// Frames really held: equals [`pages_allocated`](Self::pages_allocated).
    pub fn frames_held(&self) -> usize {
        self.frames.len()
    }

    /// Bytes of memory the pool takes beside its pages: handles, zspage and
    /// page descriptors, class tables.
    pub fn overhead_bytes(&self) -> usize {
        self.handles.heap_bytes()
            + self.zspages.heap_bytes()
            + self.frames.heap_bytes()
            + self.lists.capacity() * size_of::<super::pool::ClassLists>()
            + self.deferred.capacity() * size_of::<super::pool::ZspageId>()
            + size_of::<ZsPool>()
    }

    /// The class table as text, in the kernel's columns; classes without
    /// zspages are left out.
    pub fn stats_table(&self) -> String {
        let rule = self.fullness;
        let mut text = format!("{:>6} {:>5}", "class", "size");
        for group in 1..rule.groups() as u8 {
            let _ = write!(text, " {:>9}", rule.label(FullnessGroup(group)));
        }
        let _ = writeln!(
            text,
            " {:>13} {:>10} {:>10} {:>16} {:>8}",
            "obj_allocated", "obj_used", "pages_used", "pages_per_zspage", "freeable"
        );
        for line in self
            .all_class_stats()
            .iter()
            .filter(|line| line.obj_allocated > 0)
        {
            write_line(&mut text, rule, line);
        }
        text
    }
}

fn write_line(text: &mut String, rule: FullnessRule, line: &ClassStats) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{:>6} {:>5}", line.class, line.size);
    for zspages in &line.zspages[1..rule.groups()] {
        let _ = write!(text, " {zspages:>9}");
    }
    let _ = writeln!(
        text,
        " {:>13} {:>10} {:>10} {:>16} {:>8}",
        line.obj_allocated, line.obj_used, line.pages_used, line.pages_per_zspage, line.freeable
    );
}

// A zspage record is the largest part of what a pool of single-page zspages
// takes beside its pages; it should not grow unnoticed.
const _: () = assert!(size_of::<Zspage>() <= 28);
