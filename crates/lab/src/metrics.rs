//! What a run comes to: every timed read, and counts.

use crate::roster::{Role, TaskInfo};
use crate::workload::WorkProbe;
use kernel_sim::{Event, EventKind, TaskId};
use serde::{Deserialize, Serialize};
use zswap_paths::Probe;

/// A timed read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Read {
    /// When it began, in virtual ns.
    pub begin_ns: u64,
    /// How long it took, in ns.
    pub latency_ns: u64,
    /// Who read.
    pub task: TaskId,
    /// Which of its pages.
    pub page: u32,
}

/// Folds records into what is reported of a run.
#[derive(Clone, Debug)]
pub struct Metrics {
    roles: Vec<Role>,
    begun_ns: Vec<u64>,
    reads: Vec<Read>,
    stores: u64,
    worker_reads: u64,
}

impl Metrics {
    pub(crate) fn new(tasks: &[TaskInfo]) -> Metrics {
        Metrics {
            roles: tasks.iter().map(|task| task.role).collect(),
            begun_ns: vec![0; tasks.len()],
            reads: Vec::new(),
            stores: 0,
            worker_reads: 0,
        }
    }

    pub(crate) fn apply(&mut self, event: &Event) {
        if event.kind != EventKind::Probe {
            return;
        }
        if event.aux == Probe::StoreEnd as u16 {
            self.stores += 1;
        } else if event.aux == Probe::LoadEnd as u16 {
            let by_worker = self.roles[event.task.index()] == Role::Worker;
            self.worker_reads += u64::from(by_worker);
        } else if event.aux == WorkProbe::ReadBegin as u16 {
            self.begun_ns[event.task.index()] = event.at_ns;
        } else if event.aux == WorkProbe::ReadEnd as u16 {
            let begin_ns = self.begun_ns[event.task.index()];
            self.reads.push(Read {
                begin_ns,
                latency_ns: event.at_ns - begin_ns,
                task: event.task,
                page: u32::try_from(event.arg).unwrap_or(u32::MAX),
            });
        }
    }

    /// Every timed read, in order of its end.
    #[must_use]
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Pages stored.
    #[must_use]
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// Pages that workers have loaded.
    #[must_use]
    pub fn worker_reads(&self) -> u64 {
        self.worker_reads
    }

    /// The slowest read; the first of equal ones.
    #[must_use]
    pub fn slowest(&self) -> Option<Read> {
        let slower = |a: &Read, b: &Read| a.latency_ns < b.latency_ns;
        let mut reads = self.reads.iter().copied();
        let first = reads.next()?;
        Some(reads.fold(first, |slowest, read| {
            if slower(&slowest, &read) {
                read
            } else {
                slowest
            }
        }))
    }

    /// How many reads took longer than `ns`.
    #[must_use]
    pub fn reads_over(&self, ns: u64) -> usize {
        self.reads
            .iter()
            .filter(|read| read.latency_ns > ns)
            .count()
    }

    /// The latencies at these thousandths (nearest rank), in ns; 0 without reads.
    #[must_use]
    pub fn percentiles_ns<const N: usize>(&self, permille: [u64; N]) -> [u64; N] {
        let latencies: Vec<u64> = self.reads.iter().map(|read| read.latency_ns).collect();
        let count = latencies.len() as u64;
        permille.map(|permille| {
            let rank = (count * permille).div_ceil(1000).max(1);
            nth_smallest(&latencies, rank)
        })
    }
}

/// The value that `rank` of `values` are not above, or the greatest. It halves
/// the range of values instead of sorting them, whose code is ten times as long.
fn nth_smallest(values: &[u64], rank: u64) -> u64 {
    let (mut low, mut high) = (0, values.iter().copied().max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low) / 2;
        let not_above = values.iter().filter(|&&value| value <= middle).count();
        if not_above as u64 >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies_ns: &[u64]) -> Metrics {
        let mut metrics = Metrics::new(&[]);
        metrics.reads = (0..)
            .zip(latencies_ns)
            .map(|(begin_ns, &latency_ns)| Read {
                begin_ns,
                latency_ns,
                task: TaskId(0),
                page: 0,
            })
            .collect();
        metrics
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let metrics = of(&(1..=1000).rev().collect::<Vec<u64>>());
        assert_eq!(
            metrics.percentiles_ns([500, 990, 999, 1000]),
            [500, 990, 999, 1000]
        );
        assert_eq!(of(&[7]).percentiles_ns([1, 999]), [7, 7]);
        assert_eq!(of(&[]).percentiles_ns([500]), [0]);
    }

    #[test]
    fn the_slowest_is_the_first_of_equal_ones() {
        let slowest = of(&[3, 9, 1, 9]).slowest().expect("there are reads");
        assert_eq!((slowest.begin_ns, slowest.latency_ns), (1, 9));
        assert_eq!(of(&[]).slowest(), None);
        assert_eq!(of(&[3, 9, 1, 9]).reads_over(3), 2);
    }
}
