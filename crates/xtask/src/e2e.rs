//! The node side of the tests: packages from the lock file, and the environment.

use anyhow::Result;
use std::fs;
use std::process::Command;
use std::time::SystemTime;

use crate::tools::{self, Tool};
use crate::{build, cargo, repo};

/// Installs the browser, node and the packages of the lock file where they are missing.
pub fn prepare() -> Result<()> {
    tools::ensure(&[tools::CHROMIUM, tools::NODE, tools::NPM])?;
    if installed() {
        return Ok(());
    }
    let mut npm = Command::new(tools::NPM.path()?);
    // What it says goes beside the results that a benchmark writes.
    let said = std::io::stderr();
    cargo::run(npm.arg("ci").current_dir(repo::e2e()).stdout(said))
}

/// A node command in the folder of the tests, told where things are.
pub fn node(built: &build::Options) -> Result<Command> {
    command(&tools::NODE, built)
}

/// The same for npm, which runs the scripts of the tests' `package.json`.
pub fn npm(built: &build::Options) -> Result<Command> {
    command(&tools::NPM, built)
}

fn command(tool: &Tool, built: &build::Options) -> Result<Command> {
    let mut command = Command::new(tool.path()?);
    command
        .current_dir(repo::e2e())
        .env("CHROMIUM", tools::CHROMIUM.path()?)
        .env("XTASK", std::env::current_exe()?)
        .env("DIST", built.folder());
    Ok(command)
}

/// Whether npm's own record of what it installed is newer than the lock file.
fn installed() -> bool {
    let modified = |name: &str| -> Option<SystemTime> {
        fs::metadata(repo::e2e().join(name)).ok()?.modified().ok()
    };
    let record = modified("node_modules/.package-lock.json");
    record.is_some() && record > modified("package-lock.json")
}
