//! Which scenario a command is about.

use crate::output::CliError;
use clap::Args;
use std::fs::File;
use std::io::{self, Read};
use zswap_lab::Scenario;

/// No scenario is longer; what is, is something else, perhaps without an end.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// A scenario with its settings.
#[derive(Args)]
pub struct ScenarioArgs {
    /// A name from `zswap-sim list`, or a TOML file
    scenario: String,
    /// Set a key, for example context=split; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl ScenarioArgs {
    /// The scenario with its settings.
    pub fn load(&self) -> Result<Scenario, CliError> {
        let mut scenario = find(&self.scenario)?;
        scenario.set_many(self.pairs()?)?;
        Ok(scenario)
    }

    /// The keys and values of all `--set`.
    fn pairs(&self) -> Result<Vec<(&str, &str)>, CliError> {
        let mut pairs = Vec::new();
        for set in &self.sets {
            let (key, value) = set
                .split_once('=')
                .ok_or_else(|| CliError::SetForm(set.clone()))?;
            if key.trim().is_empty() {
                return Err(CliError::SetForm(set.clone()));
            }
            pairs.push((key.trim(), value.trim()));
        }
        Ok(pairs)
    }
}

/// A built-in scenario by name, or one from a file.
fn find(name: &str) -> Result<Scenario, CliError> {
    if let Some(scenario) = Scenario::named(name) {
        return Ok(scenario);
    }
    let text = read(name).map_err(|error| CliError::NoScenario {
        got: name.to_owned(),
        error,
    })?;
    let stem = std::path::Path::new(name)
        .file_stem()
        .map_or(name.into(), |stem| stem.to_string_lossy());
    Scenario::from_toml(&stem, &text).map_err(|error| CliError::Scenario {
        file: name.to_owned(),
        error,
    })
}

fn read(name: &str) -> io::Result<String> {
    let mut text = String::new();
    let length = File::open(name)?
        .take(FILE_MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if length as u64 > FILE_MAX_BYTES {
        let what = format!("longer than {FILE_MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}
