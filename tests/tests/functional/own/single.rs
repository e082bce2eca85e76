//! One process, a daemon, nobody else.

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::wait::stop;
use nrt_trace_tests::{Host, Link, compile, run, until};
use rustix::process::Signal;

use super::{FAILURE, INVALID, Own, SUCCESS, TIMEOUT, document};

/// What the vendor's documentation shows: list types, disable all, enable two, start, emit, fetch, free, stop.
#[test]
fn the_steps_of_the_public_documentation_give_the_expected_document() {
    let host = Host::with_daemon();
    let ended = run(host.command(compile(&host, "tests/c/public_steps.c", Link::Linked))).ok();
    let text = ended.text();
    let (list, fetched) = text.split_once("fetched ").expect("a document");
    assert_eq!(list, "46 types\n2 enabled: nrt_execute nrt_tensor_read\n");
    let document = nrt_trace_tests::Document::parse(fetched.trim().as_bytes());
    let seen: Vec<_> = (document.events.iter())
        .map(|e| {
            (
                e.event_type.as_str(),
                e.phase.as_str(),
                e.nc_idx,
                e.nc_local_id,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("nrt_execute", "start", 0, 1),
            ("nrt_execute", "stop", 0, 2),
            ("nrt_tensor_read", "start", 1, 1)
        ]
    );
    let [start, stop, read] = document.events.try_into().unwrap();
    assert_eq!((start.tracking_id, stop.tracking_id), (start.id, start.id));
    assert_eq!(start.data["model_name"], "model.neff");
    assert!(start.timestamp_ns <= stop.timestamp_ns);
    assert_eq!(
        (read.id, read.host_nc_idx, read.process_id),
        (1 | 1 << 50, None, None)
    );
    assert_eq!(ended.stderr, "", "silent by default");
}

#[test]
fn a_fetch_consumes_and_a_stop_drops_the_rest() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("emit 5", "0"), ("start 1024", SUCCESS), ("emit 10", "10")]);
    assert_eq!(own.numbers(), (6..=15).collect::<Vec<_>>());
    assert_eq!(own.numbers(), [0; 0]);
    own.does(&[("emit 3", "3"), ("count", "3"), ("size", "1024")]);
    own.does(&[
        ("stop", SUCCESS),
        ("size", "0"),
        ("count", "0"),
        ("emit 1", "0"),
    ]);
    own.does(&[("start 1024", SUCCESS), ("emit 2", "2")]);
    assert_eq!(own.numbers(), [20, 21], "none of the last capture's");
    own.does(&[("stop", SUCCESS)]);
    assert_eq!(own.end().stderr, "");
}

#[test]
fn options_choose_the_oldest_events_of_each_neuron_core_or_of_one() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[
        ("start", SUCCESS),
        ("emit 4", "4"),
        ("on 3", "ok"),
        ("emit 4", "4"),
    ]);
    let seen = |own: &mut Own, line| {
        let document = own.fetch(line);
        let all = document.events.iter().map(|e| (e.nc_idx, e.nc_local_id));
        all.collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut own, "fetch 1 3"), [(3, 1)]);
    assert_eq!(seen(&mut own, "fetch 2"), [(0, 1), (0, 2), (3, 2), (3, 3)]);
    assert_eq!(
        seen(&mut own, "fetch 0 200"),
        [(0, 0); 0],
        "no ring, no events"
    );
    own.does(&[
        ("drain 1 0", "0 3"),
        ("count", "2"),
        ("drain 10", "0 4 4"),
        ("drain 10", "0"),
    ]);
    assert_eq!(seen(&mut own, "fetch"), [(0, 0); 0]);
}

