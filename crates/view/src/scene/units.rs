//! Moments and counts, as the page writes them; lengths of time are written by
//! [`in_words_ns`](crate::in_words_ns).

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
