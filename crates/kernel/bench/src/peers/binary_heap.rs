//! A bare event loop: pop the earliest, push what follows from it. What a
//! discrete-event simulation costs at least that does nothing else.

use kernel_bench::Count;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// As many events are pending as the larger machines have CPUs and timers.
const PENDING: u64 = 64;
/// Events between two looks at the clock.
const PART: u64 = 10_000;
/// Follow-ups come within a power of two of ns, by a multiplier that spreads
/// consecutive numbers over it.
const SPREAD_BITS: u32 = 12;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The loop with its queue of (time, order of coming, event).
pub struct Loop {
    queue: BinaryHeap<Reverse<(u64, u64, u64)>>,
    seq: u64,
}

impl Loop {
    pub fn new() -> Loop {
        let mut empty = Loop {
            queue: BinaryHeap::new(),
            seq: 0,
        };
        (0..PENDING).for_each(|event| empty.push(0, event));
        empty
    }

    fn push(&mut self, now_ns: u64, event: u64) {
        self.seq += 1;
        let after_ns = self.seq.wrapping_mul(MULTIPLIER) >> (u64::BITS - SPREAD_BITS);
        self.queue
            .push(Reverse((now_ns + after_ns, self.seq, event)));
    }

    pub fn step(&mut self) -> Count {
        for _ in 0..PART {
            if let Some(Reverse((at_ns, _, event))) = self.queue.pop() {
                self.push(at_ns, event);
            }
        }
        Count(PART)
    }
}
