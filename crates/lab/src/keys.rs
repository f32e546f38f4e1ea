//! The keys of a scenario: one table for files, the command line and links.

use crate::scenario::Scenario;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use kernel_sim::{Hrtick, Inheritance, NICE_MAX, NICE_MIN, Preemption};
use serde::Serialize;

/// Why a key was not set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// There is no such key.
    #[error("there is no key {key}; see `zswap-sim list`")]
    Unknown {
        /// The key.
        key: String,
    },
    /// It does not take this value.
    #[error("{key} is {got}; it takes {takes}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        got: String,
        /// What it takes.
        takes: String,
    },
}

impl KeyError {
    /// There is no key of this name.
    pub(crate) fn unknown(key: &str) -> KeyError {
        KeyError::Unknown { key: shown(key) }
    }
}

/// The value of a key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Int(i128),
    /// A name or a text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

/// What a key takes.
#[derive(Clone, Debug)]
pub enum Takes {
    /// A whole number of this range.
    Range(RangeInclusive<i128>),
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Range(range) => write!(f, "{} to {}", range.start(), range.end()),
            Takes::OneOf([]) => Ok(()),
            Takes::OneOf([only]) => f.write_str(only),
            Takes::OneOf([init @ .., last]) => write!(f, "{} or {last}", init.join(", ")),
            Takes::Text => f.write_str("any text"),
        }
    }
}

/// A key of a scenario.
pub struct Key {
    /// Its name, with dots between the parts.
    pub name: &'static str,
    /// What it means, in a line.
    pub about: &'static str,
    /// What it takes.
    pub takes: Takes,
    get: fn(&Scenario) -> Value,
    /// Gets a number or text that [`Key::takes`] has let pass.
    set: fn(&mut Scenario, &Value),
}

impl Key {
    /// The key's value in a scenario.
    #[must_use]
    pub fn get(&self, scenario: &Scenario) -> Value {
        (self.get)(scenario)
    }

    pub(crate) fn set(&self, scenario: &mut Scenario, text: &str) -> Result<(), KeyError> {
        let value = self.parse(text).ok_or_else(|| KeyError::Value {
            key: self.name.to_owned(),
            got: shown(text),
            takes: self.takes.to_string(),
        })?;
        (self.set)(scenario, &value);
        Ok(())
    }

    fn parse(&self, text: &str) -> Option<Value> {
        match &self.takes {
            Takes::Range(range) => {
                let number = text.parse().ok()?;
                range.contains(&number).then_some(Value::Int(number))
            }
            Takes::OneOf(names) => {
                let number = text.parse().ok().map(Value::Int);
                let known = names.contains(&text);
                known.then(|| number.unwrap_or_else(|| Value::Text(text.to_owned())))
            }
            Takes::Text => Some(Value::Text(text.to_owned())),
        }
    }
}

/// A value as an error shows it: one line, not endless.
fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.is_empty() {
        return "empty".to_owned();
    }
    let line: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() > LONGEST {
        format!("{line}…")
    } else {
        line
    }
}

fn int<T: TryFrom<i128> + Copy>(value: &Value, former: T) -> T {
    match value {
        Value::Int(number) => T::try_from(*number).unwrap_or(former),
        Value::Text(_) => former,
    }
}

fn name<T: FromStr + Copy>(value: &Value, former: T) -> T {
    match value {
        Value::Text(text) => text.parse().unwrap_or(former),
        Value::Int(_) => former,
    }
}

macro_rules! key {
    ($name:literal, $($field:ident).+, $lo:expr, $hi:expr, $about:literal) => {
        Key {
            name: $name,
            about: $about,
            takes: Takes::Range($lo as i128..=$hi as i128),
            get: |scenario| Value::Int(scenario.$($field).+.into()),
            set: |scenario, value| scenario.$($field).+ = int(value, scenario.$($field).+),
        }
    };
}

/// A key that takes on and off.
macro_rules! switch {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Key {
            name: $name,
            about: $about,
            takes: Takes::OneOf(&["off", "on"]),
            get: |scenario| {
                let name = if scenario.$($field).+ { "on" } else { "off" };
                Value::Text(name.to_owned())
            },
            set: |scenario, value| scenario.$($field).+ = value.to_string() == "on",
        }
    };
}