/// A ring that wrapped has its last events, and the log says that the others are gone.
#[test]
fn what_is_overwritten_is_told() {
    let host = Host::with_daemon();
    let mut command = Own::command(&host);
    command.env("NRT_TRACE_LOG", "warn");
    let mut own = Own::start(command);
    own.does(&[
        ("start 1024", SUCCESS),
        ("emit 3000", "3000"),
        ("count", "1024"),
    ]);
    assert_eq!(own.numbers(), (1977..=3000).collect::<Vec<_>>());
    let said = own.end().stderr;
    let warning = "Warning: 1976 trace events were dropped during capture (stored 1024 out of 3000 total events). Consider";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn mistakes_have_their_documented_status_and_lose_nothing() {
    let host = Host::with_daemon();
    let ended = run(host.command(compile(&host, "tests/c/own_mistakes.c", Link::Linked))).ok();
    assert!(ended.text().ends_with("done\n"), "{ended}");
    assert_eq!(ended.stderr, "");
    let mut own = Own::new(&host);
    own.does(&[
        ("stop", FAILURE),
        ("close", SUCCESS),
        ("fetch", "1"),
        ("drain 1", FAILURE),
    ]);
    own.does(&[
        ("start", SUCCESS),
        ("emit 2", "2"),
        ("start", FAILURE),
        ("default", FAILURE),
    ]);
    own.does(&[("drain 1 300", INVALID), ("drain 1 256", INVALID)]);
    assert_eq!(own.numbers(), [1, 2]);
    own.does(&[("stop", SUCCESS), ("stop", FAILURE)]);
    // More than any ring has.
    own.does(&[
        ("start 99999999999", INVALID),
        ("start", SUCCESS),
        ("close", SUCCESS),
        ("close", SUCCESS),
    ]);
}

/// Index 300 is no NeuronCore: recorded as 0 and counted, as for any other run.
#[test]
fn an_nc_of_300_is_recorded_as_0_and_said_once() {
    let host = Host::with_daemon();
    let mut command = Own::command(&host);
    command.env("NRT_TRACE_LOG", "warn");
    let mut own = Own::start(command);
    own.does(&[("start", SUCCESS), ("on 300", "ok"), ("emit 3", "3")]);
    let document = own.fetch("fetch");
    assert!(document.events.iter().all(|e| e.nc_idx == 0) && document.events.len() == 3);
    own.does(&[("on 77", "ok"), ("emit 2", "0"), ("stop", SUCCESS)]);
    let said = own.end().stderr;
    let times = |words: &str| said.matches(words).count();
    assert_eq!(times("index of 256 or more"), 1, "{said}");
    assert_eq!(times("NeuronCores without a ring"), 1, "{said}");
}

#[test]
fn types_and_neuron_cores_that_were_not_asked_for_are_not_recorded() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("types nrt_tensor_read", "1"), ("start 1024 1 2", SUCCESS)]);
    own.does(&[
        ("emit 3", "0"),
        ("other 3", "0"),
        ("on 1", "ok"),
        ("emit 1", "0"),
        ("other 2", "2"),
    ]);
    own.does(&[("on 3", "ok"), ("other 1", "0")]);
    let document = own.fetch("fetch");
    assert!(
        document
            .events
            .iter()
            .all(|e| e.nc_idx == 1 && e.event_type == "nrt_tensor_read")
    );
    assert_eq!(document.events.len(), 2);
}

/// A name that is interned after a fetch, and one before the capture.
#[test]
fn model_names_are_the_processs_own() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[
        ("model early.neff", "0"),
        ("start", SUCCESS),
        ("model early.neff", "1"),
    ]);
    let name = |own: &mut Own| own.fetch("fetch").events[0].data["model_name"].clone();
    assert_eq!(name(&mut own), "early.neff");
    own.does(&[("model late \u{2713}.neff", "1")]);
    assert_eq!(name(&mut own), "late \u{2713}.neff");
}

