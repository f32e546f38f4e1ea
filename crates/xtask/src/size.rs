//! `cargo xtask size`: what the first visit loads, compressed as a host would.

use anyhow::{Context, Result, bail};
use clap::Args;
use regex_lite::Regex;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{build, page, site};

/// What the first visit may load, in bytes after brotli at quality 11:
/// 200 kB with a thousand bytes each, not 1024.
const BUDGET: u64 = 200_000;

/// Which site to weigh, and how to print it.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    build: build::Options,
    /// Weigh what is in the folder without building it first
    #[arg(long)]
    no_build: bool,
    /// Print a list of {"file","raw","brotli"} instead of a table
    #[arg(long)]
    json: bool,
}

/// One file and its weight in bytes.
#[derive(Serialize)]
struct Weight {
    file: String,
    raw: u64,
    brotli: u64,
}

/// What the first visit loaded when it was last looked at, with some room, since
/// the folder that it is built in changes it a little. The budget is not reached
/// yet; until it is, the tests see to it that the way to it does not grow longer.
const CEILING: u64 = 260_000;

/// The check of `cargo xtask test`.
pub fn must_not_grow() -> Result<()> {
    let dist = build::Options::default().folder();
    let weights = weigh(&dist, first_visit(&dist)?)?;
    print!("{}", table(&weights, &weigh(&dist, later(&dist)?)?));
    check(&weights, CEILING)
}

/// The command.
pub fn main(options: &Options) -> Result<()> {
    if !options.no_build {
        build::build(&options.build)?;
    }
    let dist = options.build.folder();
    let weights = weigh(&dist, first_visit(&dist)?)?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&weights)?);
    } else {
        print!("{}", table(&weights, &weigh(&dist, later(&dist)?)?));
    }
    check(&weights, BUDGET)
}

/// Whether the first visit loads no more than `limit`.
fn check(weights: &[Weight], limit: u64) -> Result<()> {
    let total = total("first visit", weights).brotli;
    if total > limit {
        bail!(
            "the first visit loads {total} bytes, {} above the limit of {limit}",
            total - limit
        );
    }
    Ok(())
}

/// The files that the first visit loads, from the root of the site: the page,
/// the worker, and all they refer to in turn. A file that the application
/// fetches at its start counts when the page preloads it, as it should.
pub fn first_visit(dist: &Path) -> Result<Vec<String>> {
    followed(dist, vec![site::INDEX.to_owned()])
}

/// The files that a visit loads only when it needs them: the modules that those
/// of the first visit import in parentheses, and all they refer to in turn.
pub fn later(dist: &Path) -> Result<Vec<String>> {
    const IMPORT: &str = r#"\bimport\(\s*["'](\.[^"']+)["']\s*\)"#;
    let first = first_visit(dist)?;
    let mut files = Vec::new();
    for file in first.iter().filter(|file| file.ends_with(".js")) {
        let script = fs::read_to_string(dist.join(file))?;
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        files.extend(
            matches(IMPORT, &script)
                .iter()
                .map(|url| joined(folder, url)),
        );
    }
    let mut files = followed(dist, files)?;
    files.retain(|file| !first.contains(file));
    Ok(files)
}

/// `files`, and all they refer to in turn.
fn followed(dist: &Path, mut files: Vec<String>) -> Result<Vec<String>> {
    let mut next = 0;
    while next < files.len() {
        let file = files[next].clone();
        let content = fs::read(dist.join(&file))
            .with_context(|| format!("{file} is not in {}", dist.display()))?;
        let folder = Path::new(&file).parent().unwrap_or(Path::new(""));
        for reference in references(&file, &content) {
            let reference = joined(folder, &reference);
            if !files.contains(&reference) {
                files.push(reference);
            }
        }
        // Started by the application, by name.
        if file == site::APPLICATION_JS && dist.join(site::WORKER_JS).exists() {
            files.push(site::WORKER_JS.to_owned());
        }
        next += 1;
    }
    Ok(files)
}

/// What a file makes a browser load, relative to that file.
fn references(file: &str, content: &[u8]) -> Vec<String> {
    // Static imports and what a module names relative to itself; imports in
    // parentheses happen later, if at all.
    const MODULE: &str = r#"(?:\bfrom|\bimport)\s*["'](\.[^"']+)["']|new URL\(["']([^"']+)["'],\s*import\.meta\.url"#;
    const STYLE: &str = r#"@import\s+["']([^"']+)["']|url\(\s*["']?([^"')]+)["']?\s*\)"#;
    let text = String::from_utf8_lossy(content);
    match Path::new(file).extension().and_then(|e| e.to_str()) {
        Some("html") => page::references(&text),
        Some("js" | "mjs") => matches(MODULE, &text),
        Some("css") => matches(STYLE, &text),
        _ => Vec::new(),
    }
}

fn matches(pattern: &str, text: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("the patterns above are valid");
    let found = pattern.captures_iter(text);
    let reference = |c: regex_lite::Captures| Some(c.get(1).or(c.get(2))?.as_str().to_owned());
    found
        .filter_map(reference)
        .filter(|url| page::is_relative(url))
        .collect()
}

