//! `zswap-sim`: the model on the command line.
//!
//! Exit status: 0 when done, 1 when a run broke a rule of the model, 2 when the
//! call or a scenario is wrong. Errors are one line on standard error.

mod classes;
mod contention;
mod explain;
mod layout;
mod list;
mod locks;
mod machinery;
mod output;
mod run;
mod scenario;
mod soak;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use output::CliError;
use std::process::ExitCode;

/// Simulates how Linux zswap locks, compresses and schedules.
#[derive(Parser)]
#[command(name = "zswap-sim", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the scenarios, and the keys that --set takes
    List,
    /// Run a scenario and report its timed reads
    Run(run::RunArgs),
    /// Tell the slowest reads of a run: who waited for whom, from when to when
    Explain(explain::ExplainArgs),
    /// Print zsmalloc's size classes
    Classes(machinery::ClassesArgs),
    /// Print the memory that 32 pools waste against one, for several loads
    Pools(machinery::PoolsArgs),
    /// Print the sizes of zswap's structures and the requests each design needs
    Layout,
    /// Run each path of a design and print the locks it takes, in order
    Locks(locks::LocksArgs),
    /// Print how often spinlocks are waited for in several designs
    Contention(contention::ContentionArgs),
    /// Mix all paths at random on random machines, and check every page
    Soak(soak::SoakArgs),
}

/// What the call asks for. Help and version are printed here and end the
/// program; of any other complaint of the parser the first paragraph is kept,
/// as one line.
fn parse() -> Result<Command, CliError> {
    Cli::try_parse()
        .map(|cli| cli.command)
        .map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            _ => {
                let text = error.render().to_string();
                let paragraph = text.split("\n\n").next().unwrap_or(&text);
                let line = paragraph.trim_start_matches("error: ");
                let words: Vec<&str> = line.split_whitespace().collect();
                CliError::Usage(format!("{}; see --help", words.join(" ")))
            }
        })
}

fn act(command: Command) -> Result<(), CliError> {
    match command {
        Command::List => list::list(),
        Command::Run(args) => run::run(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Classes(args) => machinery::classes(&args),
        Command::Pools(args) => machinery::pools(&args),
        Command::Layout => machinery::layout(),
        Command::Locks(args) => locks::locks(&args),
        Command::Contention(args) => contention::contention(&args),
        Command::Soak(args) => soak::soak(&args),
    }
}

fn main() -> ExitCode {
    match parse().and_then(act) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            output::complain(&error);
            error.exit_code()
        }
    }
}
