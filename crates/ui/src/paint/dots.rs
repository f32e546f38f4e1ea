//! Paints every read of the run: a cell of the grid is as strong as it is full,
//! and the rare slow reads are dots of their own.

use super::fresh;
use crate::field::{COLUMNS, RARE_NS, ROWS, SLOW_NS, height};
use crate::parts::reads::Dots;
use core::f64::consts::TAU;
use web_sys::HtmlCanvasElement;
use zswap_view::scene::{Palette, Theme};

/// Paints.
pub fn paint(canvas: &HtmlCanvasElement, dots: &Dots, theme: Theme) {
    let Some((context, width, full)) = fresh(canvas) else {
        return;
    };
    let palette = Palette::of(theme);
    context.set_fill_style_str(palette.get("reader"));
    let (w, h) = (width / COLUMNS as f64, full / ROWS as f64);
    let most = dots.cells.iter().map(|cell| cell.2).max().unwrap_or(1);
    let rare_row = height(RARE_NS as f64) * ROWS as f64;
    // From faint to strong, so that the strength is set only a few times.
    for level in 1..=4_u32 {
        let is_of_level = |count: u32| {
            1 + (f64::from(count).ln() / f64::from(most.max(3)).ln() * 3.0) as u32 == level
        };
        context.set_global_alpha(0.2 + 0.18 * f64::from(level));
        for &(column, row, count) in dots.cells.iter() {
            if is_of_level(count.min(most)) && (row as f64) < rare_row {
                let y = full - (row as f64 + 1.0) * h;
                context.fill_rect(column as f64 * w, y, w.max(1.2), h.max(1.2));
            }
        }
    }
    for read in dots.rare.iter() {
        let x = read.begin_ns as f64 / dots.end_ns.max(1) as f64 * width;
        let y = (1.0 - height(read.latency_ns as f64)) * full;
        let (radius, alpha) = match read.latency_ns > SLOW_NS {
            true => (3.0, 1.0),
            false => (1.6, 0.7),
        };
        context.set_global_alpha(alpha);
        context.begin_path();
        // A radius that is not negative is always taken.
        let _ = context.arc(x, y, radius, 0.0, TAU);
        context.fill();
    }
    context.set_global_alpha(1.0);
}
