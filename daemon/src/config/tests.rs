use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::*;

#[test]
fn the_defaults_are_valid_and_live_in_run() {
    let config = Config::default();
    config.validate().unwrap();
    assert_eq!(
        config.control_socket,
        Path::new("/run/nrt-trace/control.sock")
    );
    assert_eq!((config.control_mode, config.producer_mode), (0o660, 0o666));
    assert_eq!(config.default_max_events_per_nc, 1_048_576);
}

#[test]
fn an_embedded_daemon_is_its_users_alone() {
    let config = Config::embedded_in(Path::new("/x"));
    assert_eq!((config.control_mode, config.embedded), (0o600, true));
    assert_eq!(config.state_dir, Path::new("/x"));
}

#[test]
fn keys_replace_defaults_and_the_state_follows_the_socket() {
    let config = Config::from_toml(
        "control_socket = \"/a/c.sock\"\ndefault_cores = 2\ncontrol_mode = \"600\"\nmax_producers = 7",
    )
    .unwrap();
    assert_eq!(config.state_dir, Path::new("/a"));
    assert_eq!(
        (
            config.default_cores,
            config.control_mode,
            config.budgets.producers
        ),
        (2, 0o600, 7)
    );
    let config = Config::from_toml("state_dir = \"/s\"").unwrap();
    assert_eq!(config.state_dir, Path::new("/s"));
}

/// What a text is refused with, each defect on a line.
fn defects(text: &str) -> Vec<String> {
    Config::from_toml(text).unwrap_err().lines()
}

/// A case for each way to be wrong: the text, and the line that says so.
const DEFECTS: [(&str, &str); 39] = [
    (
        "default_coers = 8",
        "line 1: unknown key default_coers; did you mean default_cores? (nrt-traced print-config --sample",
    ),
    // Not like any.
    ("nope = 1", "unknown key nope; allowed: control_socket,"),
    (
        "foo = 1",
        "sys_root, log_level (nrt-traced print-config --sample lists all)",
    ),
    ("hots = true", "unknown key hots; did you mean host?"),
    ("hosts = true", "unknown key hosts; did you mean host?"),
    ("\ncontrol_mode = 0660", "line 2: control_mode: "),
    (
        "control_mode = 0660",
        "; allowed: octal digits such as \"0660\", at most \"0777\", as in control_mode = \"0660\"",
    ),
    (
        "default_cores = 2\n# twice\n\"default_cores\" = 3",
        "line 3: default_cores is set already, in line 1; allowed: one line, with 1 to 256",
    ),
    (
        "\n[section]\nx = 1",
        "line 2: unknown key section; allowed: control_socket,",
    ),
    (
        "\ndefault_cores = \"eight\"",
        "line 2: default_cores is a string; allowed: 1 to 256",
    ),
    (
        "default_cores = 257",
        "line 1: default_cores is 257; allowed: 1 to 256",
    ),
    ("default_cores = 0", "default_cores is 0; allowed: 1 to 256"),
    (
        "default_cores = -1",
        "default_cores is negative; allowed: 1 to 256",
    ),
    (
        "default_cores = 1.5",
        "default_cores is a number with a point;",
    ),
    ("default_cores = [1]", "default_cores is a list;"),
    ("default_cores = 2020-01-01", "default_cores is a date;"),
    ("default_cores.x = 1", "default_cores is a table;"),
    ("default_cores = true", "default_cores is true or false;"),
    (
        "max_producers = 99999999999999999999",
        "max_producers is too large a number; allowed: at least 1",
    ),
    ("resume = 1", "resume is a number; allowed: true or false"),
    (
        "control_mode = 660",
        "control_mode is a number; allowed: octal",
    ),
    (
        "control_mode = \"9\"",
        "control_mode is \"9\"; allowed: octal",
    ),
    ("producer_mode = \"10777\"", "octal"),
    (
        "default_max_events_per_nc = 5",
        "is 5; allowed: 1024 to 4294967296",
    ),
    ("string_table_bytes = 5000", "multiples of 4096"),
    ("arm_timeout_ms = 60000", "0 to 10000"),
    ("disarm_timeout_ms = 0", "1 to 10000"),
    (
        "producer_socket = \"/run/nrt-trace/control.sock\"",
        "another path",
    ),
    (
        "control_socket = \"/run/nrt-trace/producer.sock\"",
        "producer_socket is \"/run/nrt-trace/producer.sock\"; allowed: the path of a socket, another path",
    ),
    ("control_socket = \"/\"", "path of a socket"),
    ("allocate = \"now\"", "\"producer\""),
    ("max_segment_bytes_per_uid = 0", "at least 1"),
    ("control_group = \"no such group here\"", "/etc/group"),
    ("host_period_ms = 99", "100 to 60000"),
    ("host_max_samples = 0", "at least 1"),
    ("host_memory_bytes = 1000", "at least 1048576"),
    ("host_retention = \"forever\"", "\"saturate\" or \"ring\""),
    (
        "log_level = \"loud\"",
        "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
    ),
    ("x = [", "line 1: "),
];

