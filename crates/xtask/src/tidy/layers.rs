//! Who may use whom, read from the manifests.

use anyhow::{Context, Result};
use std::fs;
use toml::{Table, Value};

use crate::repo;

/// The crates from the ground up, by folder, each with those it may use.
const LAYERS: [(&str, &[&str]); 7] = [
    ("mm", &[]),
    ("kernel", &[]),
    ("zswap", &["mm", "kernel"]),
    ("lab", &["mm", "kernel", "zswap"]),
    ("view", &["mm", "kernel", "zswap", "lab"]),
    ("cli", &["mm", "kernel", "zswap", "lab", "view"]),
    ("ui", &["mm", "kernel", "zswap", "lab", "view"]),
];

/// The only crate that may use a browser.
const PAGE: &str = "ui";

/// What the names of crates for the browser begin with.
const BROWSER: [&str; 6] = [
    "yew",
    "web-sys",
    "js-sys",
    "wasm-bindgen",
    "gloo",
    "console_",
];

/// The library of the tests that run in a browser; any crate may test with it.
const BROWSER_TESTS: &str = "wasm-bindgen-test";

/// One member of the workspace.
struct Member {
    folder: String,
    package: String,
    uses: Vec<Use>,
}

/// One dependency.
struct Use {
    package: String,
    for_tests: bool,
}

/// Every broken rule.
pub fn check() -> Result<Vec<String>> {
    Ok(broken(&members()?))
}

/// The packages that have tests for the browser.
pub fn packages_with_browser_tests() -> Result<Vec<String>> {
    let uses = |member: &Member| member.uses.iter().any(|u| u.package == BROWSER_TESTS);
    Ok(members()?
        .into_iter()
        .filter(uses)
        .map(|member| member.package)
        .collect())
}

