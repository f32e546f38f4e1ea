//! A growing table of records with stable numbers and a free list.
//!
//! The tables behind handles, zspages and page frames hold up to millions of
//! records. They grow by an eighth at a time instead of doubling, which would
//! leave up to half of their memory unused.
//!
//! 1. A number is given out again only after it was returned.
//! 2. The number returned last is given out first, so what was used last is
//!    still in the cache and the order depends on nothing but the calls.
//! 3. Memory unused: about an eighth, plus returned records.

/// Records a table grows by at least.
const LEAST_GROWTH: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            records: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Stores a record and returns its number.
    ///
    /// # Panics
    ///
    /// After 2^32 records.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.records[number as usize] = value;
                number
            }
            None => self.append(value),
        }
    }

    fn append(&mut self, value: T) -> u32 {
        if self.records.len() == self.records.capacity() {
            self.records
                .reserve_exact(self.records.len() / 8 + LEAST_GROWTH);
        }
        self.records.push(value);
        u32::try_from(self.records.len() - 1).expect("at most 2^32 records")
    }

    /// Returns a number; what the record holds stays until it is reused.
    #[inline]
    pub(crate) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// How many records are in use.
    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Numbers given out so far, in use or not: 0 up to this, exclusive.
    pub(crate) fn numbers(&self) -> u32 {
        self.records.len() as u32
    }

    /// Bytes of memory the table takes, the records' own heap not included.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.records[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.records[number as usize]
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
