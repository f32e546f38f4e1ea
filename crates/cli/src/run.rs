//! `zswap-sim run`.

use crate::output::{CliError, print};
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
    /// A name from `zswap-sim list`, or a TOML file
    scenario: String,
    /// Set a key, for example context=split; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
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
    let mut scenario = find(&args.scenario)?;
    scenario.set_many(sets(args)?)?;
    let mut report = Report::new(&scenario);
    let first = args.seed.unwrap_or(scenario.seed);
    for number in 0..args.runs {
        let seed = first
            .checked_add(number)
            .ok_or(CliError::SeedTooLarge { first })?;
        report.runs.push(run_once(&scenario, seed)?);
    }
    if args.json {
        let json = serde_json::to_string(&report).map_err(std::io::Error::from)?;
        print(&format!("{json}\n"))
    } else {
        print(&in_words(&report))
    }
}

/// The keys and values of all `--set`.
fn sets(args: &RunArgs) -> Result<Vec<(&str, &str)>, CliError> {
    let mut pairs = Vec::new();
    for set in &args.sets {
        let (key, value) = set
            .split_once('=')
            .ok_or_else(|| CliError::SetForm(set.clone()))?;
        pairs.push((key.trim(), value.trim()));
    }
    Ok(pairs)
}

/// A built-in scenario by name, or one from a file.
fn find(name: &str) -> Result<Scenario, CliError> {
    if let Some(scenario) = Scenario::named(name) {
        return Ok(scenario);
    }
    let text = std::fs::read_to_string(name).map_err(|error| CliError::NoScenario {
        got: name.to_owned(),
        error,
    })?;
    let stem = std::path::Path::new(name)
        .file_stem()
        .map_or(name.into(), |stem| stem.to_string_lossy());
    Scenario::from_toml(&stem, &text).map_err(|error| CliError::Scenario {
        file: name.to_owned(),
        error,
    })
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
