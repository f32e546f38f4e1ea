//! Zstandard through zrip.
//!
//! Of the pure-Rust encoders, structured-zstd comes nearer to the C library on
//! machine code (zrip's frames are 13 % larger there, 2 to 4 % on text and heap
//! pages), but it is five times as much code: it alone would fill the page's
//! budget for a first visit, and takes minutes to compile.

use super::{Algorithm, CompressError, Compressor, DecompressError};
use crate::page::{PAGE_SIZE, Page};
use zrip::DecompressContext;

/// The kernel's default level.
const LEVEL: i32 = 3;
/// Where a frame says what follows, and the bit for a checksum at its end.
const DESCRIPTOR: usize = 4;
const HAS_CHECKSUM: u8 = 1 << 2;
const CHECKSUM_BYTES: usize = 4;

/// Only the decoder keeps something between calls. The encoder that would keep
/// its tables is four times as much code, and pages met before are remembered
/// by the caller anyway.
pub(super) struct Zstd {
    decoder: DecompressContext,
    /// The decoder writes to a vector; this one keeps its memory.
    page: Vec<u8>,
}

impl Zstd {
    pub(super) fn new() -> Self {
        Zstd {
            decoder: DecompressContext::new(),
            page: Vec::with_capacity(PAGE_SIZE),
        }
    }
}

/// Takes the checksum off a frame, which the kernel's transform writes none of,
/// and gives the length that is left.
fn without_checksum(frame: &mut [u8]) -> usize {
    match frame.get_mut(DESCRIPTOR) {
        Some(descriptor) if *descriptor & HAS_CHECKSUM != 0 => {
            *descriptor &= !HAS_CHECKSUM;
            frame.len() - CHECKSUM_BYTES
        }
        _ => frame.len(),
    }
}

impl Compressor for Zstd {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Zstd
    }

    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
        let room = dst.len();
        let length = zrip::compress_into(src.bytes(), dst, LEVEL)
            .map_err(|_| CompressError::NoSpace { room })?;
        Ok(without_checksum(&mut dst[..length]))
    }

    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        let algorithm = Algorithm::Zstd;
        self.page.clear();
        // One byte more than a page, so that a frame of more is told apart.
        let decoded = self
            .decoder
            .decompress_into_with_limit(src, &mut self.page, PAGE_SIZE + 1);
        match decoded {
            Ok(PAGE_SIZE) => {
                dst.bytes_mut().copy_from_slice(&self.page);
                Ok(())
            }
            Ok(length) => Err(DecompressError::WrongLength { algorithm, length }),
            Err(_) => {
                // Whatever a broken frame left behind must not reach the next.
                self.decoder = DecompressContext::new();
                Err(DecompressError::Malformed {
                    algorithm,
                    length: src.len(),
                })
            }
        }
    }
}
