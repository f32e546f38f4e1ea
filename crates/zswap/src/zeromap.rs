//! Which swap slots hold a page full of zeroes: a bit each, as in the kernel.

/// The bits.
#[derive(Debug)]
pub(crate) struct Zeromap(Vec<u64>);

impl Zeromap {
    /// Of this many slots, none of which holds zeroes.
    pub(crate) fn new(slots: u64) -> Zeromap {
        let words = slots.div_ceil(u64::from(u64::BITS));
        Zeromap(vec![0; usize::try_from(words).unwrap_or(0)])
    }

    pub(crate) fn contains(&self, slot: u64) -> bool {
        let word = self.0.get(word_of(slot));
        word.is_some_and(|word| word & bit_of(slot) != 0)
    }

    /// Notes whether a slot holds zeroes.
    pub(crate) fn set(&mut self, slot: u64, is_zero: bool) {
        if let Some(word) = self.0.get_mut(word_of(slot)) {
            *word &= !bit_of(slot);
            *word |= if is_zero { bit_of(slot) } else { 0 };
        }
    }
}

fn word_of(slot: u64) -> usize {
    usize::try_from(slot / u64::from(u64::BITS)).unwrap_or(usize::MAX)
}

fn bit_of(slot: u64) -> u64 {
    1 << (slot % u64::from(u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_a_bit_of_its_own() {
        let mut map = Zeromap::new(65);
        map.set(0, true);
        map.set(64, true);
        map.set(0, false);
        assert!(map.contains(64) && !map.contains(0) && !map.contains(63));
        map.set(1000, true);
        assert!(!map.contains(1000), "there is no such slot");
    }
}
