use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use super::*;

fn config() -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::embedded_in(folder.path());
    (folder, config)
}

/// With nothing handed over.
fn open(config: &Config) -> Result<Sockets, StartError> {
    Sockets::open(config, Listening::default())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn sockets_have_their_modes_and_leave_nothing_behind() {
    let (folder, config) = config();
    let sockets = open(&config).unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&config.control_socket), 0o600);
    assert_eq!(mode(&config.producer_socket), 0o666);
    drop(sockets);
    assert_eq!(names(folder.path()), [] as [&str; 0]);
}

/// Case G05: the second daemon is refused, the first goes on.
#[test]
fn g05_a_live_daemon_is_not_replaced() {
    let (_folder, config) = config();
    let first = open(&config).unwrap();
    let error = open(&config).unwrap_err();
    assert!(
        matches!(&error, StartError::AlreadyRunning { path } if *path == config.control_socket),
        "{error}"
    );
    // With state of its own it still meets the sockets' locks, and without the locks the live sockets.
    let other = tempfile::tempdir().unwrap();
    let elsewhere = Config {
        state_dir: other.path().to_owned(),
        ..config.clone()
    };
    assert!(matches!(
        open(&elsewhere),
        Err(StartError::AlreadyRunning { .. })
    ));
    std::fs::remove_file(lock::beside(&config.control_socket)).unwrap();
    assert!(matches!(
        open(&elsewhere),
        Err(StartError::AlreadyRunning { .. })
    ));
    rustix::net::connect(
        bind_free_socket(),
        &rustix::net::SocketAddrUnix::new(&config.control_socket).unwrap(),
    )
    .unwrap();
    drop(first);
}

/// Opens sockets that nobody holds. Another test of this process may just be starting a program, whose first instant has
/// this process's descriptors, listeners and locks, too.
fn open_free(config: &Config) -> Sockets {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        match open(config) {
            Err(
                StartError::AlreadyRunning { .. }
                | StartError::Locked { .. }
                | StartError::ForeignSocket { .. },
            ) if std::time::Instant::now() < deadline => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

fn bind_free_socket() -> OwnedFd {
    rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap()
}

/// Case G05: a killed daemon leaves socket files; the next start replaces them.
#[test]
fn g05_a_dead_daemons_sockets_are_replaced() {
    let (_folder, config) = config();
    let first = open(&config).unwrap();
    let Sockets {
        control,
        producer,
        files,
        ..
    } = first;
    drop((control, producer)); // the listeners are gone, their files are not
    drop(std::fs::remove_file(
        config.state_dir.join("nrt-traced.lock"),
    ));
    drop(std::fs::remove_file(lock::beside(&config.control_socket)));
    drop(std::fs::remove_file(lock::beside(&config.producer_socket)));
    assert!(config.control_socket.exists() && config.producer_socket.exists());
    let second = open_free(&config);
    drop(files);
    assert!(
        config.control_socket.exists(),
        "the old daemon's clean-up leaves the new one's socket"
    );
    drop(second);
}

#[test]
fn g05_of_many_starters_at_once_one_lives() {
    let (_folder, config) = config();
    drop(UnixListener::bind(&config.control_socket).unwrap()); // a stale file to fight for
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut lived = 0;
    while lived < 20 {
        let results: Vec<_> = std::thread::scope(|scope| {
            let starters: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&config))).collect();
            starters
                .into_iter()
                .map(|starter| starter.join().unwrap())
                .collect()
        });
        let alive = results.iter().filter(|result| result.is_ok()).count();
        assert!(alive <= 1, "{results:?}");
        // None: as in `open_free`, somebody's first instant has the locks of the last round.
        assert!(
            alive == 1 || std::time::Instant::now() < deadline,
            "{results:?}"
        );
        lived += alive;
    }
}

#[test]
fn a_thing_that_is_no_socket_is_left_alone() {
    let (_folder, config) = config();
    for path in [&config.control_socket, &config.producer_socket] {
        std::fs::write(path, "precious").unwrap();
        let error = open(&config).unwrap_err();
        assert!(
            matches!(&error, StartError::NotASocket { path: at } if at == path),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(path).unwrap(), "precious");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_socket_of_another_kind_is_left_alone() {
    let (_folder, config) = config();
    let other = UnixDatagram::bind(&config.control_socket).unwrap();
    let error = open(&config).unwrap_err();
    assert!(matches!(error, StartError::ForeignSocket { .. }), "{error}");
    drop(other);
    drop(open_free(&config));
}

/// Case G07.
#[test]
fn g07_a_long_path_is_refused_with_path_length_and_limit() {
    let (folder, mut config) = config();
    let room = socket_path_of_length(folder.path(), 107);
    config.control_socket = room;
    drop(open(&config).unwrap());
    config.control_socket = socket_path_of_length(folder.path(), 108);
    let message = open(&config).unwrap_err().to_string();
    assert!(
        message.contains(config.control_socket.to_str().unwrap()),
        "{message}"
    );
    assert!(
        message.contains("108") && message.contains("107"),
        "{message}"
    );
}

fn socket_path_of_length(folder: &Path, bytes: usize) -> PathBuf {
    let room = bytes - folder.as_os_str().len() - 1;
    folder.join("s".repeat(room))
}

#[test]
fn a_missing_folder_is_made_if_its_parent_exists() {
    let (folder, _) = config();
    let made = folder.path().join("run");
    drop(open(&Config::embedded_in(&made)).unwrap());
    assert_eq!(
        std::fs::metadata(&made).unwrap().permissions().mode() & 0o777,
        0o755
    );
    let deep = folder.path().join("a/b");
    let message = open(&Config::embedded_in(&deep)).unwrap_err().to_string();
    assert!(message.contains(deep.to_str().unwrap()), "{message}");
}

/// A name that is no file is told as what it is, and not as the path of the settings.
#[test]
fn an_abstract_socket_is_told_by_its_name() {
    use std::os::linux::net::SocketAddrExt;
    let (_folder, mut config) = config();
    let name = format!("nrt-trace-listen-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let fd = UnixListener::bind_addr(&address).unwrap().into();
    let mut handed = vec![nrt_trace_shm::manager::Handed {
        name: "control".to_owned(),
        fd,
    }];
    let producer = config.producer_socket.clone();
    Listening::take(&mut handed).unwrap().place(&mut config);
    assert_eq!(config.control_socket, Path::new(&format!("@{name}")));
    assert_eq!(config.producer_socket, producer);
}