#[test]
fn each_defect_names_line_key_and_what_is_allowed() {
    for (text, expected) in DEFECTS {
        let lines = defects(text);
        let [line] = &lines[..] else {
            panic!("{text}: {lines:?}")
        };
        assert!(line.contains(expected), "{text}: {line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

/// It can be set, and then is not hidden; nobody is led to it.
#[test]
fn what_is_for_tests_only_is_shown_to_nobody_who_did_not_set_it() {
    const NAME: &str = "test_small_rings";
    let text = format!("{NAME} = true\ndefault_max_events_per_nc = 5");
    let set = settings(&text, &[], &Flags::default()).unwrap();
    assert!(set.config().test_small_rings);
    assert!(set.print().starts_with("test_small_rings = true  # "));

    let all = settings("", &[], &Flags::default()).unwrap();
    let unknown = defects("[section]").concat();
    let almost = defects("test_small_ring = true").concat();
    for shown in [all.print(), sample(), unknown, almost] {
        assert!(shown.contains("control_socket"), "{shown}");
        assert!(!shown.contains(NAME), "{shown}");
    }
}

/// Whoever edits a file learns of everything at once.
#[test]
fn all_defects_are_told_together() {
    let lines = defects("default_cores = 0\nnonsense = 1\nhost = \"yes\"\nmax_producers = 0");
    assert_eq!(lines.len(), 4, "{lines:?}");
    for (line, start) in lines.iter().zip([
        "line 1: default_cores",
        "line 2: unknown key nonsense",
        "line 3: host",
        "line 4: max_producers",
    ]) {
        assert!(line.starts_with(start), "{start}: {lines:?}");
    }
}

/// In the order of the lines, whoever finds them: parser, table of keys, or the key; what no file says comes last.
#[test]
fn defects_are_told_in_the_order_of_the_lines() {
    let text =
        "max_producers = 0\ndefault_cores = 08\nnonsense = 1\ncontrol_mode = \"9\"\nresume = maybe";
    let variables = [("NRT_TRACED_HOST", "perhaps")];
    let lines = settings(text, &variables, &Flags::default()).unwrap_err();
    let lines = lines.lines();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for (n, line) in lines[..5].iter().enumerate() {
        assert!(line.contains(&format!("line {}: ", n + 1)), "{lines:?}");
    }
    assert!(lines[5].starts_with("NRT_TRACED_HOST"), "{lines:?}");
}

/// What is no TOML hides nothing that comes after it: neither another such line nor a value that is not allowed.
#[test]
fn a_bad_line_hides_no_later_mistake() {
    for bad in [
        "bar baz",
        "host",
        "host =",
        "[x",
        "max_producers = = 3",
        "log_level = \"info",
    ] {
        let text = format!(
            "default_cores = 8\n{bad}\nnonsense = 1\n{bad}\ndisarm_timeout_ms = 0\n\nhost_period_ms = 1\n"
        );
        let lines = settings(&text, &[], &Flags::default()).unwrap_err().lines();
        let starts = [
            "line 2: ",
            "line 3: unknown key nonsense",
            "line 4: ",
            "line 5: disarm_timeout_ms is 0",
            "line 7: host_period_ms is 1",
        ];
        assert_eq!(lines.len(), starts.len(), "{bad}: {lines:?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.contains(start), "{bad}: {start}: {lines:?}");
        }
    }
}

/// A name that is no text is one that somebody mistyped, too.
#[test]
fn a_variable_whose_name_is_no_text_is_told() {
    let name = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let environment =
        [b"NRT_TRACED_HOST\xff".as_slice(), b"OTHER\xff"].map(|bytes| (name(bytes), "1".into()));
    let flags = Flags {
        config: Some("/dev/null".into()),
        ..Flags::default()
    };
    let lines = flags
        .settings_with(&environment.into())
        .unwrap_err()
        .lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("NRT_TRACED_HOST\u{fffd} stands for no key"),
        "{lines:?}"
    );
}

/// The file that is looked at when none is named need not be there, for a check as for a start.
#[test]
fn no_file_is_no_mistake_unless_it_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let check = flags::check_or_default;
    assert_eq!(check(None, &file).unwrap(), Checked::Absent);
    check(Some(&file), Path::new("/else")).unwrap_err();
    std::fs::write(&file, "default_cores = 4").unwrap();
    assert_eq!(check(None, &file).unwrap(), Checked::Good);
    std::fs::write(&file, "default_cores = 0").unwrap();
    check(None, &file).unwrap_err();
    // There, and still no file.
    check(None, folder.path()).unwrap_err();
}

/// The settings that a file, an environment and flags give.
fn settings(
    text: &str,
    variables: &[(&str, &str)],
    flags: &Flags,
) -> Result<Settings, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, text).unwrap();
    let flags = Flags {
        config: Some(file),
        ..flags.clone()
    };
    let variables = variables.iter();
    flags.settings_with(&variables.map(|(n, v)| ((*n).into(), (*v).into())).collect())
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file = "control_socket = \"/file/c.sock\"\nproducer_socket = \"/file/p.sock\"\nmax_producers = 7\ndefault_cores = 3";
    let variables = [
        ("NRT_TRACE_SOCKET", "/shared/c.sock"),
        ("NRT_TRACE_PRODUCER_SOCKET", "/shared/p.sock"),
        ("NRT_TRACED_PRODUCER_SOCKET", "/own/p.sock"),
        ("NRT_TRACED_MAX_PRODUCERS", "8"),
        ("NRT_TRACED_HOST", "true"),
    ];
    let flags = Flags {
        socket: Some("/flag/c.sock".into()),
        ..Flags::default()
    };
    let all = settings(file, &variables, &flags).unwrap();
    let config = all.config();
    assert_eq!(config.control_socket, Path::new("/flag/c.sock"));
    assert_eq!(config.producer_socket, Path::new("/own/p.sock"));
    assert_eq!(config.state_dir, Path::new("/flag"));
    assert_eq!((config.budgets.producers, config.default_cores), (8, 3));
    assert!(config.host.enabled);
    let printed = all.print();
    for line in [
        "control_socket = \"/flag/c.sock\"  # --socket",
        "producer_socket = \"/own/p.sock\"  # NRT_TRACED_PRODUCER_SOCKET",
        "max_producers = 8  # NRT_TRACED_MAX_PRODUCERS",
        "max_producers_per_uid = 512  # default",
        "# producer_group is not set",
    ] {
        assert!(
            printed.lines().any(|other| other == line),
            "{line}: {printed}"
        );
    }
    let of_file = (printed.lines()).find(|line| line.starts_with("default_cores"));
    let of_file = of_file.unwrap();
    assert!(of_file.ends_with("c.toml, line 4"), "{of_file}");
    let again = Config::from_toml(&printed).unwrap();
    assert_eq!(again.producer_socket, config.producer_socket);
}

