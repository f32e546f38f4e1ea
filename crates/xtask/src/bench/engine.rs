//! What the two engine benchmarks share: the scenario, and the rate of a run.

use anyhow::{Result, bail};
use serde::Deserialize;

use super::Measurement;

/// The scenario that is run.
pub const SCENARIO: &str = "b1-1cpu";

/// How often. The median counts: the first run also warms caches up.
pub const RUNS: u32 = 5;

/// One run as the command line and the page report it; they report more.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// Events that happened.
    pub events: u64,
    /// Nanoseconds the run took on the wall clock.
    pub wall_ns: u64,
}

/// The measurement called `name`: the median rate of `runs`.
pub fn rate(name: &str, runs: &[Run]) -> Result<Measurement> {
    let mut rates: Vec<f64> = runs
        .iter()
        .filter(|run| run.wall_ns > 0)
        .map(|run| run.events as f64 * 1e9 / run.wall_ns as f64)
        .collect();
    rates.sort_by(f64::total_cmp);
    let Some(median) = rates.get(rates.len() / 2) else {
        bail!("{name}: no run took any time");
    };
    Ok(Measurement {
        name: name.to_owned(),
        value: *median,
        unit: "events/s".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_median_of_the_runs() -> Result<()> {
        let run = |events| Run {
            events,
            wall_ns: 1_000_000,
        };
        let measurement = rate("engine.native", &[run(3), run(900), run(5)])?;
        assert_eq!(measurement.value, 5_000.0);
        Ok(())
    }

    #[test]
    fn no_runs_are_an_error() {
        assert!(rate("engine.native", &[]).is_err());
    }
}
