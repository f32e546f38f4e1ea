//! `cargo xtask bench`: measurements with stable names.
//!
//! One file per source of measurements; [`SOURCES`] lists them. Names are kept
//! for good, since results are compared over time:
//!
//! | name | what |
//! | --- | --- |
//! | `engine.native` | events per second of the published benchmark, headless |
//! | `engine.wasm` | the same in headless Chromium, in a worker of the built page |
//! | `kernel.…` | events per second of the virtual kernel, native and in wasm |
//! | `mm.…` | operations of the data structures, and the codecs natively and in wasm |
//! | `peer.…` | the same work done by other projects' code |

mod engine;
mod engine_native;
mod engine_wasm;
mod kernel;
mod structures;

use anyhow::{Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

/// What to measure, and how to print it.
#[derive(Args)]
pub struct Options {
    /// Measure only this name, or those below it: `engine` takes `engine.wasm` too
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print a list of {"name","value","unit"} instead of a table
    #[arg(long)]
    json: bool,
}

/// One measured value.
#[derive(Debug, Deserialize, Serialize)]
pub struct Measurement {
    /// The stable name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// What the value counts.
    pub unit: String,
}

/// Something that measures.
struct Source {
    /// The names of its measurements, or what they begin with.
    names: &'static [&'static str],
    measure: fn() -> Result<Vec<Measurement>>,
}

/// All there is to measure. A new file adds its line here.
const SOURCES: [Source; 5] = [
    Source {
        names: &[engine_native::NAME],
        measure: engine_native::measure,
    },
    Source {
        names: &[engine_wasm::NAME],
        measure: engine_wasm::measure,
    },
    Source {
        names: kernel::NATIVE,
        measure: kernel::native,
    },
    Source {
        names: kernel::WASM,
        measure: kernel::wasm,
    },
    Source {
        names: &[structures::NAME],
        measure: structures::measure,
    },
];

/// The command.
pub fn main(options: &Options) -> Result<()> {
    let only = options.only.as_deref().unwrap_or("");
    let mut measurements = Vec::new();
    let asked = |names: &[&str]| names.iter().any(|name| may_have(name, only));
    for source in SOURCES.iter().filter(|source| asked(source.names)) {
        // What it takes to measure may print; standard output is for results.
        eprintln!("measuring {}", source.names.join(", "));
        measurements.extend((source.measure)()?);
    }
    measurements.retain(|measurement| is_below(&measurement.name, only));
    if measurements.is_empty() {
        let names: Vec<_> = SOURCES
            .iter()
            .flat_map(|source| source.names)
            .copied()
            .collect();
        bail!("nothing is called `{only}`; there are {}", names.join(", "));
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&measurements)?);
    } else {
        for Measurement { name, value, unit } in &measurements {
            println!("{name:<32}{value:>18.1} {unit}");
        }
    }
    Ok(())
}

/// Whether `name` is `prefix`, or below it in the hierarchy of dots.
fn is_below(name: &str, prefix: &str) -> bool {
    prefix.is_empty()
        || name
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a source called `source` may have measurements that `only` asks for.
fn may_have(source: &str, only: &str) -> bool {
    is_below(source, only) || is_below(only, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_takes_those_below_it() {
        assert!(is_below("engine.wasm", "engine"));
        assert!(is_below("engine.wasm", "engine.wasm"));
        assert!(is_below("engine.wasm", ""));
        assert!(!is_below("engines.wasm", "engine"));
        assert!(may_have("peer", "peer.simpy"));
        assert!(!may_have("peer", "engine"));
    }
}
