//! From the compiler's wasm file to the one the browser loads, with its JavaScript.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wasm_bindgen_cli_support::Bindgen;

use crate::glue::{Names, compact};

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
    let mut output = Bindgen::new()
        .input_path(wasm)
        .web(true)?
        .typescript(false)
        .omit_default_module_path(false)
        // A quarter of the file; the names of functions help only a debugger.
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .with_context(|| format!("wasm-bindgen refused {}", wasm.display()))?;
    let imports = &mut output.wasm_mut().imports;
    let names = Names::new(imports.iter().map(|import| import.name.clone()));
    for import in imports.iter_mut() {
        if let Some(short) = names.short(&import.name) {
            import.name = short.to_owned();
        }
    }
    output.emit(&folder)?;
    let script = script_of(wasm, &folder);
    let compact = compact(&fs::read_to_string(&script)?, &names);
    fs::write(&script, compact).with_context(|| format!("writing {}", script.display()))?;
    Ok(folder)
}

/// Whether the output is newer than what it is made from: the input, and this tool.
fn up_to_date(wasm: &Path, folder: &Path) -> bool {
    let tool = std::env::current_exe().ok();
    let sources = [Some(wasm.to_path_buf()), tool];
    let Some(newest) = sources.iter().flatten().filter_map(|p| modified(p)).max() else {
        return false;
    };
    // The script is written last.
    modified(&script_of(wasm, folder)).is_some_and(|time| time > newest)
}

/// The script that goes with a wasm file.
fn script_of(wasm: &Path, folder: &Path) -> PathBuf {
    folder
        .join(wasm.file_name().unwrap_or_default())
        .with_extension("js")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