const COST_MAX_NS: i128 = 1_000_000_000;
const NICE: (i8, i8) = (NICE_MIN, NICE_MAX);

/// Every key, sections together, in the order of a file.
pub const KEYS: &[Key] = &[
    Key {
        name: "title",
        about: "one line for a list",
        takes: Takes::Text,
        get: |scenario| Value::Text(scenario.title.clone()),
        set: |scenario, value| scenario.title = value.to_string(),
    },
    Key {
        name: "about",
        about: "a few sentences",
        takes: Takes::Text,
        get: |scenario| Value::Text(scenario.about.clone()),
        set: |scenario, value| scenario.about = value.to_string(),
    },
    key!("cpus", cpus, 1, 64, "number of CPUs"),
    Key {
        name: "hz",
        about: "timer ticks per second",
        takes: Takes::OneOf(&["100", "250", "300", "1000"]),
        get: |scenario| Value::Int(scenario.hz.into()),
        set: |scenario, value| scenario.hz = int(value, scenario.hz),
    },
    Key {
        name: "hrtick",
        about: "precise slice-end timer: off up to v7.0, on v7.1 to v7.3, repick v7.4",
        takes: Takes::OneOf(Hrtick::NAMES),
        get: |scenario| Value::Text(scenario.hrtick.to_string()),
        set: |scenario, value| scenario.hrtick = name(value, scenario.hrtick),
    },
    key!(
        "base_slice_ns",
        base_slice_ns,
        100_000,
        100_000_000,
        "length of a slice in ns"
    ),
    Key {
        name: "preempt",
        about: "preemption model",
        takes: Takes::OneOf(Preemption::NAMES),
        get: |scenario| Value::Text(scenario.preempt.to_string()),
        set: |scenario, value| scenario.preempt = name(value, scenario.preempt),
    },
    switch!(
        "background",
        background,
        "the kernel threads that every machine has"
    ),
    Key {
        name: "context",
        about: "what stores and loads of a CPU share: before, patch 1, patch 2",
        takes: Takes::OneOf(&["shared", "split", "onstack"]),
        get: |scenario| Value::Text(scenario.context.to_string()),
        set: |scenario, value| scenario.context = name(value, scenario.context),
    },
    Key {
        name: "compressor",
        about: "compressor, by its kernel name",
        takes: Takes::OneOf(COMPRESSORS),
        get: |scenario| Value::Text(scenario.compressor.to_string()),
        set: |scenario, value| scenario.compressor = name(value, scenario.compressor),
    },
    Key {
        name: "page_content",
        about: "what the pages contain",
        takes: Takes::OneOf(CONTENTS),
        get: |scenario| Value::Text(scenario.page_content.to_string()),
        set: |scenario, value| scenario.page_content = name(value, scenario.page_content),
    },
    key!(
        "duration_s",
        duration_s,
        1,
        600,
        "length of a run in virtual seconds"
    ),
    key!(
        "seed",
        seed,
        0,
        u64::MAX,
        "seed of a run that is given none"
    ),
    switch!(
        "mutex.handoff",
        mutex.handoff,
        "what if: the first waiter can be handed a mutex by name"
    ),
    switch!(
        "mutex.spinning",
        mutex.spinning,
        "what if: a waiter spins while the owner runs"
    ),
    Key {
        name: "mutex.inheritance",
        about: "what if: waiting helps the owner, by priority or by proxy execution",
        takes: Takes::OneOf(Inheritance::NAMES),
        get: |scenario| Value::Text(scenario.mutex.inheritance.to_string()),
        set: |scenario, value| {
            scenario.mutex.inheritance = name(value, scenario.mutex.inheritance);
        },
    },
    key!(
        "workers.count",
        workers.count,
        0,
        64,
        "tasks that page out and read back"
    ),
    key!(
        "workers.nice",
        workers.nice,
        NICE.0,
        NICE.1,
        "their nice value"
    ),
    key!(
        "workers.pages",
        workers.pages,
        1,
        4096,
        "pages that each works on"
    ),
    key!(
        "spinners.count",
        spinners.count,
        0,
        64,
        "tasks that only compute"
    ),
    key!(
        "spinners.nice",
        spinners.nice,
        NICE.0,
        NICE.1,
        "their nice value"
    ),
    key!(
        "readers.count",
        readers.count,
        0,
        64,
        "tasks whose reads are timed"
    ),
    key!(
        "readers.nice",
        readers.nice,
        NICE.0,
        NICE.1,
        "their nice value"
    ),
    key!(
        "readers.pages",
        readers.pages,
        1,
        4096,
        "pages of a reader's buffer"
    ),
    key!(
        "readers.sleep_us",
        readers.sleep_us,
        0,
        1_000_000,
        "sleep between two reads in µs"
    ),
    key!(
        "cost.compress_ns",
        costs.compress_ns,
        100,
        COST_MAX_NS,
        "compressing a page, preemption off"
    ),
    key!(
        "cost.decompress_ns",
        costs.decompress_ns,
        100,
        COST_MAX_NS,
        "decompressing a page, preemption off"
    ),
    key!(
        "cost.store_ns",
        costs.store_ns,
        100,
        COST_MAX_NS,
        "rest of a store outside the mutex"
    ),
    key!(
        "cost.load_ns",
        costs.load_ns,
        100,
        COST_MAX_NS,
        "rest of a load outside the mutex"
    ),
    key!(
        "cost.store_locked_ns",
        costs.store_locked_ns,
        0,
        COST_MAX_NS,
        "rest of a store inside the mutex"
    ),
    key!(
        "cost.load_locked_ns",
        costs.load_locked_ns,
        0,
        COST_MAX_NS,
        "rest of a load inside the mutex"
    ),
    key!(
        "cost.switch_ns",
        machine_costs.switch_ns,
        0,
        1_000_000,
        "a context switch"
    ),
    key!(
        "cost.timer_irq_ns",
        machine_costs.timer_irq_ns,
        0,
        100_000,
        "a timer interrupt"
    ),
    key!(
        "cost.wake_ns",
        machine_costs.wake_ns,
        0,
        1_000_000,
        "waking a task"
    ),
    key!(
        "cost.user_ns",
        machine_costs.user_ns,
        20,
        COST_MAX_NS,
        "user time for each page touched"
    ),
];

