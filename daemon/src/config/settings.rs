//! What flags, environment and file say together, and who said what.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::error::{Problem, Wrong};
use super::keys::{self, KEYS, Key};
use super::origin::Origin;
use super::value::Value;
use super::{Config, ConfigError};

/// Settings, with the origin of each.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) config: Config,
    origins: BTreeMap<&'static str, Origin>,
}

/// Variables of the environment with their values.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// A value that somebody gave.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// What was said, and what was said wrongly.
#[derive(Debug, Default)]
pub(super) struct Sayings {
    said: Vec<Said>,
    wrong: Vec<Wrong>,
}

impl Sayings {
    /// Adds what a file's text says.
    pub(super) fn add_file(&mut self, text: &str, path: Option<&Path>) {
        let at = |line| Origin::File {
            path: path.map(Path::to_owned),
            line,
        };
        let Broken { rest, lines } = Broken::of(text);
        for (line, said) in &lines {
            let problem = of_line(text, *line, said);
            let at = at(*line);
            self.wrong.push(Wrong { at, problem });
        }
        let line_of = |span: &Range<usize>| line_of(&rest, span.start);
        let table = DeTable::parse_recoverable(&rest).0.into_inner();
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let line = line_of(&name.span());
            // Whatever was made of it is not what was meant.
            if lines.contains_key(&line) {
                continue;
            }
            let at = at(line);
            let Some(key) = keys::find(name.get_ref()) else {
                let key = name.get_ref().to_string();
                let near = keys::near(&key);
                let problem = Problem::Unknown { key, near };
                self.wrong.push(Wrong { at, problem });
                continue;
            };
            self.add(key, key.kind.of_file(value.get_ref()), at);
        }
    }

    /// Adds what variables of the environment say.
    pub(super) fn add_environment(&mut self, environment: &Environment) {
        for key in &KEYS {
            let shared = key.shared_variable().map(str::to_owned);
            for name in shared.into_iter().chain([key.variable()]) {
                let Some(value) = environment.get(OsStr::new(&name)) else {
                    continue;
                };
                let at = Origin::Environment(name);
                if value.is_empty() {
                    let problem = Problem::Empty;
                    self.wrong.push(Wrong { at, problem });
                } else {
                    self.add(key, key.kind.of_variable(value), at);
                }
            }
        }
        // A name that is no text is none of a key; what can be read of it says whether it was meant as one.
        for name in environment.keys().map(|name| name.to_string_lossy()) {
            let Some(key) = keys::unknown_variable(&name) else {
                continue;
            };
            let near = keys::near(&key).map(keys::variable_of);
            self.wrong.push(Wrong {
                at: Origin::Environment(name.into_owned()),
                problem: Problem::UnknownVariable { near },
            });
        }
    }

    /// Adds what a flag says.
    pub(super) fn add_flag(&mut self, key: &str, flag: &'static str, value: Value) {
        if let Some(key) = keys::find(key) {
            self.add(key, Ok(value), Origin::Flag(flag));
        }
    }

    fn add(&mut self, key: &'static Key, value: Result<Value, &'static str>, at: Origin) {
        match value {
            Ok(value) => self.said.push(Said {
                key,
                value,
                origin: at,
            }),
            Err(found) => {
                let problem = Problem::Type {
                    key: key.name,
                    found,
                    allowed: key.allowed,
                };
                self.wrong.push(Wrong { at, problem });
            }
        }
    }

    /// The settings that all of it gives, over `config`; what was added later overrides what came before.
    pub(super) fn over(mut self, mut config: Config) -> Result<Settings, ConfigError> {
        let mut origins = BTreeMap::new();
        for key in &KEYS {
            for said in self.said.iter().filter(|said| said.key.name == key.name) {
                // One that is overridden is looked at too: it would be wrong again without what overrides it.
                if (key.set)(&mut config, &said.value) {
                    origins.insert(key.name, said.origin.clone());
                } else {
                    self.wrong.push(Wrong {
                        at: said.origin.clone(),
                        problem: not_allowed(key, &said.value),
                    });
                }
            }
        }
        if !self.wrong.is_empty() {
            // As one reads the file; what is said elsewhere comes after it.
            self.wrong.sort_by_key(|wrong| match wrong.at {
                Origin::File { line, .. } => line,
                _ => usize::MAX,
            });
            return Err(ConfigError::Wrong(self.wrong));
        }
        if !origins.contains_key("state_dir") {
            config.state_dir = config.folder();
        }
        // What ended processes left counts as memory too: with more for them than there is in all, nobody could be armed.
        let budgets = &mut config.budgets;
        if !origins.contains_key("ended_budget_bytes") {
            budgets.ended_bytes = budgets.memory_bytes / 2;
        }
        budgets.ended_bytes = budgets.ended_bytes.min(budgets.memory_bytes);
        config.validate()?;
        Ok(Settings { config, origins })
    }
}

/// Passes of [`Broken::of`], each of which takes at least one line out; more mistakes than that nobody reads.
const PASSES: usize = 50;

