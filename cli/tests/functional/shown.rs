//! What a terminal gets that a pipe does not.

use crate::place::Place;
use crate::terminal::on_terminal;
use crate::tool::finish;

const BOLD: &str = "\x1b[1m";

#[test]
fn the_summary_of_a_recording_has_colour_on_a_terminal_only() {
    let place = Place::new();
    let file = place.path("t.json");
    let record = || place.record(&file, &["--", "true"]);
    let (mut child, terminal) = on_terminal(&record());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let screen = terminal.rest();
    assert!(
        screen.contains(&format!("{BOLD}event ")),
        "the first line of the table stands out: {screen:?}"
    );
    assert!(screen.contains("0 events recorded in "), "{screen:?}");

    let ended = finish(&mut record());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\nevent ") || ended.stdout.starts_with("event "));
    assert!(!ended.stdout.contains('\x1b'), "{ended:?}");
    // Beside a trace on standard output it is on standard error, by the same rule.
    let mut beside = place.record(std::path::Path::new("-"), &["--", "true"]);
    let ended = finish(&mut beside);
    assert!(ended.stderr.contains("0 events recorded in "), "{ended:?}");
    assert!(!ended.stderr.contains('\x1b'), "{ended:?}");
}
