//! Painters: what is too much for single elements is drawn on a canvas.

pub mod dots;
pub mod timeline;

use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

/// A canvas made as sharp as the screen, empty, with the unit of CSS; and its
/// size in that unit.
fn fresh(canvas: &HtmlCanvasElement) -> Option<(CanvasRenderingContext2d, f64, f64)> {
    let (width, height) = (canvas.client_width(), canvas.client_height());
    let ratio = crate::dom::window().map_or(1.0, |window| window.device_pixel_ratio());
    let pixels = |length: i32| (f64::from(length) * ratio).round() as u32;
    let (w, h) = (pixels(width), pixels(height));
    if w == 0 || h == 0 {
        return None;
    }
    if (canvas.width(), canvas.height()) != (w, h) {
        canvas.set_width(w);
        canvas.set_height(h);
    }
    let context = canvas.get_context("2d").ok()??;
    let context: CanvasRenderingContext2d = context.dyn_into().ok()?;
    // The scale comes from a screen and is a number.
    let _ = context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0);
    context.clear_rect(0.0, 0.0, width.into(), height.into());
    Some((context, width.into(), height.into()))
}
