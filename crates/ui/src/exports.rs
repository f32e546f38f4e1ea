//! What scripts can ask of the page's program beside the page: tests and
//! benchmarks do.

use crate::dom;
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;
use zswap_lab::{Run, RunReport, Scenario};

/// Runs a built-in scenario to its end; gives the JSON of the run as the command
/// line reports it, or `{"error": …}`.
#[wasm_bindgen]
#[must_use]
pub fn bench_run(scenario: &str, seed: u64) -> String {
    json(bench(scenario, seed))
}

/// Runs a scenario, given as TOML, up to a moment; gives the JSON of the frame
/// there, or `{"error": …}`. It goes the straight way, without recordings.
#[wasm_bindgen]
#[must_use]
pub fn model_frame(scenario_toml: &str, seed: u64, at_ns: u64) -> String {
    json(frame_at(scenario_toml, seed, at_ns))
}

fn bench(name: &str, seed: u64) -> Result<RunReport, String> {
    let scenario = Scenario::named(name).ok_or_else(|| format!("there is no scenario {name}"))?;
    let start_ms = dom::now_ms();
    let mut run = Run::start(&scenario, seed).map_err(|error| error.to_string())?;
    run.finish().map_err(|error| error.to_string())?;
    let wall_ns = (dom::now_ms() - start_ms) * 1e6;
    Ok(RunReport::new(&run, seed, wall_ns as u64))
}

fn frame_at(toml: &str, seed: u64, at_ns: u64) -> Result<zswap_view::Frame, String> {
    let scenario = Scenario::from_toml("given", toml).map_err(|error| error.to_string())?;
    let mut run = Run::start(&scenario, seed).map_err(|error| error.to_string())?;
    run.advance(at_ns).map_err(|error| error.to_string())?;
    // A recording without length is the state and the roster of now.
    let here = run.record(at_ns).map_err(|error| error.to_string())?;
    Ok(zswap_view::frame(&here.roster, &here.start, at_ns))
}

#[derive(Serialize)]
struct Failure {
    error: String,
}

fn json<T: Serialize>(result: Result<T, String>) -> String {
    let text = match result {
        Ok(value) => serde_json::to_string(&value),
        Err(error) => serde_json::to_string(&Failure { error }),
    };
    text.unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}
