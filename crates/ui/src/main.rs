//! The page of the Zswap Explainer, and its worker: one program for both.
//!
//! Invariants:
//! 1. The page simulates nothing. Runs and replays happen in the worker; the
//!    page folds the recordings that it gets and draws them.
//! 2. What is drawn comes from `zswap_view`; this crate decides nothing about
//!    the model.
//! 3. Nothing is styled inline: the page lives under a content security policy
//!    that forbids it.

mod app;
mod clock;
mod codecs;
mod dom;
mod exports;
mod field;
mod film;
mod link;
mod paint;
mod parts;
mod protocol;
mod replays;
mod session;
mod tag;
mod worker;

use wasm_bindgen::JsCast;
use web_sys::DedicatedWorkerGlobalScope;

fn main() {
    let global = js_sys::global();
    match global.dyn_into::<DedicatedWorkerGlobalScope>() {
        Ok(scope) => worker::start(&scope),
        Err(_) => app::start(),
    }
}
