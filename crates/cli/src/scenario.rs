//! Which scenario a command is about.

use crate::output::CliError;
use clap::Args;
use zswap_lab::Scenario;

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
    let text = std::fs::read_to_string(name).map_err(|error| CliError::NoScenario {
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
