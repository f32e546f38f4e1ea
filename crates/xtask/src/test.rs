//! `cargo xtask test`: every check there is, one after the other.
//!
//! A step that fails does not stop those after it, but for those that need
//! what it makes: one run tells all that is wrong.

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::{Duration, Instant};

use crate::{browser_tests, build, cargo, e2e, repo, site, size, tidy, wasm};

/// Which steps to run.
#[derive(Args)]
pub struct Options {
    /// Run only this step; can be given more than once
    #[arg(long, value_name = "STEP", value_parser = names())]
    only: Vec<String>,
    /// Leave this step out; can be given more than once
    #[arg(long, value_name = "STEP", value_parser = names())]
    skip: Vec<String>,
}

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<()>,
    /// The step whose failure makes this one pointless.
    needs: Option<&'static str>,
}

const fn step(name: &'static str, what: &'static str, run: fn() -> Result<()>) -> Step {
    Step {
        name,
        what,
        run,
        needs: None,
    }
}

/// In order: the quick ones first, then what is built upon what.
const STEPS: [Step; 10] = [
    step("fmt", "formatting of the workspace", fmt),
    step("tidy", "rules of the workspace", tidy::main),
    step("clippy", "lints, native", clippy),
    step("clippy-wasm", "lints of the page", clippy_wasm),
    step(
        "native",
        "unit, integration and documentation tests",
        native,
    ),
    step("xtask", "formatting, lints and tests of this tool", xtask),
    step("wasm", "tests in headless Chromium", wasm_tests),
    step("build", "the page", build_page),
    Step {
        needs: Some("build"),
        ..step("e2e", "end-to-end tests of the page", end_to_end)
    },
    Step {
        needs: Some("build"),
        ..step("size", "what the first visit loads", weigh)
    },
];

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(STEPS.iter().map(|step| step.name))
}

enum Outcome {
    Passed,
    Failed,
    /// Not run, since the step it needs failed.
    Pointless,
}

/// The command.
pub fn main(options: &Options) -> Result<()> {
    let mut results: Vec<(&Step, Outcome, Duration)> = Vec::new();
    for step in STEPS.iter().filter(|step| options.wants(step.name)) {
        println!("\n=== {}: {}", step.name, step.what);
        let start = Instant::now();
        let broken = |(other, outcome, _): &(&Step, Outcome, Duration)| {
            Some(other.name) == step.needs && !matches!(outcome, Outcome::Passed)
        };
        let outcome = if results.iter().any(broken) {
            Outcome::Pointless
        } else {
            match (step.run)() {
                Ok(()) => Outcome::Passed,
                Err(error) => {
                    eprintln!("{} failed: {error:#}", step.name);
                    Outcome::Failed
                }
            }
        };
        results.push((step, outcome, start.elapsed()));
    }
    summarise(&results)
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|other| other == name);
        (self.only.is_empty() || among(&self.only)) && !among(&self.skip)
    }
}

fn summarise(results: &[(&Step, Outcome, Duration)]) -> Result<()> {
    println!("\n=== summary");
    let mut bad = Vec::new();
    for (step, outcome, time) in results {
        let word = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Pointless => "not run",
        };
        if !matches!(outcome, Outcome::Passed) {
            bad.push(step.name);
        }
        let (name, what) = (step.name, step.what);
        println!("{name:<12}{word:<9}{:>7.1} s  {what}", time.as_secs_f64());
    }
    let total: Duration = results.iter().map(|(_, _, time)| *time).sum();
    println!("{:<21}{:>7.1} s", "all", total.as_secs_f64());
    if !bad.is_empty() {
        bail!("not passed: {}", bad.join(", "));
    }
    Ok(())
}

fn fmt() -> Result<()> {
    cargo::run(cargo::cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    cargo::run(
        cargo::cargo()
            .args(["clippy", "--workspace", "--all-targets"])
            .args(["--", "-D", "warnings"]),
    )
}

fn clippy_wasm() -> Result<()> {
    wasm::ensure_target()?;
    cargo::run(
        cargo::cargo()
            .args(["clippy", "--package", site::APPLICATION])
            .args(["--all-targets", "--target", wasm::TARGET])
            .args(["--", "-D", "warnings"]),
    )
}

fn native() -> Result<()> {
    cargo::run(cargo::cargo().args(["test", "--workspace", "--no-fail-fast"]))
}

fn xtask() -> Result<()> {
    let manifest = repo::xtask_manifest();
    let cargo = |subcommand: &str| {
        let mut command = cargo::cargo();
        command
            .arg(subcommand)
            .arg("--manifest-path")
            .arg(&manifest);
        command
    };
    cargo::run(cargo("fmt").arg("--check"))?;
    cargo::run(cargo("clippy").args(["--all-targets", "--", "-D", "warnings"]))?;
    cargo::run(cargo("test").args(["--bin", "xtask"]))
}

/// The tests of the packages that use the browser test library.
fn wasm_tests() -> Result<()> {
    let packages = tidy::packages_with_browser_tests()?;
    if packages.is_empty() {
        println!("no package has tests for the browser");
        return Ok(());
    }
    let mut command = browser_tests::command()?;
    for package in &packages {
        command.args(["--package", package]);
    }
    cargo::run(&mut command)
}

fn build_page() -> Result<()> {
    build::main(&build::Options::default())
}

fn end_to_end() -> Result<()> {
    e2e::prepare()?;
    cargo::run(e2e::npm(&build::Options::default())?.arg("test"))
}

fn weigh() -> Result<()> {
    size::must_not_grow()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: &[&str], skip: &[&str]) -> Options {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Options {
            only: owned(only),
            skip: owned(skip),
        }
    }

    #[test]
    fn steps_can_be_picked_and_left_out() {
        assert!(options(&[], &[]).wants("fmt"));
        assert!(options(&["fmt"], &[]).wants("fmt"));
        assert!(!options(&["fmt"], &[]).wants("size"));
        assert!(!options(&[], &["fmt"]).wants("fmt"));
    }

    #[test]
    fn a_needed_step_comes_before() {
        for (index, step) in STEPS.iter().enumerate() {
            if let Some(needed) = step.needs {
                assert!(STEPS[..index].iter().any(|other| other.name == needed));
            }
        }
    }

    #[test]
    fn the_summary_names_what_failed() {
        let second = Duration::from_secs(1);
        let results = [
            (&STEPS[0], Outcome::Passed, second),
            (&STEPS[1], Outcome::Failed, second),
            (&STEPS[8], Outcome::Pointless, second),
        ];
        let error = summarise(&results).expect_err("a step failed");
        assert_eq!(error.to_string(), "not passed: tidy, e2e");
    }
}
