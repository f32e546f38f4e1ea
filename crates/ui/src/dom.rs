//! The few things that the page and the worker ask of the browser.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::panic;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::convert::FromWasmAbi;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, Event, EventTarget, HtmlElement, MessageEvent, Window};

/// The window; only in the page.
pub fn window() -> Option<Window> {
    web_sys::window()
}

/// Real time since the page or the worker started, in ms.
pub fn now_ms() -> f64 {
    let performance = js_sys::Reflect::get(&js_sys::global(), &"performance".into());
    match performance.map(JsCast::dyn_into::<web_sys::Performance>) {
        Ok(Ok(performance)) => performance.now(),
        _ => js_sys::Date::now(),
    }
}

/// Sends a message as bytes, which change hands without being copied.
pub fn send<T: Serialize>(
    message: &T,
    post: impl FnOnce(&JsValue, &JsValue) -> Result<(), JsValue>,
) {
    let Ok(bytes) = postcard::to_allocvec(message) else {
        return complain("a message could not be written");
    };
    let buffer = js_sys::Uint8Array::from(bytes.as_slice()).buffer();
    let transfer = js_sys::Array::of1(&buffer);
    if post(&buffer, &transfer).is_err() {
        complain("a message could not be sent");
    }
}

/// Reads a message, if it is one of ours.
pub fn received<T: DeserializeOwned>(event: &MessageEvent) -> Option<T> {
    let buffer = event.data().dyn_into::<js_sys::ArrayBuffer>().ok()?;
    let bytes = js_sys::Uint8Array::new(&buffer).to_vec();
    let message = postcard::from_bytes(&bytes);
    if message.is_err() {
        complain("a message could not be read");
    }
    message.ok()
}

/// Tells those who look at the console.
pub fn complain(words: &str) {
    web_sys::console::error_1(&words.into());
}

/// Lets a broken invariant name itself on the console before the program stops.
pub fn report_panics() {
    panic::set_hook(Box::new(|info| complain(&info.to_string())));
}

/// Listens to an event until dropped.
pub struct Listener {
    target: EventTarget,
    kind: &'static str,
    closure: Closure<dyn FnMut(Event)>,
}

impl Listener {
    /// Listens. What `passive` is false for may prevent the browser's own
    /// reaction.
    pub fn new<E: JsCast + FromWasmAbi + 'static>(
        target: &EventTarget,
        kind: &'static str,
        mut react: impl FnMut(E) + 'static,
    ) -> Listener {
        let closure = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
            react(event.unchecked_into::<E>());
        });
        let options = web_sys::AddEventListenerOptions::new();
        options.set_passive(false);
        // It fails for a listener that is not a function.
        let _ = target.add_event_listener_with_callback_and_add_event_listener_options(
            kind,
            closure.as_ref().unchecked_ref(),
            &options,
        );
        Listener {
            target: target.clone(),
            kind,
            closure,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let callback = self.closure.as_ref().unchecked_ref();
        let _ = self
            .target
            .remove_event_listener_with_callback(self.kind, callback);
    }
}

/// Calls back before the browser next paints.
pub fn next_frame(callback: impl FnOnce(f64) + 'static) {
    let closure = Closure::once_into_js(callback);
    if let Some(window) = window() {
        // It fails for a callback that is not a function.
        let _ = window.request_animation_frame(closure.unchecked_ref());
    }
}

/// The element that has the keyboard.
pub fn focused() -> Option<Element> {
    window()?.document()?.active_element()
}

/// Gives the keyboard back to the page, so that its keys mean what they mean
/// there.
pub fn release_focus() {
    let element = focused().and_then(|element| element.dyn_into::<HtmlElement>().ok());
    // An element that cannot lose the focus keeps it.
    let _ = element.map(|element| element.blur());
}
