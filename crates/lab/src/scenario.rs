//! A scenario: everything that a run depends on beside its seed.
//!
//! # Where the default costs come from
//!
//! The costs are a server's at 4.5 GHz and none is fitted to a result. The
//! reference's table of published measurements (8.1) gives a whole swap-out of
//! a page with zstd level 3 as 15.95–16.18 µs and a whole swap-in as
//! 6.62–6.70 µs; its section 7.2 spreads a store and a load over their steps
//! and starts from the numbers used here. The size of the slow reads is known
//! to be insensitive to them.

use crate::keys::{KEYS, Key, KeyError};
use kernel_sim::{Hrtick, MutexOptions, Preemption};
use toml_writer::ToTomlValue as _;
use zswap_mm::{Algorithm, PageContent};
use zswap_paths::{Context, Costs};

/// Tasks that page memory out and read it back, all day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workers {
    /// How many.
    pub count: u64,
    /// Their nice value.
    pub nice: i8,
    /// Pages that each works on.
    pub pages: u64,
}

/// Tasks that only compute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spinners {
    /// How many.
    pub count: u64,
    /// Their nice value.
    pub nice: i8,
}

/// Tasks that page their own buffer out and time each read of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Readers {
    /// How many.
    pub count: u64,
    /// Their nice value.
    pub nice: i8,
    /// Pages of the buffer.
    pub pages: u64,
    /// Sleep between two reads, in µs.
    pub sleep_us: u64,
}

/// Costs of the machine itself, in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineCosts {
    /// A context switch.
    pub switch_ns: u64,
    /// A timer interrupt.
    pub timer_irq_ns: u64,
    /// Waking a task.
    pub wake_ns: u64,
    /// What a task computes in user mode for each page it touches.
    pub user_ns: u64,
}

/// A scenario. [`KEYS`] lists its keys with what each takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Its name: that of the built-in one it started as, or of its file.
    pub name: String,
    /// One line for a list.
    pub title: String,
    /// A few sentences.
    pub about: String,
    /// Number of CPUs.
    pub cpus: u64,
    /// Ticks per second.
    pub hz: u64,
    /// The precise slice-end timer.
    pub hrtick: Hrtick,
    /// Length of a slice, in ns of real time.
    pub base_slice_ns: u64,
    /// The preemption model.
    pub preempt: Preemption,
    /// How mutexes work.
    pub mutex: MutexOptions,
    /// The kernel threads that every machine has are there.
    pub background: bool,
    /// The context design of zswap.
    pub context: Context,
    /// The compressor.
    pub compressor: Algorithm,
    /// What the pages contain.
    pub page_content: PageContent,
    /// Length of a run, in virtual seconds.
    pub duration_s: u64,
    /// The seed of a run that is given none.
    pub seed: u64,
    /// The workers.
    pub workers: Workers,
    /// The spinners.
    pub spinners: Spinners,
    /// The readers.
    pub readers: Readers,
    /// Costs of zswap's paths.
    pub costs: Costs,
    /// Costs of the machine.
    pub machine_costs: MachineCosts,
}

impl Default for Scenario {
    /// A machine without tasks. The costs are those of the module's notes.
    fn default() -> Scenario {
        Scenario {
            name: "unnamed".to_owned(),
            title: String::new(),
            about: String::new(),
            cpus: 1,
            hz: 1000,
            hrtick: Hrtick::On,
            base_slice_ns: 700_000,
            preempt: Preemption::Lazy,
            mutex: MutexOptions::default(),
            background: false,
            context: Context::Shared,
            compressor: Algorithm::Zstd,
            page_content: PageContent::HalfRandom,
            duration_s: 12,
            seed: 1,
            workers: Workers {
                count: 0,
                nice: 10,
                pages: 256,
            },
            spinners: Spinners { count: 0, nice: 0 },
            readers: Readers {
                count: 0,
                nice: -19,
                pages: 64,
                sleep_us: 0,
            },
            costs: Costs {
                compress_ns: 16_000,
                decompress_ns: 6_000,
                store_ns: 4_000,
                load_ns: 2_750,
                store_locked_ns: 1_800,
                load_locked_ns: 600,
            },
            machine_costs: MachineCosts {
                switch_ns: 1_500,
                timer_irq_ns: 1_500,
                wake_ns: 750,
                user_ns: 100,
            },
        }
    }
}

