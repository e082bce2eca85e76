//! Settings from outside: files looked at, settings printed, settings changed while the daemon runs.

use std::path::Path;
use std::process::{Command, Output};

use nrt_trace_abi::message::{self, Refuse, refuse};
use nrt_trace_shm::socket;

use crate::support::{Answer, Apart, Fake, hello, receive, send, wait_for};

fn traced(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nrt-traced"));
    for (name, _) in std::env::vars() {
        if name.starts_with("NRT_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_file_is_checked_and_every_mistake_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "default_cores = 4\n").unwrap();
    let good = traced(&["check-config", path]);
    assert!(good.status.success(), "{good:?}");
    assert_eq!(text(&good.stdout), format!("{path}: no mistakes\n"));

    std::fs::write(&file, "default_coers = 4\n\nmax_producers = 0\n").unwrap();
    let bad = traced(&["check-config", path]);
    assert_eq!(bad.status.code(), Some(2));
    assert_eq!(
        text(&bad.stderr),
        format!(
            "nrt-traced: {path}, line 1: unknown key default_coers; did you mean default_cores? (nrt-traced print-config --sample lists all)\n\
             nrt-traced: {path}, line 3: max_producers is 0; allowed: at least 1\n"
        )
    );
    let missing = traced(&["check-config", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("/no/such/file"));
}

#[test]
fn settings_are_printed_with_their_origins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "default_cores = 4\n").unwrap();
    let path = file.to_str().unwrap();
    let printed = traced(&["print-config", "--config", path, "--socket", "/x/c.sock"]);
    assert!(printed.status.success(), "{printed:?}");
    let printed = text(&printed.stdout);
    for line in [
        "control_socket = \"/x/c.sock\"  # --socket",
        "state_dir = \"/x\"  # default",
        &format!("default_cores = 4  # {path}, line 1"),
    ] {
        assert!(
            printed.lines().any(|other| other == line),
            "{line}: {printed}"
        );
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/nrt-traced.toml");
    let sample = traced(&["print-config", "--sample"]);
    assert_eq!(
        text(&sample.stdout),
        std::fs::read_to_string(golden).unwrap()
    );
    let wrong = traced(&["print-config", "--config", "/no/such/file"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// What can change changes, and holds for the next that asks; what can't is told by its key; a mistake changes nothing.
#[test]
fn a_hangup_takes_what_can_change_and_names_the_rest() {
    let daemon = Apart::with("max_producers = 1");
    let path = daemon.producer_socket();
    let attach = |name: &str| Fake::attach_as(&path, &hello(name, "", &[]), Answer::Honest);
    let _first = attach("first");
    let visitor = socket::connect(&path).unwrap();
    assert!(send(&visitor, &hello("second", "", &[])));
    let (packet, _) = receive(&visitor).unwrap();
    let refusal: Refuse = message::parse(&packet).unwrap();
    assert_eq!(refusal.code, refuse::BUDGET);

    daemon.reload("max_producers = 2\ndefault_cores = 3\nlog_level = \"debug\"");
    wait_for("the reload", || !daemon.logged("changed").is_empty());
    wait_for("each key", || {
        let told = |key: &str, words: &str| {
            daemon
                .logged(&format!("key=\"{key}\""))
                .iter()
                .any(|line| line.contains(words))
        };
        told("max_producers", "changed")
            && told("max_producers", "old=\"1\" new=\"2\"")
            && told("log_level", "changed")
            && told("default_cores", "needs a restart")
    });
    let _second = attach("second");

    daemon.reload("max_producers = 0\nnonsense = 1");
    wait_for("both mistakes", || {
        daemon.logged("settings stay as they are").len() == 2
    });
    assert_eq!(daemon.logged("did you mean").len(), 0);
    assert_eq!(daemon.logged("line 2: max_producers is 0").len(), 1);
    daemon.reload("max_producers = 2\ndefault_cores = 3\nlog_level = \"debug\"");
    wait_for("the rest to be told again", || {
        daemon.logged("needs a restart").len() == 2
    });
}
