//! Becomes another program with descriptors from number 3 on, as a service manager starts a service.
//!
//! They come over a socket at standard input, each in a packet that holds its name and a colon; the program is the
//! arguments.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nrt_trace_shm::socket;
use rustix::io::FdFlags;

fn main() -> ExitCode {
    let error = match handed() {
        Ok((names, _fds)) => become_program(&names),
        Err(error) => error,
    };
    // Into the log that the daemon would have written.
    let _told = io::Write::write_all(&mut io::stderr(), format!("handover: {error}\n").as_bytes());
    ExitCode::FAILURE
}

/// Names and descriptors, these from 3 on and to be inherited.
fn handed() -> io::Result<(Vec<String>, Vec<std::os::fd::OwnedFd>)> {
    let (mut names, mut fds) = (Vec::new(), Vec::new());
    let mut buffer = [0; 256];
    loop {
        let received = socket::receive(io::stdin(), &mut buffer).map_err(io::Error::other)?;
        if received.bytes == 0 {
            return Ok((names, fds));
        }
        let name = String::from_utf8_lossy(&buffer[..received.bytes - 1]).into_owned();
        for fd in received.fds {
            // The lowest numbers that are free. What this program inherited itself is handed on among them.
            while usize::try_from(fd.as_raw_fd()).is_ok_and(|number| number > 3 + names.len()) {
                names.push("inherited".to_owned());
            }
            rustix::io::fcntl_setfd(&fd, FdFlags::empty())?;
            fds.push(fd);
        }
        names.push(name);
    }
}

fn become_program(names: &[String]) -> io::Error {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        return io::Error::other("no program");
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(std::process::Stdio::null());
    if !names.is_empty() {
        command.env("LISTEN_PID", std::process::id().to_string());
        command.env("LISTEN_FDS", names.len().to_string());
        command.env("LISTEN_FDNAMES", names.join(":"));
    }
    command.exec()
}
