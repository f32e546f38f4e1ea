//! Where the codecs of a run come from: zstd, the scenarios' own, is part of
//! the program; the others are a program of their own (`src/bin/zswap-codecs.rs`)
//! that the worker loads when a run first needs one of them.
//!
//! Invariants:
//! 1. A run starts only once its codec is here: it computes without a pause.
//! 2. Both programs hold the same codecs as the command line, so that the bytes
//!    are the same.

use js_sys::Promise;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use zswap_lab::{Run, RunError, Scenario};
use zswap_mm::{Algorithm, CompressError, Compressor, DecompressError, Page, compressor};

#[wasm_bindgen]
extern "C" {
    /// The other program's exports.
    #[derive(Clone)]
    type Module;
    /// Its `codec`.
    #[wasm_bindgen(method)]
    fn codec(this: &Module, algorithm: &str) -> RemoteCodec;

    /// Its `Codec`.
    type RemoteCodec;
    #[wasm_bindgen(method, catch)]
    fn compress(this: &RemoteCodec, page: &[u8], room: usize) -> Result<Vec<u8>, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn decompress(this: &RemoteCodec, data: &[u8]) -> Result<Vec<u8>, JsValue>;

    /// From `www/worker.js`: loads the other program.
    #[wasm_bindgen(catch, js_name = loadCodecs)]
    fn load_codecs() -> Result<Promise, JsValue>;
}

/// The codecs that are here.
#[derive(Clone, Default)]
pub struct Codecs {
    others: Option<Module>,
}

impl Codecs {
    /// Whether a run with these settings can start; those without a compressor,
    /// or with one that does not exist, can as far as this is concerned.
    pub fn suffice(&self, settings: &[(String, String)]) -> bool {
        let compressor = settings.iter().find(|(key, _)| key == "compressor");
        let algorithm = compressor.and_then(|(_, name)| name.parse().ok());
        self.others.is_some() || matches!(algorithm, None | Some(Algorithm::Zstd))
    }

    /// Starts a run.
    pub fn start(&self, scenario: &Scenario, seed: u64) -> Result<Run, RunError> {
        let algorithm = scenario.compressor;
        let codec: Box<dyn Compressor> = match &self.others {
            Some(module) if algorithm != Algorithm::Zstd => Box::new(Remote {
                algorithm,
                codec: module.codec(algorithm.name()),
            }),
            _ => compressor::new_zstd(),
        };
        Run::start_with(scenario, seed, codec)
    }
}

/// Loads the other codecs, then calls back with them or with what to tell.
pub fn load(then: impl FnOnce(Result<Codecs, String>) + 'static) {
    let promise = load_codecs().unwrap_or_else(|error| Promise::reject(&error));
    let failed = |error: &JsValue| {
        let error = js_sys::Object::from(error.clone()).to_string();
        format!("The file with its compressor could not be loaded ({error})")
    };
    // One of the two is called, once; it takes what it is to call along.
    let then = std::rc::Rc::new(core::cell::Cell::new(Some(then)));
    let call = move |result| {
        if let Some(then) = then.take() {
            then(result);
        }
    };
    let other_call = call.clone();
    let loaded = Closure::once_into_js(move |module: JsValue| {
        call(Ok(Codecs {
            others: Some(module.unchecked_into()),
        }));
    });
    let refused = Closure::once_into_js(move |error: JsValue| other_call(Err(failed(&error))));
    // Through the property: the typed `then2` takes closures that are kept.
    let _ = promise.unchecked_ref::<Thenable>().then(&loaded, &refused);
}

#[wasm_bindgen]
extern "C" {
    /// A promise, as far as it is used here.
    type Thenable;
    #[wasm_bindgen(method)]
    fn then(this: &Thenable, loaded: &JsValue, refused: &JsValue) -> JsValue;
}

/// A codec in the other program.
struct Remote {
    algorithm: Algorithm,
    codec: RemoteCodec,
}

impl Compressor for Remote {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn compress(&mut self, src: &Page, dst: &mut [u8]) -> Result<usize, CompressError> {
        let room = dst.len();
        match self.codec.compress(src.bytes(), room) {
            Ok(data) => {
                dst[..data.len()].copy_from_slice(&data);
                Ok(data.len())
            }
            // The one failure that has something to tell: there is no room.
            Err(error) if error.is_null() => Err(CompressError::NoSpace { room }),
            Err(_) => Err(CompressError::Failed(self.algorithm)),
        }
    }

    fn decompress(&mut self, src: &[u8], dst: &mut Page) -> Result<(), DecompressError> {
        let algorithm = self.algorithm;
        match self.codec.decompress(src) {
            Ok(page) => {
                dst.bytes_mut().copy_from_slice(&page);
                Ok(())
            }
            Err(error) => Err(match error.as_f64() {
                Some(length) => DecompressError::WrongLength {
                    algorithm,
                    length: length as usize,
                },
                None => DecompressError::Malformed {
                    algorithm,
                    length: src.len(),
                },
            }),
        }
    }
}
