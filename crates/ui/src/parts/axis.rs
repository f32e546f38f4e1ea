//! Axes: round numbers along a stretch of time, and places as percentages.

use zswap_view::scene::units::fixed;

/// A place between two ends as an SVG length.
pub fn percent(at: f64, from: f64, to: f64) -> String {
    percent_of(share(at, from, to))
}

/// A share as an SVG length.
pub fn percent_of(share: f64) -> String {
    fixed(share * 100.0, 3) + "%"
}

/// A place between two ends as a share of the way.
pub fn share(at: f64, from: f64, to: f64) -> f64 {
    (at - from) / (to - from).max(f64::MIN_POSITIVE)
}

/// The smallest distance of round places, in ns: far less than a pixel shows.
const SMALLEST: f64 = 1e-9;

/// Round places between two ends, at most so many of them; 1, 2 or 5 times a
/// power of ten apart.
pub fn round_places(from: f64, to: f64, at_most: usize) -> Vec<f64> {
    let raw = (to - from) / at_most.max(1) as f64;
    let mut power = 1.0;
    while power * 10.0 <= raw {
        power *= 10.0;
    }
    while power > raw && power > SMALLEST {
        power /= 10.0;
    }
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps
        .into_iter()
        .find(|&step| step >= raw)
        .unwrap_or(10.0 * power);
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    (first..=last).map(|place| place as f64 * step).collect()
}

/// A distance in time on an axis of this length: the unit follows the length.
pub fn axis_words(ns: f64, length_ns: f64) -> String {
    let (unit_ns, unit) = match length_ns {
        2e6.. => (1e6, "ms"),
        2e3.. => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    let value = ns / unit_ns;
    let decimals = u32::from(value.fract().abs() > 1e-6);
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{} {unit}", fixed(value.abs(), decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_round_and_not_too_many() {
        assert_eq!(
            round_places(-1.0, 28.0, 8),
            [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]
        );
        assert_eq!(
            round_places(0.0, 1.0, 5),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(axis_words(4e6, 28e6), "4 ms");
        assert_eq!(axis_words(-500_000.0, 28e6), "−0.5 ms");
        assert_eq!(percent(5.0, 0.0, 20.0), "25.000%");
    }
}
