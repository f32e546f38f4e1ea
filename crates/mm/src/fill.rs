//! Pages that are not worth compressing: same-filled and incompressible ones.
//!
//! Both kinds were treated differently over time.
//!
//! | | same-filled | incompressible |
//! | --- | --- | --- |
//! | until 6.11 | zswap keeps the repeated word in the entry, length 0 | refused |
//! | 6.12 to 6.17 | only zeroes: a bit in the swap device's zeromap, before zswap is asked | refused |
//! | since 6.18 | as before | kept as it is, length 4096, if its cgroup may be written back |
//!
//! 1. A slot whose zeromap bit is set has no entry, and the other way round.
//! 2. A page kept as it is keeps its place in the order of use.
//!
//! ```
//! use zswap_mm::fill::{Incompressible, Refusal, StoreForm};
//! use zswap_mm::CompressError;
//!
//! let poor = Err(CompressError::NoSpace { room: 4096 });
//! let raw = Incompressible::StoreRaw;
//! assert_eq!(raw.decide(poor, true), StoreForm::Raw);
//! assert_eq!(raw.decide(poor, false), StoreForm::Refuse(Refusal::CompressPoor));
//! ```

use crate::compressor::CompressError;
use crate::index::SwapSlot;
use crate::page::{PAGE_SIZE, Page};
use serde::{Deserialize, Serialize};

/// Who deals with same-filled pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameFilled {
    /// zswap, for any repeated word (until 6.11).
    InZswap,
    /// The swap code, for zeroes only (since 6.12).
    #[default]
    Zeromap,
}

impl SameFilled {
    /// The word to keep in the entry instead of compressing the page.
    pub fn word_to_keep(self, page: &Page) -> Option<u64> {
        match self {
            SameFilled::InZswap => page.same_filled(),
            SameFilled::Zeromap => None,
        }
    }

    /// Whether the page gets a bit in the zeromap instead of reaching zswap.
    pub fn goes_to_zeromap(self, page: &Page) -> bool {
        self == SameFilled::Zeromap && page.is_zero_filled()
    }
}

/// What happens to a page that does not shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Incompressible {
    /// zswap refuses it: the compressed form is handed to the allocator, which
    /// takes it if it fits an object (until 6.17).
    Refuse,
    /// It is stored as it is, if it could be written back later (since 6.18).
    #[default]
    StoreRaw,
}

/// Why a page is refused, by the counter that counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `reject_compress_poor`.
    CompressPoor,
    /// `reject_compress_fail`.
    CompressFail,
}

/// In which form a page is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreForm {
    /// So many compressed bytes.
    Compressed(usize),
    /// All 4096 bytes of the page.
    Raw,
    /// Not at all.
    Refuse(Refusal),
}

impl Incompressible {
    /// Bytes of the compression buffer: two pages, until the compressed form
    /// of a page no longer had to be kept when it was larger than the page.
    pub const fn buffer_bytes(self) -> usize {
        match self {
            Incompressible::Refuse => 2 * PAGE_SIZE,
            Incompressible::StoreRaw => PAGE_SIZE,
        }
    }

    /// What to do with a compressor's result.
    pub fn decide(
        self,
        compressed: Result<usize, CompressError>,
        writeback_enabled: bool,
    ) -> StoreForm {
        let shrunk = match compressed {
            Ok(0) => None,
            Ok(length) if self == Incompressible::StoreRaw && length >= PAGE_SIZE => None,
            Ok(length) => Some(length),
            Err(_) => None,
        };
        match (shrunk, self) {
            (Some(length), _) => StoreForm::Compressed(length),
            (None, Incompressible::StoreRaw) if writeback_enabled => StoreForm::Raw,
            (None, _) => StoreForm::Refuse(match compressed {
                Err(CompressError::NoSpace { .. }) => Refusal::CompressPoor,
                _ => Refusal::CompressFail,
            }),
        }
    }
}

/// One bit for each slot of a swap device: the page there is all zeroes.
#[derive(Clone, Debug)]
pub struct Zeromap {
    words: Vec<u64>,
    set: u64,
}

impl Zeromap {
    /// For a device of so many slots; no bit is set.
    pub fn new(slots: u64) -> Self {
        Zeromap {
            words: vec![0; slots.div_ceil(64) as usize],
            set: 0,
        }
    }

    fn word(slot: SwapSlot) -> (usize, u64) {
        ((slot.0 / 64) as usize, 1 << (slot.0 % 64))
    }

    /// Whether the bit of a slot is set.
    pub fn test(&self, slot: SwapSlot) -> bool {
        let (word, bit) = Self::word(slot);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Sets or clears the bit of a slot and returns what it was.
    ///
    /// # Panics
    ///
    /// If the slot is beyond the end of the device.
    pub fn set(&mut self, slot: SwapSlot, zero: bool) -> bool {
        let (word, bit) = Self::word(slot);
        let was = self.words[word] & bit != 0;
        if zero {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
        self.set = self.set + u64::from(zero) - u64::from(was);
        was
    }

    /// Bits set.
    pub fn count(&self) -> u64 {
        self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_shrink_is_refused_or_kept() {
        let (old, new) = (Incompressible::Refuse, Incompressible::StoreRaw);
        let failed = Err(CompressError::Failed(crate::compressor::Algorithm::Zstd));
        assert_eq!(old.decide(Ok(4100), true), StoreForm::Compressed(4100));
        assert_eq!(
            old.decide(failed, true),
            StoreForm::Refuse(Refusal::CompressFail)
        );
        assert_eq!(new.decide(Ok(4095), true), StoreForm::Compressed(4095));
        for result in [
            Ok(4096),
            Ok(0),
            failed,
            Err(CompressError::NoSpace { room: 4096 }),
        ] {
            assert_eq!(new.decide(result, true), StoreForm::Raw);
        }
        assert_eq!(
            new.decide(Ok(4096), false),
            StoreForm::Refuse(Refusal::CompressFail)
        );
    }

    #[test]
    fn the_zeromap_keeps_a_bit_per_slot() {
        let mut map = Zeromap::new(130);
        assert!(!map.set(SwapSlot(129), true));
        assert!(map.set(SwapSlot(129), true));
        assert_eq!(
            (map.test(SwapSlot(129)), map.test(SwapSlot(65)), map.count()),
            (true, false, 1)
        );
        assert!(map.set(SwapSlot(129), false));
        assert_eq!((map.test(SwapSlot(129)), map.count()), (false, 0));
        assert!(!map.test(SwapSlot(100_000)));
    }

    #[test]
    fn same_filled_pages_are_kept_by_whoever_is_in_charge() {
        let mut page = Page::zeroed();
        assert_eq!(SameFilled::InZswap.word_to_keep(&page), Some(0));
        assert!(!SameFilled::InZswap.goes_to_zeromap(&page));
        assert!(SameFilled::Zeromap.goes_to_zeromap(&page));
        page.fill_word(5);
        assert_eq!(SameFilled::InZswap.word_to_keep(&page), Some(5));
        assert!(!SameFilled::Zeromap.goes_to_zeromap(&page));
    }
}
