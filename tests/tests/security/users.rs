//! Two users of one machine: what each may, and that neither sees the other's.
//!
//! Only root can be several users: the tests say loudly that they did not run for anybody else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nrt_trace_tests::{Document, Ended, Host, Running, artifacts, run, until};

/// Two users that nobody has, each with a group of its own.
const ANN: u32 = 61_001;
const BOB: u32 = 61_002;

/// The name that only who may control the daemon may see.
const SECRET: &str = "secret-of-ann";

/// A host whose folder everybody may enter, with a daemon of these settings, and a folder for each of the two.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
fn host(settings: &str) -> Option<Host> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can be two users");
        return None;
    }
    let mut host = Host::new();
    mode(&host.path(""), 0o755);
    let mut reach = Command::new(&artifacts().tracectl);
    let reached = reach.arg("--version").uid(BOB).gid(BOB).output();
    if !reached.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "NOT RUN: another user can't reach {:?}",
            artifacts().tracectl
        );
        return None;
    }
    for user in [ANN, BOB] {
        let folder = host.path(user.to_string());
        fs::create_dir(&folder).expect("a folder");
        chown(&folder, Some(user), Some(user)).expect("root may");
    }
    fs::write(host.path("traced.toml"), settings).expect("a file");
    host.start_daemon(&["--config", "traced.toml"]);
    Some(host)
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("root may");
}

/// The same command, by a user in a folder of its own.
fn by(host: &Host, user: u32, mut command: Command) -> Command {
    let folder = host.path(user.to_string());
    command.uid(user).gid(user).current_dir(&folder);
    command.env("XDG_RUNTIME_DIR", &folder);
    command
}

fn tracectl_by(host: &Host, user: u32, arguments: &[&str]) -> Ended {
    run(by(host, user, host.tracectl_command(arguments)))
}

fn probe_by(host: &Host, user: u32, name: &str) -> Running {
    let mut probe = host.probe_command(&["--interactive", "-n", "100", "--name", name]);
    probe.env("NRT_TRACE_LOG", "warn");
    let mut probe = Running::start(by(host, user, probe));
    assert_eq!(probe.read_line(), "ready\n");
    probe
}

fn until_attached(host: &Host, probe: &Running) {
    until("the probe to attach", || {
        host.attached().contains(&probe.pid()).then_some(())
    });
}

/// Every verb that shows or changes something: refused in one plain line, which gives nothing away.
fn may_nothing(host: &Host, user: u32) {
    let verbs: [&[&str]; 8] = [
        &["status"],
        &["producers"],
        &["strings"],
        &["host"],
        &["start"],
        &["stop"],
        &["fetch", "-o", "-"],
        &["fetch", "--discard"],
    ];
    for verb in verbs {
        let ended = tracectl_by(host, user, verb).with_code(1);
        assert!(
            ended.stderr.contains("no permission to use the daemon"),
            "{ended}"
        );
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{ended}");
        assert!(
            ended.stdout.is_empty() && !ended.stderr.contains(SECRET),
            "{ended}"
        );
    }
}

/// By default root alone, where there is no group for it: everybody may attach, and sees nothing of others.
#[test]
fn a_user_without_rights_attaches_and_sees_nothing() {
    let Some(host) = host("control_group = 0") else {
        return;
    };
    let mut ann = probe_by(&host, ANN, SECRET);
    let mut bob = probe_by(&host, BOB, "bob");
    until_attached(&host, &ann);
    until_attached(&host, &bob);
    host.tracectl(&["start"]).ok();
    said(&ann.ask("go"), 100);
    said(&bob.ask("go"), 100);
    may_nothing(&host, BOB);
    // The same when somebody opened the file by hand: the daemon looks for itself.
    mode(&host.control_socket(), 0o666);
    may_nothing(&host, BOB);
    assert_eq!(host.fetch().events.len(), 200);
    for probe in [ann, bob] {
        let _ended = probe.wait().ok();
    }
}

