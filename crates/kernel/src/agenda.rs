//! What happens next on each CPU, the earliest of all first.
//!
//! A tournament: CPUs are the leaves of a tree, each node has the earlier of the
//! two below it, and the root is the earliest of all. To look is to read the
//! root; to note something anew takes one comparison per level, and fewer when it
//! changes nothing further up.
//!
//! Invariants:
//! 1. The order is that of (time, class, CPU), which is one number: comparing
//!    numbers takes no branch. No two places compare equal.
//! 2. A node is never later than those below it.
//!
//! Left out: times from 2^55 ns (a year) on, which are never.

use crate::cpu::Next;
use crate::ids::CpuId;
use crate::kernel::NEVER;

/// Bits of a CPU's number, of which there are 64 at most.
const CPU_BITS: u32 = 6;
/// Bits of a class.
const CLASS_BITS: u32 = 3;
const TIME_SHIFT: u32 = CPU_BITS + CLASS_BITS;
/// The time that stands for never.
const NEVER_NS: u64 = u64::MAX >> TIME_SHIFT;

/// Something that happens: its time, its class and its CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Item(u64);

impl Item {
    /// Something that happens on CPU 0, so far.
    pub fn new(at_ns: u64, next: Next) -> Item {
        Item(at_ns.min(NEVER_NS) << TIME_SHIFT | (next as u64) << CPU_BITS)
    }

    /// The same on another CPU.
    fn on(self, cpu: CpuId) -> Item {
        Item(self.0 | u64::from(cpu.0))
    }

    /// When it happens.
    pub fn at_ns(self) -> u64 {
        match self.0 >> TIME_SHIFT {
            NEVER_NS => NEVER,
            at_ns => at_ns,
        }
    }

    /// Its class.
    pub fn next(self) -> Next {
        Next::ALL[(self.0 >> CPU_BITS) as usize & ((1 << CLASS_BITS) - 1)]
    }

    /// Its CPU.
    pub fn cpu(self) -> CpuId {
        CpuId((self.0 & ((1 << CPU_BITS) - 1)) as u8)
    }
}

/// The tournament. Node 1 is the root, nodes `2 n` and `2 n + 1` are below `n`.
#[derive(Debug)]
pub(crate) struct Agenda {
    nodes: Vec<Item>,
    /// Number of the first leaf: a power of two.
    leaves: usize,
}

impl Agenda {
    /// Nothing ever happens on so many CPUs.
    pub fn new(cpus: u8) -> Agenda {
        let leaves = usize::from(cpus).next_power_of_two();
        Agenda {
            nodes: vec![Item::new(NEVER, Next::OpEnd); 2 * leaves],
            leaves,
        }
    }

    /// The earliest of all.
    pub fn first(&self) -> Item {
        self.nodes[1]
    }

    /// Notes what happens next on a CPU.
    pub fn set(&mut self, cpu: CpuId, item: Item) {
        let mut node = self.leaves + cpu.index();
        let mut earliest = item.on(cpu);
        while self.nodes[node] != earliest {
            self.nodes[node] = earliest;
            if node == 1 {
                return;
            }
            earliest = earliest.min(self.nodes[node ^ 1]);
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn an_item_is_what_it_was_made_of() {
        for (number, next) in Next::ALL.into_iter().take(6).enumerate() {
            assert_eq!(next as usize, number);
            let item = Item::new(1 << 54, next).on(CpuId(63));
            assert_eq!(
                (item.at_ns(), item.next(), item.cpu()),
                (1 << 54, next, CpuId(63))
            );
        }
        assert_eq!(Item::new(NEVER, Next::Tick).at_ns(), NEVER);
        assert_eq!(Item::new(1 << 55, Next::Tick).at_ns(), NEVER);
    }

    #[test]
    fn the_first_is_the_one_that_a_scan_finds() {
        let mut random = Stream::new(1, "agenda");
        for cpus in [1, 2, 5, 64] {
            let mut agenda = Agenda::new(cpus);
            let mut list = vec![(NEVER, Next::OpEnd); usize::from(cpus)];
            for _ in 0..2_000 {
                let cpu = CpuId(random.below(cpus.into()) as u8);
                // Few times and classes, so that many are equal.
                let what = (random.below(20), Next::ALL[random.below(6) as usize]);
                agenda.set(cpu, Item::new(what.0, what.1));
                list[cpu.index()] = what;
                let scanned = list.iter().zip(0..).map(|(what, cpu)| (*what, CpuId(cpu)));
                let first = agenda.first();
                let first = ((first.at_ns(), first.next()), first.cpu());
                assert_eq!(Some(first), scanned.min());
            }
        }
    }
}