/// Why a text is not a scenario. Each message is one line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not TOML.
    #[error("line {line}: {what}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        what: String,
    },
    /// One of its keys is wrong.
    #[error("line {line}: {error}")]
    Key {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        error: KeyError,
    },
    /// Its keys do not go together.
    #[error("{0}")]
    Together(KeyError),
}

/// Scenarios that come with the program: name, and keys with their values as
/// text. `build.rs` reads them from `assets/scenarios`.
const BUILT_IN: &[(&str, &[(&str, &str)])] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The names that [`Scenario::named`] knows.
#[must_use]
pub fn built_in_names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|&(name, _)| name).collect()
}

/// Most pages that all tasks of a scenario may have together: 256 MiB.
const MAX_PAGES: u64 = 65_536;

impl Scenario {
    /// A scenario that comes with the program.
    #[must_use]
    pub fn named(name: &str) -> Option<Scenario> {
        let (name, settings) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Scenario::from_settings(name, settings.iter().copied()).ok()
    }

    /// A scenario of keys and their values as text; keys that are not given
    /// keep their defaults.
    ///
    /// # Errors
    /// If there is no such key, or it does not take its value, or the keys do
    /// not go together.
    pub fn from_settings<'a>(
        name: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Scenario, KeyError> {
        let mut scenario = Scenario {
            name: name.to_owned(),
            ..Scenario::default()
        };
        for (key, value) in settings {
            scenario.set_one(key, value)?;
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Every key with its value as text: what [`Scenario::from_settings`] takes.
    #[must_use]
    pub fn settings(&self) -> Vec<(String, String)> {
        let pair = |key: &Key| (key.name.to_owned(), key.get(self).to_string());
        KEYS.iter().map(pair).collect()
    }

    /// Reads a scenario; keys that are not given keep their defaults.
    ///
    /// # Errors
    /// If the text is not TOML, or a key is unknown or out of range.
    pub fn from_toml(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let document = toml::de::DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            ScenarioError::Syntax {
                line: line_of(text, at),
                what: error.message().replace('\n', " "),
            }
        })?;
        let mut scenario = Scenario {
            name: name.to_owned(),
            ..Scenario::default()
        };
        scenario.set_all(text, "", document.get_ref())?;
        scenario.check().map_err(ScenarioError::Together)?;
        Ok(scenario)
    }

    fn set_all(
        &mut self,
        text: &str,
        prefix: &str,
        table: &toml::de::DeTable<'_>,
    ) -> Result<(), ScenarioError> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            let set = match value.get_ref() {
                toml::de::DeValue::Table(inner) => {
                    let is_section = KEYS
                        .iter()
                        .any(|known| known.name.starts_with(&format!("{key}.")));
                    if is_section {
                        self.set_all(text, &format!("{key}."), inner)?;
                        continue;
                    }
                    Err(KeyError::unknown(&key))
                }
                toml::de::DeValue::String(text) => self.set_one(&key, text),
                toml::de::DeValue::Integer(number) => {
                    let digits = number.as_str();
                    match i128::from_str_radix(digits, number.radix()) {
                        Ok(number) => self.set_one(&key, &number.to_string()),
                        Err(_) => self.set_one(&key, digits),
                    }
                }
                other => Err(wrong_type(key, other.type_str())),
            };
            set.map_err(|error| ScenarioError::Key {
                line: line_of(text, name.span().start),
                error,
            })?;
        }
        Ok(())
    }

    fn set_one(&mut self, key: &str, value: &str) -> Result<(), KeyError> {
        let known = KEYS.iter().find(|known| known.name == key);
        let known = known.ok_or_else(|| KeyError::unknown(key))?;
        known.set(self, value)
    }

    /// Sets one key to a value given as text.
    ///
    /// # Errors
    /// If there is no such key, or it does not take that value, or the keys
    /// would no longer go together; the scenario is then as it was.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), KeyError> {
        self.set_many([(key, value)])
    }

    /// Sets several keys, which have to go together only in the end.
    ///
    /// # Errors
    /// As [`Scenario::set`]; the scenario is then as it was.
    pub fn set_many<'a>(
        &mut self,
        sets: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), KeyError> {
        let mut changed = self.clone();
        for (key, value) in sets {
            changed.set_one(key, value)?;
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// Pages of all tasks together; each has a swap slot.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.workers.count * self.workers.pages + self.readers.count * self.readers.pages
    }

    /// Whether the keys go together.
    fn check(&self) -> Result<(), KeyError> {
        let pages = self.pages();
        if pages > MAX_PAGES {
            return Err(KeyError::Value {
                key: "workers.pages and readers.pages".to_owned(),
                got: format!("{pages} pages for all tasks together"),
                takes: format!("at most {MAX_PAGES} together"),
            });
        }
        Ok(())
    }

    /// The scenario as TOML, with every key.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for key in KEYS {
            let (prefix, name) = key.name.split_once('.').unwrap_or(("", key.name));
            if prefix != section {
                section = prefix;
                text.push_str(&format!("\n[{section}]\n"));
            }
            let value = match key.get(self) {
                crate::keys::Value::Int(number) => number.to_string(),
                crate::keys::Value::Text(text) => quoted(&text),
            };
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }
}

