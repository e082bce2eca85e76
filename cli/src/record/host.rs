//! The daemon that a recording uses: the host's, or one inside this program.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nrt_traced::{Config, Daemon, Running};
use tempfile::TempDir;

use crate::client::{Client, ConnectError, SOCKET_PATH_MAX};
use crate::error::Failure;
use crate::output::tell;

/// A daemon and the connection to it.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) client: Client,
    pub(crate) producer_socket: PathBuf,
    embedded: Option<Embedded>,
}

/// A daemon inside this program.
#[derive(Debug)]
struct Embedded {
    daemon: Running,
    /// Holds its sockets; goes away with it.
    folder: TempDir,
}

impl Host {
    /// The daemon at `socket` if there is one that we may use, else an embedded one. Says on standard error which.
    pub(crate) async fn choose(socket: &Path) -> Result<Self, Failure> {
        let why = match Client::connect(socket).await {
            Ok(client) => {
                let producer_socket = PathBuf::from(&client.status_at_connect().producer_socket);
                tell::note(format!("using the daemon at {}", socket.display()));
                return Ok(Self {
                    client,
                    producer_socket,
                    embedded: None,
                });
            }
            Err(ConnectError::Absent { .. }) => format!("no daemon at {}", socket.display()),
            Err(ConnectError::Denied { .. }) => {
                format!("no permission to use the daemon at {}", socket.display())
            }
            Err(other) => return Err(other.into()),
        };
        tell::note(format!("{why}; using a private one"));
        Self::embedded().await
    }

    /// A daemon inside this program, on sockets that only its user can reach.
    pub(crate) async fn embedded() -> Result<Self, Failure> {
        let folder = private_folder().map_err(|error| {
            let within = std::env::temp_dir();
            let what = format!("a folder for the daemon's sockets in {}", within.display());
            Failure::file("make", what, &error)
        })?;
        let daemon = Daemon::start(Config::embedded_in(folder.path()))
            .map_err(|error| Failure::Failed(format!("cannot start a private daemon: {error}")))?;
        let client = Client::connect(daemon.control_socket()).await?;
        let producer_socket = daemon.producer_socket().to_owned();
        Ok(Self {
            client,
            producer_socket,
            embedded: Some(Embedded { daemon, folder }),
        })
    }

    /// The folder of an embedded daemon, which has to be removed even if this program is cut off.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.embedded
            .as_ref()
            .map(|embedded| embedded.folder.path())
    }

    /// Whether the daemon is inside this program.
    pub(crate) fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Ends an embedded daemon; programs that are still attached go on without one.
    pub(crate) fn close(self) {
        if let Some(Embedded { daemon, folder }) = self.embedded {
            daemon.shutdown();
            // What stays behind is an empty folder in a place for temporary files.
            let _best_effort = folder.close();
        }
    }
}

/// A folder, mode 0700, whose name leaves room for the sockets' names: in the user's own runtime folder, which nobody else can
/// write to. Only where there is none, in the one for temporary files, under a random name that nothing had before:
/// whoever is to find it there is told its path (`NRT_TRACE_PRODUCER_SOCKET`), and no other program looks for it.
fn private_folder() -> io::Result<TempDir> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let of_user = Path::new("/run/user").join(rustix::process::getuid().as_raw().to_string());
    private_folder_in(runtime.into_iter().chain([of_user, std::env::temp_dir()]))
}

/// A private folder in the first of these that takes one.
fn private_folder_in(places: impl IntoIterator<Item = PathBuf>) -> io::Result<TempDir> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for place in places {
        let folder = tempfile::Builder::new()
            .prefix("nrt-trace-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(&place);
        match folder {
            Ok(folder) if fits(folder.path()) => return Ok(folder),
            Ok(folder) => {
                let text = format!(
                    "{} is too long a path for sockets: set XDG_RUNTIME_DIR or TMPDIR to a shorter one",
                    folder.path().display()
                );
                last = io::Error::other(text);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether a socket in `folder` has a path that the kernel takes.
fn fits(folder: &Path) -> bool {
    folder.join("producer.sock").as_os_str().len() <= SOCKET_PATH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_sockets_is_private() {
        let folder = private_folder().unwrap();
        let mode = std::fs::metadata(folder.path())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(fits(folder.path()));
    }

    /// Case Y02: a path that is too long is said, and no other folder taken in its place silently.
    #[test]
    fn y02_a_long_path_does_not_end_in_tmp() {
        let place = tempfile::tempdir().unwrap();
        let long = place.path().join("x".repeat(100));
        std::fs::create_dir(&long).unwrap();
        let error = private_folder_in([long.clone()]).unwrap_err().to_string();
        assert!(
            error.contains("too long") && error.contains("XDG_RUNTIME_DIR"),
            "{error}"
        );
        assert_eq!(
            std::fs::read_dir(&long).unwrap().count(),
            0,
            "it is removed"
        );
        let short = private_folder_in([place.path().to_owned()]).unwrap();
        assert!(short.path().starts_with(place.path()));
    }
}
