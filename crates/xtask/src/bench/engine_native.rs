//! `engine.native`: the command line's own report of how fast it ran.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::process::Command;

use super::{Measurement, engine};
use crate::{cargo, repo};

pub const NAME: &str = "engine.native";

/// The binary that runs scenarios.
const COMMAND: &str = "zswap-sim";

#[derive(Deserialize)]
struct Report {
    runs: Vec<engine::Run>,
}

pub fn measure() -> Result<Vec<Measurement>> {
    let built = cargo::build(&["--release", "--bin", COMMAND])?;
    let mut command = Command::new(cargo::pick(&built, COMMAND)?);
    command
        .current_dir(repo::root())
        .args(["run", engine::SCENARIO, "--json"])
        .args(["--runs", &engine::RUNS.to_string()]);
    let report: Report = serde_json::from_str(&cargo::output(&mut command)?)
        .with_context(|| format!("the JSON of `{COMMAND} run` has no runs as expected"))?;
    Ok(vec![engine::rate(NAME, &report.runs)?])
}
