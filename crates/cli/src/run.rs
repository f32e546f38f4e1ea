//! `zswap-sim run`.

use crate::output::{CliError, print};
use crate::scenario::ScenarioArgs;
use clap::Args;
use std::fmt::Write;
use std::time::Instant;
use zswap_lab::{Report, Run, RunReport, Scenario};

/// What to run.
#[derive(Args)]
#[command(after_help = "Examples:
  zswap-sim run b1-1cpu
  zswap-sim run b1-1cpu --set context=onstack --runs 5
  zswap-sim run my-scenario.toml --set workers.count=8 --json")]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Seed of the first run; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    /// Number of runs, with seeds that count up
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs and reports.
pub fn run(args: &RunArgs) -> Result<(), CliError> {
    let scenario = args.scenario.load()?;
    let mut report = Report::new(&scenario);
    let first = args.seed.unwrap_or(scenario.seed);
    // Said before the first run, which may take long.
    let last = first
        .checked_add(args.runs - 1)
        .ok_or(CliError::SeedTooLarge { first })?;
    for seed in first..=last {
        report.runs.push(run_once(&scenario, seed)?);
    }
    if args.json {
        let json = serde_json::to_string(&report).map_err(std::io::Error::from)?;
        print(&format!("{json}\n"))
    } else {
        print(&in_words(&report))
    }
}

fn run_once(scenario: &Scenario, seed: u64) -> Result<RunReport, CliError> {
    let started = Instant::now();
    let mut run = Run::start(scenario, seed).map_err(|error| CliError::Run { seed, error })?;
    run.finish()
        .map_err(|error| CliError::Run { seed, error })?;
    let wall_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(RunReport::new(&run, seed, wall_ns))
}

fn in_words(report: &Report) -> String {
    let mut text = format!("{}\n", report.scenario);
    let _ = writeln!(
        text,
        "{:>20} {:>9} {:>12} {:>8} {:>10} {:>10} {:>12} {:>9}  {:<16}",
        "seed", "reads", "slowest ms", ">10 ms", "p50 us", "p99 us", "p99.9 us", "stores", "trace"
    );
    for run in &report.runs {
        let _ = writeln!(
            text,
            "{:>20} {:>9} {:>12} {:>8} {:>10} {:>10} {:>12} {:>9}  {:<16}",
            run.seed,
            run.reads,
            thousandths(run.slowest_read_ns / 1_000),
            run.reads_over_10ms,
            thousandths(run.p50_ns),
            thousandths(run.p99_ns),
            thousandths(run.p999_ns),
            run.stores,
            run.trace_hash
        );
    }
    text
}

/// A number of thousandths with its decimal point.
fn thousandths(number: u64) -> String {
    format!("{}.{:03}", number / 1000, number % 1000)
}
