//! From the compiler's wasm file to the one the browser loads, with its JavaScript.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wasm_bindgen_cli_support::Bindgen;

use crate::site;

/// Runs wasm-bindgen over `wasm` unless its output is up to date already, and
/// gives the folder with the output. It lies beside the input, so that release
/// and development builds never mix.
pub fn run(wasm: &Path) -> Result<PathBuf> {
    let folder = wasm.with_extension("bindgen");
    if up_to_date(wasm, &folder) {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    Bindgen::new()
        .input_path(wasm)
        .web(true)?
        .typescript(false)
        .omit_default_module_path(false)
        // A quarter of the file; the names of functions help only a debugger.
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&folder)
        .context("wasm-bindgen refused the application")?;
    Ok(folder)
}

/// Whether the output is newer than what it is made from: the input, and this tool.
fn up_to_date(wasm: &Path, folder: &Path) -> bool {
    let tool = std::env::current_exe().ok();
    let sources = [Some(wasm.to_path_buf()), tool];
    let Some(newest) = sources.iter().flatten().filter_map(|p| modified(p)).max() else {
        return false;
    };
    [site::APPLICATION_JS, site::APPLICATION_WASM]
        .iter()
        .all(|name| modified(&folder.join(name)).is_some_and(|time| time > newest))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
