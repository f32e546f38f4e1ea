//! Zstandard through structured-zstd.

use super::{Algorithm, CompressError, Compressor, DecompressError};
use crate::page::{PAGE_SIZE, Page};
use structured_zstd::decoding::FrameDecoder;
use structured_zstd::encoding::{CompressionLevel, FrameCompressor};

/// The largest window a frame may ask for, in bytes. A page needs 4 KiB; the
/// format's smallest limit is well above that. It bounds what a malformed
/// header can make the decoder allocate.
const MAX_WINDOW_BYTES: u64 = 1 << 20;

pub(super) struct Zstd {
    encoder: FrameCompressor,
    decoder: FrameDecoder,
    /// The encoder writes to a vector; this one keeps its memory.
    frame: Vec<u8>,
}

impl Zstd {
    pub(super) fn new() -> Self {
        // The kernel's default level.
        let mut encoder = FrameCompressor::new(CompressionLevel::Level(3));
        // The kernel's transform writes no checksum.
        encoder.set_content_checksum(false);
        Zstd {
            encoder,
            decoder: new_decoder(),
            frame: Vec::with_capacity(2 * PAGE_SIZE),
        }
    }
}

fn new_decoder() -> FrameDecoder {
    let mut decoder = FrameDecoder::new();
    // Refused only for limits outside the format's range, which this is not;
    // the default limit would be correct as well, just larger.
    let _ = decoder.set_max_window_size(MAX_WINDOW_BYTES);
    decoder
}

impl Compressor for Zstd {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Zstd
    }

    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
        self.encoder
            .compress_independent_frame_into(src.bytes(), &mut self.frame);
        let length = self.frame.len();
        let room = dst.len();
        let target = dst
            .get_mut(..length)
            .ok_or(CompressError::NoSpace { room })?;
        target.copy_from_slice(&self.frame);
        Ok(length)
    }

    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        let algorithm = Algorithm::Zstd;
        match self.decoder.decode_all(src, dst.bytes_mut()) {
            Ok(PAGE_SIZE) => Ok(()),
            Ok(length) => Err(DecompressError::WrongLength { algorithm, length }),
            Err(_) => {
                // Whatever a broken frame left behind must not reach the next.
                self.decoder = new_decoder();
                Err(DecompressError::Malformed {
                    algorithm,
                    length: src.len(),
                })
            }
        }
    }
}
