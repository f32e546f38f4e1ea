//! The table of size classes.
//!
//! There are 255 size slots, 16 bytes apart. For each slot the pool works
//! out how many pages to chain so that little is left at the end of the
//! chain; neighbouring slots that end up with the same chain and the same
//! number of objects become one class, of the largest of their sizes.
//!
//! 1. Every request of 1 to 4096 bytes has exactly one class, and its objects
//!    hold the request and the handle in front of it (a huge object holds its
//!    handle elsewhere).
//! 2. A larger request never gets a smaller class.
//! 3. The table depends on the chain size and the rule only.
//!
//! Two rules exist. Until 6.2 the chain with the largest *percentage* used
//! won, in whole per cent; since 6.3 the one with the fewest *bytes* left
//! over, with powers of two always on single pages. The kernel's document
//! still prints the counts of the percentage rule: 123 classes for a chain
//! size of 8, where the code now makes 119.
//!
//! ```
//! use zswap_mm::zsmalloc::{ChainRule, SizeClasses};
//!
//! let classes = SizeClasses::new(8, ChainRule::Current)?;
//! let class = classes.class_for(1560)?;
//! assert_eq!((class.size, class.objs_per_zspage, class.pages_per_zspage), (1568, 13, 5));
//! assert_eq!(classes.huge_class_size(), 3625);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{
    ZS_HANDLE_SIZE, ZS_MAX_ALLOC_SIZE, ZS_MIN_ALLOC_SIZE, ZS_SIZE_CLASS_DELTA, ZS_SIZE_CLASSES,
};
use crate::fault::AllocError;
use crate::page::PAGE_SIZE;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A size slot that a class is named after: the largest of its slots.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
pub struct ClassIndex(pub u8);

impl std::fmt::Display for ClassIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How the number of pages of a zspage is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainRule {
    /// Fewest bytes left over; powers of two on one page (since 6.3).
    #[default]
    Current,
    /// Largest used percentage, in whole per cent (until 6.2).
    Legacy,
}

impl ChainRule {
    /// Pages per zspage for objects of `size` bytes.
    pub fn pages_per_zspage(self, size: usize, chain_size: u8) -> u8 {
        match self {
            ChainRule::Current => calculate_zspage_chain_size(size, chain_size),
            ChainRule::Legacy => get_pages_per_zspage(size, chain_size),
        }
    }
}

fn calculate_zspage_chain_size(size: usize, chain_size: u8) -> u8 {
    if size.is_power_of_two() {
        return 1;
    }
    let left_over = |pages: &u8| (usize::from(*pages) * PAGE_SIZE) % size;
    (1..=chain_size).min_by_key(left_over).unwrap_or(1)
}

fn get_pages_per_zspage(size: usize, chain_size: u8) -> u8 {
    let used_percent = |pages: u8| {
        let bytes = usize::from(pages) * PAGE_SIZE;
        (bytes - bytes % size) * 100 / bytes
    };
    // The first chain that beats all shorter ones.
    (2..=chain_size).fold(1, |best, pages| {
        if used_percent(pages) > used_percent(best) {
            pages
        } else {
            best
        }
    })
}

/// One size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// The class's name: its largest slot.
    pub index: ClassIndex,
    /// The smallest slot that was merged into it.
    pub first_slot: ClassIndex,
    /// Bytes of an object, its handle included.
    pub size: u16,
    /// Objects in a zspage.
    pub objs_per_zspage: u16,
    /// Pages in a zspage.
    pub pages_per_zspage: u8,
}

impl SizeClass {
    /// Whether a zspage is one page with one object.
    pub const fn is_huge(&self) -> bool {
        self.pages_per_zspage == 1 && self.objs_per_zspage == 1
    }

    /// Bytes in front of the payload of each object.
    pub const fn header_bytes(&self) -> usize {
        if self.is_huge() { 0 } else { ZS_HANDLE_SIZE }
    }

    /// Bytes an object can hold.
    pub const fn payload_bytes(&self) -> usize {
        self.size as usize - self.header_bytes()
    }

    /// Bytes at the end of each zspage that no object covers.
    pub const fn waste_bytes_per_zspage(&self) -> usize {
        self.pages_per_zspage as usize * PAGE_SIZE
            - self.objs_per_zspage as usize * self.size as usize
    }

    /// The smallest request that gets this class, in bytes.
    pub const fn smallest_request_bytes(&self) -> usize {
        match self.first_slot.0 {
            0 => 1,
            slot => slot_size(slot as usize - 1) - ZS_HANDLE_SIZE + 1,
        }
    }

    /// The largest request that gets this class, in bytes.
    pub const fn largest_request_bytes(&self) -> usize {
        self.payload_bytes()
    }
}

/// A chain size outside what the kernel's configuration allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chain size of {0} pages: 4 to 16 are possible")]
pub struct ChainSizeError(pub u8);

/// All size classes of a pool.
#[derive(Clone, Debug)]
pub struct SizeClasses {
    classes: Vec<SizeClass>,
    /// Slot → position in `classes`.
    of_slot: [u8; ZS_SIZE_CLASSES],
    chain_size: u8,
    rule: ChainRule,
}

