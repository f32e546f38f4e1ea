//! `kernel`: the virtual kernel, and other simulators on the same work.
//!
//! | name | what |
//! | --- | --- |
//! | `kernel.native.Ncpu` | records per second of tasks that compete for N CPUs and some locks |
//! | `kernel.wasm.Ncpu` | the same in headless Chromium |
//! | `kernel.tasks.N` | ns per record on 8 CPUs with N tasks |
//! | `kernel.pingpong` | turns per second of two tasks that hand a mutex to and fro |
//! | `peer.nexosim` | the same of two models of NeXosim |
//! | `peer.binary_heap` | events per second of a bare event loop that does nothing |
//!
//! The native ones are measured in turn in one run, so that their ratios hold.
//! The crate that measures is not part of the workspace: what it compares with
//! stays out of the application's lock file.

use anyhow::{Result, bail};

use super::Measurement;
use crate::{browser_tests, cargo};

pub const NATIVE: &[&str] = &[
    "kernel.native",
    "kernel.tasks",
    "kernel.pingpong",
    "peer.nexosim",
    "peer.binary_heap",
];
pub const WASM: &[&str] = &["kernel.wasm"];

const MANIFEST: &str = "crates/kernel/bench/Cargo.toml";

pub fn native() -> Result<Vec<Measurement>> {
    let mut command = cargo::cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path", MANIFEST]);
    measurements(&cargo::output(&mut command)?)
}

pub fn wasm() -> Result<Vec<Measurement>> {
    let mut command = browser_tests::command()?;
    command.args(["--release", "--manifest-path", MANIFEST, "--test", "wasm"]);
    command.args(["--", "--nocapture"]);
    measurements(&cargo::output(&mut command)?)
}

fn measurements(printed: &str) -> Result<Vec<Measurement>> {
    let read: Vec<Measurement> = printed.lines().filter_map(json_line).collect();
    if read.is_empty() {
        bail!("the benchmarks of {MANIFEST} printed no measurement");
    }
    Ok(read)
}

/// The runner of browser tests may put something of its own in front.
fn json_line(line: &str) -> Option<Measurement> {
    let json = line.get(line.find('{')?..=line.rfind('}')?)?;
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_json_are_measurements() -> Result<()> {
        let printed = concat!(
            "running 1 test\n",
            "    {\"name\":\"kernel.wasm.1cpu\",\"value\":2.5,\"unit\":\"events/s\"}\n",
        );
        let read = measurements(printed)?;
        assert_eq!(read.len(), 1);
        assert_eq!((&*read[0].name, read[0].value), ("kernel.wasm.1cpu", 2.5));
        assert!(measurements("running 1 test\n").is_err());
        Ok(())
    }
}
