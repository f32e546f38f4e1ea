//! Moments, counts and numbers with decimals, as the page writes them; lengths
//! of time are written by [`in_words_ns`](crate::in_words_ns).

/// A moment of the run in milliseconds, to the microsecond.
///
/// ```
/// assert_eq!(zswap_view::scene::units::moment(1_234_567_890), "1\u{202f}234.568 ms");
/// ```
#[must_use]
pub fn moment(ns: u64) -> String {
    let us = (ns + 500) / 1_000;
    format!("{}.{:03} ms", count(us / 1_000), us % 1_000)
}

/// A count, its digits in groups of three.
///
/// ```
/// assert_eq!(zswap_view::scene::units::count(78_848), "78\u{202f}848");
/// ```
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            // A narrow space that does not break.
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with so many decimals, at most six; what is no number becomes 0.
///
/// The standard library's way can print every digit of every float, which takes
/// more code than the whole scene.
///
/// ```
/// use zswap_view::scene::units::fixed;
/// assert_eq!(fixed(1.25, 1), "1.3");
/// assert_eq!(fixed(-0.04, 1), "0.0");
/// assert_eq!(fixed(-12.0, 0), "-12");
/// ```
#[must_use]
pub fn fixed(value: f64, decimals: u32) -> String {
    let mut text = String::new();
    push_fixed(&mut text, value, decimals);
    text
}

fn push_fixed(text: &mut String, value: f64, decimals: u32) {
    let scale = 10_u64.pow(decimals.min(6));
    let scaled = (value * scale as f64).round() as i64;
    let digits = scaled.unsigned_abs();
    if scaled < 0 {
        text.push('-');
    }
    text.push_str(&(digits / scale).to_string());
    if decimals > 0 {
        // The scale in front keeps the zeros after the point.
        let part = (scale + digits % scale).to_string();
        text.push('.');
        text.push_str(&part[1..]);
    }
}

/// The value of the SVG attribute `d`: a number with one decimal for each `#`.
///
/// ```
/// assert_eq!(zswap_view::scene::units::path("M# 0h#", &[1.0, -2.5]), "M1.0 0h-2.5");
/// ```
#[must_use]
pub fn path(commands: &str, numbers: &[f32]) -> String {
    let mut d = String::new();
    push_path(&mut d, commands, numbers);
    d
}

/// The same at the end of another.
pub(crate) fn push_path(d: &mut String, commands: &str, numbers: &[f32]) {
    let mut numbers = numbers.iter();
    for letter in commands.chars() {
        match letter {
            '#' => push_fixed(d, numbers.next().copied().unwrap_or(0.0).into(), 1),
            other => d.push(other),
        }
    }
}
