//! Filters as users write them: event names and NeuronCore lists.
//!
//! ```text
//! events  = term *( "," term )
//! term    = [ "^" ] ( name | alias | "hardware" | "software" )
//! cores   = range *( "," range )
//! range   = index [ "-" index ]                 both ends included, 0..=255
//! ```
//!
//! What is selected are the terms without `^`, or everything if there is none; then what the terms with `^` name is
//! taken out. The order of the terms does not matter. White space around a term is ignored.

use std::fmt;

use crate::event::HARDWARE_MASK;
use crate::{Category, EventType};

/// NeuronCore indices are below this.
pub const NC_LIMIT: u32 = 256;

/// A filter that does not mean anything; the message says which term, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A name that no event type has.
    #[error("unknown event `{term}`{}; allowed are hardware, software, the names {}, and any of these after a ^",
        Hint(.nearest), Names)]
    UnknownEvent {
        /// The term.
        term: String,
        /// The name that it resembles most, if one does.
        nearest: Option<&'static str>,
    },
    /// The terms take out all that they select.
    #[error("the event filter `{terms}` selects nothing; leave some type of those that it names")]
    NothingSelected {
        /// The terms.
        terms: String,
    },
    /// Nothing stands between two commas, or in the whole value.
    #[error("empty term in the list `{list}`; allowed are {}", if *.cores { CORES } else { "event names between commas" })]
    EmptyTerm {
        /// The list.
        list: String,
        /// Whether it is a list of cores.
        cores: bool,
    },
    /// A term of a core list that is no index and no range.
    #[error("`{term}` in the NeuronCore list `{list}` is {problem}; allowed are {CORES}")]
    BadCore {
        /// The term.
        term: String,
        /// The list.
        list: String,
        /// What is wrong with it.
        problem: CoreProblem,
    },
}

/// What is wrong with a term of a core list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreProblem {
    /// Not a number or a range of numbers.
    NotANumber,
    /// 256 or more.
    TooLarge,
    /// Its end comes before its begin.
    Reversed,
}

impl fmt::Display for CoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "not an index or a range",
            Self::TooLarge => "above 255",
            Self::Reversed => "a range that ends before it begins",
        })
    }
}

const CORES: &str = "indices 0 to 255 and ranges of them, as in 0-3,8";

/// `, did you mean …?` where something is near.
struct Hint<'a>(&'a Option<&'static str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |name| write!(f, " (did you mean `{name}`?)"))
    }
}

/// All display names, comma-separated.
struct Names;

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, event) in EventType::ALL.into_iter().enumerate() {
            write!(f, "{}{event}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A set of event types, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeSet(u64);

impl TypeSet {
    /// Every type.
    pub const ALL: Self = Self((1 << EventType::ALL.len()) - 1);
    /// No type.
    pub const EMPTY: Self = Self(0);
    /// The types that the device reports.
    pub const HARDWARE: Self = Self(HARDWARE_MASK);
    /// The types that host code emits.
    pub const SOFTWARE: Self = Self(Self::ALL.0 & !HARDWARE_MASK);

    /// The types of a bit set; bits that no type has are dropped.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Bit `n` says whether the type of value `n` is in.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `event` is in.
    #[must_use]
    pub const fn contains(self, event: EventType) -> bool {
        self.0 >> event.value() & 1 != 0
    }

    /// The set with `event` too.
    #[must_use]
    pub const fn with(self, event: EventType) -> Self {
        Self(self.0 | 1 << event.value())
    }

    /// The types of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The types of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether no type is in.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of types.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The types, by value.
    pub fn iter(self) -> impl Iterator<Item = EventType> {
        EventType::ALL
            .into_iter()
            .filter(move |t| self.contains(*t))
    }
}

impl fmt::Debug for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(EventType::name))
            .finish()
    }
}

/// The types that the terms select; no term at all selects every type. A term may itself be a comma list.
///
/// # Errors
/// [`FilterError`] for an unknown name, an empty term, or terms that select nothing together.
pub fn parse_types(terms: &[impl AsRef<str>]) -> Result<TypeSet, FilterError> {
    let (mut named, mut excluded) = (TypeSet::EMPTY, TypeSet::EMPTY);
    let mut all_by_default = true;
    for list in terms {
        for term in split(list.as_ref(), false)? {
            if let Some(name) = term.strip_prefix('^') {
                excluded = excluded.union(types_of(name.trim(), term)?);
            } else {
                named = named.union(types_of(term, term)?);
                all_by_default = false;
            }
        }
    }
    let selected = if all_by_default { TypeSet::ALL } else { named }.without(excluded);
    if selected.is_empty() {
        let terms = terms
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<_>>()
            .join(",");
        return Err(FilterError::NothingSelected { terms });
    }
    Ok(selected)
}

fn types_of(name: &str, term: &str) -> Result<TypeSet, FilterError> {
    if name == Category::Hardware.name() {
        return Ok(TypeSet::HARDWARE);
    }
    if name == Category::Software.name() {
        return Ok(TypeSet::SOFTWARE);
    }
    match EventType::from_name(name) {
        Some(event) => Ok(TypeSet::EMPTY.with(event)),
        None => Err(FilterError::UnknownEvent {
            term: term.to_owned(),
            nearest: nearest(name),
        }),
    }
}

/// The NeuronCores of a list such as `0-3,8`, in the order given, each once.
///
/// # Errors
/// [`FilterError`] for an empty list or term, what is no number, an index above 255, a reversed range.
pub fn parse_nc_list(text: &str) -> Result<Vec<u32>, FilterError> {
    let mut cores = Vec::new();
    for term in split(text, true)? {
        let bad = |problem| FilterError::BadCore {
            term: term.to_owned(),
            list: text.to_owned(),
            problem,
        };
        let (first, last) = term.split_once('-').unwrap_or((term, term));
        let (first, last) = (index(first).map_err(bad)?, index(last).map_err(bad)?);
        if last < first {
            return Err(bad(CoreProblem::Reversed));
        }
        for core in first..=last {
            if !cores.contains(&core) {
                cores.push(core);
            }
        }
    }
    Ok(cores)
}

fn index(text: &str) -> Result<u32, CoreProblem> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(CoreProblem::NotANumber);
    }
    text.parse()
        .ok()
        .filter(|n| *n < NC_LIMIT)
        .ok_or(CoreProblem::TooLarge)
}

fn split(list: &str, cores: bool) -> Result<impl Iterator<Item = &str>, FilterError> {
    let terms = || list.split(',').map(str::trim);
    if terms().any(str::is_empty) {
        Err(FilterError::EmptyTerm {
            list: list.to_owned(),
            cores,
        })
    } else {
        Ok(terms())
    }
}

/// The name nearest to a misspelled one, if at most a third of it is wrong.
fn nearest(name: &str) -> Option<&'static str> {
    let spellings = EventType::ALL
        .iter()
        .flat_map(|t| t.aliases().iter().copied().chain([t.name()]));
    let near = spellings
        .chain(["hardware", "software"])
        .map(|s| (distance(name, s), s));
    near.filter(|(d, s)| *d * 3 <= s.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, s)| s)
}

/// Levenshtein distance in bytes, looking no further than the longest name could be near.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 64 {
        return a.len();
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let cost = (diagonal + usize::from(x != y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
