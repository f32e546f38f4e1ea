//! Raw deflate through miniz_oxide.

use super::{Algorithm, CompressError, Compressor, DecompressError};
use crate::page::{PAGE_SIZE, Page};
use miniz_oxide::DataFormat;
use miniz_oxide::deflate::CompressionLevel;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

pub(super) struct Deflate {
    algorithm: Algorithm,
    encoder: Box<CompressorOxide>,
    decoder: Box<DecompressorOxide>,
}

impl Deflate {
    /// `algorithm` tells software and accelerator apart; the bytes are equal.
    pub(super) fn new(algorithm: Algorithm) -> Self {
        let encoder =
            CompressorOxide::with_format_and_level(DataFormat::Raw, CompressionLevel::DefaultLevel);
        Deflate {
            algorithm,
            encoder: Box::new(encoder),
            decoder: Box::default(),
        }
    }
}

impl Compressor for Deflate {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
        self.encoder.reset();
        let (status, _, written) =
            compress(&mut self.encoder, src.bytes(), dst, TDEFLFlush::Finish);
        match status {
            TDEFLStatus::Done => Ok(written),
            TDEFLStatus::Okay => Err(CompressError::NoSpace { room: dst.len() }),
            _ => Err(CompressError::Failed(self.algorithm)),
        }
    }

    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        self.decoder.init();
        let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) = decompress(
            &mut self.decoder,
            src,
            dst.bytes_mut().as_mut_slice(),
            0,
            flags,
        );
        let malformed = DecompressError::Malformed {
            algorithm: self.algorithm,
            length: src.len(),
        };
        match status {
            TINFLStatus::Done if read == src.len() && written == PAGE_SIZE => Ok(()),
            TINFLStatus::Done if read == src.len() => Err(DecompressError::WrongLength {
                algorithm: self.algorithm,
                length: written,
            }),
            _ => Err(malformed),
        }
    }
}