/// Size of the objects of a slot, in bytes.
const fn slot_size(slot: usize) -> usize {
    let size = ZS_MIN_ALLOC_SIZE + slot * ZS_SIZE_CLASS_DELTA;
    if size > ZS_MAX_ALLOC_SIZE {
        ZS_MAX_ALLOC_SIZE
    } else {
        size
    }
}

impl SizeClasses {
    /// The default of `CONFIG_ZSMALLOC_CHAIN_SIZE`, in pages.
    pub const DEFAULT_CHAIN_SIZE: u8 = 8;

    /// Works out the table.
    ///
    /// # Errors
    ///
    /// [`ChainSizeError`] unless the chain size is 4 to 16 pages.
    pub fn new(chain_size: u8, rule: ChainRule) -> Result<Self, ChainSizeError> {
        if !(4..=16).contains(&chain_size) {
            return Err(ChainSizeError(chain_size));
        }
        let mut classes: Vec<SizeClass> = Vec::new();
        // From the largest down, so that a class is created for the largest
        // of the slots that share it.
        for slot in (0..ZS_SIZE_CLASSES).rev() {
            let size = slot_size(slot);
            let pages = rule.pages_per_zspage(size, chain_size);
            let objs = (usize::from(pages) * PAGE_SIZE / size) as u16;
            match classes.last_mut() {
                Some(last) if last.pages_per_zspage == pages && last.objs_per_zspage == objs => {
                    last.first_slot = ClassIndex(slot as u8);
                }
                _ => classes.push(SizeClass {
                    index: ClassIndex(slot as u8),
                    first_slot: ClassIndex(slot as u8),
                    size: size as u16,
                    objs_per_zspage: objs,
                    pages_per_zspage: pages,
                }),
            }
        }
        classes.reverse();
        let mut of_slot = [0; ZS_SIZE_CLASSES];
        for (position, class) in classes.iter().enumerate() {
            let slots = usize::from(class.first_slot.0)..=usize::from(class.index.0);
            of_slot[slots].fill(position as u8);
        }
        Ok(SizeClasses {
            classes,
            of_slot,
            chain_size,
            rule,
        })
    }

    /// The classes, smallest first.
    pub fn classes(&self) -> &[SizeClass] {
        &self.classes
    }

    /// The chain size the table was made for, in pages.
    pub fn chain_size(&self) -> u8 {
        self.chain_size
    }

    /// The rule the table was made with.
    pub fn rule(&self) -> ChainRule {
        self.rule
    }

    /// The class that a request of `size` bytes gets.
    ///
    /// # Errors
    ///
    /// [`AllocError::Empty`] and [`AllocError::TooLarge`].
    pub fn class_for(&self, size: usize) -> Result<&SizeClass, AllocError> {
        Ok(&self.classes[self.position_for(size)?])
    }

    /// Position in [`classes`](Self::classes) of the class for a request.
    pub(super) fn position_for(&self, size: usize) -> Result<usize, AllocError> {
        if size == 0 {
            return Err(AllocError::Empty);
        }
        if size > ZS_MAX_ALLOC_SIZE {
            return Err(AllocError::TooLarge {
                size,
                max: ZS_MAX_ALLOC_SIZE,
            });
        }
        let above = (size + ZS_HANDLE_SIZE).saturating_sub(ZS_MIN_ALLOC_SIZE);
        let slot = above.div_ceil(ZS_SIZE_CLASS_DELTA).min(ZS_SIZE_CLASSES - 1);
        Ok(usize::from(self.of_slot[slot]))
    }

    /// The class that slot `index` belongs to.
    pub fn class_of_slot(&self, index: ClassIndex) -> Option<&SizeClass> {
        let position = *self.of_slot.get(usize::from(index.0))?;
        self.classes.get(usize::from(position))
    }

    pub(super) fn position_of_slot(&self, index: ClassIndex) -> Option<usize> {
        self.of_slot
            .get(usize::from(index.0))
            .map(|position| usize::from(*position))
    }

    /// Size of the largest class that is not huge, in bytes: the watermark of
    /// the kernel's document.
    pub fn huge_watermark(&self) -> usize {
        self.largest_normal()
            .map_or(0, |class| usize::from(class.size))
    }

    /// Requests of this many bytes or more become huge objects
    /// (`zs_huge_class_size`).
    pub fn huge_class_size(&self) -> usize {
        self.huge_watermark().saturating_sub(ZS_HANDLE_SIZE - 1)
    }

    fn largest_normal(&self) -> Option<&SizeClass> {
        self.classes
            .iter()
            .rev()
            .find(|class| class.pages_per_zspage != 1 && class.objs_per_zspage != 1)
    }

    /// The table as comma-separated values, one class a line.
    pub fn to_csv(&self) -> String {
        let mut csv = String::from(
            "class_index,size,objs_per_zspage,pages_per_zspage,waste_bytes_per_zspage,\
             first_slot_index,smallest_request_bytes,largest_request_bytes,huge\n",
        );
        for class in &self.classes {
            // Writing to a string cannot fail.
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{},{},{}",
                class.index,
                class.size,
                class.objs_per_zspage,
                class.pages_per_zspage,
                class.waste_bytes_per_zspage(),
                class.first_slot,
                class.smallest_request_bytes(),
                class.largest_request_bytes(),
                u8::from(class.is_huge()),
            );
        }
        csv
    }
}
