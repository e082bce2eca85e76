//! `docs/crash-table.md` says of every label what is seen and lost, and names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nrt_trace_tests::artifacts;
use nrt_trace_tests::stepper::labels;

/// Folders whose code has labels.
const LABELLED: [&str; 3] = ["crates/ring/src", "client-lib/src", "daemon/src"];
const TABLE: &str = "docs/crash-table.md";
const TESTS: &str = "tests/tests/crash";

/// The texts between back quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The labels in the code of a folder.
fn labels_in(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            labels_in(&path, found);
        } else {
            let code = fs::read_to_string(&path).unwrap();
            for call in ["step::at(\"", "step::halfway(at, \""] {
                let labels = code.split(call).skip(1);
                found.extend(labels.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
}

#[test]
fn it_has_every_label_and_names_tests_that_exist() {
    let workspace = &artifacts().workspace;
    let table = fs::read_to_string(workspace.join(TABLE)).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').collect())
        .collect();
    let mut listed = BTreeSet::new();
    for row in &rows {
        let [label, seen, lost, tests] = row[..] else {
            panic!("a row has four cells: {row:?}");
        };
        assert!(
            listed.insert(quoted(label)[0].to_owned()),
            "{label} has two rows"
        );
        assert!(
            !seen.trim().is_empty() && !lost.trim().is_empty(),
            "{row:?}"
        );
        assert!(!quoted(tests).is_empty(), "{label} has no test");
    }

    let mut in_code = Vec::new();
    for folder in LABELLED {
        labels_in(&workspace.join(folder), &mut in_code);
    }
    let once: BTreeSet<String> = in_code.iter().cloned().collect();
    assert_eq!(once.len(), in_code.len(), "a label stands for one place");
    assert_eq!(listed, once, "the table's labels and the code's");
    assert_eq!(
        labels().into_iter().collect::<BTreeSet<_>>(),
        once,
        "the labels that a test can enumerate, and the code's"
    );

    for test in quoted(&table)
        .into_iter()
        .filter(|name| name.contains("::"))
    {
        let (file, name) = test.split_once("::").unwrap();
        let path = workspace.join(TESTS).join(file).with_extension("rs");
        if let Ok(code) = fs::read_to_string(&path) {
            let function = format!("#[test]\nfn {name}()");
            assert!(code.contains(&function), "there is no test {test}");
        } else {
            assert_eq!(test, "step::at", "there is no file for {test}");
        }
    }
}
