//! Output and errors of the program.

use std::io::{self, Write};
use std::process::ExitCode;
use zswap_lab::{KeyError, RunError, ScenarioError};

/// Why the program ends without having done what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// There is no such scenario.
    #[error("scenario is {got}; it takes a name from `zswap-sim list` or a TOML file ({error})")]
    NoScenario {
        /// What was asked for.
        got: String,
        /// Why it could not be read as a file.
        error: io::Error,
    },
    /// The scenario's file is wrong.
    #[error("{file}: {error}")]
    Scenario {
        /// The file.
        file: String,
        /// What is wrong.
        error: ScenarioError,
    },
    /// A `--set` is wrong.
    #[error("--set {0}")]
    Set(#[from] KeyError),
    /// The call is wrong in a way that the argument parser found.
    #[error("{0}")]
    Usage(String),
    /// Counting seeds up would begin again at 0.
    #[error("--seed is {first}; with --runs it takes a seed from which they can be counted up")]
    SeedTooLarge {
        /// The first seed.
        first: u64,
    },
    /// A `--set` is not of the form KEY=VALUE.
    #[error("--set is {0}; it takes KEY=VALUE")]
    SetForm(String),
    /// A chain size is impossible.
    #[error("--chain {0}")]
    Chain(#[from] zswap_mm::zsmalloc::ChainSizeError),
    /// There is no such compressor.
    #[error("--compressor {0}")]
    Compressor(String),
    /// The pools could not be filled.
    #[error("{0}")]
    Waste(#[from] zswap_mm::waste::WasteError),
    /// A run broke a rule.
    #[error("seed {seed}: {error}")]
    Run {
        /// The run's seed.
        seed: u64,
        /// What happened.
        error: RunError,
    },
    /// A soak found something.
    #[error("seed {seed}: {error}")]
    Soak {
        /// The soak's seed.
        seed: u64,
        /// What it found.
        error: Box<zswap_lab::SoakError>,
    },
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// 2 for a wrong call, 1 for anything else.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CliError::Run { .. }
            | CliError::Soak { .. }
            | CliError::Output(_)
            | CliError::Waste(_) => ExitCode::from(1),
            _ => ExitCode::from(2),
        }
    }
}

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says an error in one line.
pub fn complain(error: &CliError) {
    let line = error.to_string().replace(['\n', '\r'], " ");
    // Nobody is left to tell if this fails.
    let _ = writeln!(io::stderr(), "zswap-sim: {line}");
}
