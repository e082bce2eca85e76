//! Values of settings, as a file and the environment write them.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A word.
    Text(String),
    /// A path, which need not be text.
    Path(PathBuf),
    /// A number.
    Number(u64),
    /// Yes or no.
    Switch(bool),
}

/// What values a key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words.
    Text,
    /// Paths.
    Path,
    /// Numbers.
    Number,
    /// Yes or no.
    Switch,
    /// A group's name or number.
    Group,
}

impl Kind {
    /// The value that a file gives; else what it is instead.
    pub(super) fn of_file(self, value: &DeValue<'_>) -> Result<Value, &'static str> {
        match (self, value) {
            (Self::Text | Self::Group, DeValue::String(text)) => Ok(Value::Text(text.to_string())),
            (Self::Path, DeValue::String(text)) => Ok(Value::Path(text.as_ref().into())),
            (Self::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on)),
            (Self::Number | Self::Group, DeValue::Integer(number)) => {
                match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Ok(Value::Number(number)),
                    Err(_) if number.as_str().starts_with('-') => Err("negative"),
                    Err(_) => Err("too large a number"),
                }
            }
            (_, DeValue::String(_)) => Err("a string"),
            (_, DeValue::Integer(_)) => Err("a number"),
            (_, DeValue::Float(_)) => Err("a number with a point"),
            (_, DeValue::Boolean(_)) => Err("true or false"),
            (_, DeValue::Datetime(_)) => Err("a date"),
            (_, DeValue::Array(_)) => Err("a list"),
            (_, DeValue::Table(_)) => Err("a table"),
        }
    }

    /// The value that a variable of the environment gives; else what it is instead.
    pub(super) fn of_variable(self, value: &OsStr) -> Result<Value, &'static str> {
        if self == Self::Path {
            return Ok(Value::Path(value.into()));
        }
        let text = value.to_str().ok_or("no text")?;
        let number = || text.parse().map(Value::Number);
        match self {
            Self::Number => number().map_err(|_| "no number"),
            Self::Group => Ok(number().unwrap_or_else(|_| Value::Text(text.to_owned()))),
            Self::Switch => match text {
                "true" | "1" => Ok(Value::Switch(true)),
                "false" | "0" => Ok(Value::Switch(false)),
                _ => Err("neither true nor false"),
            },
            Self::Text | Self::Path => Ok(Value::Text(text.to_owned())),
        }
    }
}

impl Value {
    /// It as a path.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            _ => None,
        }
    }

    /// It as a word.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// It as a number that fits.
    pub(super) fn number<T: TryFrom<u64>>(&self) -> Option<T> {
        match self {
            Self::Number(number) => T::try_from(*number).ok(),
            _ => None,
        }
    }
}

/// As a file writes it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", toml::Value::from(text.as_str())),
            Self::Path(path) => write!(f, "{}", toml::Value::from(path.to_string_lossy().as_ref())),
            Self::Number(number) => number.fmt(f),
            Self::Switch(on) => on.fmt(f),
        }
    }
}
