//! The one kind of random stream this crate uses.
//!
//! Xoshiro256++ seeded through SplitMix64, which the `rand_xoshiro` crate
//! promises to keep portable: the same seed gives the same integers natively
//! and in WebAssembly. Ranges are cut with a 128-bit multiplication, so no
//! float takes part.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of integers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(crate) fn new(seed: u64) -> Self {
        Stream(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// An integer below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into a slice of `len` elements, which must not be empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
