//! The keys: what a configuration file may say, in one table that everything else is made from.
//!
//! The parser, the variables of the environment, the sample file, `print-config` and the reload all go through it, so that
//! a key is documented, named and bounded once.

mod table;

pub(super) use table::KEYS;

use super::Config;
use super::value::{Kind, Value};

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    /// Its name.
    pub name: &'static str,
    /// Heading that it stands under.
    pub section: &'static str,
    /// What it is for.
    pub text: &'static str,
    /// What it may be, as an error says.
    pub allowed: &'static str,
    /// An example, as a file writes it: the default, where that is the same everywhere.
    pub sample: &'static str,
    /// The default in words, where it depends on something.
    pub default: Option<&'static str>,
    /// Type of its values.
    pub kind: Kind,
    /// Whether a running daemon takes another value.
    pub reload: bool,
    /// Writes a value of this kind, if it is allowed.
    pub set: fn(&mut Config, &Value) -> bool,
    /// The value; none if it is not set.
    pub get: fn(&Config) -> Option<Value>,
}

impl Key {
    /// The variable of the environment that overrides a file.
    pub(super) fn variable(&self) -> String {
        variable_of(self.name)
    }

    /// Whether lists, the sample and suggestions have it: all but what only tests set.
    pub(super) fn is_shown(&self) -> bool {
        self.section != table::TESTS
    }

    /// The variable that stands for it in programs and in the command line tool too.
    pub(super) fn shared_variable(&self) -> Option<&'static str> {
        match self.name {
            "control_socket" => Some("NRT_TRACE_SOCKET"),
            "producer_socket" => Some("NRT_TRACE_PRODUCER_SOCKET"),
            _ => None,
        }
    }
}

/// What the variables of the keys begin with.
const PREFIX: &str = "NRT_TRACED_";

/// The variable of a key of this name.
pub(super) fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase())
}

/// The key that a variable would stand for, if it looks like one of the daemon's and is none.
///
/// A container in which a Kubernetes service is called `nrt-traced` has variables that say where that is, under the same
/// prefix: nobody wrote those.
pub(super) fn unknown_variable(variable: &str) -> Option<String> {
    let rest = variable.strip_prefix(PREFIX)?;
    let of_service = |rest: &str| {
        let port = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        rest == "SERVICE_HOST"
            || rest == "SERVICE_PORT"
            || rest.starts_with("SERVICE_PORT_")
            || rest == "PORT"
            || rest.strip_prefix("PORT_").is_some_and(port)
    };
    let key = rest.to_lowercase();
    let known = find(&key).is_some_and(|key| key.variable() == variable);
    let foreign = of_service(rest) || crate::failpoint::is_variable(variable);
    (!known && !foreign).then_some(key)
}

/// The keys that people are shown, in the table's order.
pub(super) fn shown() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.is_shown())
}

/// Their names.
pub(super) fn names() -> Vec<&'static str> {
    shown().map(|key| key.name).collect()
}

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The key that is written almost like this, if there is one.
pub(super) fn near(name: &str) -> Option<&'static str> {
    let close = shown().map(|key| (distance(key.name, name), key.name));
    // Of a short word any other is near that is as short.
    let is_near = |far: usize| far <= 3 && far * 2 <= name.len();
    close
        .min()
        .filter(|(far, _)| is_near(*far))
        .map(|(_, key)| key)
}

/// Letters to insert, leave out or replace to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}
