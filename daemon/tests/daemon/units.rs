//! The units: known to systemd, hardened, and of one mind with each other and with the daemon.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Exposure that the service may have, by `systemd-analyze security`.
const MOST_EXPOSED: f64 = 1.5;
const UNITS: [&str; 4] = [
    "nrt-traced.service",
    "nrt-traced-control.socket",
    "nrt-traced-producer.socket",
    "nrt-traced-metrics.socket",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd")
}

/// A unit's settings: the last of each name, and all of it for lists.
fn unit(name: &str) -> BTreeMap<String, Vec<String>> {
    let mut settings = BTreeMap::<_, Vec<String>>::new();
    for line in fs::read_to_string(folder().join(name)).unwrap().lines() {
        if let (false, Some((key, value))) = (line.starts_with('#'), line.split_once('=')) {
            settings
                .entry(key.to_owned())
                .or_default()
                .push(value.to_owned());
        }
    }
    settings
}

fn one<'a>(unit: &'a BTreeMap<String, Vec<String>>, key: &str) -> &'a str {
    match unit.get(key).map(Vec::as_slice) {
        Some([value]) => value,
        other => panic!("{key}: {other:?}"),
    }
}

/// Runs a tool of systemd's; `None`, and a loud word, where there is none.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
fn tool(name: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(name).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("NOT RUN: {name}: {error} (package systemd)");
            None
        }
    }
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

#[test]
fn the_service_is_not_exposed() {
    let path = folder().join(UNITS[0]);
    let arguments = [
        "security",
        "--offline=yes",
        "--no-pager",
        path.to_str().unwrap(),
    ];
    let Some(output) = tool("systemd-analyze", &arguments) else {
        return;
    };
    let text = text(&output);
    let score = text
        .split("exposure level for nrt-traced.service: ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    let score = score.unwrap_or_else(|| panic!("no score: {text}"));
    println!("exposure level {score}");
    assert!(score <= MOST_EXPOSED, "{text}");
}

/// Nothing to complain about, but for a setting that only a later systemd knows.
#[test]
fn systemd_takes_the_units_as_they_are() {
    let installed = tempfile::tempdir().unwrap();
    let mut arguments = vec!["verify".to_owned(), "--man=no".to_owned()];
    for name in UNITS {
        let unit = fs::read_to_string(folder().join(name)).unwrap();
        // `verify` looks whether the program is there.
        let unit = unit.replace("/usr/bin/nrt-traced", env!("CARGO_BIN_EXE_nrt-traced"));
        let path = installed.path().join(name);
        fs::write(&path, unit).unwrap();
        arguments.push(path.to_str().unwrap().to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(output) = tool("systemd-analyze", &arguments) else {
        return;
    };
    let said = text(&output);
    let since_254 = "Unknown key 'FileDescriptorStorePreserve' in section [Service], ignoring.";
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("nrt-trace") && !line.ends_with(since_254))
        .collect();
    assert!(complaints.is_empty(), "{said}");
    assert!(output.status.success(), "{said}");
}

/// The users and groups that the units name are made, as a system's: none that somebody logs in as (case S06).
#[test]
fn s06_users_are_the_systems_own() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("etc")).unwrap();
    let file = folder().join("sysusers.d/nrt-trace.conf");
    let at = format!("--root={}", root.path().display());
    let Some(output) = tool("systemd-sysusers", &[&at, file.to_str().unwrap()]) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output));
    let entry = |file: &str, name: &str| {
        let all = fs::read_to_string(root.path().join("etc").join(file)).unwrap();
        let line = all
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")));
        let fields = line.unwrap_or_else(|| panic!("{name}: {all}")).split(':');
        fields.map(str::to_owned).collect::<Vec<_>>()
    };
    let service = unit(UNITS[0]);
    let (user, group) = (one(&service, "User"), one(&service, "Group"));
    let (user, group) = (entry("passwd", user), entry("group", group));
    assert_eq!(user[3], group[2], "its group");
    assert!(user[2].parse::<u32>().unwrap() < 1000, "{user:?}");
    assert!(user[6].ends_with("nologin"), "{user:?}");
}

/// Cases Y01 and Y02: the folder of the sockets has one owner, is preserved, and is none that a unit hides or empties.
#[test]
fn y01_y02_units_agree_on_the_folder_and_its_owner() {
    let service = unit(UNITS[0]);
    let runtime = format!("/run/{}", one(&service, "RuntimeDirectory"));
    assert_eq!(one(&service, "RuntimeDirectoryPreserve"), "yes");
    let config = nrt_traced::Config::default();
    assert_eq!(config.state_dir, Path::new(&runtime));
    for (name, listen, path, fd) in [
        (UNITS[1], "ListenStream", &config.control_socket, "control"),
        (
            UNITS[2],
            "ListenSequentialPacket",
            &config.producer_socket,
            "producer",
        ),
    ] {
        let socket = unit(name);
        assert_eq!(Path::new(one(&socket, listen)), path);
        assert_eq!(path.parent().unwrap(), Path::new(&runtime));
        assert_eq!(one(&socket, "FileDescriptorName"), fd);
        assert_eq!(one(&socket, "Service"), UNITS[0]);
        // systemd gives what is in the runtime folder to the service's user when it starts: so it is from the beginning.
        assert_eq!(one(&socket, "SocketUser"), one(&service, "User"));
        assert_eq!(one(&socket, "SocketGroup"), one(&service, "Group"));
        assert!(!socket.contains_key("RemoveOnStop"), "{name}");
    }
    assert_eq!(one(&unit(UNITS[1]), "SocketMode"), "0660");
    assert_eq!(one(&unit(UNITS[2]), "SocketMode"), "0666");
    for name in UNITS {
        let text = fs::read_to_string(folder().join(name)).unwrap();
        assert!(!text.contains("/tmp"), "{name}");
        assert!(!text.contains("/dev/shm"), "{name}");
    }
}
