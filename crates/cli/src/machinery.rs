//! `zswap-sim classes`, `pools` and `layout`: the machinery at rest.

use crate::output::{CliError, print};
use clap::Args;
use zswap_mm::Algorithm;

/// Which size classes.
#[derive(Args)]
#[command(after_help = "Examples:
  zswap-sim classes
  zswap-sim classes --chain 4 --legacy --csv")]
pub struct ClassesArgs {
    /// Longest chain of pages in a zspage, 4 to 16
    #[arg(long, default_value_t = 8)]
    chain: u8,
    /// The rule of kernels up to 6.2, which compared percentages
    #[arg(long)]
    legacy: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

/// Which loads.
#[derive(Args)]
#[command(after_help = "Example:
  zswap-sim pools --compressor lz4")]
pub struct PoolsArgs {
    /// Compressor, by its kernel name
    #[arg(long, default_value = "zstd")]
    compressor: String,
    /// Seed of the page contents
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Prints the size classes.
pub fn classes(args: &ClassesArgs) -> Result<(), CliError> {
    print(&crate::classes::classes(args.chain, args.legacy, args.csv)?)
}

/// Prints the waste table.
pub fn pools(args: &PoolsArgs) -> Result<(), CliError> {
    let algorithm: Algorithm =
        args.compressor
            .parse()
            .map_err(|error: zswap_mm::compressor::UnknownAlgorithm| {
                CliError::Compressor(error.to_string())
            })?;
    print(&crate::classes::pools(algorithm, args.seed)?)
}

/// Prints the layouts.
pub fn layout() -> Result<(), CliError> {
    print(&crate::layout::layout())
}
