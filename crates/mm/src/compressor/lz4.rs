//! LZ4 blocks through lz4_flex.

use super::{Algorithm, CompressError, Compressor, DecompressError};
use crate::page::{PAGE_SIZE, Page};
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into};

pub(super) struct Lz4 {
    table: CompressTable,
}

impl Lz4 {
    pub(super) fn new() -> Self {
        Lz4 {
            table: CompressTable::small(),
        }
    }
}

impl Compressor for Lz4 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Lz4
    }

    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
        // The encoder's only error is a destination that is too short.
        compress_into_with_table(src.bytes(), dst, &mut self.table)
            .map_err(|_| CompressError::NoSpace { room: dst.len() })
    }

    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        let algorithm = Algorithm::Lz4;
        match decompress_into(src, dst.bytes_mut()) {
            Ok(PAGE_SIZE) => Ok(()),
            Ok(length) => Err(DecompressError::WrongLength { algorithm, length }),
            Err(_) => Err(DecompressError::Malformed {
                algorithm,
                length: src.len(),
            }),
        }
    }
}
