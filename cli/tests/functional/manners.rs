//! What every command does alike: exit status, colours, errors on one line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::place::{PROGRAM, Place};
use crate::terminal::on_terminal;
use crate::tool::{finish, run, tool};

/// Statuses that a text lists: the first words of the lines under "Exit status", or of a table's rows.
fn documented(text: &str) -> Vec<String> {
    let rows = text.lines().map(|line| line.trim_start_matches("| "));
    let words = rows.filter_map(|row| row.split_whitespace().next());
    let status = |word: &&str| *word == "else" || word.parse::<u8>().is_ok();
    words.filter(status).map(str::to_owned).collect()
}

/// Every status that the manual lists is met by doing what it says.
#[test]
fn each_documented_exit_status_is_what_one_gets() {
    let place = Place::new();
    let plain = place.path("not-executable");
    fs::write(&plain, "").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let plain = plain.to_str().unwrap();
    let output = place.path("t.json");
    let record = |command: &[&str]| {
        let ended = finish(&mut place.record(&output, &[&["--"], command].concat()));
        ended.status
    };
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let met = [
        ("0", 0, run(["events"]).status),
        (
            "1",
            1,
            run(["--socket", "/nowhere/control.sock", "status"]).status,
        ),
        (
            "1",
            1,
            run(["--socket", "/nowhere/control.sock", "doctor"]).status,
        ),
        ("2", 2, run(["start", "--nc", "256"]).status),
        ("2", 2, run(["no-such-command"]).status),
        (
            "3",
            3,
            finish(place.record(&output, &["--", "true"]).stdout(full)).status,
        ),
        ("126", 126, record(&[plain])),
        ("127", 127, record(&["./no-such-command"])),
        ("else", 7, record(&["sh", "-c", "exit 7"])),
        ("else", 128 + 9, record(&["sh", "-c", "kill -KILL $$"])),
    ];
    for (name, wanted, status) in met {
        assert_eq!(status, Some(wanted), "{name}");
    }
    let mut names: Vec<&str> = met.iter().map(|(name, _, _)| *name).collect();
    names.dedup();
    let manual = run(["--help"]).stdout;
    let listed = manual.split("Exit status:\n").nth(1).unwrap();
    let listed = listed.split("\n\n").next().unwrap();
    assert_eq!(documented(listed), names, "the manual: {listed}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/commands.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.split("| status | meaning |").nth(1).unwrap();
    let table = table.trim_start().split("\n\n").next().unwrap();
    assert_eq!(documented(table), names, "the page: {table}");
}

/// What a command shows on a terminal.
fn shown(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).envs(variables.iter().copied());
    let (mut child, terminal) = on_terminal(&command);
    child.wait().unwrap();
    terminal.rest()
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let failing = ["--socket", "/nowhere/control.sock", "status"];
    let coloured = |text: &str| text.contains("\x1b[");
    assert!(coloured(&shown(&failing, &[])));
    assert!(shown(&failing, &[]).contains("error: "));
    assert!(!coloured(&shown(&failing, &[("NO_COLOR", "1")])));
    assert!(!coloured(&shown(&failing, &[("TERM", "dumb")])));
    // Set to nothing, it says nothing.
    assert!(coloured(&shown(&failing, &[("NO_COLOR", "")])));
    assert!(!coloured(&run(failing).stderr));
}

#[test]
fn progress_is_for_terminals() {
    let place = Place::new();
    let file = place.path("t.json");
    let mut record = place.record(&file, &["--", "sh", "-c", "exit 0"]);
    let ended = finish(&mut record);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains(['\r', '\x1b']), "{ended:?}");
}

/// A closed standard output is an error that is told where there is something to print, and never a crash.
#[test]
fn a_closed_standard_output_is_no_crash() {
    for arguments in [&["events"][..], &["--help"], &["strings", "--of", "x"]] {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "exec \"$@\" >&-", "sh", PROGRAM])
            .args(arguments);
        let ended = finish(&mut shell);
        assert!(
            matches!(ended.status, Some(0 | 1)),
            "{arguments:?}: {ended:?}"
        );
        assert!(!ended.stderr.contains("panic"), "{ended:?}");
        assert!(ended.stderr.lines().count() <= 1, "{ended:?}");
    }
}

/// Case L01, word for word: again and again, since who is first varies.
#[test]
fn l01_a_listing_cut_by_head_ends_well() {
    for _ in 0..50 {
        let mut shell = Command::new("bash");
        let script = "\"$0\" demo --help | head -1 >/dev/null; echo ${PIPESTATUS[0]}";
        shell.args(["-c", script, PROGRAM]);
        let ended = finish(&mut shell);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("0\n", ""));
    }
}

#[test]
fn an_unknown_command_or_option_is_told_on_one_line() {
    run(["stat"]).one_line(2, &["'stat'", "start", "status"]);
    run(["status", "--format", "xml"]).one_line(2, &["xml", "table, json"]);
    run(["fetch", "-o", "t.json", "--to", "xml"]).one_line(2, &["xml", "json, nrtt, pftrace"]);
    run(["fetch", "-o", "t.json", "--process", "x"]).one_line(2, &["--process", "x"]);
    let empty = finish(tool().env("NRT_TRACE_SOCKET", "").arg("status"));
    empty.one_line(2, &["NRT_TRACE_SOCKET", "unset it"]);
}
