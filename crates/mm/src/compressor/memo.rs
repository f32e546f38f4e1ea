//! Reusing what a compressor did before.
//!
//! A long run sends the same page contents in and out of compressed memory
//! hundreds of thousands of times. Compressing each time for real would take
//! minutes; the result is known after the first time. A [`CodecMemo`] keeps
//! page and compressed form together and hands either out for the other.
//!
//! 1. A result is reused only for input that is equal byte for byte: hashes
//!    pick a candidate, the comparison decides. A collision costs time and
//!    never changes a result.
//! 2. A direction is reused only if the compressor really ran that way: the
//!    first decompression of a compressed form goes through the decoder, even
//!    if the page it came from is known.
//! 3. Failures are not kept: each one is produced anew.
//! 4. Memory is bounded: with all entries taken, the oldest makes room.
//!
//! Candidates are found through a table of buckets, twice as many as entries
//! and with room for eight each: at that load a bucket overflows in one of
//! some hundred million, and then an entry is merely not found.
//!
//! What a call costs is fetching the bytes it compares, not comparing them:
//! use the borrowing calls where no copy is needed.
//!
//! ```
//! use zswap_mm::{Algorithm, CodecMemo, CodecMemoOptions, Page, PageContent};
//!
//! let mut memo = CodecMemo::new(Algorithm::Lz4.new_compressor(), CodecMemoOptions::default());
//! let mut page = Page::zeroed();
//! PageContent::Code.fill(1, &mut page);
//! let first = memo.compressed(&page)?.to_vec();
//! assert_eq!(memo.compressed(&page)?, first);
//! assert_eq!((memo.hits(), memo.misses()), (1, 1));
//! # Ok::<(), zswap_mm::CompressError>(())
//! ```

use super::{Algorithm, CompressError, Compressor, DecompressError};
use crate::page::{PAGE_SIZE, Page, same_bytes};

/// How large a [`CodecMemo`] may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecMemoOptions {
    /// Page contents remembered, at least one.
    pub entries: usize,
    /// Bytes of the compression buffer: the room the compressed form of a
    /// page has. Two pages until 6.18, one page since.
    pub buffer_bytes: usize,
}

impl Default for CodecMemoOptions {
    /// 4096 contents (at most 24 MiB for pages that halve), two pages of room.
    fn default() -> Self {
        CodecMemoOptions {
            entries: 4096,
            buffer_bytes: 2 * PAGE_SIZE,
        }
    }
}

/// Numbers of entries that share a hash.
const WAYS: usize = 8;

struct Entry {
    page: Page,
    compressed: Vec<u8>,
    /// Hashes of both, so that most wrong candidates are told by one word.
    page_hash: u64,
    compressed_hash: u64,
    /// Whether the compressor turned `page` into `compressed`, …
    compressed_here: bool,
    /// … and `compressed` into `page`.
    decompressed_here: bool,
}

/// Hash → numbers of entries that may have it.
struct Buckets {
    /// Entry number plus one; zero is empty.
    ways: Vec<[u32; WAYS]>,
    shift: u32,
}

impl Buckets {
    fn new(entries: usize) -> Self {
        let buckets = (2 * entries).next_power_of_two();
        Buckets {
            ways: vec![[0; WAYS]; buckets],
            shift: 64 - buckets.trailing_zeros(),
        }
    }

    fn candidates(&self, hash: u64) -> [u32; WAYS] {
        self.ways[(hash >> self.shift) as usize]
    }

    /// Adds an entry, in place of another one if there is no room.
    fn add(&mut self, hash: u64, entry: usize) {
        let ways = &mut self.ways[(hash >> self.shift) as usize];
        let free = ways.iter().position(|way| *way == 0).unwrap_or(WAYS - 1);
        ways[free] = entry as u32 + 1;
    }

    fn remove(&mut self, hash: u64, entry: usize) {
        for way in &mut self.ways[(hash >> self.shift) as usize] {
            if *way == entry as u32 + 1 {
                *way = 0;
            }
        }
    }
}

/// A compressor that remembers.
pub struct CodecMemo {
    codec: Box<dyn Compressor>,
    limit: usize,
    buffer: Vec<u8>,
    scratch: Box<Page>,
    entries: Vec<Entry>,
    /// The entry to be replaced next once all are taken.
    oldest: usize,
    by_page: Buckets,
    by_compressed: Buckets,
    hits: u64,
    misses: u64,
}

impl CodecMemo {
    /// Wraps a compressor.
    pub fn new(codec: Box<dyn Compressor>, options: CodecMemoOptions) -> Self {
        let limit = options.entries.max(1);
        CodecMemo {
            codec,
            limit,
            buffer: vec![0; options.buffer_bytes],
            scratch: Box::new(Page::zeroed()),
            entries: Vec::new(),
            oldest: 0,
            by_page: Buckets::new(limit),
            by_compressed: Buckets::new(limit),
            hits: 0,
            misses: 0,
        }
    }