/// The lines of a text that are no TOML.
struct Broken {
    /// The text without them; each other line has its number still.
    rest: String,
    /// By number, and what the parser says of them.
    lines: BTreeMap<usize, String>,
}

impl Broken {
    /// The parser leaves out what comes behind some mistakes. So it gets the text again without the lines that it refused,
    /// until it refuses no other.
    fn of(text: &str) -> Self {
        let mut broken = Self {
            rest: text.to_owned(),
            lines: BTreeMap::new(),
        };
        for _ in 0..PASSES {
            let before = broken.lines.len();
            for error in DeTable::parse_recoverable(&broken.rest).1 {
                let line = line_of(&broken.rest, error.span().unwrap_or(0..0).start);
                // What comes behind the first mistake of a line is often its consequence.
                (broken.lines.entry(line)).or_insert_with(|| error.message().to_owned());
            }
            if broken.lines.len() == before {
                break;
            }
            let kept = text.split_inclusive('\n').zip(1..).map(|(line, number)| {
                let whole = !broken.lines.contains_key(&number);
                if whole { line } else { "\n" }
            });
            broken.rest = kept.collect();
        }
        broken
    }
}

/// The line, from 1, of a place in a text.
fn line_of(text: &str, place: usize) -> usize {
    let before = text.as_bytes().iter().take(place);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// The key of a line.
fn key_of(line: &str) -> Option<&'static Key> {
    let (name, _) = line.split_once('=')?;
    keys::find(name.trim().trim_matches(['"', '\'']))
}

/// What is wrong with a line that the parser does not take.
fn of_line(text: &str, line: usize, said: &str) -> Problem {
    let mut lines = text.lines();
    let said = said.lines().collect::<Vec<_>>().join(" ");
    let Some(key) = lines.clone().nth(line - 1).and_then(key_of) else {
        return Problem::Syntax(said);
    };
    let first = lines.position(|other| key_of(other).is_some_and(|found| found.name == key.name));
    match first.map(|at| at + 1) {
        Some(first) if first < line && said.contains("duplicate") => Problem::Twice {
            key: key.name,
            first,
            allowed: key.allowed,
        },
        _ => Problem::Line {
            key: key.name,
            said,
            allowed: format!("{}, as in {} = {}", key.allowed, key.name, key.sample),
        },
    }
}

/// A value that a key does not allow.
pub(super) fn not_allowed(key: &Key, value: &Value) -> Problem {
    Problem::Value {
        key: key.name,
        value: value.to_string(),
        allowed: key.allowed,
    }
}

impl Settings {
    /// The settings alone.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// All settings as a configuration file, each with its origin. One that is for tests only shows where somebody set it.
    #[must_use]
    pub fn print(&self) -> String {
        let mut text = String::new();
        let set = |key: &&Key| self.origins.contains_key(key.name);
        for key in KEYS.iter().filter(|key| key.is_shown() || set(key)) {
            let origin = self.origins.get(key.name).unwrap_or(&Origin::Default);
            // Writing to a string does not fail.
            let _ = match (key.get)(&self.config) {
                Some(value) => writeln!(text, "{} = {value}  # {origin}", key.name),
                None => writeln!(text, "# {} is not set", key.name),
            };
        }
        text
    }

    /// The keys that another reading of the settings changes: those that a running daemon takes, and the others.
    pub(crate) fn changes(&self, new: &Self) -> Changes {
        let changed = KEYS
            .iter()
            .filter(|key| (key.get)(&self.config) != (key.get)(&new.config));
        let (taken, left): (Vec<&Key>, Vec<&Key>) = changed.partition(|key| key.reload);
        let all = |keys: Vec<&Key>| keys.into_iter().map(|key| self.change(key, new)).collect();
        Changes {
            taken: all(taken),
            left: all(left),
        }
    }

    fn change(&self, key: &Key, new: &Self) -> Change {
        let value = |config| match (key.get)(config) {
            Some(value) => value.to_string(),
            None => "not set".to_owned(),
        };
        Change {
            key: key.name,
            old: value(&self.config),
            new: value(&new.config),
        }
    }

    /// These settings with the values of `new` where a running daemon takes them.
    pub(crate) fn reloaded(&self, new: &Self) -> Self {
        let mut merged = self.clone();
        for key in KEYS.iter().filter(|key| key.reload) {
            if let Some(value) = (key.get)(&new.config) {
                // It was allowed when `new` was made.
                let _ = (key.set)(&mut merged.config, &value);
            }
            match new.origins.get(key.name) {
                Some(origin) => merged.origins.insert(key.name, origin.clone()),
                None => merged.origins.remove(key.name),
            };
        }
        merged
    }
}

/// Keys that changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changes {
    /// What a running daemon takes.
    pub(crate) taken: Vec<Change>,
    /// What needs a restart.
    pub(crate) left: Vec<Change>,
}

/// A key that changed, and its values as a file writes them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The key.
    pub(crate) key: &'static str,
    /// What holds now.
    pub(crate) old: String,
    /// What was read.
    pub(crate) new: String,
}
