//! What is told of runs, as JSON: the contract that scripts rely on.

use crate::keys::{KEYS, Value};
use crate::run::Run;
use crate::scenario::Scenario;
use serde::Serialize;
use std::collections::BTreeMap;

/// Runs of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// Every key with its value.
    pub settings: BTreeMap<&'static str, Value>,
    /// The runs, one per seed.
    pub runs: Vec<RunReport>,
}

/// One run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunReport {
    /// Its seed.
    pub seed: u64,
    /// Timed reads.
    pub reads: u64,
    /// The slowest of them, in ns; 0 without reads.
    pub slowest_read_ns: u64,
    /// Timed reads that took more than 10 ms.
    pub reads_over_10ms: u64,
    /// Median latency of the timed reads (nearest rank), in ns.
    pub p50_ns: u64,
    /// 99th percentile, in ns.
    pub p99_ns: u64,
    /// 99.9th percentile, in ns.
    pub p999_ns: u64,
    /// Pages stored by all tasks.
    pub stores: u64,
    /// Pages loaded by workers.
    pub worker_reads: u64,
    /// Records of the run.
    pub events: u64,
    /// Time that the run took outside, in ns.
    pub wall_ns: u64,
    /// Hash of all records, hexadecimal.
    pub trace_hash: String,
    /// Pages that the codec really compressed or decompressed; the others had
    /// a content that it had met before in this run, compared byte by byte.
    pub codec_runs: u64,
}

impl Report {
    /// A report without runs.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Report {
        Report {
            scenario: scenario.name.clone(),
            settings: KEYS
                .iter()
                .map(|key| (key.name, key.get(scenario)))
                .collect(),
            runs: Vec::new(),
        }
    }
}

/// 10 ms, the limit that the publication counts slow reads by.
const SLOW_NS: u64 = 10_000_000;

impl RunReport {
    /// The report of a run that took `wall_ns` of the caller's time.
    #[must_use]
    pub fn new(run: &Run, seed: u64, wall_ns: u64) -> RunReport {
        let metrics = run.metrics();
        let [p50_ns, p99_ns, p999_ns] = metrics.percentiles_ns([500, 990, 999]);
        RunReport {
            seed,
            reads: metrics.reads().len() as u64,
            slowest_read_ns: metrics.slowest().map_or(0, |read| read.latency_ns),
            reads_over_10ms: metrics.reads_over(SLOW_NS) as u64,
            p50_ns,
            p99_ns,
            p999_ns,
            stores: metrics.stores(),
            worker_reads: metrics.worker_reads(),
            events: run.event_count(),
            wall_ns,
            trace_hash: format!("{:016x}", run.trace_hash()),
            codec_runs: run.codec_work().0,
        }
    }
}
