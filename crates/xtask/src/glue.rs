//! The JavaScript that wasm-bindgen writes, made smaller without changing what
//! it does: comments and indentation go, and functions that only the wasm file
//! calls get short names in both.
//!
//! Left out: shortening of everything else, which needs a parser of JavaScript
//! for a gain of some hundred bytes.

use regex_lite::{Captures, Regex};
use std::collections::BTreeMap;

/// Short names by the long ones.
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// Short names for `long` ones, in their order: `a`, `b`, … `a1`, `b1`, …
    pub fn new(long: impl Iterator<Item = String>) -> Names {
        const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
        let mut names = BTreeMap::new();
        for name in long {
            let number = names.len();
            let letter = char::from(LETTERS[number % LETTERS.len()]);
            let round = match number / LETTERS.len() {
                0 => String::new(),
                round => round.to_string(),
            };
            names
                .entry(name)
                .or_insert_with(|| format!("{letter}{round}"));
        }
        Names(names)
    }

    /// The short name, if there is one.
    pub fn short(&self, long: &str) -> Option<&str> {
        self.0.get(long).map(String::as_str)
    }
}

/// `script` without comments of their own lines and without indentation, and
/// with `names` shortened where they are the keys of an object.
pub fn compact(script: &str, names: &Names) -> String {
    let key = Regex::new(r"^(\w+)(: ?)").expect("a valid pattern");
    let mut compact = String::with_capacity(script.len());
    let mut in_comment = false;
    for line in script.lines().map(str::trim) {
        in_comment |= line.starts_with("/*");
        if in_comment {
            in_comment = !line.ends_with("*/");
            continue;
        }
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        let shorten = |found: &Captures| match names.short(&found[1]) {
            Some(short) => format!("{short}:"),
            None => found[0].to_owned(),
        };
        compact += &key.replace(line, shorten);
        compact.push('\n');
    }
    compact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_go_and_keys_become_short() {
        let names = Names::new(["__wbg_now_1".to_owned(), "__wbg_log_2".to_owned()].into_iter());
        let script = "/**\n * Now.\n */\nexport function now() {\n    // soon\n    return {\n        \
                      __wbg_now_1: function() { return `/* ${1} */`; },\n        \
                      __wbg_log_2: log,\n\n        __proto__: null,\n    };\n}\n/* one line */\nlast;\n";
        assert_eq!(
            compact(script, &names),
            "export function now() {\nreturn {\na:function() { return `/* ${1} */`; },\nb:log,\n\
             __proto__: null,\n};\n}\nlast;\n"
        );
    }

    #[test]
    fn every_name_has_another_short_one() {
        let long = || (0..100).map(|number| format!("long_{number}"));
        let names = Names::new(long());
        let mut short: Vec<_> = long()
            .filter_map(|name| Some(names.short(&name)?.to_owned()))
            .collect();
        short.sort();
        short.dedup();
        assert_eq!(short.len(), 100);
    }
}
