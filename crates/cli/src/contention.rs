//! `zswap-sim contention`.

use crate::output::{CliError, print};
use clap::Args;
use zswap_lab::{Preset, contention as run, contention_text};

/// On which machine.
#[derive(Args)]
#[command(after_help = "Example:
  zswap-sim contention --cpus 4")]
pub struct ContentionArgs {
    /// CPUs, each with a task that pages out and in
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=32))]
    cpus: u8,
    /// Seed of page contents and costs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Prints the table.
pub fn contention(args: &ContentionArgs) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for preset in [
        Preset::V6_7,
        Preset::V6_8SplitTree,
        Preset::V6_10OnePool,
        Preset::V6_10,
        Preset::V6_11,
        Preset::BeforeTheSplit,
        Preset::Patch2,
    ] {
        let row = run(preset.design(), args.cpus, args.seed).map_err(|error| CliError::Run {
            seed: args.seed,
            error,
        })?;
        rows.push((preset.to_string(), row));
    }
    print(&contention_text(&rows))
}
