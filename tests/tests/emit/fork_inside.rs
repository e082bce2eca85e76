//! A fork in a signal handler that interrupted an emit, at any of its instructions.

use nrt_trace_tests::control::Control;
use nrt_trace_tests::{Host, Link, PATIENT, Running, compile};

const CAP: u64 = 1024;

/// At how many of its instructions; `NRT_TRACE_LONG_TESTS=1` takes ten times as many.
const FORKS: u64 = 40;

/// The child's half of the emit changes nothing in its parent's ring: neither an event nor the account. And the child
/// is captured as a process of its own afterwards.
#[expect(clippy::print_stderr, reason = "says loudly what did not run")]
fn forks_at(arguments: &[&str]) {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("NOT RUN: single steps are made by the trap flag of x86-64");
        return;
    }
    let mut host = Host::new();
    std::fs::write(
        host.path("traced.toml"),
        format!("{PATIENT}default_cores = 1\n"),
    )
    .unwrap();
    host.start_daemon(&["--config", "traced.toml"]);
    let mut control = Control::connect(&host);
    control.start("t", CAP, 0);
    let program = compile(&host, "tests/c/fork_inside.c", Link::Linked);
    let start = || {
        let mut command = host.command(&program);
        command.args(arguments).env("NRT_TRACE_TOKEN", "t");
        Running::start(command)
    };
    let mut whole = start();
    let instructions: u64 = whole.ask(&i64::MAX.to_string()).trim().parse().unwrap();
    whole.wait().ok();
    assert!(instructions > 100, "{instructions} are not an emit");
    let forks = FORKS * long_tests().map_or(1, |()| 10);
    let mut forked = 0;
    for group in steps(instructions, forks).chunks(20) {
        let mut forking = start();
        for step in group {
            let answer = forking.ask(&step.to_string());
            if answer.split_whitespace().count() == 1 {
                continue; // an emit without the clock's new parameters, say, has fewer instructions
            }
            let mut words = answer.split_whitespace().map(str::parse::<u64>);
            let (Some(Ok(last)), Some(Ok(0))) = (words.next(), words.next()) else {
                panic!("at instruction {step}: {answer}");
            };
            let ring = control.fetch("t").ring(forking.pid());
            let numbers: Vec<_> = ring.events.iter().map(|event| event.number).collect();
            let newest: Vec<_> = (last - CAP + 1..=last).collect();
            assert!(numbers == newest, "at instruction {step}: {numbers:?}");
            let account = &ring.account;
            assert_eq!(account.claimed, last, "at instruction {step}: {account:?}");
            forked += 1;
        }
        forking.wait().ok();
    }
    assert!(forked > forks / 2, "{forked} of {forks}");
}

/// `count` of them, spread evenly; all, if there are not as many.
fn steps(instructions: u64, count: u64) -> Vec<u64> {
    let count = count.min(instructions);
    (0..count).map(|n| n * instructions / count).collect()
}

fn long_tests() -> Option<()> {
    std::env::var_os("NRT_TRACE_LONG_TESTS").map(drop)
}

#[test]
fn a_fork_inside_an_emit_leaves_the_parents_ring_alone() {
    forks_at(&[]);
}

#[test]
fn a_fork_inside_a_threads_first_emit_leaves_the_parents_ring_alone() {
    forks_at(&["first"]);
}
