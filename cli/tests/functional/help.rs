//! The manual, word for word. `UPDATE_GOLDEN=1 cargo test -p nrt-tracectl` writes it anew.

use std::fs;
use std::path::Path;

use crate::tool::run;

fn check(name: &str, arguments: &[&str]) {
    let ended = run(arguments);
    assert_eq!(
        (ended.status, ended.stderr.as_str()),
        (Some(0), ""),
        "{arguments:?}"
    );
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/functional/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &ended.stdout).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap();
    assert_eq!(
        ended.stdout, expected,
        "{name} differs; UPDATE_GOLDEN=1 writes it anew"
    );
}

#[test]
fn the_manual_is_the_golden_one() {
    check("help.txt", &["--help"]);
    check("help-short.txt", &["-h"]);
    for verb in [
        "start",
        "set-filter",
        "stop",
        "fetch",
        "snapshot",
        "subscribe",
        "metrics",
        "status",
        "doctor",
        "producers",
        "events",
        "strings",
        "host",
        "record",
        "convert",
        "summary",
        "view",
    ] {
        check(&format!("help-{verb}.txt"), &[verb, "--help"]);
    }
    // Half of its options are the workload's, which has its own tests.
    let demo = run(["demo", "--help"]).stdout;
    for word in [
        "--output <FILE>",
        "--processes <N>",
        "--no-rate",
        "Examples:",
    ] {
        assert!(demo.contains(word), "no {word} in {demo}");
    }
}

/// Names of the commands, as the manual lists them.
fn verbs(manual: &str) -> Vec<String> {
    let listed = manual.split("Commands:\n").nth(1).unwrap();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    // Lines that begin further in go on with a description.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_explains_itself_by_examples_that_are_its_own() {
    let verbs = verbs(&run(["--help"]).stdout);
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in &verbs {
        let help = run([verb, "--help"]).stdout;
        let examples = help.split("\nExamples:\n").nth(1);
        let examples = examples.unwrap_or_else(|| panic!("{verb} has no examples"));
        let mut shown = examples.lines().take_while(|line| line.starts_with("  "));
        let own = shown.any(|line| line.contains(&format!("nrt-tracectl {verb}")));
        assert!(own, "no example of {verb} calls it: {examples}");
        // What it says by default is a part of what it says at length.
        assert!(help.lines().next().is_some_and(|line| !line.is_empty()));
    }
}

#[test]
fn every_verb_is_in_the_manual_and_the_hidden_ones_are_not() {
    let manual = run(["--help"]).stdout;
    assert!(
        !manual.contains("demo-w") && !manual.contains("demo-p"),
        "{manual}"
    );
}