/// `reference` from the root of the site, without `.`, `..` and a query.
fn joined(folder: &Path, reference: &str) -> String {
    let reference = reference.split(['?', '#']).next().unwrap_or(reference);
    let mut path = PathBuf::from(folder);
    for part in reference.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            name => path.push(name),
        }
    }
    path.to_string_lossy().replace('\\', "/")
}

fn weigh(dist: &Path, files: Vec<String>) -> Result<Vec<Weight>> {
    let weigh = |file: String| {
        let content = fs::read(dist.join(&file))?;
        Ok(Weight {
            file,
            raw: content.len() as u64,
            brotli: compressed(&content)?,
        })
    };
    files.into_iter().map(weigh).collect()
}

fn compressed(content: &[u8]) -> Result<u64> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: 11,
        lgwin: 24,
        size_hint: content.len(),
        ..Default::default()
    };
    let mut output = Vec::new();
    brotli::BrotliCompress(&mut &*content, &mut output, &parameters)?;
    Ok(output.len() as u64)
}

fn total(name: &str, weights: &[Weight]) -> Weight {
    Weight {
        file: name.to_owned(),
        raw: weights.iter().map(|w| w.raw).sum(),
        brotli: weights.iter().map(|w| w.brotli).sum(),
    }
}

fn table(first: &[Weight], later: &[Weight]) -> String {
    let line = |file: &str, raw: &str, brotli: u64| format!("{file:<34}{raw:>12}{brotli:>12}\n");
    let mut table = format!("{:<34}{:>12}{:>12}\n", "file", "raw", "brotli");
    let mut add = |weights: &[Weight]| {
        for weight in weights {
            table += &line(&weight.file, &weight.raw.to_string(), weight.brotli);
        }
    };
    add(first);
    add(&[total("first visit", first)]);
    if !later.is_empty() {
        add(later);
        add(&[total("later, when needed", later)]);
    }
    table + &line("budget of the first visit", "", BUDGET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_visit_is_followed_through_every_kind_of_file() -> Result<()> {
        let dist = tempfile::tempdir()?;
        let write = |name: &str, content: &str| -> Result<()> {
            let path = dist.path().join(name);
            fs::create_dir_all(path.parent().context("in a folder")?)?;
            Ok(fs::write(path, content)?)
        };
        write(
            "index.html",
            r#"<link rel="stylesheet" href="./css/a.css"><script type="module" src="loader.js">
               </script><link rel="preload" href="./assets/one.toml" as="fetch">"#,
        )?;
        write(
            "css/a.css",
            "@import 'b.css'; x { background: url(../i.svg) }",
        )?;
        write(
            "css/b.css",
            "y { background: url(data:image/png;base64,AA) }",
        )?;
        write("i.svg", "<svg/>")?;
        write("assets/one.toml", "")?;
        write("assets/later.toml", "")?;
        write(
            "loader.js",
            "import init from './zswap-explainer.js'; import('./later.js')",
        )?;
        write(
            "zswap-explainer.js",
            "new URL('zswap-explainer_bg.wasm', import.meta.url)",
        )?;
        write("zswap-explainer_bg.wasm", "")?;
        write("worker.js", "import init from \"./zswap-explainer.js\";")?;
        let mut files = first_visit(dist.path())?;
        files.sort();
        assert_eq!(
            files,
            [
                "assets/one.toml",
                "css/a.css",
                "css/b.css",
                "i.svg",
                "index.html",
                "loader.js",
                "worker.js",
                "zswap-explainer.js",
                "zswap-explainer_bg.wasm"
            ]
        );
        Ok(())
    }

    #[test]
    fn modules_imported_in_parentheses_are_loaded_later() -> Result<()> {
        let dist = tempfile::tempdir()?;
        let write = |name: &str, content: &str| fs::write(dist.path().join(name), content);
        write(
            "index.html",
            r#"<script type="module" src="a.js"></script>"#,
        )?;
        write(
            "a.js",
            "import './both.js'; import('./b.js'); import('./both.js')",
        )?;
        write("b.js", "new URL('b.wasm', import.meta.url)")?;
        write("b.wasm", "")?;
        write("both.js", "")?;
        assert_eq!(later(dist.path())?, ["b.js", "b.wasm"]);
        Ok(())
    }

    #[test]
    fn more_than_the_limit_is_an_error() {
        let weight = |brotli| Weight {
            file: "a".to_owned(),
            raw: 0,
            brotli,
        };
        assert!(check(&[weight(9)], 9).is_ok());
        assert!(check(&[weight(9), weight(1)], 9).is_err());
    }

    #[test]
    fn a_missing_file_is_named() -> Result<()> {
        let dist = tempfile::tempdir()?;
        fs::write(dist.path().join("index.html"), r#"<img src="gone.png">"#)?;
        let error = first_visit(dist.path()).expect_err("gone.png is not there");
        assert!(error.to_string().starts_with("gone.png is not in"));
        Ok(())
    }

    #[test]
    fn compressing_text_makes_it_smaller() -> Result<()> {
        assert!(compressed(&b"zswap ".repeat(1000))? < 100);
        Ok(())
    }
}
