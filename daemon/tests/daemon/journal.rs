//! The log in the journal: a socket of the test's stands in for journald's, in a mount namespace of the daemon's own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Child, Command, Stdio};

use crate::support::{Answer, Client, Fake, hello, wait_for};

/// The fields of one message.
type Entry = BTreeMap<String, String>;

/// Reads a message: of each field a line with name and value, or one with its name, eight bytes with the value's length, the
/// value, and a line's end.
fn fields(mut bytes: &[u8]) -> Entry {
    let mut entry = Entry::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
        if let Some((name, value)) = name.split_once('=') {
            entry.insert(name.to_owned(), value.to_owned());
            bytes = &bytes[end + 1..];
            continue;
        }
        let (length, rest) = bytes[end + 1..].split_first_chunk().unwrap();
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap();
        let value = String::from_utf8_lossy(&rest[..length]).into_owned();
        entry.insert(name, value);
        bytes = &rest[length + 1..];
    }
    entry
}

struct Daemon {
    child: Child,
    folder: tempfile::TempDir,
    ear: UnixDatagram,
    heard: Vec<Entry>,
}

impl Daemon {
    /// A daemon whose standard error is said to lead to the journal, or to something else; `None`, and a loud word, where a
    /// namespace can't be had.
    #[expect(clippy::print_stderr, reason = "a test that did not run says so")]
    fn start(stream_is_told: bool) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let allowed = Command::new("unshare").args(["-m", "true"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            eprintln!("NOT RUN: unshare -m is refused here");
            return None;
        }
        let ear = UnixDatagram::bind(at("journal.sock")).unwrap();
        ear.set_nonblocking(true).unwrap();
        let log = File::create(at("log")).unwrap();
        let meta = log.metadata().unwrap();
        let inode = if stream_is_told { meta.ino() } else { 1 };
        let script = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
                      : > /run/systemd/journal/socket && \
                      mount --bind \"$0\" /run/systemd/journal/socket && exec \"$@\"";
        let child = Command::new("unshare")
            .args(["-m", "sh", "-c", script])
            .arg(at("journal.sock"))
            .arg(env!("CARGO_BIN_EXE_nrt-traced"))
            .arg("--socket")
            .arg(at("c.sock"))
            .arg("--producer-socket")
            .arg(at("p.sock"))
            .env_remove("RUST_LOG")
            .env("JOURNAL_STREAM", format!("{}:{inode}", meta.dev()))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        wait_for("the daemon", || {
            UnixStream::connect(at("c.sock")).is_ok() && at("p.sock").exists()
        });
        // A socket that is there need not be listened on yet; one that answers is, and so is the other.
        Client::of(&at("c.sock")).status();
        Some(Self {
            child,
            folder,
            ear,
            heard: Vec::new(),
        })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Entries so far whose message begins so.
    fn entries(&mut self, message: &str) -> Vec<Entry> {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(bytes) = self.ear.recv(&mut buffer) {
            self.heard.push(fields(&buffer[..bytes]));
        }
        let mut found = self.heard.clone();
        found.retain(|entry| {
            entry
                .get("MESSAGE")
                .is_some_and(|said| said.starts_with(message))
        });
        found
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Each field has its own name there, and standard error has nothing.
#[test]
fn a_service_writes_fields_to_the_journal() {
    let Some(mut daemon) = Daemon::start(true) else {
        return;
    };
    let path = daemon.folder.path().join("p.sock");
    let fake = Fake::attach_as(&path, &hello("a-worker", "", &[]), Answer::Honest);
    wait_for("its line", || daemon.entries("attached").len() == 1);
    let [entry] = &daemon.entries("attached")[..] else {
        panic!("one line")
    };
    let pid = std::process::id().to_string();
    let uid = rustix::process::getuid().to_string();
    for (field, value) in [
        ("PRIORITY", "6"),
        ("SYSLOG_IDENTIFIER", "nrt-traced"),
        ("NRT_TRACE_PRODUCER", &fake.id.to_string()),
        ("NRT_TRACE_PID", &pid),
        ("NRT_TRACE_UID", &uid),
        ("NRT_TRACE_NAME", "a-worker"),
    ] {
        assert_eq!(
            entry.get(field).map(String::as_str),
            Some(value),
            "{entry:?}"
        );
    }
    // Who reads the journal without options sees the values too.
    let message = &entry["MESSAGE"];
    for part in [
        format!(" pid={pid}"),
        format!(" uid={uid}"),
        " name=a-worker".to_owned(),
    ] {
        assert!(message.contains(&part), "{part}: {message}");
    }
    drop(fake);
    wait_for("its end", || {
        !daemon.entries("connection closed").is_empty()
    });
    assert_eq!(daemon.log(), "");
}

/// A standard error that the service manager's word is not about, as of a daemon that somebody started in a service's shell.
#[test]
fn another_standard_error_has_lines() {
    let Some(mut daemon) = Daemon::start(false) else {
        return;
    };
    wait_for("a line", || daemon.log().contains("listening"));
    assert!(daemon.entries("listening").is_empty());
}
