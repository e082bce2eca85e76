//! Names of functions: those that the headers declare, and those that a library exports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The headers that declare functions.
const HEADERS: [&str; 3] = ["nrt_trace.h", "nrt_trace_host.h", "nrt/nrt_sys_trace.h"];

/// Functions that the headers in `include` declare, and do not define themselves.
pub(crate) fn declared(include: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for header in HEADERS {
        let text = std::fs::read_to_string(include.join(header)).unwrap();
        let mut inline = false;
        for line in without_comments(&text).lines() {
            inline |= line.starts_with("static inline");
            if !inline {
                names.extend(called(line));
            }
            inline &= line != "}";
        }
    }
    assert!(names.len() > 30, "{names:?}");
    names
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once("*/").expect("a closed comment").1);
    }
    out
}

/// Identifiers that start with `nrt_` and stand before a parenthesis.
fn called(line: &str) -> impl Iterator<Item = String> + '_ {
    line.match_indices('(').filter_map(|(at, _)| {
        let name = line[..at]
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()?;
        name.starts_with("nrt_").then(|| name.to_owned())
    })
}

/// What a shared library exports.
pub(crate) fn exported(library: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library)
        .output()
        .unwrap();
    assert!(output.status.success(), "nm {}", library.display());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .map(str::to_owned)
        .collect()
}

/// A library that this test run built.
pub(crate) fn built(file: &str) -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name(file);
    assert!(path.exists(), "no {}", path.display());
    path
}

/// Has the library's soname be its name and the version, and a link of that name lead to it in the build tree.
pub(crate) fn assert_soname(file: &str, version: &str) {
    let library = built(file);
    let soname = format!("{file}.{version}");
    let output = Command::new("readelf")
        .arg("-dW")
        .arg(&library)
        .output()
        .unwrap();
    assert!(output.status.success(), "readelf -d {}", library.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("(SONAME)"));
    let line = line.expect("a soname");
    assert!(line.ends_with(&format!("[{soname}]")), "{line}");
    let link = library.with_file_name(&soname);
    assert_eq!(
        std::fs::canonicalize(&link).unwrap(),
        std::fs::canonicalize(&library).unwrap()
    );
}
