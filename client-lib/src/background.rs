//! The one background thread: finds the daemon, keeps the connection, tries again when it is lost.

use std::time::{Duration, Instant};

use nrt_trace_shm::{ShmError, clock, distant, process as host, socket};

use crate::process::{self, Status, TSC_FORBIDDEN};
use crate::session::{self, Session};
use crate::tracer::Options;
use crate::{environment, log, own};

/// First and longest pause between two attempts to connect.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Starts the thread, once in a process; false if tracing is turned off or no thread can be had.
pub(crate) fn start(options: Options) -> bool {
    if environment::is_on("NRT_TRACE_DISABLE") {
        return false;
    }
    if !process::claim_start() {
        return true;
    }
    distant::close_inherited();
    log::set_up();
    if !process::protect_from_fork() {
        log::write(
            log::DEBUG,
            "the kernel can't wipe pages on fork; relying on the fork handler",
        );
    }
    TSC_FORBIDDEN.store(!clock::tsc_allowed(), std::sync::atomic::Ordering::Relaxed);
    let started = host::spawn_quiet(c"nrt-trace", move || run(&options));
    if let Err(error) = &started {
        log::write(log::WARN, &format!("no background thread: {error}"));
        process::set_status(Status::NoDaemon);
    }
    started.is_ok()
}

fn run(options: &Options) {
    let path = environment::producer_socket(options.socket.as_ref());
    let mut keep = session::Kept::new();
    let (mut pause, mut told) = (RETRY.0, String::new());
    loop {
        if !process::claim_connect() {
            // The process has rings of its own making, which a daemon would have to take away.
            keep.rest();
            std::thread::sleep(RETRY.1);
            continue;
        }
        match socket::connect_distant(&path) {
            Ok(fd) => match Session::attach(fd, options, &mut keep) {
                Ok(session) => {
                    let ended = session.serve(&mut keep);
                    own::disconnected();
                    if ended.is_no_descriptors() {
                        keep.let_go();
                        tell_once(&mut told, format!("not captured: {ended}"));
                        pause = RETRY.1;
                    } else {
                        (pause, told) = (RETRY.0, String::new());
                        log::write(log::DEBUG, &format!("connection lost: {ended}"));
                    }
                }
                Err(error) => {
                    if error.is_no_descriptors() {
                        keep.let_go();
                    }
                    tell_once(&mut told, format!("not attached: {error}"));
                    pause = RETRY.1;
                }
            },
            Err(error) if may_not(&error) => {
                let path = path.display();
                tell_once(
                    &mut told,
                    format!("not attached: no permission to use {path}"),
                );
            }
            Err(error @ ShmError::NoDescriptors { .. }) => {
                tell_once(&mut told, format!("not attached: {error}"));
            }
            Err(error) => log::write(log::DEBUG, &format!("no daemon: {error}")),
        }
        keep.without_daemon(Instant::now());
        process::set_status(Status::NoDaemon);
        std::thread::sleep(pause);
        pause = (pause * 2).min(RETRY.1);
    }
}

/// Warns, unless that is what was said last: it is tried again every few seconds, for as long as the process lives.
fn tell_once(told: &mut String, line: String) {
    let level = if *told == line { log::DEBUG } else { log::WARN };
    log::write(level, &line);
    *told = line;
}

fn may_not(error: &ShmError) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::ACCESS.raw_os_error())
}
