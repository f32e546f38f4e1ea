//! A page of memory.
//!
//! Everything zswap does is done to pages of 4 KiB: the only page size of the
//! machines whose measurements the model is compared with. A large folio is a
//! row of such pages, stored one by one.
//!
//! ```
//! use zswap_mm::{Page, PAGE_SIZE};
//!
//! let mut page = Page::zeroed();
//! page.bytes_mut()[PAGE_SIZE - 1] = 1;
//! assert_eq!(page.same_filled(), None);
//! ```

/// Bytes in a page.
pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
/// Base-two logarithm of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;

/// The bytes of one page.
#[derive(Clone, Eq)]
pub struct Page([u8; PAGE_SIZE]);

impl Page {
    /// A page of zeroes.
    pub const fn zeroed() -> Self {
        Page([0; PAGE_SIZE])
    }

    /// The bytes of the page.
    pub const fn bytes(&self) -> &[u8; PAGE_SIZE] {
        &self.0
    }

    /// The bytes of the page, to write to.
    pub const fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        &mut self.0
    }

    /// The 64-bit word the whole page repeats, if it does.
    ///
    /// Looks at the last word first, as zswap did while it handled such pages
    /// itself (until 6.11): most pages that are not same-filled differ there.
    pub fn same_filled(&self) -> Option<u64> {
        let (words, _) = self.0.as_chunks::<8>();
        let (first, last) = (words.first()?, words.last()?);
        if first != last {
            return None;
        }
        words
            .iter()
            .all(|word| word == first)
            .then(|| u64::from_le_bytes(*first))
    }

    /// Fills the whole page with one 64-bit word.
    pub fn fill_word(&mut self, word: u64) {
        let (words, _) = self.0.as_chunks_mut::<8>();
        words.fill(word.to_le_bytes());
    }

    /// Whether every byte is zero: what the swap code's zeromap looks for
    /// before a page reaches zswap (since 6.12).
    pub fn is_zero_filled(&self) -> bool {
        self.same_filled() == Some(0)
    }
}

impl From<[u8; PAGE_SIZE]> for Page {
    fn from(bytes: [u8; PAGE_SIZE]) -> Self {
        Page(bytes)
    }
}

impl std::fmt::Debug for Page {
    /// Four thousand numbers help nobody; the first eight and the count of
    /// the bytes that are not zero tell two pages apart.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nonzero = self.0.iter().filter(|byte| **byte != 0).count();
        write!(f, "Page({:02x?}…, {nonzero} bytes not zero)", &self.0[..8])
    }
}

impl PartialEq for Page {
    fn eq(&self, other: &Page) -> bool {
        same_bytes(&self.0, &other.0)
    }
}

/// Bytes that are compared in one go: a cache line.
const LINE: usize = 64;

/// Whether two runs of bytes are the same.
///
/// Comparing slices goes byte by byte in wasm, which made comparing pages most
/// of what a simulated load cost there: a line at a time the whole engine is 2.4
/// times as fast. Natively the C library's way is the faster one.
pub(crate) fn same_bytes(left: &[u8], right: &[u8]) -> bool {
    if cfg!(target_arch = "wasm32") {
        same_by_lines(left, right)
    } else {
        left == right
    }
}

fn same_by_lines(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let (left, left_rest) = left.as_chunks::<LINE>();
    let (right, right_rest) = right.as_chunks::<LINE>();
    left.iter().zip(right).all(same_line) && left_rest == right_rest
}

fn same_line((left, right): (&[u8; LINE], &[u8; LINE])) -> bool {
    let (left, _) = left.as_chunks::<8>();
    let (right, _) = right.as_chunks::<8>();
    let differs = |(left, right): (&[u8; 8], &[u8; 8])| {
        u64::from_ne_bytes(*left) ^ u64::from_ne_bytes(*right)
    };
    left.iter()
        .zip(right)
        .map(differs)
        .fold(0, |all, bits| all | bits)
        == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_same_filled_page_says_which_word_it_repeats() {
        let mut page = Page::zeroed();
        assert_eq!(page.same_filled(), Some(0));
        assert!(page.is_zero_filled());
        page.fill_word(0x0102_0304_0506_0708);
        assert_eq!(page.same_filled(), Some(0x0102_0304_0506_0708));
        assert!(!page.is_zero_filled());
    }

    #[test]
    fn one_different_byte_anywhere_is_noticed() {
        for at in [
            0,
            1,
            7,
            8,
            2048,
            PAGE_SIZE - 9,
            PAGE_SIZE - 8,
            PAGE_SIZE - 1,
        ] {
            let mut page = Page::zeroed();
            page.bytes_mut()[at] = 1;
            assert_eq!(page.same_filled(), None, "byte {at}");
        }
    }
}
