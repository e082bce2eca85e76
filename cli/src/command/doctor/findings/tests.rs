use std::fs;

use super::*;

/// A daemon with nothing to complain of.
fn healthy() -> v1::GetStatusResponse {
    let account = v1::RingAccount {
        claimed: 100,
        delivered: 100,
        ..v1::RingAccount::default()
    };
    let run = v1::RunStatus {
        run: Some(v1::Run {
            max_events_per_nc: 1024,
            ..v1::Run::default()
        }),
        capturing: true,
        producers: 1,
        accounts: vec![account],
        away: 0,
    };
    v1::GetStatusResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        abi_version: u32::from(ABI_VERSION),
        pid: 7,
        producers: 1,
        tsc_clock: true,
        control_socket: "/c".to_owned(),
        producer_socket: "/p".to_owned(),
        runs: vec![run],
        ..v1::GetStatusResponse::default()
    }
}

fn seen<'a>(status: &'a v1::GetStatusResponse, producers: &'a [v1::Producer]) -> Seen<'a> {
    Seen {
        status,
        producers,
        disabled: false,
        producer_socket: Ok(()),
    }
}

/// The one finding of a status that was healthy before this change.
#[track_caller]
fn only(change: impl FnOnce(&mut v1::GetStatusResponse)) -> Finding {
    let mut status = healthy();
    change(&mut status);
    one(of(&seen(&status, &[])))
}

