//! Perfetto's Trace Processor, as the tests ask it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// What the engine says of a trace.
pub(crate) struct Answer {
    tables: Vec<Vec<Vec<Value>>>,
}

/// Rows of `stats` that say how long something took, or how often the converter had to look.
const EXPECTED: [&str; 2] = ["clock_sync_cache_miss", "_ns"];

/// Asks about a trace. The engine must load it without an error, and without a row of `stats` that says that something was
/// wrong, apart from those in `also`.
pub(crate) fn ask(trace: &[u8], queries: &[&str], also: &[&str]) -> Answer {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = root
        .ancestors()
        .find(|folder| folder.join(".ci/perfetto").exists())
        .expect("the tests are inside the project");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let bundle = std::env::var_os("NRT_TRACE_PERFETTO").map_or_else(
        || target.join("perfetto/engine_bundle.node.js"),
        PathBuf::from,
    );
    assert!(
        bundle.exists(),
        "Perfetto's engine is not at {}: run .ci/perfetto, which installs it there (it needs node), or name its \
         engine_bundle.node.js in NRT_TRACE_PERFETTO",
        bundle.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pftrace");
    std::fs::write(&file, trace).unwrap();
    let stats = "select name, value from stats where value != 0";
    let output = Command::new("node")
        .arg(root.join("tests/tools/perfetto.cjs"))
        .arg(&bundle)
        .arg(&file)
        .arg(stats)
        .args(queries)
        .output()
        .expect("node runs Perfetto's engine: install node, 18 or later");
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        answer["errors"].as_array().unwrap(),
        &[] as &[Value],
        "{complaints}"
    );
    let rows = |table: &Value| {
        assert!(table["error"].is_null(), "{table}");
        let rows = table["rows"].as_array().unwrap().iter();
        rows.map(|row| row.as_array().unwrap().clone()).collect()
    };
    let mut tables: Vec<Vec<Vec<Value>>> = answer["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(rows)
        .collect();
    let unexpected: Vec<Vec<Value>> = tables
        .remove(0)
        .into_iter()
        .filter(|row| {
            let name = row[0].as_str().unwrap();
            !EXPECTED
                .iter()
                .chain(also)
                .any(|expected| name.ends_with(expected))
        })
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    Answer { tables }
}

/// A whole number of any size.
pub(crate) fn whole(value: &Value) -> i128 {
    match value {
        Value::String(digits) => digits.parse().unwrap(),
        value => value.as_i64().expect("a whole number").into(),
    }
}

impl Answer {
    /// Rows of the n-th query.
    pub(crate) fn rows(&self, query: usize) -> &[Vec<Value>] {
        &self.tables[query]
    }

    /// The only cell of the n-th query.
    pub(crate) fn number(&self, query: usize) -> i128 {
        whole(&self.tables[query][0][0])
    }

    /// The first column of the n-th query.
    pub(crate) fn texts(&self, query: usize) -> Vec<String> {
        let text = |row: &Vec<Value>| row[0].as_str().unwrap_or("NULL").to_owned();
        self.tables[query].iter().map(text).collect()
    }

    /// Name and two numbers of each row of the n-th query.
    pub(crate) fn by_name(&self, query: usize) -> BTreeMap<String, (i128, i128)> {
        let row = |row: &Vec<Value>| {
            let name = row[0].as_str().unwrap_or("NULL").to_owned();
            (name, (whole(&row[1]), whole(&row[2])))
        };
        self.tables[query].iter().map(row).collect()
    }
}