#[test]
fn a_variable_that_is_wrong_is_named() {
    for (variable, value, expected) in [
        (
            "NRT_TRACED_DEFAULT_CORES",
            "many",
            "is no number; allowed: 1 to 256",
        ),
        ("NRT_TRACED_DEFAULT_CORES", "999", "default_cores is 999"),
        ("NRT_TRACED_RESUME", "perhaps", "neither true nor false"),
        ("NRT_TRACE_SOCKET", "", "set, but to nothing"),
    ] {
        let error = settings("", &[(variable, value)], &Flags::default()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(variable) && text.contains(expected),
            "{text}"
        );
    }
}

#[test]
fn a_file_that_is_wrong_or_missing_is_named() {
    let text = settings("\nnonsense = 1", &[], &Flags::default())
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("c.toml, line 2: unknown key nonsense"),
        "{text}"
    );
    let missing = Flags {
        config: Some("/no/such/file".into()),
        ..Flags::default()
    };
    let error = missing.settings_with(&BTreeMap::new()).unwrap_err();
    assert!(matches!(error, ConfigError::Read { .. }));
}

/// A variable that is written wrongly sets nothing: it is told as a key of a file is. What others put there is none.
#[test]
fn a_variable_of_no_key_is_told() {
    for (variable, told) in [
        (
            "NRT_TRACED_MAX_PRODUCER",
            "NRT_TRACED_MAX_PRODUCER stands for no key; did you mean NRT_TRACED_MAX_PRODUCERS?",
        ),
        (
            "NRT_TRACED_max_producers",
            "NRT_TRACED_max_producers stands for no key; did you mean NRT_TRACED_MAX_PRODUCERS?",
        ),
        ("NRT_TRACED_FOO", "NRT_TRACED_FOO stands for no key; keys: "),
        ("NRT_TRACED_", "NRT_TRACED_ stands for no key; keys: "),
    ] {
        let error = settings("", &[(variable, "1")], &Flags::default()).unwrap_err();
        let lines = error.lines();
        assert!(lines.len() == 1 && lines[0].starts_with(told), "{lines:?}");
    }
    let of_others = [
        ("NRT_TRACED_SERVICE_HOST", "10.0.0.1"),
        ("NRT_TRACED_SERVICE_PORT_METRICS", "9479"),
        ("NRT_TRACED_PORT", "tcp://10.0.0.1:9479"),
        ("NRT_TRACED_PORT_9479_TCP_ADDR", "10.0.0.1"),
        ("NRT_TRACE_FOO", "1"),
        ("NRT_TRACED", "1"),
    ];
    settings("", &of_others, &Flags::default()).unwrap();
}

