//! `engine.wasm`: the built page's engine in headless Chromium.
//!
//! It calls the application's export `bench_run(scenario, seed)`, which gives
//! the JSON of one run, in a worker of its own, so that nothing is drawn.

use anyhow::{Context, Result};

use super::{Measurement, engine};
use crate::{build, cargo, e2e};

pub const NAME: &str = "engine.wasm";

pub fn measure() -> Result<Vec<Measurement>> {
    let options = build::Options::default();
    build::build(&options)?;
    e2e::prepare()?;
    let mut node = e2e::node(&options)?;
    node.args(["bench.mjs", engine::SCENARIO, &engine::RUNS.to_string()]);
    let runs: Vec<engine::Run> = serde_json::from_str(&cargo::output(&mut node)?)
        .context("the page's bench_run gave no run as the command line's")?;
    Ok(vec![engine::rate(NAME, &runs)?])
}
