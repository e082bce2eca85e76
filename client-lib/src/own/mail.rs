//! Requests to the daemon: the calling thread sends and waits, the background thread receives.
//!
//! The background thread takes the answer in order with everything else that comes, so that when a start's answer is
//! here its rings are, and when a stop's answer is here they are gone.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nrt_trace_abi::message::{Message, OwnAnswer};
use nrt_trace_model::Status as Code;
use nrt_trace_shm::distant::Distant;
use nrt_trace_shm::{socket, threads};

use super::rings::{Part, Rings};
use super::{OWN, own};
use crate::segment::Segment;
use crate::{log, process};

/// Where requests and answers meet.
#[derive(Debug, Default)]
pub(super) struct Mail {
    state: Mutex<State>,
    /// An answer came, or the connection went.
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    link: Option<Arc<Distant>>,
    /// Number of the last request.
    request: u64,
    /// The start that waits for its answer.
    starting: Option<u64>,
    answer: Option<OwnAnswer>,
    /// Whether the rings that come are the capture's.
    following: bool,
    /// Rings that came and that no call has taken over yet.
    fresh: Rings,
}

impl Mail {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask<M: Message>(
        &self,
        deadline: Instant,
        message: impl FnOnce(u64) -> M,
    ) -> Result<(), Code> {
        let mut state = self.lock();
        let link = state.link.clone().ok_or(Code::Failure)?;
        state.request += 1;
        let (request, message) = (state.request, message(state.request));
        state.starting = (M::KIND == nrt_trace_abi::message::StartOwn::KIND).then_some(request);
        state.answer = None;
        drop(state);
        let sent = link
            .get()
            .and_then(|fd| socket::send(fd, message.as_bytes(), &[]));
        if let Err(error) = sent {
            log::write(log::WARN, &format!("the daemon can't be asked: {error}"));
            return Err(Code::Failure);
        }
        let mut state = self.lock();
        loop {
            if let Some(answer) = state
                .answer
                .take()
                .filter(|answer| answer.request == request)
            {
                return Self::outcome(&answer);
            }
            if !state
                .link
                .as_ref()
                .is_some_and(|now| Arc::ptr_eq(now, &link))
            {
                log::write(log::WARN, "the daemon went away");
                return Err(Code::Failure);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                log::write(log::WARN, "the daemon does not answer");
                return Err(Code::Timeout);
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends a request whose answer nobody waits for.
    pub(super) fn tell<M: Message>(&self, message: impl FnOnce(u64) -> M) {
        let mut state = self.lock();
        state.request += 1;
        state.starting = None;
        state.following = false;
        if let Some(link) = &state.link {
            // A connection that can't be written to is about to end, and with it what would be ended.
            let message = message(state.request);
            let _gone = link
                .get()
                .and_then(|fd| socket::send(fd, message.as_bytes(), &[]));
        }
    }

    /// Whether the program has closed the connection behind our back.
    pub(super) fn is_cut(&self) -> bool {
        let state = self.lock();
        state.link.as_ref().is_some_and(|link| !link.is_there())
    }

    fn outcome(answer: &OwnAnswer) -> Result<(), Code> {
        let code = i32::try_from(answer.status).ok().and_then(Code::from_code);
        let level = match code {
            Some(Code::Success) => log::DEBUG,
            _ => log::WARN,
        };
        if let Some(text) = answer.text().filter(|text| !text.is_empty()) {
            let joins = if answer.joined == 1 {
                "the capture of this process joins: "
            } else {
                ""
            };
            log::write(level, &format!("{joins}{text}"));
        }
        match code {
            Some(Code::Success) => Ok(()),
            Some(code) => Err(code),
            None => Err(Code::Failure),
        }
    }

    /// Gives the rings that came to `rings`.
    pub(super) fn take_rings(&self, rings: &mut Rings) {
        let fresh = std::mem::take(&mut self.lock().fresh);
        fresh.parts.into_iter().for_each(|part| rings.push(part));
    }

    /// Events of a ring, NCs with one, and bytes of the newest rings that came.
    pub(super) fn newest_rings(&self) -> Option<(u64, Vec<usize>, u64)> {
        self.lock().fresh.newest()
    }

    /// Gives the rings up that came, and those that will.
    pub(super) fn forget_rings(&self) {
        let mut state = self.lock();
        state.following = false;
        state.fresh = Rings::default();
    }

    /// Takes over rings that this process made itself.
    pub(super) fn add_rings(&self, segment: &Segment) {
        self.lock().fresh.push(Part::of(segment));
    }
}

/// A connection to the daemon is there.
pub(crate) fn connected(link: &Arc<Distant>) {
    own().mail.lock().link = Some(link.clone());
}

/// The connection is gone. What is in the rings can still be read.
pub(crate) fn disconnected() {
    let mail = &own().mail;
    mail.lock().link = None;
    mail.news.notify_all();
}

/// Another daemon is there, which knows nothing of a capture: it has ended, and what is in its rings can be read.
pub(crate) fn parted() {
    let following = std::mem::take(&mut own().mail.lock().following);
    if following {
        log::write(
            log::WARN,
            "the capture of this process ended with its daemon: stop it, and start it again",
        );
    }
}

/// A segment was published: if a capture is on its events go there from now on.
pub(crate) fn armed(segment: &Segment) {
    if let Some(own) = OWN.get().get() {
        let mut state = own.mail.lock();
        if state.following {
            state.fresh.push(Part::of(segment));
        }
    }
}

/// An answer came.
pub(crate) fn answered(answer: OwnAnswer) {
    let mail = &own().mail;
    let mut state = mail.lock();
    if state.starting == Some(answer.request) && answer.status == 0 {
        state.fresh = Rings::default();
        state.following = true;
        if let Some(inside) = threads::enter(process::instance())
            && let Some(segment) = process::segment().get(&inside)
        {
            state.fresh.push(Part::of(segment));
        }
    }
    state.answer = Some(answer);
    drop(state);
    mail.news.notify_all();
}
