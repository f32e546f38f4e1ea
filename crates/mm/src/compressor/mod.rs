//! Compression algorithms behind one trait.
//!
//! The names are the kernel's (`/sys/module/zswap/parameters/compressor`).
//! Each one really compresses, with a pure Rust crate that also runs in
//! WebAssembly:
//!
//! | name | crate | against the kernel's |
//! | --- | --- | --- |
//! | `deflate` | miniz_oxide, level 6, raw stream | same format; the kernel's window is 2 KiB, here it is the whole page |
//! | `lz4` | lz4_flex, block format | same format; sizes within a few per cent of the reference encoder |
//! | `lzo` | lzokay | same format, but a near-optimal search: smaller and slower than LZO1X-1. Take the sizes as a lower bound |
//! | `zstd` | zrip, level 3 | same format; on 1024 real pages 2 to 4 % larger than the C library, 13 % on machine code |
//! | `deflate-iaa` | miniz_oxide | an accelerator: the bytes of `deflate`, asynchronous |
//!
//! How long the kernel takes for a page is no business of this module: what
//! these crates take says nothing about it.
//!
//! 1. A compressor is a pure function of its input: its state between calls
//!    (tables, buffers) never changes a result.
//! 2. Decompression of whatever bytes gives a full page or an error. It does
//!    not panic and does not write outside the page.
//! 3. On an error the destination holds unspecified bytes.
//!
//! Left out: `842` (no maintained pure Rust crate reads or writes it),
//! `lzo-rle` and `lz4hc` (no crate writes them; `lzo` and `lz4` read their
//! formats' relatives), levels and dictionaries.

mod algorithm;
mod deflate;
mod lz4;
mod lzo;
pub mod memo;
mod zstd;

pub use algorithm::{Algorithm, UnknownAlgorithm};

use crate::page::Page;

/// A new transform for zstd.
///
/// The same as [`Algorithm::new_compressor`] of it, for a program that is to
/// hold this codec and no other.
pub fn new_zstd() -> Box<dyn Compressor> {
    Box::new(zstd::Zstd::new())
}

/// Why a page could not be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// The compressed form does not fit the destination (`-ENOSPC`).
    #[error("the compressed page does not fit into {room} bytes")]
    NoSpace {
        /// Bytes there was room for.
        room: usize,
    },
    /// The codec failed otherwise (`-EINVAL`).
    #[error("the {0} encoder failed")]
    Failed(Algorithm),
}

impl CompressError {
    /// The name of the error number the kernel's transform returns.
    pub fn errno(&self) -> &'static str {
        match self {
            CompressError::NoSpace { .. } => "ENOSPC",
            CompressError::Failed(_) => "EINVAL",
        }
    }
}

/// Why bytes could not be decompressed into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecompressError {
    /// The bytes are not what the algorithm produces.
    #[error("{length} bytes are no valid {algorithm} data")]
    Malformed {
        /// Which decoder refused.
        algorithm: Algorithm,
        /// How many bytes it was given.
        length: usize,
    },
    /// They decode, but not to a full page.
    #[error("the {algorithm} data decodes to {length} bytes: a page has 4096")]
    WrongLength {
        /// Which decoder was used.
        algorithm: Algorithm,
        /// How many bytes came out.
        length: usize,
    },
}

/// One compression transform: what the kernel calls a tfm.
pub trait Compressor {
    /// Which algorithm this is.
    fn algorithm(&self) -> Algorithm;

    /// Compresses a page into `dst` and returns how many bytes it wrote.
    ///
    /// # Errors
    ///
    /// [`CompressError::NoSpace`] if `dst` is too short.
    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError>;

    /// Decompresses `src`, all of it, into a page.
    ///
    /// # Errors
    ///
    /// [`DecompressError`] if `src` is not exactly the compressed form of a
    /// page.
    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError>;
}
