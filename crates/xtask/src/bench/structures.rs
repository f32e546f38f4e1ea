//! `mm`: the data structures' own benchmarks, native and in wasm.
//!
//! | name | what |
//! | --- | --- |
//! | `mm.zsmalloc.…`, `mm.index.…`, `mm.memo.…` | one operation |
//! | `mm.codecs.CODEC.CONTENT.DIRECTION` | one page |
//! | `mm.wasm.codecs.CODEC.CONTENT.DIRECTION` | the same in headless Chromium |

use anyhow::{Result, bail};
use serde::Deserialize;

use super::Measurement;
use crate::{browser_tests, cargo};

pub const NAME: &str = "mm";
const PACKAGE: &str = "zswap-mm";

/// There are sixty of them; with the usual eight seconds each they would take
/// eight minutes. Times of one run are compared with each other, not between
/// machines, for which this is enough.
const SHORT: [&str; 6] = [
    "--warm-up-time",
    "0.3",
    "--measurement-time",
    "1",
    "--sample-size",
    "10",
];

/// Measures natively, then in the browser.
pub fn measure() -> Result<Vec<Measurement>> {
    let mut measurements = native()?;
    measurements.extend(in_browser()?);
    Ok(measurements)
}

fn native() -> Result<Vec<Measurement>> {
    let mut command = cargo::cargo();
    command.args(["bench", "--package", PACKAGE, "--benches", "--"]);
    command.args(["--output-format", "bencher"]);
    command.args(SHORT);
    let printed = cargo::output(&mut command)?;
    let measurements: Vec<Measurement> = printed.lines().filter_map(bencher_line).collect();
    if measurements.is_empty() {
        bail!("the benchmarks of {PACKAGE} printed no `bench:` line");
    }
    Ok(measurements)
}

/// `test GROUP/NAME ... bench:  1,234 ns/iter (+/- 56)`.
fn bencher_line(line: &str) -> Option<Measurement> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench:")?;
    let (value, _) = rest.trim().split_once(" ns/iter")?;
    let value = value.replace(',', "").parse().ok()?;
    Some(measurement(name, value))
}

fn measurement(path: &str, value: f64) -> Measurement {
    Measurement {
        name: format!("{NAME}.{}", path.trim().replace('/', ".")),
        value,
        unit: "ns".to_owned(),
    }
}

#[derive(Deserialize)]
struct Line {
    bench: String,
    ns_per_iter: f64,
}

fn in_browser() -> Result<Vec<Measurement>> {
    let mut command = browser_tests::command()?;
    command.args(["--release", "--package", PACKAGE, "--test", "wasm"]);
    command.args(["--", "codec_times", "--nocapture"]);
    let printed = cargo::output(&mut command)?;
    let measurements: Vec<Measurement> = printed.lines().filter_map(json_line).collect();
    if measurements.is_empty() {
        bail!("the browser benchmarks of {PACKAGE} printed no line of JSON");
    }
    Ok(measurements)
}

/// The runner may put something of its own in front of what a test prints.
fn json_line(line: &str) -> Option<Measurement> {
    let json = line.get(line.find('{')?..=line.rfind('}')?)?;
    let line: Line = serde_json::from_str(json).ok()?;
    Some(measurement(&line.bench, line.ns_per_iter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_kinds_are_read() {
        let native = bencher_line("test index/rb-tree/load ... bench:       1,401 ns/iter (+/- 9)");
        let wasm =
            json_line("    {\"bench\":\"wasm/codecs/lz4/text/compress\",\"ns_per_iter\":12.5}");
        let read = [native, wasm].map(|measurement| {
            measurement.map(|Measurement { name, value, unit }| (name, value, unit))
        });
        assert_eq!(
            read,
            [
                Some(("mm.index.rb-tree.load".into(), 1401.0, "ns".into())),
                Some(("mm.wasm.codecs.lz4.text.compress".into(), 12.5, "ns".into())),
            ]
        );
        assert!(bencher_line("running 3 tests").is_none());
        assert!(json_line("nothing").is_none());
    }
}