/// A text as a string of TOML, on one line.
fn quoted(text: &str) -> String {
    toml_writer::TomlStringBuilder::new(text)
        .as_basic()
        .to_toml_value()
}

/// A value of a type that no key takes.
fn wrong_type(key: String, type_name: &str) -> KeyError {
    let known = KEYS.iter().find(|known| known.name == key);
    known.map_or_else(
        || KeyError::unknown(&key),
        |known| KeyError::Value {
            key: key.clone(),
            got: format!("of type {type_name}"),
            takes: known.takes.to_string(),
        },
    )
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    1 + before.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_scenarios_are_their_files() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/scenarios");
        for name in built_in_names() {
            let scenario = Scenario::named(name).expect(name);
            assert!(!scenario.title.is_empty() && !scenario.about.is_empty());
            let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).expect(name);
            assert_eq!(Scenario::from_toml(name, &text), Ok(scenario));
        }
    }

    #[test]
    fn a_scenario_survives_being_written_and_read() {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        for (key, value) in [
            ("context", "onstack"),
            ("workers.nice", "-3"),
            ("seed", "18446744073709551615"),
            ("about", "a \"quoted\" \\ text,\nin two lines"),
        ] {
            scenario.set(key, value).expect("good");
        }
        let again = Scenario::from_toml("b1-1cpu", &scenario.to_toml());
        assert_eq!(again.as_ref(), Ok(&scenario));
        let settings = scenario.settings();
        let pairs = settings.iter().map(|(key, value)| (&**key, &**value));
        assert_eq!(Scenario::from_settings("b1-1cpu", pairs), Ok(scenario));
    }

    #[test]
    fn numbers_of_every_base_mean_what_they_say() {
        let text = "cpus = 0x40\n[workers]\ncount = 0b10\npages = 0o100\n[cost]\nstore_ns = 4_000";
        let scenario = Scenario::from_toml("x", text).expect("good numbers");
        let Scenario {
            cpus,
            workers,
            costs,
            ..
        } = &scenario;
        assert_eq!((*cpus, workers.count, workers.pages), (64, 2, 64));
        assert_eq!(costs.store_ns, 4_000);
    }

    #[test]
    fn keys_set_together_need_to_fit_only_in_the_end() {
        let mut scenario = Scenario::default();
        let sets = [
            ("workers.pages", "4096"),
            ("workers.count", "64"),
            ("workers.pages", "16"),
        ];
        assert_eq!(scenario.set_many(sets), Ok(()));
        assert_eq!(scenario.workers.pages, 16);
    }

    #[test]
    fn errors_name_line_key_value_and_what_it_takes() {
        for (text, expected) in [
            (
                "cpus = 1\nhz = 99",
                "line 2: hz is 99; it takes 100, 250, 300 or 1000",
            ),
            (
                "speed = 3",
                "line 1: there is no key speed; see `zswap-sim list`",
            ),
            (
                "[workers]\n\ncoun = 3",
                "line 3: there is no key workers.coun",
            ),
            ("cpus = ", "line 1: "),
            (
                "[workers]\ncount = -1",
                "line 2: workers.count is -1; it takes 0 to 64",
            ),
            ("cpus = 1.5", "line 1: cpus is of type float"),
            ("hz = [1]", "line 1: hz is of type array"),
            ("title = [1]", "line 1: title is of type array"),
            ("cpus = true", "line 1: cpus is of type boolean"),
            ("cpus = 0x41", "line 1: cpus is 65; it takes 1 to 64"),
            ("cpus = '_4_'", "line 1: cpus is _4_"),
            ("\"a\\u001b\" = 1", "there is no key a ;"),
            ("hz = 1\nhz = 1", "line 2: "),
            (
                "[workers]\ncount = 64\npages = 4096",
                "pages for all tasks together",
            ),
            ("[hz]\nx = 1", "line 1: there is no key hz"),
        ] {
            let error = Scenario::from_toml("x", text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error} / {expected}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
