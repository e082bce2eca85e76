//! Several recordings at once: each gets its own events, and nobody else's.

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Document, Host, Running, artifacts, run};
use rustix::process::Signal;

use crate::restart::emit;

/// Eight recordings at once, each of a program that ends at once, with a number of events of its own.
fn eight_at_once(host: &Host) {
    let probe = artifacts().probe.to_str().unwrap();
    let recordings = (0..8u64).map(|k| {
        let (file, events) = (format!("{k}.json"), (1000 + k).to_string());
        let arguments = ["record", "-o", &file, "--", probe, "-n", &events];
        Running::start(host.tracectl_command(&arguments))
    });
    let recordings: Vec<_> = recordings.collect();
    for (k, recording) in (0..8).zip(recordings) {
        let ended = recording.wait().ok();
        let document = Document::read(&host.path(format!("{k}.json")));
        let numbers = numbers(&document.events);
        assert_eq!(
            numbers.get(&0),
            Some(&(1..=1000 + k).collect::<Vec<_>>()),
            "{ended}"
        );
        assert_eq!(document.by_process().len(), 1);
    }
}

#[test]
fn eight_each_with_a_daemon_of_its_own() {
    eight_at_once(&Host::new());
}

#[test]
fn eight_on_one_daemon_beside_a_run_of_the_host() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    eight_at_once(&host);
    assert_eq!(host.fetch().events.len(), 0);
    assert_eq!(host.status()["runs"].as_array().unwrap().len(), 1);
}

/// Who fetches beside a recording of the host takes events away from it. It goes on, whatever comes between it and its
/// commits, and says at the end how many are elsewhere.
#[test]
fn events_that_somebody_else_fetched_are_told_of() {
    let host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    let recording = Running::start(host.tracectl_command(&["record", "-o", "t.json"]));
    host.until_state(probe.pid(), "capturing");
    let (mut all, mut elsewhere) = (0, 0);
    until("another reader to get something", || {
        emit(&mut probe, 100);
        all += 100;
        for _ in 0..5 {
            // Refused while the recording's own is under way.
            let fetch = run(host.tracectl_command(&["fetch", "-o", "-"]));
            if fetch.status.success() {
                elsewhere += Document::parse(&fetch.stdout).events.len();
            }
        }
        (elsewhere > 0).then_some(())
    });
    emit(&mut probe, 100);
    recording.signal(Signal::INT);
    let ended = recording.wait();
    let here = Document::read(&host.path("t.json")).events.len();
    assert_eq!(here + elsewhere, all + 100, "{ended}");
    let told = format!("{elsewhere} events of this run are not in the recording");
    let stderr = ended.stderr.replace(',', "");
    assert!(stderr.contains(&told), "{told}: {ended}");
}
