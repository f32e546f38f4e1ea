//! `zswap-sim soak`.

use crate::output::{CliError, print};
use clap::Args;
use std::fmt::Write;
use std::time::Instant;
use zswap_lab::{Soak, soak as run_soak};

/// How much.
#[derive(Args)]
#[command(after_help = "Example:
  zswap-sim soak --ops 1000000 --seed 7")]
pub struct SoakArgs {
    /// Operations of tasks, at least
    #[arg(long, default_value_t = 100_000)]
    ops: u64,
    /// Seed of all machines
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Soaks and reports.
pub fn soak(args: &SoakArgs) -> Result<(), CliError> {
    let started = Instant::now();
    let report = run_soak(Soak {
        ops: args.ops,
        seed: args.seed,
    })
    .map_err(|error| CliError::Soak {
        seed: args.seed,
        error: Box::new(error),
    })?;
    let mut text = String::new();
    let counters = report.counters;
    let lines = [
        ("machines", report.rounds),
        ("operations", report.ops),
        ("pages compared", report.reads),
        ("compressor switches", report.switches),
        ("records", report.events),
        ("zswpout", counters.zswpout),
        ("zswpin", counters.zswpin),
        ("written_back_pages", counters.written_back_pages),
        ("pool_limit_hit", counters.pool_limit_hit),
        ("reject_alloc_fail", counters.reject_alloc_fail),
        ("reject_kmemcache_fail", counters.reject_kmemcache_fail),
        ("reject_compress_poor", counters.reject_compress_poor),
        ("reject_compress_fail", counters.reject_compress_fail),
        ("reject_reclaim_fail", counters.reject_reclaim_fail),
        ("decompress_fail", counters.decompress_fail),
        (
            "ms",
            u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ),
    ];
    for (name, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<22} {value:>14}");
    }
    text.push_str("every page equal, every lock in order, all memory accounted for\n");
    print(&text)
}