    /// Which algorithm is wrapped.
    pub fn algorithm(&self) -> Algorithm {
        self.codec.algorithm()
    }

    /// Calls answered from memory.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Calls for which the compressor ran.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// The compressed form of a page, borrowed.
    ///
    /// # Errors
    ///
    /// As [`Compressor::compress`].
    pub fn compressed(&mut self, src: &Page) -> Result<&[u8], CompressError> {
        let hash = page_hash(src);
        if let Some(found) = self.find_page(hash, src) {
            self.hits += 1;
            return Ok(&self.entries[found].compressed);
        }
        self.misses += 1;
        let length = self.codec.compress(src, &mut self.buffer)?;
        let compressed = &self.buffer[..length];
        let compressed_hash = bytes_hash(compressed);
        let same_page = |entry: &Entry| entry.page == *src;
        let at = match self.find_compressed(compressed_hash, compressed, same_page) {
            Some(known) => known,
            None => self.remember(src.clone(), compressed.to_vec(), hash, compressed_hash),
        };
        self.entries[at].compressed_here = true;
        Ok(&self.entries[at].compressed)
    }

    /// The page that compressed bytes decode to, borrowed.
    ///
    /// # Errors
    ///
    /// As [`Compressor::decompress`].
    pub fn decompressed(&mut self, src: &[u8]) -> Result<&Page, DecompressError> {
        let hash = bytes_hash(src);
        let known = self.find_compressed(hash, src, |entry| entry.decompressed_here);
        if let Some(found) = known {
            self.hits += 1;
            return Ok(&self.entries[found].page);
        }
        self.misses += 1;
        self.codec.decompress(src, &mut self.scratch)?;
        let page = &*self.scratch;
        let at = match self.find_compressed(hash, src, |entry| entry.page == *page) {
            Some(known) => known,
            None => self.remember(page.clone(), src.to_vec(), page_hash(page), hash),
        };
        self.entries[at].decompressed_here = true;
        Ok(&self.entries[at].page)
    }

    /// Compresses a page into `dst`, whose former contents are dropped.
    ///
    /// # Errors
    ///
    /// As [`Compressor::compress`].
    pub fn compress(&mut self, src: &Page, dst: &mut Vec<u8>) -> Result<usize, CompressError> {
        let compressed = self.compressed(src)?;
        dst.clear();
        dst.extend_from_slice(compressed);
        Ok(dst.len())
    }

    /// Decompresses bytes into a page.
    ///
    /// # Errors
    ///
    /// As [`Compressor::decompress`].
    pub fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        let page = self.decompressed(src)?;
        dst.bytes_mut().copy_from_slice(page.bytes());
        Ok(())
    }

    /// An entry whose page was compressed here and is `page`.
    fn find_page(&self, hash: u64, page: &Page) -> Option<usize> {
        self.by_page.candidates(hash).into_iter().find_map(|way| {
            let at = (way as usize).checked_sub(1)?;
            let entry = self.entries.get(at)?;
            (entry.page_hash == hash && entry.compressed_here && entry.page == *page).then_some(at)
        })
    }

    /// An entry of these compressed bytes of which something else holds too.
    fn find_compressed(
        &self,
        hash: u64,
        bytes: &[u8],
        holds: impl Fn(&Entry) -> bool,
    ) -> Option<usize> {
        self.by_compressed
            .candidates(hash)
            .into_iter()
            .find_map(|way| {
                let at = (way as usize).checked_sub(1)?;
                let entry = self.entries.get(at)?;
                let same = entry.compressed_hash == hash && same_bytes(&entry.compressed, bytes);
                (same && holds(entry)).then_some(at)
            })
    }

    fn remember(
        &mut self,
        page: Page,
        compressed: Vec<u8>,
        page_hash: u64,
        compressed_hash: u64,
    ) -> usize {
        let entry = Entry {
            page,
            compressed,
            page_hash,
            compressed_hash,
            compressed_here: false,
            decompressed_here: false,
        };
        let at = if self.entries.len() < self.limit {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let at = self.oldest;
            let old = std::mem::replace(&mut self.entries[at], entry);
            self.by_page.remove(old.page_hash, at);
            self.by_compressed.remove(old.compressed_hash, at);
            self.oldest = (at + 1) % self.limit;
            at
        };
        self.by_page.add(page_hash, at);
        self.by_compressed.add(compressed_hash, at);
        at
    }
}

/// Mixes a word into a hash: a multiplication spreads it upwards, the
/// rotation brings it back down.
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

