//! The wasm target of the compiler.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

use crate::cargo;

/// The target that the page and the browser tests are built for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Adds the target if the toolchain lacks it.
pub fn ensure_target() -> Result<()> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    if Path::new(cargo::output(&mut rustc)?.trim()).is_dir() {
        return Ok(());
    }
    println!("adding the target {TARGET} to the toolchain");
    cargo::run(Command::new("rustup").args(["target", "add", TARGET])).with_context(|| {
        format!("the compiler lacks the target {TARGET}: install it, or rustup, which does")
    })
}