#[test]
fn the_control_group_may_everything() {
    let Some(host) = host(&format!("control_group = {ANN}")) else {
        return;
    };
    let mut bob = probe_by(&host, BOB, "bob");
    until_attached(&host, &bob);
    let _started = tracectl_by(&host, ANN, &["start"]).ok();
    said(&bob.ask("go"), 100);
    may_nothing(&host, BOB);
    let fetched = tracectl_by(&host, ANN, &["fetch", "-o", "-"]).ok();
    assert_eq!(Document::parse(&fetched.stdout).events.len(), 100);
    let meta = fs::metadata(host.control_socket()).expect("a socket");
    assert_eq!(meta.permissions().mode() & 0o777, 0o660);
    // A supplementary group is as good, for the kernel and for the daemon.
    let verb = host.tracectl_command(&["status"]);
    let mut member = host.command("setpriv");
    member.args([
        "--reuid",
        "61003",
        "--regid",
        "61003",
        "--groups",
        &ANN.to_string(),
    ]);
    member.arg(verb.get_program()).args(verb.get_args());
    let _shown = run(member).ok();
}

/// `record` needs no rights on the host's daemon: it has one of its own, and says so.
#[test]
fn record_without_rights_uses_a_daemon_of_its_own() {
    let Some(host) = host("") else { return };
    let recorded = run(by(&host, BOB, host.probe_recorded(&["-n", "100"]))).ok();
    let said = recorded
        .stderr
        .lines()
        .find(|line| line.contains("private"));
    let said = said.unwrap_or_else(|| panic!("{recorded}"));
    let socket = host.control_socket();
    assert!(
        said.contains("no permission to use the daemon at")
            && said.contains(socket.to_str().unwrap()),
        "{recorded}"
    );
    let document = Document::read(&host.path(format!("{BOB}/t.json")));
    assert_eq!(document.events.len(), 100);
    assert_eq!(host.status()["producer_count"], 0, "not the host's");
}

#[test]
fn only_the_producer_group_may_attach() {
    let Some(host) = host(&format!("producer_group = {ANN}")) else {
        return;
    };
    host.tracectl(&["start"]).ok();
    let mut ann = probe_by(&host, ANN, "ann");
    said(&ann.ask("go"), 100);
    let bob = |words: &str| {
        let mut bob = host.probe_command(&["-n", "100", "--linger"]);
        // It has tried, and was told, when it emits: attaching waits for an answer.
        bob.env("NRT_TRACE_LOG", "warn");
        let mut bob = Running::start(by(&host, BOB, bob));
        assert!(bob.read_line().contains("\"recorded\":0"));
        let ended = bob.wait().ok();
        assert!(ended.stderr.contains(words), "{words}: {ended}");
    };
    bob("not attached: no permission to use");
    mode(&host.producer_socket(), 0o666);
    bob("not attached: the daemon refuses: ");
    until("the refusal to be counted", || {
        (host.status()["refused_count"].as_u64() >= Some(1)).then_some(())
    });
    assert_eq!(host.fetch().events.len(), 100);
    let _ended = ann.wait().ok();
}

fn said(answer: &str, recorded: u64) {
    assert!(
        answer.contains(&format!("\"recorded\":{recorded},")),
        "{answer}"
    );
}

/// Who fills a share of the names has numbers for its own new names; the other user's are names.
#[test]
fn one_users_names_leave_room_for_anothers() {
    let Some(host) = host("names_budget_bytes_per_uid = 700") else {
        return;
    };
    host.tracectl(&["start"]).ok();
    let model = |name: &str| format!("{name}-{}.neff", "x".repeat(600));
    let shown = |user: u32, name: &str| {
        let model = model(name);
        let mut probe = host.probe_command(&["--interactive", "-n", "10", "--model", &model]);
        probe.env("NRT_TRACE_LOG", "warn");
        let mut probe = Running::start(by(&host, user, probe));
        assert_eq!(probe.read_line(), "ready\n");
        said(&probe.ask("go"), 10);
        let shown = host.tracectl(&["strings"]).ok().text().contains(&model);
        let _ended = probe.wait().ok();
        shown
    };
    assert!(shown(ANN, "first"));
    assert!(!shown(ANN, "second"), "her share is taken");
    assert!(shown(BOB, "his"));
    assert!(shown(ANN, "his"), "it is told already");
    let metrics = host.tracectl(&["metrics"]).ok().text();
    let refused = "nrt_trace_names_refused_total{cause=\"names_budget_bytes_per_uid\"} 1.0";
    assert!(metrics.contains(refused), "{metrics}");
    let found = host.tracectl(&["doctor"]).with_code(1).text();
    assert!(found.contains("names_budget_bytes_per_uid"), "{found}");
}
