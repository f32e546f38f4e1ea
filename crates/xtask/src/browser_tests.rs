//! `cargo test` for wasm, in headless Chromium.

use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

use crate::{cargo, repo, tools, wasm};

/// `cargo test --tests` for the wasm target, its runner and its browser ready;
/// the caller adds packages. Documentation tests are not among them: those run
/// natively.
pub fn command() -> Result<Command> {
    wasm::ensure_target()?;
    tools::ensure(&[tools::CHROMIUM, tools::CHROMEDRIVER])?;
    let runner = test_runner()?;
    let mut command = cargo::cargo();
    command
        .args(["test", "--tests", "--target", wasm::TARGET])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner)
        .env("CHROMEDRIVER", tools::CHROMEDRIVER.path()?)
        // What a machine is busy with must not fail a test.
        .env("WASM_BINDGEN_TEST_TIMEOUT", "300");
    Ok(command)
}

/// The runner that cargo starts a wasm test by, at the version of the lock file.
fn test_runner() -> Result<PathBuf> {
    const NAME: &str = "wasm-bindgen-test-runner";
    let manifest = repo::xtask_manifest();
    let executables = cargo::build(&[
        "--manifest-path",
        &manifest.to_string_lossy(),
        "--features",
        "test-runner",
        // Only these two: the binary that runs is not to be replaced.
        "--bin",
        NAME,
        "--bin",
        "wasm-bindgen",
    ])?;
    cargo::pick(&executables, NAME)
}