/// The compressors' names; a test compares them with what there is.
const COMPRESSORS: &[&str] = &["deflate", "lz4", "lzo", "zstd", "deflate-iaa"];

/// The page contents' names; a test compares them with what there is.
const CONTENTS: &[&str] = &[
    "text",
    "pointers",
    "code",
    "zeroes",
    "random",
    "half-random",
];

#[cfg(test)]
mod tests {
    use super::*;
    use zswap_mm::{Algorithm, PageContent};
    use zswap_paths::Context;

    #[test]
    fn names_are_those_of_the_parts() {
        let contents: Vec<String> = PageContent::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(contents, CONTENTS);
        for name in COMPRESSORS {
            let algorithm: Algorithm = name.parse().expect(name);
            assert_eq!(algorithm.to_string(), *name);
        }
        for context in Context::ALL {
            let mut scenario = Scenario::default();
            scenario.set("context", context.name()).expect("a context");
            assert_eq!(scenario.context, context);
        }
    }

    #[test]
    fn every_key_takes_its_own_value_and_refuses_nonsense() {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        let before = scenario.clone();
        for key in KEYS {
            let value = key.get(&scenario).to_string();
            scenario.set(key.name, &value).expect(key.name);
            assert_eq!(scenario, before, "{}", key.name);
            if !matches!(key.takes, Takes::Text) {
                for nonsense in ["", "nonsense", "-999999999999999999999999", "1e3", "NaN"] {
                    let error = scenario.set(key.name, nonsense).expect_err(key.name);
                    assert!(error.to_string().starts_with(key.name), "{error}");
                }
            }
        }
    }

    #[test]
    fn ranges_are_inclusive() {
        let mut scenario = Scenario::default();
        for key in KEYS {
            if let Takes::Range(range) = &key.takes {
                let (lo, hi) = (*range.start(), *range.end());
                for (number, good) in [(lo, true), (hi, true), (lo - 1, false), (hi + 1, false)] {
                    let set = key.set(&mut scenario, &number.to_string());
                    assert_eq!(set.is_ok(), good, "{} {number}", key.name);
                    if good {
                        assert_eq!(key.get(&scenario), Value::Int(number), "{}", key.name);
                    }
                }
            }
        }
    }
}
