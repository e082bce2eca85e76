//! The daemon is killed in the commit of a recording, which goes on with the next one: whether the commit came to pass or
//! not, each event is in the file once.

use std::fs;

use nrt_trace_tests::{Document, Host, Running, artifacts, payload, until};

use crate::spec::Told;
use crate::world::host;

/// Events of a batch.
const BATCH: u64 = 100;

/// Has the program emit a batch.
fn emit(recording: &mut Running) {
    let told = recording.ask("go");
    assert_eq!(told, format!("{{\"recorded\":{BATCH},\"refused\":0}}\n"));
}

/// Events of the recording's run that were committed.
fn delivered(host: &Host) -> Option<u64> {
    let status = host.status();
    let rings = status["runs"][0]["accounts"].as_array()?;
    rings.iter().map(|ring| ring["delivered"].as_u64()).sum()
}

/// Killed at this step of the first commit after a quiet moment: that of a second batch's first events.
fn killed(label: &str) {
    let (mut host, config) = host();
    let now = host.path("now");
    let mut mortal = host.command(artifacts::stepper());
    mortal.args(["daemon", "--at", label, "--from"]).arg(&now);
    mortal.args(&config);
    host.start_daemon_as(mortal);

    let probe = artifacts().probe.to_str().unwrap();
    let batch = BATCH.to_string();
    let record = ["record", "-o", "t.json", "--", probe, "--interactive", "-n"];
    let arguments = [&record[..], &[&batch]].concat();
    let mut recording = Running::start(host.tracectl_command(&arguments));
    assert_eq!(recording.read_line(), "ready\n");
    let pid = host.attached()[0];
    emit(&mut recording);
    until("the first batch to be committed", || {
        (delivered(&host)? == BATCH).then_some(())
    });
    fs::write(&now, "").unwrap();
    emit(&mut recording);
    assert_eq!(host.wait_daemon(), None, "it was killed");
    emit(&mut recording);

    host.start_daemon(&[&config[0], &config[1]]);
    host.until_state(pid, "capturing");
    let ended = recording.wait().ok();
    let document = Document::read(&host.path("t.json"));
    let numbers = payload::numbers(&document.events).remove(&0);
    let all: Vec<u64> = (1..=3 * BATCH).collect();
    assert_eq!(numbers, Some(all), "each once: {ended}");
    let account = "claimed 300 = delivered 300 + lost 0 + pending 0 + unread 0";
    assert!(ended.text().contains(account), "{ended}");
    assert!(ended.stderr.contains("the daemon is back after"), "{ended}");
}

#[test]
fn killed_in_a_commit_a_recording_has_each_event_once() {
    for label in ["commit:asked", "commit:moved", "commit:done"] {
        let test = "killed_in_a_commit_a_recording_has_each_event_once";
        let _told = Told::of_test(test, &label);
        killed(label);
    }
}
