//! The watchdog: fed while both threads go on that everything depends on, and not while one hangs.
//!
//! The threads are made to hang in a build that is the daemon's but for the places where they can. `.ci/run` runs these tests a
//! second time with a release build of it (`NRT_TRACE_FAILPOINTS_PROFILE=release`).

use std::fs;
use std::process::Command;

use nrt_trace_tests::Host;
use nrt_trace_tests::artifacts::{FAILPOINTS_PROFILE, artifacts, failpoints};
use nrt_trace_tests::manager::Manager;
use nrt_trace_tests::wait::until;

/// What only the build with failpoints knows.
const VARIABLE: &str = "NRT_TRACED_FAILPOINTS";
const FED: &str = "WATCHDOG=1";

/// A daemon whose threads can be made to hang, and whose manager waits.
fn watched(settings: &str) -> (Host, Manager) {
    let mut host = Host::new();
    let manager = Manager::new(&host, 0);
    fs::create_dir(host.path("hang")).unwrap();
    fs::write(host.path("settings.toml"), settings).unwrap();
    let mut command: Command = host.command(failpoints());
    command.arg("--config").arg(host.path("settings.toml"));
    command.env("NOTIFY_SOCKET", manager.path());
    // Four looks in this time; nobody ends the daemon when it is over.
    command.env("WATCHDOG_USEC", "40000");
    command.env(VARIABLE, host.path("hang"));
    host.start_daemon_as(command);
    (host, manager)
}

/// Waits until the manager was fed so often again.
fn until_fed(manager: &Manager, times: usize) {
    let before = manager.times_told(FED);
    until("the watchdog to be fed", || {
        (manager.times_told(FED) >= before + times).then_some(())
    });
}

/// It is fed before, not while the thread hangs, for as many looks as are waited for, and again when it goes on.
fn hangs(place: &str, thread: &str, settings: &str) {
    let (host, manager) = watched(settings);
    until("the daemon to be ready", || {
        manager.was_told("READY=1").then_some(())
    });
    until_fed(&manager, 3);
    let file = host.path("hang").join(place);
    fs::write(&file, "").unwrap();
    let silent = format!("STATUS=waiting for thread: {thread}");
    until("the thread to be missed", || {
        manager.was_told(&silent).then_some(())
    });
    // The thread may have come round once more meanwhile: what counts is that it ends.
    until("looks in a row that find it hanging", || {
        let told = manager.said();
        let fed = told.iter().rposition(|line| line == FED).unwrap_or(0);
        let missed = told[fed..].iter().filter(|line| **line == silent);
        (missed.count() >= 20).then_some(())
    });
    fs::remove_file(&file).unwrap();
    until_fed(&manager, 3);
    assert!(manager.was_told("STATUS=both sockets answer"));
}

#[test]
fn it_starves_while_the_registry_hangs() {
    hangs("registry", "registry", "");
}

#[test]
fn it_starves_while_the_sampler_hangs() {
    hangs(
        "sampler",
        "host monitor",
        "host = true\nhost_period_ms = 60000",
    );
}

/// An idle monitor's thread waits for a call: that is no hang.
#[test]
fn it_starves_while_the_idle_sampler_hangs() {
    hangs("sampler", "host monitor", "");
}

/// No build that is shipped can be made to hang: the variable is not even in it.
#[test]
fn no_other_build_has_failpoints() {
    let has = |path: &std::path::Path| {
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(VARIABLE.len())
            .any(|part| part == VARIABLE.as_bytes())
    };
    assert!(has(failpoints()));
    // What was asked for is what the other tests here ran.
    if let Ok(profile) = std::env::var(FAILPOINTS_PROFILE) {
        let folder = failpoints().parent().and_then(std::path::Path::file_name);
        assert_eq!(folder, Some(profile.as_ref()));
    }
    assert!(!has(&artifacts().traced));
}
