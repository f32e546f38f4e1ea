//! LZO1X through lzokay.

use super::{Algorithm, CompressError, Compressor, DecompressError};
use crate::page::{PAGE_SIZE, Page};
use lzokay::compress::{Dict, compress_no_alloc};

pub(super) struct Lzo {
    dict: Box<Dict>,
}

impl Lzo {
    pub(super) fn new() -> Self {
        Lzo { dict: Dict::new() }
    }
}

impl Compressor for Lzo {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Lzo
    }

    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
        let room = dst.len();
        compress_no_alloc(src.bytes(), dst, &mut self.dict).map_err(|error| match error {
            lzokay::Error::OutputOverrun => CompressError::NoSpace { room },
            _ => CompressError::Failed(Algorithm::Lzo),
        })
    }

    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        let algorithm = Algorithm::Lzo;
        match lzokay::decompress::decompress(src, dst.bytes_mut()) {
            Ok(PAGE_SIZE) => Ok(()),
            Ok(length) => Err(DecompressError::WrongLength { algorithm, length }),
            Err(_) => Err(DecompressError::Malformed {
                algorithm,
                length: src.len(),
            }),
        }
    }
}