/// What a reload takes, what it leaves, and that nothing else changes.
#[test]
fn a_reload_takes_what_a_running_daemon_can_take() {
    let old = settings("max_producers = 7\nresume = false", &[], &Flags::default()).unwrap();
    let new = settings(
        "max_producers = 9\nlog_level = \"debug\"\ndefault_cores = 2",
        &[],
        &Flags::default(),
    )
    .unwrap();
    let changes = old.changes(&new);
    let change = |key, old: &str, new: &str| Change {
        key,
        old: old.to_owned(),
        new: new.to_owned(),
    };
    assert_eq!(
        changes.taken,
        [
            change("max_producers", "7", "9"),
            change("log_level", "\"info\"", "\"debug\"")
        ]
    );
    let left = [
        change("default_cores", "8", "2"),
        change("resume", "false", "true"),
    ];
    assert_eq!(changes.left, left);
    let now = old.reloaded(&new);
    let config = now.config();
    assert_eq!(
        (config.budgets.producers, config.log_level),
        (9, LogLevel::Debug)
    );
    assert_eq!((config.default_cores, config.resume), (8, false));
    // Told again at each reload until somebody restarts it, and not taken as done.
    assert_eq!(now.changes(&new).left, left);
    assert!(now.changes(&new).taken.is_empty());
}

/// The sample shows each key with its default: uncommented, it changes nothing.
#[test]
fn the_sample_is_of_all_keys_and_their_defaults() {
    let sample = sample();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/nrt-traced.toml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &sample).unwrap();
    }
    assert_eq!(std::fs::read_to_string(golden).unwrap(), sample);
    Config::from_toml(&sample).unwrap();
    let mut keys = 0;
    for line in sample.lines() {
        assert!(line.len() <= 100, "{line}");
        let Some(entry) = line.strip_prefix('#').filter(|line| line.contains(" = ")) else {
            continue;
        };
        if entry.starts_with([' ', '#']) {
            continue;
        }
        let (name, value) = entry.split_once(" = ").unwrap();
        let key = keys::find(name).unwrap();
        keys += 1;
        if key.default.is_none() {
            let default = (key.get)(&Config::default()).unwrap();
            assert_eq!(value, default.to_string(), "{name}");
        }
        // Not every machine has the group of the example.
        if key.kind != value::Kind::Group {
            Config::from_toml(entry).unwrap();
        }
    }
    assert_eq!(keys, keys::shown().count());
}

#[test]
fn a_relative_socket_without_a_folder_keeps_its_state_here() {
    let config = Config::from_toml("control_socket = \"c.sock\"").unwrap();
    assert_eq!(config.state_dir, Path::new("."));
}

/// What ended processes left is memory like any other: it can't have a larger budget than all memory.
#[test]
fn the_budget_of_ended_processes_is_part_of_the_memorys() {
    let budgets = |text: &str| {
        let b = Config::from_toml(text).unwrap().budgets;
        (b.memory_bytes, b.ended_bytes)
    };
    assert_eq!(budgets("memory_budget_bytes = 1000"), (1000, 500));
    let both = "memory_budget_bytes = 1000\nended_budget_bytes = ";
    assert_eq!(budgets(&format!("{both}2000")), (1000, 1000));
    assert_eq!(budgets(&format!("{both}200")), (1000, 200));
}

#[test]
fn a_producer_group_closes_the_socket_to_others() {
    let config = Config::from_toml("producer_group = 12").unwrap();
    assert_eq!(
        (config.producer_group, config.producer_mode),
        (Some(12), 0o660)
    );
    let config = Config::from_toml("producer_group = \"root\"\nproducer_mode = \"0666\"").unwrap();
    assert_eq!(
        (config.producer_group, config.producer_mode),
        (Some(0), 0o666)
    );
    assert_eq!(
        Config::from_toml("control_group = 7")
            .unwrap()
            .control_group,
        Some(7)
    );
    assert_eq!(
        Config::from_toml("allocate = \"all\"").unwrap().allocate,
        Allocate::All
    );
}

/// Something else that is named by mistake is not read without an end.
#[test]
fn what_is_no_configuration_file_is_refused() {
    for (path, why) in [("/dev/zero", "more than 1 MiB"), ("/", "directory")] {
        let error = check_file(Some(Path::new(path))).unwrap_err();
        let chain = format!("{error} {:?}", std::error::Error::source(&error));
        assert!(chain.contains(path) && chain.contains(why), "{chain}");
    }
}
