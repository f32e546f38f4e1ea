//! What must not be in a line, and how many lines a file may have.

use anyhow::{Context, Result};
use regex_lite::Regex;
use std::fs;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

use crate::repo;

/// A file longer than this holds more than one concept.
const LONGEST: usize = 800;

/// The folders whose files are read.
const PLACES: [&str; 7] = [
    "crates",
    "www",
    "assets",
    "docs",
    "tests",
    "index.html",
    "README.md",
];

/// Files that people write.
const KINDS: [&str; 8] = ["rs", "toml", "md", "js", "mjs", "css", "html", "ftl"];

/// The crates whose decisions must be the same everywhere, every time.
const EXACT: [&str; 3] = ["crates/mm/src/", "crates/kernel/src/", "crates/zswap/src/"];

/// A line with this and a reason may use floating-point numbers.
const EXCUSE: &str = "// float: ";

/// A pattern, and what to say where it is found.
struct Rule {
    pattern: Regex,
    says: &'static str,
}

struct Rules {
    unfinished: Rule,
    float: Rule,
    hash: Rule,
}

/// Every broken rule.
pub fn check() -> Result<Vec<String>> {
    let rules = Rules::new();
    let root = repo::root();
    let mut broken = Vec::new();
    for place in PLACES.iter().map(|place| root.join(place)) {
        if !place.exists() {
            continue;
        }
        let entries = WalkDir::new(place).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| !is_made(entry)) {
            let entry = entry?;
            if entry.file_type().is_file() && is_written(entry.path()) {
                let text = fs::read_to_string(entry.path())
                    .with_context(|| entry.path().display().to_string())?;
                broken.extend(rules.broken(&repo::shown(entry.path()), &text));
            }
        }
    }
    Ok(broken)
}

/// Whether a folder holds what tools make.
fn is_made(entry: &DirEntry) -> bool {
    entry.file_name() == "node_modules" || entry.file_name() == "target"
}

fn is_written(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str());
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

impl Rules {
    fn new() -> Self {
        let rule = |pattern: &str, says| Rule {
            pattern: Regex::new(pattern).expect("the patterns here are valid"),
            says,
        };
        Self {
            // In pieces, or this line would break the rule.
            unfinished: rule(
                concat!(r"\b(TO", "DO|FIX", "ME|XX", r"X)\b"),
                "finish it, or file an issue",
            ),
            float: rule(
                r"\bf(32|64)\b",
                "no floating-point number takes part in a decision: use an integer, \
                 or end the line with `// float: ` and the reason",
            ),
            hash: rule(
                r"\bHash(Map|Set)\b",
                "the order of a hash table differs between runs: use a BTreeMap or a Vec",
            ),
        }
    }

    /// The rules that the file called `name` breaks, with the lines.
    fn broken(&self, name: &str, text: &str) -> Vec<String> {
        let mut broken = Vec::new();
        let exact = EXACT.iter().any(|folder| name.starts_with(folder));
        for (index, line) in text.lines().enumerate() {
            let mut report = |rule: &Rule, line: &str| {
                if rule.pattern.is_match(line) {
                    broken.push(format!("{name}:{}: {}", index + 1, rule.says));
                }
            };
            report(&self.unfinished, line);
            if exact {
                report(&self.hash, code(line));
                if !is_excused(line) {
                    report(&self.float, code(line));
                }
            }
        }
        let lines = text.lines().count();
        if name.starts_with("crates/") && name.contains("/src/") && lines > LONGEST {
            broken.push(format!(
                "{name}: {lines} lines, more than {LONGEST}: one concept per file"
            ));
        }
        broken
    }
}

/// The line without the comment at its end.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

fn is_excused(line: &str) -> bool {
    line.split_once(EXCUSE)
        .is_some_and(|(_, reason)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(name: &str, text: &str) -> Vec<String> {
        Rules::new().broken(name, text)
    }

    #[test]
    fn floats_need_a_reason_in_the_model() {
        let name = "crates/mm/src/lib.rs";
        assert!(broken(name, "\nlet x: f64 = 1.0;")[0].starts_with("crates/mm/src/lib.rs:2:"));
        assert_eq!(broken(name, "let x = y as f32; // float: ").len(), 1);
        assert_eq!(
            broken(name, "let x = y as f32; // float: shown only"),
            [""; 0]
        );
        assert_eq!(broken(name, "/// Not an f64.\nlet buf64 = 0;"), [""; 0]);
        assert_eq!(
            broken("crates/lab/src/lib.rs", "let x: f64 = 1.0;"),
            [""; 0]
        );
    }

    #[test]
    fn hash_tables_have_no_place_in_the_model() {
        assert_eq!(
            broken("crates/kernel/src/a.rs", "use std::collections::HashMap;").len(),
            1
        );
        assert_eq!(
            broken("crates/ui/src/a.rs", "use std::collections::HashMap;"),
            [""; 0]
        );
    }

    #[test]
    fn nothing_is_left_for_later() {
        let later = concat!("// TO", "DO: later");
        assert_eq!(broken("www/style.css", later).len(), 1);
        assert_eq!(
            broken("docs/a.md", "the AXXXB register, a todo list"),
            [""; 0]
        );
    }

    #[test]
    fn long_files_are_named() {
        let text = "\n".repeat(LONGEST + 1);
        assert_eq!(broken("crates/ui/src/a.rs", &text).len(), 1);
        assert_eq!(broken("docs/a.md", &text), [""; 0]);
    }
}
