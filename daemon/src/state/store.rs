//! Descriptors that the service manager keeps for the next daemon, whatever becomes of this one and of the processes.
//!
//! systemd's fd store. With it nothing is lost when a process ends while there is no daemon. A descriptor is given to it
//! after the record that names its memory was written, and taken from it after a record was written that does not name
//! it any more: so the next daemon never misses what its record names.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nrt_trace_shm::manager::{Handed, Manager};
use nrt_trace_shm::{ShmError, memfd};

/// What this process's service manager is and gave.
#[derive(Debug, Default)]
pub(crate) struct FromManager {
    /// The way to it.
    pub manager: Option<Manager>,
    /// What it handed over; the daemon takes the sockets out of it, the store the rest.
    pub handed: Vec<Handed>,
    /// Descriptors that it keeps, where it says so: systemd from version 254 on.
    pub keeps: Option<usize>,
}

impl FromManager {
    /// As the environment says. Descriptors are taken once in the life of a process.
    pub(crate) fn take() -> Self {
        let number = |text: String| text.parse().ok();
        Self {
            manager: Manager::from_environment(),
            handed: nrt_trace_shm::manager::take_handed(),
            keeps: std::env::var("FDSTORE").ok().and_then(number),
        }
    }
}

/// The store, as far as this daemon uses it.
#[derive(Debug, Default)]
pub(crate) struct Store {
    manager: Option<Manager>,
    /// Descriptors that the manager is known to keep at most; `None`: it may keep any number, or none.
    keeps: Option<usize>,
    /// Names of what it has.
    kept: BTreeSet<String>,
    /// What it was given by an earlier daemon and nobody has asked for yet.
    handed: Vec<Handed>,
    /// What it has had no time to read: to be kept, or without a descriptor to be closed.
    outbox: VecDeque<(String, Option<OwnedFd>)>,
    /// Whether it was said that it can't be told things.
    told: bool,
}

impl Store {
    /// The store of a daemon that has a next one.
    pub(crate) fn new(from: FromManager) -> Self {
        let FromManager {
            manager,
            handed,
            keeps,
        } = from;
        Self {
            manager: manager.filter(|_| keeps != Some(0)),
            keeps,
            kept: handed.iter().map(|handed| handed.name.clone()).collect(),
            handed,
            ..Self::default()
        }
    }

    /// The store of a daemon that has no next one: what an earlier one left is given up.
    pub(crate) fn unused(from: FromManager) -> Self {
        let mut store = Self::new(from);
        store.give_up_rest();
        store.flush();
        Self::default()
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.manager.is_some()
    }

    /// Whether it is beyond doubt that the next daemon is given what has this name.
    pub(crate) fn surely_keeps(&self, name: &str) -> bool {
        self.keeps.is_some() && self.kept.contains(name)
    }

    /// Has a descriptor kept; nothing if it is already, or if there is no room.
    pub(crate) fn put(&mut self, name: &str, fd: BorrowedFd<'_>) {
        let room = self.keeps.is_none_or(|most| self.kept.len() < most);
        if self.manager.is_none() || !room || self.kept.contains(name) {
            return;
        }
        let told = if self.has_mail() {
            Err(ShmError::WouldBlock) // in order
        } else {
            self.tell_now(name, Some(fd))
        };
        match told {
            Ok(()) => {}
            Err(ShmError::WouldBlock) => {
                let Ok(copy) = fd.try_clone_to_owned() else {
                    return;
                };
                self.outbox.push_back((name.to_owned(), Some(copy)));
            }
            Err(error) => return self.complain(&error),
        }
        self.kept.insert(name.to_owned());
    }

    /// Has what it keeps under a name closed.
    pub(crate) fn remove(&mut self, name: &str) {
        if !self.kept.remove(name) {
            return;
        }
        let waits = |(other, fd): &(String, Option<OwnedFd>)| other == name && fd.is_some();
        if let Some(at) = self.outbox.iter().position(waits) {
            drop(self.outbox.remove(at)); // it never came to have it
        } else {
            self.outbox.push_back((name.to_owned(), None));
            self.flush();
        }
    }

    /// The descriptor that an earlier daemon had kept under this name, if it is of this file.
    pub(crate) fn take(&mut self, name: &str, file: (u64, u64)) -> Option<OwnedFd> {
        let is_it = |handed: &Handed| {
            handed.name == name && memfd::identity(&handed.fd).is_ok_and(|other| other == file)
        };
        let at = self.handed.iter().position(is_it)?;
        let fd = self.handed.swap_remove(at).fd;
        if self.handed.iter().any(|other| other.name == name) {
            // Another one has its name, and would go with it, or it with that one.
            self.remove(name);
            self.handed.retain(|other| other.name != name);
            self.put(name, fd.as_fd());
        }
        Some(fd)
    }

    /// Gives up what nobody asked for.
    pub(crate) fn give_up_rest(&mut self) {
        let rest = std::mem::take(&mut self.handed);
        if rest.is_empty() {
            return;
        }
        let names: BTreeSet<String> = rest.into_iter().map(|handed| handed.name).collect();
        tracing::warn!(
            ?names,
            "closed descriptors that the service manager handed over and no record names"
        );
        names.iter().for_each(|name| self.remove(name));
    }

    /// Tells the manager what it had no time for.
    pub(crate) fn flush(&mut self) {
        while let Some((name, fd)) = self.outbox.pop_front() {
            match self.tell_now(&name, fd.as_ref().map(AsFd::as_fd)) {
                Ok(()) => {}
                Err(ShmError::WouldBlock) => return self.outbox.push_front((name, fd)),
                Err(error) => self.complain(&error),
            }
        }
    }

    /// Whether something waits for it.
    pub(crate) fn has_mail(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn tell_now(&self, name: &str, fd: Option<BorrowedFd<'_>>) -> Result<(), ShmError> {
        let lines = match fd {
            // Not watched: what ends a descriptor's use is our word alone.
            Some(_) => format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0"),
            None => format!("FDSTOREREMOVE=1\nFDNAME={name}"),
        };
        (self.manager.as_ref()).map_or(Ok(()), |manager| manager.tell(&lines, fd))
    }

    fn complain(&mut self, error: &ShmError) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!("the service manager keeps no descriptors for a next daemon: {error}");
        }
    }
}
