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

#[test]
fn each_defect_names_key_and_remedy_on_one_line() {
    let cases = [
        ("default_coers = 8", "default_coers"),
        ("\ndefault_cores = \"eight\"", "line 2"),
        ("default_cores = 257", "1 to 256"),
        ("default_cores = 0", "default_cores"),
        ("control_mode = \"9\"", "octal"),
        ("producer_mode = \"10777\"", "octal"),
        ("default_max_events_per_nc = 5", "1024 to"),
        ("string_table_bytes = 5000", "multiples of 4096"),
        ("arm_timeout_ms = 60000", "0 to 10000"),
        (
            "producer_socket = \"/run/nrt-trace/control.sock\"",
            "another path",
        ),
        ("control_socket = \"/\"", "path of a socket"),
        ("allocate = \"now\"", "\"producer\""),
        ("max_segment_bytes_per_uid = 0", "at least 1"),
        ("control_group = \"no such group here\"", "/etc/group"),
        ("host_period_ms = 99", "100 to 60000"),
        ("host_period_ms = 60001", "100 to 60000"),
        ("host_max_samples = 0", "at least 1"),
        ("host_memory_bytes = 1000", "at least 1048576"),
        ("host_retention = \"forever\"", "\"saturate\" or \"ring\""),
        ("x = [", "line 1"),
    ];
    for (text, expected) in cases {
        let message = Config::from_toml(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    Config::from_toml("test_small_rings = true\ndefault_max_events_per_nc = 5").unwrap();
}

#[test]
fn flags_win_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(
        &file,
        "control_socket = \"/file/c.sock\"\nproducer_socket = \"/file/p.sock\"",
    )
    .unwrap();
    let flags = Flags {
        socket: Some("/flag/c.sock".into()),
        config: Some(file.clone()),
        ..Flags::default()
    };
    let config = flags.clone().resolve().unwrap();
    assert_eq!(config.control_socket, Path::new("/flag/c.sock"));
    assert_eq!(config.producer_socket, Path::new("/file/p.sock"));
    assert_eq!(config.state_dir, Path::new("/flag"));
    let config = Flags {
        state_dir: Some("/s".into()),
        ..flags.clone()
    }
    .resolve()
    .unwrap();
    assert_eq!(config.state_dir, Path::new("/s"));

    std::fs::write(&file, "nonsense = 1").unwrap();
    let message = flags.clone().resolve().unwrap_err().to_string();
    assert!(
        message.contains("c.toml") && message.contains("nonsense"),
        "{message}"
    );
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(flags.resolve(), Err(ConfigError::Read { .. })));
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
