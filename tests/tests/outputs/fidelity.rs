//! `docs/fidelity.md` names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nrt_trace_tests::artifacts;

/// Names of all functions in Rust sources below `folder`.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // A test is a function after an attribute that says so, or a macro of property tests around it.
            for line in text.lines() {
                let line = line.trim_start();
                let line = line.strip_prefix("async ").unwrap_or(line);
                if let Some(rest) = line.strip_prefix("fn ") {
                    let name = rest.split(['(', '<']).next().unwrap_or_default();
                    names.insert(name.to_owned());
                }
            }
        }
    }
}

/// What stands in backticks in the last column of each row.
fn named(text: &str) -> Vec<(String, Vec<String>, String)> {
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| fact"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let tests = cells.last().unwrap().split('`').skip(1).step_by(2);
        let last = cells.last().unwrap().trim().to_owned();
        (
            cells[0].to_owned(),
            tests.map(str::to_owned).collect(),
            last,
        )
    })
    .collect()
}

#[test]
fn every_fact_of_the_original_has_a_test_that_exists() {
    let root = &artifacts().workspace;
    let mut known = BTreeSet::new();
    functions(root, &mut known);
    let text = fs::read_to_string(root.join("docs/fidelity.md")).unwrap();
    let rows = named(&text);
    assert!(rows.len() > 40, "{} rows", rows.len());
    for (fact, tests, last) in rows {
        assert!(
            !tests.is_empty() || last == "*pending*",
            "{fact} names no test"
        );
        for test in tests {
            assert!(known.contains(&test), "{fact}: there is no test {test}");
        }
    }
}
