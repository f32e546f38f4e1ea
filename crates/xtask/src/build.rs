//! `cargo xtask build`: the site, in a folder that can be hosted under any path.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

use crate::{bindgen, cargo, page, repo, site, size, wasm};

/// What to build, and where to.
#[derive(Args, Clone)]
#[group(skip)]
pub struct Options {
    /// The folder to build into, from the root of the repository
    #[arg(long, value_name = "DIR", default_value = "dist")]
    pub dist: PathBuf,
    /// Build faster and run slower, with the names of functions in error messages
    #[arg(long)]
    pub dev: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dist: "dist".into(),
            dev: false,
        }
    }
}

impl Options {
    /// The folder to build into, absolute.
    pub fn folder(&self) -> PathBuf {
        repo::root().join(&self.dist)
    }
}

/// The files of the site: their paths in it, and their contents.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The command.
pub fn main(options: &Options) -> Result<()> {
    build(options)?;
    println!("built {}", repo::shown(&options.folder()));
    Ok(())
}

/// Builds the site and says nothing.
pub fn build(options: &Options) -> Result<()> {
    let dist = options.folder();
    // Before minutes of compiling, not after.
    refuse_foreign(&dist)?;
    wasm::ensure_target()?;
    let mut files = Files::new();
    for program in programs(options.dev)? {
        add_folder(&mut files, &bindgen::run(&program)?, Path::new(""))?;
    }
    add_page(&mut files)?;
    synchronise(&files, &dist)?;
    size::first_visit(&dist).context("the page refers to a file that is not in the site")?;
    Ok(())
}

/// Compiles the application and its codecs, and gives their wasm files.
fn programs(dev: bool) -> Result<[PathBuf; 2]> {
    let mut arguments = vec!["--bin", site::APPLICATION, "--bin", site::CODECS];
    arguments.extend(["--target", wasm::TARGET]);
    let flags = flags();
    if !dev {
        arguments.extend(["--profile", site::PROFILE, "--config", &flags]);
    }
    let built = cargo::build(&arguments)?;
    Ok([
        cargo::pick(&built, site::APPLICATION)?,
        cargo::pick(&built, site::CODECS)?,
    ])
}

/// How much a call may grow the code that it is in to be done without, in LLVM's
/// measure, where its own is 225 and more for what is to be fast. With 25 the
/// first visit is 6 KB smaller and the engine at most 5 % slower; still less
/// makes it slower, but not smaller.
const INLINE_THRESHOLD: u32 = 25;

/// A setting of cargo for the compiler: less inlining, and no folders of this
/// computer in the names of source files. Panics carry these names: they would
/// make the file larger, and another one on each computer.
fn flags() -> String {
    let registry = cargo::home().join("registry").join("src");
    let indexes = fs::read_dir(&registry).into_iter().flatten().flatten();
    let folders = indexes.map(|index| index.path()).chain([repo::root()]);
    let paths = folders.map(|folder| format!("--remap-path-prefix={}/=", folder.display()));
    let inlining = format!("-Cllvm-args=-inline-threshold={INLINE_THRESHOLD}");
    let flags: Vec<String> = paths.chain([inlining]).collect();
    // An array of strings is written alike in TOML and by `{:?}`.
    format!("target.{}.rustflags={flags:?}", wasm::TARGET)
}

/// Adds the page, and what it names.
fn add_page(files: &mut Files) -> Result<()> {
    let root = repo::root();
    let source = fs::read_to_string(root.join(site::INDEX))
        .with_context(|| format!("reading {} at the root of the repository", site::INDEX))?;
    let page = page::rewrite(&source)?;
    files.insert(site::INDEX.into(), page.html.into_bytes());
    for copy in &page.copies {
        let (from, to) = (root.join(&copy.from), Path::new(&copy.to));
        if from.is_dir() {
            add_folder(files, &from, to)?;
        } else {
            let content = fs::read(&from).with_context(|| {
                format!(
                    "{} names {}, which is not to be read",
                    site::INDEX,
                    copy.from
                )
            })?;
            files.insert(to.into(), content);
        }
    }
    Ok(())
}

fn add_folder(files: &mut Files, from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            let name = to.join(entry.path().strip_prefix(from)?);
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Makes `dist` hold exactly `files`, and writes only those that differ.
fn synchronise(files: &Files, dist: &Path) -> Result<()> {
    refuse_foreign(dist)?;
    for (name, content) in files {
        let path = dist.join(name);
        if fs::read(&path).is_ok_and(|present| present == *content) {
            continue;
        }
        let folder = path.parent().unwrap_or(dist);
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    for entry in WalkDir::new(dist).contents_first(true) {
        let entry = entry?;
        let name = entry.path().strip_prefix(dist)?;
        if entry.file_type().is_dir() {
            // Only an empty one can be removed so.
            let _ = fs::remove_dir(entry.path());
        } else if !files.contains_key(name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Refuses a folder of somebody else's files, which the build would delete.
fn refuse_foreign(dist: &Path) -> Result<()> {
    let empty = fs::read_dir(dist).map_or(true, |mut entries| entries.next().is_none());
    if !empty && !dist.join(site::APPLICATION_JS).exists() {
        bail!(
            "{} holds files that are not the site's, and building would delete them: \
             give an empty or a new folder",
            dist.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Files {
        let content = |name: &&str| (PathBuf::from(name), name.as_bytes().to_vec());
        names.iter().map(content).collect()
    }

    #[test]
    fn a_folder_ends_up_with_the_files_of_the_site_only() -> Result<()> {
        let dist = tempfile::tempdir()?;
        synchronise(&files(&[site::APPLICATION_JS, "old/gone.css"]), dist.path())?;
        synchronise(&files(&[site::APPLICATION_JS, "new/here.css"]), dist.path())?;
        assert!(dist.path().join("new/here.css").exists());
        assert!(!dist.path().join("old").exists());
        Ok(())
    }

    #[test]
    fn an_unchanged_file_is_not_written_again() -> Result<()> {
        let dist = tempfile::tempdir()?;
        let site = files(&[site::APPLICATION_JS]);
        let modified = || fs::metadata(dist.path().join(site::APPLICATION_JS))?.modified();
        synchronise(&site, dist.path())?;
        let before = modified()?;
        synchronise(&site, dist.path())?;
        assert_eq!(modified()?, before);
        Ok(())
    }

    #[test]
    fn a_folder_of_other_files_is_left_alone() -> Result<()> {
        let home = tempfile::tempdir()?;
        fs::write(home.path().join("letter.txt"), "dear")?;
        let error = synchronise(&files(&["index.html"]), home.path()).expect_err("not the site's");
        assert!(error.to_string().contains("would delete them"));
        assert!(home.path().join("letter.txt").exists());
        Ok(())
    }
}
