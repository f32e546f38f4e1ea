//! Reads the built-in scenarios when the crate is built: the page then carries
//! their settings, and no parser of TOML.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/scenarios");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    // The order of a folder is the file system's; that of lists is the name's.
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let name = path.file_stem().ok_or("a file without a name")?;
        let settings = settings(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        writeln!(table, "({:?}, &{settings:?}),", name.to_string_lossy())?;
    }
    table += "]";
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("built_in.rs"), table)?;
    Ok(())
}

/// The keys of a scenario's text with their values, sections as prefixes.
fn settings(text: &str) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let document = toml::de::DeTable::parse(text)?;
    let mut settings = Vec::new();
    collect(document.get_ref(), "", &mut settings)?;
    Ok(settings)
}

fn collect(
    table: &toml::de::DeTable<'_>,
    prefix: &str,
    settings: &mut Vec<(String, String)>,
) -> Result<(), Box<dyn Error>> {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        match value.get_ref() {
            toml::de::DeValue::Table(inner) => collect(inner, &format!("{key}."), settings)?,
            toml::de::DeValue::String(text) => settings.push((key, text.to_string())),
            toml::de::DeValue::Integer(number) => settings.push((key, number.to_string())),
            other => return Err(format!("{key} is a {}", other.type_str()).into()),
        }
    }
    Ok(())
}
