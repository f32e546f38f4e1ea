//! What the steps of a path cost, in virtual time.
//!
//! The means are a scenario's; this module only says how one number of a
//! scenario is spread over the places of a path.

use kernel_sim::Stream;

/// Mean costs in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Compressing a page, with preemption off under the stream lock.
    pub compress_ns: u64,
    /// Decompressing a page, likewise.
    pub decompress_ns: u64,
    /// The rest of a store outside the mutex of zswap.
    pub store_ns: u64,
    /// The rest of a load, with its fault, outside the mutex.
    pub load_ns: u64,
    /// The rest of a store inside the mutex: allocation and copy.
    pub store_locked_ns: u64,
    /// The rest of a load inside the mutex.
    pub load_locked_ns: u64,
}

/// Spread of a (de)compression around its mean, in thousandths. Real ones vary
/// by 15–20 % (scheduler reference, "Phase"); without, every slice would end at
/// the same point of a store.
const JITTER_PERMILLE: u64 = 200;

/// A cost before and after the (de)compression, or before and after the mutex.
///
/// The proportions are those of the reference's starting costs (7.2): a store
/// is 2.5 µs + {0.3 + compression + 1.5} + 1.5, a load 1.25 + {0.2 +
/// decompression + 0.4} + 1.5.
fn split(total_ns: u64, before: u64, after: u64) -> (u64, u64) {
    let before_ns = total_ns * before / (before + after);
    (before_ns, total_ns - before_ns)
}

impl Costs {
    pub(crate) fn store_outside(&self) -> (u64, u64) {
        split(self.store_ns, 250, 150)
    }

    pub(crate) fn store_inside(&self) -> (u64, u64) {
        split(self.store_locked_ns, 30, 150)
    }

    pub(crate) fn load_outside(&self) -> (u64, u64) {
        split(self.load_ns, 125, 150)
    }

    pub(crate) fn load_inside(&self) -> (u64, u64) {
        split(self.load_locked_ns, 20, 40)
    }

    pub(crate) fn jittered(stream: &mut Stream, mean_ns: u64) -> u64 {
        stream.jittered(mean_ns, JITTER_PERMILLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_costs_come_out_in_their_places() {
        let costs = Costs {
            compress_ns: 16_000,
            decompress_ns: 6_000,
            store_ns: 4_000,
            load_ns: 2_750,
            store_locked_ns: 1_800,
            load_locked_ns: 600,
        };
        assert_eq!(costs.store_outside(), (2_500, 1_500));
        assert_eq!(costs.store_inside(), (300, 1_500));
        assert_eq!(costs.load_outside(), (1_250, 1_500));
        assert_eq!(costs.load_inside(), (200, 400));
    }
}