fn broken(members: &[Member]) -> Vec<String> {
    members
        .iter()
        .flat_map(|member| {
            let problems = member
                .uses
                .iter()
                .filter_map(|u| problem(members, member, u));
            let unknown = allowed(&member.folder).is_none().then(|| {
                "has no place in the order of the crates: give it one in \
                 crates/xtask/src/tidy/layers.rs"
                    .to_owned()
            });
            let place = format!("crates/{}/Cargo.toml", member.folder);
            problems
                .chain(unknown)
                .map(|problem| format!("{place}: {problem}"))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// What is wrong with one dependency of `member`.
fn problem(members: &[Member], member: &Member, used: &Use) -> Option<String> {
    let name = &used.package;
    if let Some(other) = members.iter().find(|other| other.package == *name) {
        let may = allowed(&member.folder).is_some_and(|list| list.contains(&&*other.folder));
        return (!may).then(|| format!("uses `{name}`, which is not below it"));
    }
    if member.folder == "kernel" && name.starts_with("zswap") {
        return Some(format!("uses `{name}`: the kernel knows nothing of zswap"));
    }
    let browser = BROWSER.iter().any(|prefix| name.starts_with(prefix));
    let excused = member.folder == PAGE || used.for_tests;
    (browser && !excused).then(|| format!("uses `{name}`: only crates/{PAGE} knows a browser"))
}

fn allowed(folder: &str) -> Option<&'static [&'static str]> {
    LAYERS
        .iter()
        .find(|(name, _)| *name == folder)
        .map(|(_, below)| *below)
}

fn members() -> Result<Vec<Member>> {
    let root = read("Cargo.toml")?;
    let list = root
        .get("workspace")
        .and_then(|workspace| workspace.get("members"))
        .and_then(Value::as_array)
        .context("Cargo.toml lists no members of the workspace")?;
    list.iter()
        .filter_map(Value::as_str)
        .map(|path| {
            let manifest = read(&format!("{path}/Cargo.toml"))?;
            let folder = path.rsplit('/').next().unwrap_or(path);
            member(folder, &manifest).with_context(|| format!("{path}/Cargo.toml"))
        })
        .collect()
}

fn read(path: &str) -> Result<Table> {
    let text = fs::read_to_string(repo::root().join(path)).with_context(|| path.to_owned())?;
    text.parse().with_context(|| path.to_owned())
}

fn member(folder: &str, manifest: &Table) -> Result<Member> {
    let package = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(Value::as_str)
        .context("the package has no name")?;
    let mut uses = dependencies(manifest);
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        let tables = targets.values().filter_map(Value::as_table);
        uses.extend(tables.flat_map(dependencies));
    }
    Ok(Member {
        folder: folder.to_owned(),
        package: package.to_owned(),
        uses,
    })
}

/// The dependencies that one table of a manifest has, of every kind.
fn dependencies(table: &Table) -> Vec<Use> {
    ["dependencies", "build-dependencies", "dev-dependencies"]
        .iter()
        .filter_map(|kind| Some((*kind, table.get(*kind)?.as_table()?)))
        .flat_map(|(kind, list)| {
            list.iter().map(move |(key, value)| Use {
                // Under another name in the code, a crate is still the same.
                package: value
                    .get("package")
                    .and_then(Value::as_str)
                    .unwrap_or(key)
                    .to_owned(),
                for_tests: kind == "dev-dependencies",
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong when crates/FOLDER has `manifest`, beside a crate of every layer.
    fn wrong(folder: &str, manifest: &str) -> Vec<String> {
        let named = |folder: &str, rest: &str| {
            let text = format!("[package]\nname = \"the-{folder}\"\n{rest}");
            member(folder, &text.parse().expect("valid TOML")).expect("a member")
        };
        let mut members: Vec<_> = LAYERS
            .iter()
            .filter(|(name, _)| *name != folder)
            .map(|(name, _)| named(name, ""))
            .collect();
        members.push(named(folder, manifest));
        broken(&members)
    }

    #[test]
    fn a_crate_may_use_those_below_it() {
        assert_eq!(
            wrong("lab", "[dependencies]\nthe-zswap = '1'\nserde = '1'"),
            [""; 0]
        );
        assert_eq!(
            wrong("ui", "[dependencies]\nyew = '1'\nthe-view = '1'"),
            [""; 0]
        );
    }

    #[test]
    fn a_crate_may_not_use_those_above_or_beside_it() {
        for (folder, used) in [
            ("lab", "view"),
            ("mm", "kernel"),
            ("kernel", "mm"),
            ("ui", "cli"),
        ] {
            let wrong = wrong(
                folder,
                &format!("[dependencies]\nthe-{used}.workspace = true"),
            );
            assert_eq!(wrong.len(), 1, "{folder} uses {used}: {wrong:?}");
            assert!(
                wrong[0].starts_with(&format!("crates/{folder}/Cargo.toml: uses `the-{used}`"))
            );
        }
    }

    #[test]
    fn other_kinds_and_other_names_of_a_dependency_count_too() {
        for manifest in [
            "[dev-dependencies]\nthe-lab = '1'",
            "[build-dependencies]\nthe-lab = '1'",
            "[target.'cfg(unix)'.dependencies]\nthe-lab = '1'",
            "[dependencies]\nlaboratory = { version = '1', package = 'the-lab' }",
        ] {
            assert_eq!(wrong("mm", manifest).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn only_the_page_and_tests_know_a_browser() {
        assert_eq!(wrong("view", "[dependencies]\nweb-sys = '1'").len(), 1);
        assert_eq!(
            wrong("lab", "[dev-dependencies]\nwasm-bindgen-test = '1'"),
            [""; 0]
        );
    }

    #[test]
    fn the_kernel_knows_no_zswap_of_any_name() {
        assert_eq!(
            wrong("kernel", "[dependencies]\nzswap-extra = '1'").len(),
            1
        );
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert!(wrong("new", "")[0].contains("no place in the order"));
    }
}
