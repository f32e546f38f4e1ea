//! `cargo xtask`: builds, serves, tests and measures the project.
//!
//! It needs nothing but Rust's toolchain to build and serve the page; what the
//! tests need beyond that they install or name. It knows the application by
//! file names only ([`site`]) and by two hooks the benchmarks call
//! ([`bench`]), never by its types.

mod bench;
mod bindgen;
mod browser_tests;
mod build;
mod cargo;
mod e2e;
mod glue;
mod page;
mod repo;
mod serve;
mod site;
mod size;
mod test;
mod tidy;
mod tools;
mod wasm;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Build, serve, test and measure the Zswap Explainer
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Build the page into dist/, ready to be hosted under any path
    Build(build::Options),
    /// Build the page and serve it on 127.0.0.1
    Serve(serve::Options),
    /// Run every check: formatting, lints, native, browser and end-to-end tests, size
    Test(test::Options),
    /// Print what the first visit loads, and fail above the budget
    Size(size::Options),
    /// Measure, and print a table or JSON
    Bench(bench::Options),
    /// Check the rules of the workspace: who may use whom, file lengths, forbidden types
    Tidy,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // One line for people: where in this tool it happened helps nobody.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    match Arguments::parse().command {
        None => Ok(Arguments::command().print_help()?),
        Some(Command::Build(options)) => build::main(&options),
        Some(Command::Serve(options)) => serve::main(&options),
        Some(Command::Test(options)) => test::main(&options),
        Some(Command::Size(options)) => size::main(&options),
        Some(Command::Bench(options)) => bench::main(&options),
        Some(Command::Tidy) => tidy::main(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
