//! How wide a text will be, without a browser to ask.
//!
//! Invariants:
//! 1. The answer is an upper estimate for the fonts that the style sheet names:
//!    it follows the widest of them. A text that fits here fits in the page.
//! 2. What does not fit is cut and ends in an ellipsis, never drawn over its
//!    neighbour.

/// The width of a text in units of the scene, at this font size.
#[must_use]
pub fn width(text: &str, size: f32) -> f32 {
    text.chars().map(advance).sum::<f32>() * size
}

/// The same for a text in bold.
#[must_use]
pub fn bold_width(text: &str, size: f32) -> f32 {
    width(text, size) * 1.16
}

/// Width of a character at font size 1.
fn advance(c: char) -> f32 {
    match c {
        'i' | 'l' | 'j' | ' ' | '.' | ',' | ':' | ';' | '\'' | '|' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '-' | '·' => 0.42,
        'm' | 'w' | 'M' | 'W' | '−' | '…' => 0.95,
        'A'..='Z' => 0.72,
        _ => 0.62,
    }
}

/// The text, or as much of its beginning as fits `limit`, with an ellipsis.
#[must_use]
pub fn fit(text: &str, size: f32, limit: f32) -> String {
    if width(text, size) <= limit {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = width("…", size);
    for c in text.chars() {
        used += advance(c) * size;
        if used > limit {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_is_cut() {
        assert_eq!(fit("worker 0", 12.0, 100.0), "worker 0");
        let cut = fit("worker 0 owns the lock and is not running", 12.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
        assert!(!cut.contains(" …"), "{cut}");
    }
}
