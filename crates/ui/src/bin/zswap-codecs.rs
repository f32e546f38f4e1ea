//! The codecs that few runs need, as a program of their own that the page's
//! worker loads later (`src/codecs.rs`). It draws nothing and starts nothing.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zswap_mm::{Algorithm, CompressError, Compressor, DecompressError, Page};

/// A transform.
#[wasm_bindgen]
pub struct Codec {
    codec: Box<dyn Compressor>,
    page: Box<Page>,
    buffer: Vec<u8>,
}

/// A new transform of the algorithm with this name.
///
/// # Errors
/// If there is none.
#[wasm_bindgen]
pub fn codec(algorithm: &str) -> Result<Codec, JsValue> {
    let algorithm: Algorithm = algorithm
        .parse()
        .map_err(|_| JsValue::from_str("no such compressor"))?;
    Ok(Codec {
        codec: algorithm.new_compressor(),
        page: Box::new(Page::zeroed()),
        buffer: Vec::new(),
    })
}

#[wasm_bindgen]
impl Codec {
    /// The compressed form of a page, if it fits.
    ///
    /// # Errors
    /// Null if it does not fit, undefined if the codec fails otherwise.
    pub fn compress(&mut self, page: &[u8], room: usize) -> Result<Vec<u8>, JsValue> {
        self.page.bytes_mut().copy_from_slice(page);
        self.buffer.resize(room, 0);
        match self.codec.compress(&self.page, &mut self.buffer) {
            Ok(length) => Ok(self.buffer[..length].to_vec()),
            Err(CompressError::NoSpace { .. }) => Err(JsValue::NULL),
            Err(_) => Err(JsValue::UNDEFINED),
        }
    }

    /// The page of a compressed form.
    ///
    /// # Errors
    /// The length it decodes to if that is not a page's, null otherwise.
    pub fn decompress(&mut self, data: &[u8]) -> Result<Vec<u8>, JsValue> {
        match self.codec.decompress(data, &mut self.page) {
            Ok(()) => Ok(self.page.bytes().to_vec()),
            Err(DecompressError::WrongLength { length, .. }) => Err(JsValue::from(length as u32)),
            Err(_) => Err(JsValue::NULL),
        }
    }
}

fn main() {}
