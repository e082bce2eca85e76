//! What `/proc` says of a process.
//!
//! Short name, pid in its own namespace and executable come without touching the process's memory. The command line is
//! read out of that memory, and a hostile process can make such a read wait for ever (a page that a file system of its
//! own serves): it is read by a thread of its own, a few of them at most, and nobody waits for it for long.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use procfs::process::Process;
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;

/// Bytes of a command line that are kept.
const COMMAND_LINE_BYTES: u64 = 64 << 10;
/// Command lines that are being read at a time.
const MAX_READERS: usize = 16;

/// What the kernel says of a process without asking its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelFacts {
    /// Its short name.
    pub comm: String,
    /// Its pid in its innermost PID namespace.
    pub ns_pid: Option<i32>,
    /// Path of its executable, where we may look.
    pub exe: Option<String>,
    /// When it started, in the kernel's ticks since boot: with its pid it names one process.
    pub start_ticks: Option<u64>,
}

/// The `/proc` folder of a process, held open: what is read through it is that process's for sure.
#[derive(Debug)]
pub(crate) struct ProcFolder(Process);

impl ProcFolder {
    /// The folder of `pid`; `None` if the process of `pidfd` has ended (the number may be another's by then).
    pub(crate) fn open(pid: i32, pidfd: &OwnedFd) -> Option<Self> {
        let process = Process::new(pid).ok()?;
        // Alive now, so the folder that was opened before is its own, and stays so.
        (!has_ended(pidfd)).then_some(Self(process))
    }

    fn read(&self, name: &str, at_most: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = self
            .0
            .open_relative(name)
            .map(|file| file.take(at_most).read_to_end(&mut bytes));
        if matches!(read, Ok(Ok(_))) {
            bytes
        } else {
            Vec::new()
        }
    }

    /// Its facts. Never waits.
    pub(crate) fn facts(&self) -> KernelFacts {
        KernelFacts {
            comm: String::from_utf8_lossy(&self.read("comm", 64))
                .trim_end_matches('\n')
                .to_owned(),
            ns_pid: self
                .0
                .status()
                .ok()
                .and_then(|status| status.nspid?.last().copied()),
            exe: self
                .0
                .exe()
                .ok()
                .map(|path| path.to_string_lossy().into_owned()),
            start_ticks: self.0.stat().ok().map(|stat| stat.starttime),
        }
    }

    /// When it began, clock ticks after boot. Never waits.
    pub(crate) fn started(&self) -> Option<u64> {
        crate::host::start_of(&self.read("stat", 1024))
    }

    /// Its arguments. May wait for ever.
    fn command_line(&self) -> Vec<String> {
        let bytes = self.read("cmdline", COMMAND_LINE_BYTES);
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Vec::new();
        }
        bytes
            .split(|byte| *byte == 0)
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect()
    }
}

/// Whether the process of a pidfd has ended.
pub(crate) fn has_ended(pidfd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Readers of command lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLines {
    busy: Arc<AtomicUsize>,
}

impl CommandLines {
    /// Reads a command line in a thread of its own and gives it to `done`; says whether that was begun.
    pub(crate) fn read(
        &self,
        folder: ProcFolder,
        done: impl FnOnce(Vec<String>) + Send + 'static,
    ) -> bool {
        // Relaxed: a count.
        if self.busy.fetch_add(1, Ordering::Relaxed) >= MAX_READERS {
            self.busy.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let busy = self.busy.clone();
        let thread = std::thread::Builder::new()
            .name("nrt-cmdline".to_owned())
            .spawn(move || {
                let line = folder.command_line();
                busy.fetch_sub(1, Ordering::Relaxed);
                done(line);
            });
        if thread.is_err() {
            self.busy.fetch_sub(1, Ordering::Relaxed);
        }
        thread.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn pidfd(pid: i32) -> OwnedFd {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap()
    }

    fn line_of(folder: ProcFolder) -> Vec<String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        assert!(CommandLines::default().read(folder, move |line| sender.send(line).unwrap()));
        receiver.recv().unwrap()
    }

    #[test]
    fn a_process_is_described_while_it_lives() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let fd = pidfd(pid);
        let folder = ProcFolder::open(pid, &fd).unwrap();
        let facts = folder.facts();
        assert!(
            !facts.comm.is_empty() && facts.ns_pid.is_some(),
            "{facts:?}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(&fd) && ProcFolder::open(pid, &fd).is_none());
        // Whatever may have the number by now, the folder that was opened is still this process's.
        assert_eq!(folder.facts(), KernelFacts::default());
        assert_eq!(line_of(folder), [""; 0]);
    }

    #[test]
    fn this_process_has_its_own_command_line() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let folder = || ProcFolder::open(pid, &pidfd(pid)).unwrap();
        assert_eq!(line_of(folder()), std::env::args().collect::<Vec<_>>());
        let facts = folder().facts();
        assert_eq!(
            facts.exe,
            std::env::current_exe().unwrap().to_str().map(str::to_owned)
        );
        assert_eq!(facts.ns_pid, Some(pid));
    }

    #[test]
    fn only_so_many_are_read_at_a_time() {
        let lines = CommandLines::default();
        lines.busy.store(MAX_READERS, Ordering::Relaxed);
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(!lines.read(
            ProcFolder::open(pid, &pidfd(pid)).unwrap(),
            |_| unreachable!()
        ));
        assert_eq!(lines.busy.load(Ordering::Relaxed), MAX_READERS);
    }
}
