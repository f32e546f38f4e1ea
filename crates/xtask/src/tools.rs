//! Programs that the tests need beside Rust's: the browser, its driver, node.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

use crate::cargo;

/// A program that the tests start.
pub struct Tool {
    /// The names it is found by, the likeliest first.
    names: &'static [&'static str],
    /// The variable that names another one.
    variable: &'static str,
    /// Debian's package of it.
    package: &'static str,
}

/// The browser.
pub const CHROMIUM: Tool = Tool {
    names: &[
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ],
    variable: "CHROMIUM",
    package: "chromium",
};

/// The program that drives the browser for the wasm tests.
pub const CHROMEDRIVER: Tool = Tool {
    names: &["chromedriver"],
    variable: "CHROMEDRIVER",
    package: "chromium-driver",
};

/// Runs the end-to-end tests.
pub const NODE: Tool = Tool {
    names: &["node", "nodejs"],
    variable: "NODE",
    package: "nodejs",
};

/// Installs what the end-to-end tests use.
pub const NPM: Tool = Tool {
    names: &["npm"],
    variable: "NPM",
    package: "npm",
};

impl Tool {
    /// Where it is.
    pub fn path(&self) -> Result<PathBuf> {
        self.find()
            .with_context(|| format!("{} is not on the PATH", self.names[0]))
    }

    fn find(&self) -> Option<PathBuf> {
        if let Some(path) = std::env::var_os(self.variable) {
            return which::which(path).ok();
        }
        self.names.iter().find_map(|name| which::which(name).ok())
    }
}

/// Installs those of `tools` that are missing, where that is possible without
/// asking; otherwise says how to install them.
pub fn ensure(tools: &[Tool]) -> Result<()> {
    let missing: Vec<_> = tools.iter().filter(|tool| tool.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    if which::which("apt-get").is_err() || !is_root() {
        bail!("{}", advice(&missing));
    }
    // Standard output is for results.
    eprintln!("installing {} by apt-get", packages.join(", "));
    let apt = || {
        let mut command = Command::new("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .arg("-qq")
            .stdout(std::io::stderr());
        command
    };
    cargo::run(apt().arg("update"))?;
    cargo::run(
        apt()
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages),
    )
    .with_context(|| advice(&missing))
}

/// What to install, and how, in one line.
fn advice(missing: &[&Tool]) -> String {
    let names: Vec<_> = missing.iter().map(|tool| tool.names[0]).collect();
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    let variables: Vec<_> = missing.iter().map(|tool| tool.variable).collect();
    format!(
        "missing {}: on Debian and Ubuntu `sudo apt-get install {}`; elsewhere install them, \
         and set {} to the programs if they are not on the PATH",
        names.join(", "),
        packages.join(" "),
        variables.join(", "),
    )
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_programs_packages_and_variables_in_one_line() {
        let advice = advice(&[&CHROMIUM, &CHROMEDRIVER]);
        assert!(!advice.contains('\n'));
        assert!(advice.contains("missing chromium, chromedriver"));
        assert!(advice.contains("apt-get install chromium chromium-driver"));
        assert!(advice.contains("CHROMIUM, CHROMEDRIVER"));
    }
}
