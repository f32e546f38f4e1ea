//! Running cargo and other programs.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::repo;

/// The cargo that runs this tool, started at the root of the repository.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(repo::root());
    command
}

/// Where cargo keeps the sources of the crates that it downloads.
pub fn home() -> PathBuf {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || std::env::home_dir().unwrap_or_default().join(".cargo");
    named.unwrap_or_else(usual)
}

/// Runs `command` with its output shown; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command
        .status()
        .with_context(|| format!("could not start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs `command` and gives what it wrote to its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("could not start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` wrote no UTF-8"))
}

/// Builds with `cargo build ARGUMENTS` and gives the executables it names.
///
/// Cargo is asked for the paths, so that a target folder elsewhere is right too.
pub fn build(arguments: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = cargo();
    command
        .arg("build")
        .args(arguments)
        .arg("--message-format=json-render-diagnostics");
    Ok(executables(&output(&mut command)?))
}

/// The one of `executables` called `name`, whatever its extension.
pub fn pick(executables: &[PathBuf], name: &str) -> Result<PathBuf> {
    executables
        .iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == name))
        .cloned()
        .with_context(|| format!("cargo built no executable called `{name}`"))
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

fn executables(messages: &str) -> Vec<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable)
        .collect()
}

/// The command as one would type it, without folders in front of the program.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![
        program
            .file_name()
            .unwrap_or(program.as_os_str())
            .to_string_lossy()
            .into_owned(),
    ];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_come_from_the_artifact_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","filenames":["/t/liba.rlib"],"executable":null}"#,
            "\nnot json\n",
            r#"{"reason":"compiler-artifact","executable":"/t/page.wasm"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = executables(messages);
        assert_eq!(found, [PathBuf::from("/t/page.wasm")]);
        assert!(pick(&found, "page").is_ok());
        let error = pick(&found, "other").expect_err("no such executable");
        assert!(error.to_string().contains("`other`"));
    }

    #[test]
    fn a_failing_command_is_named() {
        let mut command = cargo();
        command.arg("no-such-subcommand").stderr(Stdio::null());
        let error = run(&mut command).expect_err("cargo knows no such subcommand");
        assert!(error.to_string().contains("cargo no-such-subcommand"));
    }
}
