//! Every timed read of a run, for the dots and for finding one again.
//!
//! Invariants:
//! 1. Reads are kept in order of their end.
//! 2. The grid counts every read; reads over [`SLOW_NS`] are dots of their own
//!    as well.

use crate::protocol::SlimRead;

/// Reads over this are slow, as the publication counts them.
pub const SLOW_NS: u64 = 10_000_000;
/// From here on reads are so few that each is drawn.
pub const RARE_NS: u64 = 100_000;

/// Columns of the grid, over the whole run.
pub const COLUMNS: usize = 480;
/// Rows of the grid, from [`LOWEST_NS`] to [`HIGHEST_NS`].
pub const ROWS: usize = 80;
/// The bottom of the scale.
pub const LOWEST_NS: f64 = 4e3;
/// The top of the scale.
pub const HIGHEST_NS: f64 = 60e6;

/// The reads of a run.
#[derive(Clone, Debug, Default)]
pub struct Field {
    reads: Vec<SlimRead>,
    /// Reads per cell, row by row from the fastest.
    grid: Vec<u32>,
    /// Places in `reads` of those over [`RARE_NS`].
    rare: Vec<usize>,
    slowest: Option<SlimRead>,
    slow: u64,
}

/// Where on the scale a latency lies: 0 at the bottom, 1 at the top.
pub fn height(latency_ns: f64) -> f64 {
    let (low, high) = (LOWEST_NS.ln(), HIGHEST_NS.ln());
    ((latency_ns.max(1.0).ln() - low) / (high - low)).clamp(0.0, 1.0)
}

impl Field {
    /// Takes in more reads of a run of this length.
    pub fn extend(&mut self, reads: &[SlimRead], end_ns: u64) {
        self.grid.resize(COLUMNS * ROWS, 0);
        for &read in reads {
            let column = read.begin_ns as f64 / end_ns.max(1) as f64 * COLUMNS as f64;
            let row = height(read.latency_ns as f64) * ROWS as f64;
            let cell = (row as usize).min(ROWS - 1) * COLUMNS + (column as usize).min(COLUMNS - 1);
            self.grid[cell] += 1;
            if read.latency_ns >= RARE_NS {
                self.rare.push(self.reads.len());
            }
            self.slow += u64::from(read.latency_ns > SLOW_NS);
            if self
                .slowest
                .is_none_or(|slowest| read.latency_ns > slowest.latency_ns)
            {
                self.slowest = Some(read);
            }
            self.reads.push(read);
        }
    }

    /// How many reads there are.
    pub fn count(&self) -> u64 {
        self.reads.len() as u64
    }

    /// How many took more than [`SLOW_NS`].
    pub fn slow(&self) -> u64 {
        self.slow
    }

    /// The slowest read; the first of equal ones.
    pub fn slowest(&self) -> Option<SlimRead> {
        self.slowest
    }

    /// The first read over [`SLOW_NS`].
    pub fn first_slow(&self) -> Option<SlimRead> {
        self.rare().find(|read| read.latency_ns > SLOW_NS)
    }

    /// The reads over [`RARE_NS`], in order of their end.
    pub fn rare(&self) -> impl Iterator<Item = SlimRead> {
        self.rare.iter().map(|&index| self.reads[index])
    }

    /// The slowest reads, slowest first.
    pub fn slowest_few(&self, count: usize) -> Vec<SlimRead> {
        let mut slowest: Vec<SlimRead> = Vec::new();
        for read in self.rare() {
            // After equal ones, which came earlier.
            let place = slowest.partition_point(|other| other.latency_ns >= read.latency_ns);
            if place < count {
                slowest.insert(place, read);
                slowest.truncate(count);
            }
        }
        slowest
    }

    /// The cells that hold reads: column, row, how many.
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        let cells = self
            .grid
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        cells.map(|(cell, &count)| (cell % COLUMNS, cell / COLUMNS, count))
    }

    /// The slowest read that was under way at a moment.
    pub fn at(&self, at_ns: u64) -> Option<SlimRead> {
        let first = self.reads.partition_point(|read| read.end_ns() < at_ns);
        let under_way = self.reads[first..].iter().take(64);
        let under_way = under_way.filter(|read| read.begin_ns <= at_ns);
        under_way.copied().max_by_key(|read| read.latency_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(begin_ns: u64, latency_ns: u64) -> SlimRead {
        SlimRead {
            begin_ns,
            latency_ns,
        }
    }

    #[test]
    fn reads_are_counted_and_found_again() {
        let mut field = Field::default();
        let slow = read(30_000, 20_000_000);
        field.extend(&[read(0, 10_000), read(20_000, 9_000), slow], 100_000_000);
        field.extend(&[read(21_000_000, 9_000)], 100_000_000);
        assert_eq!((field.count(), field.slow()), (4, 1));
        assert_eq!(field.first_slow(), Some(slow));
        assert_eq!(field.slowest(), Some(slow));
        assert_eq!(field.at(10_000_000), Some(slow));
        assert_eq!(field.at(15_000), None);
        assert_eq!(field.cells().map(|(_, _, count)| count).sum::<u32>(), 4);
    }
}
