//! `cargo xtask tidy`: the rules of the workspace that no compiler checks.
//!
//! 1. Every crate uses only those below it, and only the page knows a browser ([`layers`]).
//! 2. Nothing that could make two runs differ takes part in the model's
//!    decisions, files stay short, and nothing is left for later ([`lines`]).

mod layers;
mod lines;

pub use layers::packages_with_browser_tests;

use anyhow::{Result, bail};

/// The command: prints every broken rule, with its place.
pub fn main() -> Result<()> {
    let mut broken = layers::check()?;
    broken.extend(lines::check()?);
    for rule in &broken {
        eprintln!("{rule}");
    }
    if !broken.is_empty() {
        bail!("{} of the workspace's rules broken", broken.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_keeps_its_rules() {
        super::main().expect("what is printed above breaks a rule of the workspace");
    }
}
