//! `zswap-sim locks`.

use crate::output::{CliError, print};
use clap::Args;
use std::fmt::Write;
use zswap_lab::{Preset, lock_table, lock_table_text};

/// Of which design.
#[derive(Args)]
#[command(after_help = "Examples:
  zswap-sim locks --preset patch-2
  zswap-sim locks")]
pub struct LocksArgs {
    /// A design by name; all of them by default
    #[arg(long)]
    preset: Option<String>,
}

/// Prints the locks of each path, from a run.
pub fn locks(args: &LocksArgs) -> Result<(), CliError> {
    let presets = match &args.preset {
        Some(name) => vec![
            name.parse::<Preset>()
                .map_err(|error| CliError::Usage(error.to_string()))?,
        ],
        None => Preset::ALL.to_vec(),
    };
    let mut text = String::new();
    for preset in presets {
        let table =
            lock_table(preset.design()).map_err(|error| CliError::Run { seed: 1, error })?;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{preset}: {}", preset.change());
        text.push_str(&lock_table_text(&table));
        text.push('\n');
    }
    print(text.trim_end_matches('\n'))?;
    print("\n")
}