/// Eight words out of 512, the last among them.
fn page_hash(page: &Page) -> u64 {
    let (words, _) = page.bytes().as_chunks::<8>();
    words
        .iter()
        .skip(63)
        .step_by(64)
        .fold(0, |hash, word| mix(hash, u64::from_le_bytes(*word)))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The length and about eight words spread over the bytes.
fn bytes_hash(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let step = (words.len() / 8).max(1);
    let tail = tail.iter().fold(bytes.len() as u64, |hash, byte| {
        hash << 8 ^ u64::from(*byte)
    });
    words
        .iter()
        .step_by(step)
        .fold(tail, |hash, word| mix(hash, u64::from_le_bytes(*word)))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::PageContent;

    /// A codec whose output does not depend on most of its input: it keeps
    /// one word and claims the rest. Any wrong reuse shows.
    struct FirstWord {
        compressions: u64,
    }

    impl Compressor for FirstWord {
        fn algorithm(&self) -> Algorithm {
            Algorithm::Lz4
        }
        fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
            self.compressions += 1;
            dst[..8].copy_from_slice(&src.bytes()[..8]);
            Ok(8)
        }
        fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
            *dst = Page::zeroed();
            dst.bytes_mut()[..8].copy_from_slice(src);
            Ok(())
        }
    }

    fn word_page(word: u64) -> Page {
        let mut page = Page::zeroed();
        page.bytes_mut()[..8].copy_from_slice(&word.to_le_bytes());
        page
    }

    #[test]
    fn pages_with_equal_hashes_keep_their_own_results() {
        let codec = Box::new(FirstWord { compressions: 0 });
        let mut memo = CodecMemo::new(codec, CodecMemoOptions::default());
        // The hash does not look at the first word, so all of these collide.
        for round in 0..2 {
            for word in 0..100_u64 {
                assert_eq!(page_hash(&word_page(word)), page_hash(&word_page(0)));
                let compressed = memo.compressed(&word_page(word)).map(<[u8]>::to_vec);
                assert_eq!(compressed, Ok(word.to_le_bytes().to_vec()), "round {round}");
            }
        }
        assert!(memo.misses() >= 100);
    }

    #[test]
    fn everything_is_remembered_up_to_the_limit() {
        let options = CodecMemoOptions {
            entries: 2048,
            ..CodecMemoOptions::default()
        };
        let mut memo = CodecMemo::new(Algorithm::Lz4.new_compressor(), options);
        let mut page = Page::zeroed();
        for round in 0..2 {
            for seed in 0..2048 {
                PageContent::HalfRandom.fill(seed, &mut page);
                assert!(memo.compressed(&page).is_ok());
            }
            assert_eq!((memo.hits(), memo.misses()), (round * 2048, 2048));
        }
    }

    #[test]
    fn the_decoder_runs_before_its_result_is_reused() {
        let codec = Box::new(FirstWord { compressions: 0 });
        let mut memo = CodecMemo::new(codec, CodecMemoOptions::default());
        let mut page = word_page(7);
        page.bytes_mut()[4000] = 1;
        let compressed = memo.compressed(&page).map(<[u8]>::to_vec);
        // This codec loses the byte; the memo must not hide that.
        let bytes = compressed.unwrap_or_default();
        assert_eq!(memo.decompressed(&bytes), Ok(&word_page(7)));
        assert_eq!(memo.decompressed(&bytes), Ok(&word_page(7)));
        assert_eq!((memo.hits(), memo.misses()), (1, 2));
    }

    #[test]
    fn results_equal_the_codecs_own_with_fewer_entries_than_pages() {
        for algorithm in Algorithm::ALL {
            let options = CodecMemoOptions {
                entries: 5,
                ..CodecMemoOptions::default()
            };
            let mut memo = CodecMemo::new(algorithm.new_compressor(), options);
            let mut plain = algorithm.new_compressor();
            let mut buffer = [0; 2 * PAGE_SIZE];
            let (mut page, mut out, mut dst) = (Page::zeroed(), Page::zeroed(), Vec::new());
            for turn in 0..60_u64 {
                let content = PageContent::ALL[turn as usize / 2 % PageContent::ALL.len()];
                // Each page twice in a row: the second time it is known.
                content.fill(turn / 12, &mut page);
                let length = plain.compress(&page, &mut buffer);
                assert_eq!(memo.compress(&page, &mut dst), length);
                assert_eq!(dst, buffer[..dst.len()]);
                assert_eq!(memo.decompress(&dst, &mut out), Ok(()));
                assert_eq!(out, page);
            }
            assert!(memo.entries.len() <= 5);
            assert!(memo.hits() > 0, "{algorithm}");
        }
    }

    #[test]
    fn a_failure_is_reported_each_time_and_harms_nothing() {
        let options = CodecMemoOptions {
            entries: 16,
            buffer_bytes: 1024,
        };
        let mut memo = CodecMemo::new(Algorithm::Zstd.new_compressor(), options);
        let mut page = Page::zeroed();
        PageContent::Random.fill(1, &mut page);
        for _ in 0..2 {
            assert_eq!(
                memo.compressed(&page),
                Err(CompressError::NoSpace { room: 1024 })
            );
            assert!(memo.decompressed(&[1, 2, 3]).is_err());
        }
        assert_eq!((memo.hits(), memo.misses()), (0, 4));
    }
}
