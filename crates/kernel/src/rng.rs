//! One named random stream per concern.
//!
//! Every stream is derived from the scenario's seed and the stream's name, so
//! drawing once more from one of them never shifts another: adding a task
//! leaves the costs of the others as they were.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of integers.
///
/// ```
/// use kernel_sim::Stream;
/// let mut a = Stream::new(7, "compress");
/// let mut b = Stream::new(7, "compress");
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` of the run with this `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a: the name only has to tell streams apart.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`, or 0 when `bound` is 0. The bias of the
    /// multiply-and-shift method is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// `mean_ns` spread evenly over plus or minus `permille` thousandths.
    pub fn jittered(&mut self, mean_ns: u64, permille: u64) -> u64 {
        let half_width_ns = mean_ns * permille / 1000;
        mean_ns - half_width_ns + self.below(2 * half_width_ns + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_by_seed() {
        let first = |seed, name| Stream::new(seed, name).next_u64();
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
    }

    #[test]
    fn jitter_keeps_its_bounds_and_its_mean() {
        let mut stream = Stream::new(3, "jitter");
        let draws: Vec<u64> = (0..10_000).map(|_| stream.jittered(16_000, 200)).collect();
        assert!(draws.iter().all(|ns| (12_800..=19_200).contains(ns)));
        let mean_ns = draws.iter().sum::<u64>() / 10_000;
        assert!((15_900..16_100).contains(&mean_ns), "{mean_ns}");
    }
}
