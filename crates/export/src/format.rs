//! Which document a file name asks for.

use std::path::{Path, PathBuf};

/// A kind of trace document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Neuron's JSON, `data_version` 2: `.json`.
    Json,
    /// The lossless native file: `.nrtt`.
    Native,
    /// Perfetto's trace: `.pftrace`.
    Pftrace,
    /// Chrome's trace events: `.chrome.json`.
    Chrome,
    /// Pairs as a table: `.csv`.
    Csv,
}

/// A file name that asks for no known format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` does not say its format; allowed are names that end in .json (JSON document), .nrtt (native trace), .pftrace (Perfetto), .chrome.json or .csv (spans and instants)", .path.display())]
pub struct UnknownFormat {
    /// The name.
    pub path: PathBuf,
}

impl Format {
    /// The format that a file name asks for by its extension, in any case.
    ///
    /// # Errors
    /// [`UnknownFormat`], which names what is allowed.
    pub fn from_path(path: &Path) -> Result<Self, UnknownFormat> {
        let extension = path
            .extension()
            .map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("json") if is_chrome(path) => Ok(Self::Chrome),
            Some("json") => Ok(Self::Json),
            Some("pftrace" | "perfetto-trace") => Ok(Self::Pftrace),
            Some("csv") => Ok(Self::Csv),
            Some("nrtt") => Ok(Self::Native),
            _ => Err(UnknownFormat {
                path: path.to_owned(),
            }),
        }
    }

    /// The extension, without its dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Native => "nrtt",
            Self::Pftrace => "pftrace",
            Self::Chrome => "chrome.json",
            Self::Csv => "csv",
        }
    }
}

/// Whether what stands before the extension ends in `.chrome`.
fn is_chrome(path: &Path) -> bool {
    let stem = path.file_stem().map(Path::new);
    stem.and_then(Path::extension)
        .is_some_and(|inner| inner.eq_ignore_ascii_case("chrome"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides() {
        for (path, format) in [
            ("a.json", Format::Json),
            ("/x/a.b.JSON", Format::Json),
            ("t.nrtt", Format::Native),
            ("t.pftrace", Format::Pftrace),
            ("t.chrome.json", Format::Chrome),
            ("chrome.json", Format::Json),
            ("pairs.CSV", Format::Csv),
        ] {
            assert_eq!(Format::from_path(Path::new(path)), Ok(format), "{path}");
        }
        for path in ["a", "a.txt", ".json", "json", "a.json.gz", "-", ""] {
            assert!(Format::from_path(Path::new(path)).is_err(), "{path}");
        }
        let error = Format::from_path(Path::new("out.txt"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`out.txt`") && error.contains(".json") && error.contains(".nrtt"),
            "{error}"
        );
    }
}