#[test]
fn the_environment_is_the_default() {
    let host = Host::with_daemon();
    let mut command = Own::command(&host);
    command.env("NEURON_RT_INSPECT_EVENT_FILTER_NC", "0,2-3");
    command.env(
        "NEURON_RT_INSPECT_EVENT_FILTER_TYPE",
        "software,^nrt_tensor_read",
    );
    command.env("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "2000");
    let mut own = Own::start(command);
    own.does(&[
        ("default", SUCCESS),
        ("size", "2000"),
        ("emit 1", "1"),
        ("other 1", "0"),
    ]);
    own.does(&[
        ("on 1", "ok"),
        ("emit 1", "0"),
        ("on 2", "ok"),
        ("emit 1", "1"),
        ("stop", SUCCESS),
    ]);
    own.does(&[
        ("start 1024", SUCCESS),
        ("other 1", "1"),
        ("on 1", "ok"),
        ("emit 1", "1"),
    ]);

    for (name, value, said) in [
        ("NEURON_RT_INSPECT_EVENT_FILTER_NC", "0-300", "0 to 255"),
        (
            "NEURON_RT_INSPECT_EVENT_FILTER_TYPE",
            "nrt_exceute",
            "did you mean `nrt_execute`",
        ),
        (
            "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC",
            "-1",
            "1024 to",
        ),
    ] {
        let mut command = Own::command(&host);
        command.env(name, value).env("NRT_TRACE_LOG", "warn");
        let mut own = Own::start(command);
        own.does(&[("default", INVALID), ("emit 1", "0"), ("start", SUCCESS)]);
        let ended = own.end().stderr;
        assert!(
            ended.contains(&format!("{name}={value}: ")) && ended.contains(said),
            "{ended}"
        );
    }
}

#[test]
fn the_log_says_what_users_know_and_calls_say_when_they_begin_and_end() {
    let host = Host::with_daemon();
    let mut command = Own::command(&host);
    command
        .env("NRT_TRACE_LOG", "debug")
        .env("NEURON_RT_NUM_CORES", "2");
    let mut own = Own::start(command);
    own.does(&[
        ("start 1024 1", SUCCESS),
        ("start", FAILURE),
        ("on 1", "ok"),
        ("emit 1", "1"),
    ]);
    let document = own.fetch("fetch");
    assert_eq!(document.events.len(), 1);
    own.does(&[("stop", SUCCESS)]);
    let said = own.end().stderr;
    for line in [
        "API:IN nrt_sys_trace_start",
        "Allocating memory for 1024 events (0.000 GB) for system trace ring buffer",
        "System trace capture disabled for this NeuronCore: 0",
        "API:OUT nrt_sys_trace_start NRT_SUCCESS",
        "System trace is already capturing",
        "API:OUT nrt_sys_trace_start NRT_FAILURE",
        "API:IN nrt_sys_trace_fetch_events",
        "API:OUT nrt_sys_trace_fetch_events NRT_SUCCESS written_size=",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("NeuronCore: 1\n"), "{said}");
    assert!(
        !said.contains("nrt_sys_trace_stop"),
        "a stop logs nothing: {said}"
    );
}

/// A child is not capturing, can't disturb its parent's capture, and may have its own.
#[test]
fn a_forked_child_is_not_capturing() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("start", SUCCESS), ("emit 2", "2"), ("fork", "child")]);
    own.does(&[
        ("size", "0"),
        ("fetch", "1"),
        ("stop", FAILURE),
        ("emit 1", "0"),
    ]);
    own.does(&[("as 7", "ok"), ("start", SUCCESS), ("emit 2", "2")]);
    let document = own.fetch("fetch");
    assert_eq!(numbers(&document.events), [(7, vec![1, 2])].into());
    own.end();
}

/// Writers at full speed on two rings, fetched all the time: each event once, whole, in the order of its thread.
#[test]
fn fetches_under_writers_deliver_nothing_twice_and_nothing_torn() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("start 1048576 0 1", SUCCESS)]);
    own.0.tell("threads 4 25000");
    let mut all = std::collections::BTreeMap::<u64, Vec<u64>>::new();
    loop {
        let line = own.0.read_line();
        if line.trim() == "done" {
            break;
        }
        for (thread, more) in numbers(document(line.trim()).events) {
            all.entry(thread).or_default().extend(more);
        }
    }
    let each: Vec<u64> = (1..=25_000).collect();
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    for (thread, mut numbers) in all {
        // An event that was published late comes in a later fetch.
        numbers.sort_unstable();
        assert!(
            numbers == each,
            "thread {thread}: {} of {}",
            numbers.len(),
            each.len()
        );
    }
}

