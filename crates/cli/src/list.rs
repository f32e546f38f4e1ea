//! `zswap-sim list`.

use crate::output::{CliError, print};
use std::fmt::Write;
use zswap_lab::{KEYS, Scenario, built_in_names};

/// Lists scenarios and keys.
pub fn list() -> Result<(), CliError> {
    print(&text())
}

fn text() -> String {
    let mut text = "Scenarios:\n".to_owned();
    for name in built_in_names() {
        let title = Scenario::named(name).map_or_else(String::new, |scenario| scenario.title);
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name:<24} {title}");
    }
    text.push_str("\nKeys for --set and for scenario files:\n");
    for key in KEYS {
        let _ = writeln!(text, "  {:<24} {}", key.name, key.about);
        let _ = writeln!(text, "  {:<24}   takes {}", "", key.takes);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_scenario_and_key_is_listed() {
        let text = super::text();
        for name in zswap_lab::built_in_names() {
            assert!(text.contains(name), "{name}");
        }
        for key in zswap_lab::KEYS {
            assert!(text.contains(key.name), "{}", key.name);
        }
    }
}
