//! Whether both sockets answer.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nrt_trace_shm::socket;

use crate::daemon::Running;
use crate::listen::StartError;
use crate::registry::command::Command;

/// How long an answer may take: a daemon that needs longer to start is in no state to serve anybody.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a client of HTTP/2 sends first: the protocol's preface, and an empty frame of settings.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Where a frame's head has its type, and the type of settings.
const TYPE_AT: usize = 3;
const SETTINGS: u8 = 4;
/// Bytes of a frame's head.
const HEAD: usize = 9;

/// Returns when the control socket's server speaks, the producer socket can be connected to, and the thread that accepts
/// there takes requests. A socket that was handed over under a name that is no file, or none that can be seen from here, is
/// not connected to: it listened before this program began.
pub(super) fn wait(running: &Running) -> Result<(), StartError> {
    let failed = |what| move |source| StartError::System { what, source };
    let control = running.control_socket();
    if control.exists() {
        server_speaks(control).map_err(failed("get an answer on the control socket"))?;
    }
    let producer = running.producer_socket();
    if producer.exists() {
        let connected = socket::connect(producer).map_err(io::Error::other);
        connected.map_err(failed("get an answer on the producer socket"))?;
    }
    (running.handle())
        .ask_blocking(Command::Status)
        .map(drop)
        .map_err(|error| io::Error::other(error.to_string()))
        .map_err(failed("get an answer on the producer socket"))
}

fn server_speaks(path: &Path) -> io::Result<()> {
    let mut server = UnixStream::connect(path)?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.set_write_timeout(Some(PATIENCE))?;
    server.write_all(HELLO)?;
    let mut head = [0; HEAD];
    server.read_exact(&mut head)?;
    if head[TYPE_AT] == SETTINGS {
        Ok(())
    } else {
        Err(io::Error::other("what answers does not speak HTTP/2"))
    }
}