/// A capture ends with its process, and leaves nothing in the daemon.
#[test]
fn a_capture_ends_with_its_process() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("start", SUCCESS), ("emit 100", "100")]);
    assert_ne!(host.status()["reserved_bytes"], 0);
    own.0.signal(Signal::KILL);
    until("the memory to be freed", || {
        let status = host.status();
        (status["reserved_bytes"] == 0 && status["resident_bytes"] == 0).then_some(())
    });
    assert_eq!(host.status()["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn without_a_daemon_a_start_fails_and_says_why() {
    let host = Host::new();
    let mut command = Own::command(&host);
    command.env("NRT_TRACE_LOG", "warn");
    let mut own = Own::start(command);
    own.does(&[
        ("start", FAILURE),
        ("emit 1", "0"),
        ("fetch", "1"),
        ("stop", FAILURE),
    ]);
    let said = own.end().stderr;
    assert!(
        said.contains("there is no daemon") && said.contains("NRT_TRACE_EMBEDDED=1"),
        "{said}"
    );
}

/// The daemon ends: what is in the rings can be fetched, and there can be a new capture when there is a daemon again.
#[test]
fn a_capture_outlives_its_daemon_as_far_as_its_rings_go() {
    let mut host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("start", SUCCESS), ("emit 3", "3")]);
    assert_eq!(host.stop_daemon(), Some(0));
    assert_eq!(own.numbers(), [1, 2, 3]);
    host.start_daemon(&[]);
    host.until_state(own.0.pid(), "attached");
    own.does(&[
        ("start", FAILURE),
        ("stop", SUCCESS),
        ("start", SUCCESS),
        ("emit 1", "1"),
    ]);
    assert_eq!(own.numbers(), [4]);
}

/// Case N01: a capture that brings nothing says so, with the likely reasons, once.
#[test]
fn n01_a_capture_without_events_is_said() {
    let host = Host::with_daemon();
    let mut command = Own::command(&host);
    command.env("NRT_TRACE_LOG", "warn");
    let mut own = Own::start(command);
    own.does(&[
        ("types nrt_tensor_read", "1"),
        ("start 1024", SUCCESS),
        ("emit 3", "0"),
    ]);
    assert_eq!(own.fetch("fetch").events.len(), 0);
    assert_eq!(own.fetch("fetch").events.len(), 0);
    own.does(&[("stop", SUCCESS), ("start 1024", SUCCESS), ("other 1", "1")]);
    assert_eq!(own.fetch("fetch").events.len(), 1);
    assert_eq!(own.fetch("fetch").events.len(), 0);
    let said = own.end().stderr;
    assert_eq!(
        said.matches("no event was recorded so far").count(),
        1,
        "{said}"
    );
}

#[test]
fn more_cores_than_there_can_be_are_refused_by_number() {
    let host = Host::with_daemon();
    let mut command = Own::command(&host);
    command
        .env("NEURON_RT_NUM_CORES", "300")
        .env("NRT_TRACE_LOG", "warn");
    let mut own = Own::start(command);
    own.does(&[
        ("start 1024", INVALID),
        ("default", INVALID),
        ("emit 1", "0"),
    ]);
    let said = own.end().stderr;
    assert!(said.contains("visible cores 300 exceeds 256"), "{said}");
}

/// A daemon that is stopped answers nobody: a start and a stop say so after a while, and leave nothing behind when it goes on.
#[test]
fn a_daemon_that_does_not_answer_is_a_timeout() {
    let host = Host::with_daemon();
    let daemon = rustix::process::Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
    let go_on = || rustix::process::kill_process(daemon, Signal::CONT).unwrap();
    let mut own = Own::new(&host);
    until("the process to attach", || {
        host.attached().contains(&own.0.pid()).then_some(())
    });
    stop(daemon);
    own.does(&[("start 1024", TIMEOUT), ("emit 1", "0"), ("fetch", FAILURE)]);
    go_on();
    // A machine that is busy may let it time out again.
    let begin = |own: &mut Own| {
        until("a start", || {
            (own.ask("start 1024") == SUCCESS).then_some(())
        });
    };
    begin(&mut own);
    own.does(&[("emit 2", "2")]);
    assert_eq!(own.numbers(), [2, 3]);
    stop(daemon);
    own.does(&[("stop", TIMEOUT), ("fetch", FAILURE), ("stop", FAILURE)]);
    go_on();
    begin(&mut own);
    own.does(&[("emit 1", "1"), ("stop", SUCCESS)]);
    until("the memory to be freed", || {
        (host.status()["reserved_bytes"] == 0).then_some(())
    });
}