#[track_caller]
fn one(found: Vec<Finding>) -> Finding {
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[track_caller]
fn is(finding: &Finding, code: &str, what: &[&str], todo: &str) {
    assert_eq!(finding.code, code, "{finding:?}");
    for word in what {
        assert!(finding.what.contains(word), "{word}: {finding:?}");
    }
    assert!(finding.todo.contains(todo), "{todo}: {finding:?}");
}

#[test]
fn a_healthy_daemon_has_no_finding() {
    let status = healthy();
    assert_eq!(of(&seen(&status, &[])), []);
    assert_eq!(
        well(&seen(&status, &[])),
        [
            format!(
                "the daemon at /c answers: version {}, pid 7",
                env!("CARGO_PKG_VERSION")
            ),
            "1 processes are attached".to_owned(),
            "the host is captured: 100 events recorded".to_owned(),
            "event times come from the time stamp counter".to_owned(),
        ]
    );
}

#[test]
fn each_defect_of_a_daemon_is_one_finding_with_a_remedy() {
    is(
        &only(|s| s.abi_version = 99),
        "other_version",
        &["ABI 99"],
        "from one release",
    );
    is(
        &only(|s| s.version = "9.9.9".to_owned()),
        "other_version",
        &["9.9.9"],
        "restart",
    );
    is(
        &only(|s| s.producers = 0),
        "nobody_attached",
        &[],
        "NRT_TRACE_PRODUCER_SOCKET",
    );
    is(
        &only(|s| s.runs.clear()),
        "not_capturing",
        &["nothing"],
        "nrt-tracectl start",
    );
    let stopped = only(|s| {
        s.runs[0].capturing = false;
        s.runs[0].accounts[0].unread = 5;
    });
    is(&stopped, "not_capturing", &["5 events"], "fetch");
    let filtered = |s: &mut v1::GetStatusResponse| {
        s.runs[0].accounts[0] = v1::RingAccount::default();
        s.runs[0].run.as_mut().unwrap().events = vec!["nrt_load".to_owned()];
    };
    is(
        &only(filtered),
        "filter_excludes_everything",
        &["event types nrt_load"],
        "set-filter",
    );
    is(
        &only(|s| s.runs[0].accounts[0] = v1::RingAccount::default()),
        "nothing_emitted",
        &["the host"],
        "traced",
    );
    is(
        &only(|s| s.runs[0].accounts[0].overwritten = 40),
        "ring_too_small",
        &["40 of 100 events", "1,024"],
        "--max-events-per-nc",
    );
    is(
        &only(|s| s.quarantined = 2),
        "quarantined",
        &["2 processes"],
        "producers",
    );
    is(
        &only(|s| s.tsc_clock = false),
        "clocksource",
        &["clock_gettime"],
        "tsc",
    );
}

#[test]
fn a_limit_is_told_when_nine_tenths_of_it_are_used() {
    let budget = |used| {
        move |s: &mut v1::GetStatusResponse| {
            s.budgets = vec![v1::Budget {
                key: "memory_budget_bytes".to_owned(),
                used,
                allowed: 1 << 30,
            }];
        }
    };
    is(
        &only(budget(1000 << 20)),
        "budget_nearly_used_up",
        &["97.7 % of memory_budget_bytes", "1.0 GiB"],
        "raise it",
    );
    let names = |s: &mut v1::GetStatusResponse| {
        s.budgets = vec![v1::Budget {
            key: "names_budget_bytes_per_uid".to_owned(),
            used: 64 << 20,
            allowed: 64 << 20,
        }];
    };
    is(
        &only(names),
        "budget_nearly_used_up",
        &["100.0 % of names_budget_bytes_per_uid"],
        "show as their numbers",
    );
    let mut status = healthy();
    budget(800 << 20)(&mut status);
    assert_eq!(of(&seen(&status, &[])), []);
}

#[test]
fn whoever_is_refused_is_told_of_with_the_setting_that_decides() {
    for (cause, todo) in [
        ("version", "library of the daemon's release"),
        ("producer_group", "widen it"),
        ("max_producers", "raise the limit"),
        ("LimitNOFILE", "ulimit -n"),
    ] {
        let refusal = v1::Refusal {
            cause: cause.to_owned(),
            text: "in words".to_owned(),
            count: 3,
            last_ns: 1,
        };
        let finding = only(|s| s.refusals = vec![refusal]);
        is(&finding, "refused", &["3 processes", "in words"], todo);
    }
    for (why, code, todo) in [
        (
            "need 2 (max_segment_bytes)",
            "over_budget",
            "raise max_segment_bytes in",
        ),
        (
            "need 2 (max_segment_bytes_per_uid)",
            "over_budget",
            "raise max_segment_bytes_per_uid in",
        ),
        (
            "taken (memory_budget_bytes)",
            "over_budget",
            "raise memory_budget_bytes",
        ),
        ("it can't map its rings", "no_address_space", "ulimit -v"),
        (
            "it sees none of the NeuronCores",
            "sees_no_core",
            "NEURON_RT_VISIBLE_CORES",
        ),
        ("else", "not_captured", "log"),
    ] {
        let producer = v1::Producer {
            pid: Some(42),
            name: "trainer".to_owned(),
            state: ProducerState::Attached.into(),
            not_captured: why.to_owned(),
            ..v1::Producer::default()
        };
        let status = healthy();
        let finding = one(of(&seen(&status, &[producer])));
        is(&finding, code, &["process 42 (trainer)", why], todo);
    }
}

#[test]
fn what_this_user_may_is_looked_at_too() {
    let status = healthy();
    let with = |change: fn(&mut Seen<'_>)| {
        let mut seen = seen(&status, &[]);
        change(&mut seen);
        one(of(&seen))
    };
    is(
        &with(|s| s.disabled = true),
        "disabled",
        &["NRT_TRACE_DISABLE"],
        "unset",
    );
    let gone = with(|s| s.producer_socket = Err(rustix::io::Errno::NOENT));
    is(&gone, "producer_socket_gone", &["/p"], "restart");
    let closed = with(|s| s.producer_socket = Err(rustix::io::Errno::ACCESS));
    is(&closed, "may_not_attach", &["/p"], "producer_group");
}

#[test]
fn no_connection_is_told_by_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("c.sock");
    let path = socket.display().to_string();
    let (why, bytes) = ("nobody listens".to_owned(), 200);
    let finding = |error: &ConnectError| one(of_refusal(error, &Place::look(&socket)));
    let absent = ConnectError::Absent {
        path: path.clone(),
        why: why.clone(),
    };
    is(
        &finding(&absent),
        "no_daemon",
        &[&path, "nobody listens"],
        "systemctl start",
    );
    fs::write(folder.path().join("nrt-traced.state"), "").unwrap();
    is(
        &finding(&absent),
        "daemon_away",
        &["ten minutes"],
        "goes on where it stopped",
    );
    let denied = ConnectError::Denied { path: path.clone() };
    is(&finding(&denied), "no_permission", &[&path], "ask root");
    // Root's own group is nobody's to join.
    for (group, todo) in [
        (1234, "a member of group 1234 (`usermod -aG"),
        (0, "ask root, or"),
    ] {
        let place = Place {
            group: Some((group, 0o660)),
            ..Place::look(&socket)
        };
        let denied = one(of_refusal(&denied, &place));
        is(&denied, "no_permission", &[&path], todo);
    }
    let foreign = ConnectError::Foreign {
        path: path.clone(),
        why,
    };
    is(
        &finding(&foreign),
        "not_the_daemon",
        &["nobody listens"],
        "--socket",
    );
    let silent = ConnectError::Silent {
        path: path.clone(),
        seconds: 5,
    };
    is(
        &finding(&silent),
        "no_answer",
        &["did not answer", "stopped"],
        "restart",
    );
    is(
        &finding(&ConnectError::TooLong { path, bytes }),
        "path_too_long",
        &["200"],
        "shorter",
    );
}
