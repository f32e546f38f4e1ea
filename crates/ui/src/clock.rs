//! How fast virtual time goes by, on a logarithmic scale.

use zswap_view::in_words_ns;

/// Slowest: 1 µs of virtual time per second.
const SLOWEST_NS: f64 = 1e3;
/// Steps of the control from the slowest to the fastest, real time: ten to each
/// of six decades.
pub const STEPS: u32 = 60;
/// From one step to the next: the tenth root of ten. Repeated multiplication
/// instead of `powf`, which no other part of the page needs.
const RATIO: f64 = 1.258_925_411_794_167_2;

/// A speed of playback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed(u32);

impl Speed {
    /// 1 ms per second: slow enough to see a slice go by.
    pub const FIRST: Speed = Speed(30);

    /// The speed at a step of the control.
    pub fn at_step(step: u32) -> Speed {
        Speed(step.min(STEPS))
    }

    /// Its step.
    pub fn step(self) -> u32 {
        self.0
    }

    /// Virtual ns per second.
    pub fn ns_per_s(self) -> f64 {
        (0..self.0).fold(SLOWEST_NS, |speed, _| speed * RATIO)
    }

    /// In words.
    pub fn words(self) -> String {
        format!("{} per second", in_words_ns(self.ns_per_s().round() as u64))
    }

    /// Whether moves are too fast to be followed by eye.
    pub fn is_fast(self) -> bool {
        self.ns_per_s() > 5e5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_has_both_ends_and_equal_ratios() {
        assert_eq!(Speed::at_step(0).words(), "1.00 µs per second");
        assert_eq!(Speed::FIRST.words(), "1.00 ms per second");
        assert_eq!(Speed::at_step(99).words(), "1.00 s per second");
        let ratio = |step| Speed::at_step(step + 1).ns_per_s() / Speed::at_step(step).ns_per_s();
        assert!((ratio(3) - ratio(57)).abs() < 1e-9);
    }
}
