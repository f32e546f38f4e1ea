//! `zswap-sim explain`: the slowest reads of a run, in words.

use crate::output::{CliError, print};
use crate::scenario::ScenarioArgs;
use clap::Args;
use std::fmt::Write;
use zswap_lab::{Read, Run, RunError, Scenario};
use zswap_view::{Moment, in_words_ns, story};

/// What to explain.
#[derive(Args)]
#[command(after_help = "Examples:
  zswap-sim explain b1-1cpu
  zswap-sim explain b1-1cpu --set context=split --seed 7 --slowest 3")]
pub struct ExplainArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Seed of the run; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    /// How many of the slowest reads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    slowest: u32,
}

/// Runs, and runs again up to each of the slowest reads.
pub fn explain(args: &ExplainArgs) -> Result<(), CliError> {
    let scenario = args.scenario.load()?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let failed = |error| CliError::Run { seed, error };
    let reads = slowest(&scenario, seed, args.slowest).map_err(failed)?;
    if reads.is_empty() {
        return print("the run has no timed reads\n");
    }
    for (number, read) in (1_u32..).zip(reads) {
        let text = tell(&scenario, seed, number, read).map_err(failed)?;
        print(&text)?;
    }
    Ok(())
}

/// The slowest reads of a run, slowest first; of equal ones the earlier first.
fn slowest(scenario: &Scenario, seed: u64, count: u32) -> Result<Vec<Read>, RunError> {
    let mut run = Run::start(scenario, seed)?;
    run.finish()?;
    let mut reads = run.metrics().reads().to_vec();
    reads.sort_by_key(|read| (core::cmp::Reverse(read.latency_ns), read.begin_ns));
    reads.truncate(count as usize);
    Ok(reads)
}

fn tell(scenario: &Scenario, seed: u64, number: u32, read: Read) -> Result<String, RunError> {
    let mut run = Run::start(scenario, seed)?;
    run.advance(read.begin_ns)?;
    let end_ns = read.begin_ns + read.latency_ns;
    let recording = run.record(end_ns)?;
    let name = &recording.roster.tasks[read.task.index()].name;
    let mut text = format!(
        "{number}. {name}, page {}: {} from {} ns on\n",
        read.page,
        in_words_ns(read.latency_ns),
        read.begin_ns
    );
    for moment in story(recording, read.task, read.begin_ns, end_ns) {
        write_moment(&mut text, read.begin_ns, &moment);
    }
    let _ = writeln!(
        text,
        "  + {:>8}  the read ends",
        in_words_ns(read.latency_ns)
    );
    Ok(text)
}

fn write_moment(text: &mut String, begin_ns: u64, moment: &Moment) {
    let after = in_words_ns(moment.at_ns - begin_ns);
    let mut margin = format!("  + {after:>8}  ");
    for link in &moment.links {
        let mark = if link.alarm { "  <== not running" } else { "" };
        let _ = writeln!(text, "{margin}{} ({}){mark}", link.title, link.detail);
        margin = " ".repeat(14);
    }
}
