//! Programs on a terminal.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::OpenptFlags;

/// What a terminal shows, and its controlling end.
pub(crate) struct Terminal {
    pub(crate) keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// What is on the screen so far.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// All that was ever shown, once nobody has the terminal open any more.
    pub(crate) fn rest(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}

/// Runs a command as the foreground of a terminal of its own.
pub(crate) fn on_terminal(command: &Command) -> (Child, Terminal) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let slave = || {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap()
    };
    // A new session without another process between: `setsid` replaces itself.
    let mut session = Command::new("setsid");
    session
        .arg("--ctty")
        .arg(command.get_program())
        .args(command.get_args());
    session
        .env("XDG_RUNTIME_DIR", std::env::temp_dir())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => session.env(name, value),
            None => session.env_remove(name),
        };
    }
    session.stdin(slave()).stdout(slave()).stderr(slave());
    let child = session.spawn().unwrap();
    drop(session);
    let keyboard = File::from(master);
    let mut output = keyboard.try_clone().unwrap();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let reader = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        // The read fails once nobody has the terminal open any more.
        while let Ok(bytes @ 1..) = output.read(&mut piece) {
            seen.lock().unwrap().extend_from_slice(&piece[..bytes]);
        }
    });
    let terminal = Terminal {
        keyboard,
        shown,
        reader,
    };
    (child, terminal)
}
