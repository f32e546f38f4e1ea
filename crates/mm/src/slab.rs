//! A growing table of records with stable numbers and a free list.
//!
//! The tables behind handles, zspages and page frames hold up to millions of
//! records. A `Vec` would copy all of them each time it doubles and would
//! leave up to half of its memory unused; this one grows by whole segments.
//!
//! 1. A number is given out again only after it was returned.
//! 2. The number returned last is given out first, so what was used last is
//!    still in the cache and the order depends on nothing but the calls.
//! 3. Memory unused: less than one segment, plus returned records.

/// Records per segment: large enough to make the table of segments small,
/// small enough not to matter for a pool that holds a single page.
const SEGMENT: usize = 256;
const SEGMENT_SHIFT: u32 = SEGMENT.trailing_zeros();

#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    segments: Vec<Vec<T>>,
    free: Vec<u32>,
    live: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            segments: Vec::new(),
            free: Vec::new(),
            live: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Stores a record and returns its number.
    ///
    /// # Panics
    ///
    /// After 2^32 records.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.live += 1;
        if let Some(number) = self.free.pop() {
            self[number] = value;
            return number;
        }
        let full = self
            .segments
            .last()
            .is_none_or(|last| last.len() == SEGMENT);
        if full {
            self.segments.push(Vec::with_capacity(SEGMENT));
        }
        let segment = self.segments.len() - 1;
        let at = self.segments[segment].len();
        self.segments[segment].push(value);
        u32::try_from((segment << SEGMENT_SHIFT) + at).expect("at most 2^32 records")
    }

    /// Returns a number; what the record holds stays until it is reused.
    pub(crate) fn release(&mut self, number: u32) {
        self.live -= 1;
        self.free.push(number);
    }

    /// How many records are in use.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Numbers given out so far, in use or not: 0 up to this, exclusive.
    pub(crate) fn numbers(&self) -> u32 {
        match self.segments.last() {
            None => 0,
            Some(last) => (((self.segments.len() - 1) << SEGMENT_SHIFT) + last.len()) as u32,
        }
    }

    /// Bytes of memory the table takes, the records' own heap not included.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.segments.len() * SEGMENT * size_of::<T>()
            + self.segments.capacity() * size_of::<Vec<T>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, number: u32) -> &T {
        &self.segments[number as usize >> SEGMENT_SHIFT][number as usize & (SEGMENT - 1)]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.segments[number as usize >> SEGMENT_SHIFT][number as usize & (SEGMENT - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_returned_last_is_given_out_first() {
        let mut slab = Slab::default();
        let numbers: Vec<u32> = (0..1000).map(|n| slab.insert(n)).collect();
        assert_eq!(numbers, (0..1000).collect::<Vec<u32>>());
        slab.release(3);
        slab.release(700);
        assert_eq!(slab.len(), 998);
        assert_eq!(slab.insert(5), 700);
        assert_eq!(slab.insert(6), 3);
        assert_eq!(slab[700], 5);
        assert_eq!(slab.numbers(), 1000);
    }
}
