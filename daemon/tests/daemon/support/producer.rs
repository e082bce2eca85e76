//! A producer that speaks the protocol by hand.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nrt_trace_abi::gate;
use nrt_trace_abi::layout::{SegmentLayout, StringTableLayout, control, segment};
use nrt_trace_abi::message::{
    self, Arm, Armed, Disarm, Disarmed, Go, Hello, Message, OwnAnswer, Refuse, StartOwn, StopOwn,
    Welcome,
};
use nrt_trace_abi::record::Draft;
use nrt_trace_model::strings::get_id;
use nrt_trace_ring::strings::append;
use nrt_trace_ring::{Outcome, Producer};
use nrt_trace_shm::{ReadMapping, WriteMapping, memfd, socket};

use super::{Host, host_run, wait_for};

/// How the producer's own thread treats the daemon's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Answer {
    /// As a library does.
    Honest = 0,
    /// Reads, and answers nothing, as a stopped process does.
    Mute = 1,
    /// Says that it can't map its rings.
    CannotMap = 2,
    /// Says that a thread is stuck in an emit.
    Busy = 3,
}

/// A process's rings in one run.
pub(crate) struct Rings {
    pub(crate) map: WriteMapping,
    pub(crate) layout: SegmentLayout,
    pub(crate) generation: u64,
}

/// An attached producer.
pub(crate) struct Fake {
    pub(crate) id: u32,
    pub(crate) welcome: Welcome,
    pub(crate) page: ReadMapping,
    pub(crate) names: WriteMapping,
    pub(crate) socket: Arc<OwnedFd>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    answer: AtomicU8,
    rings: Mutex<Option<Arc<Rings>>>,
    /// Kinds of the messages that came, in order.
    heard: Mutex<Vec<u16>>,
    /// Answers to requests, in order.
    answers: Mutex<Vec<OwnAnswer>>,
    /// Why it is not captured, as it was last told.
    refused: Mutex<Option<(u32, String)>>,
}

/// A good Hello.
pub(crate) fn hello(name: &str, token: &str, visible: &[u16]) -> Hello {
    let mut hello = Hello::new();
    hello.set_name(name);
    hello.set_token(token);
    hello.set_visible(visible);
    hello.set_exe("/claimed/exe");
    hello
}

/// A connection to the producer socket.
pub(crate) fn connect(host: &Host) -> OwnedFd {
    socket::connect(host.daemon.producer_socket()).unwrap()
}

/// Sends a message; false when the daemon closed the connection.
pub(crate) fn send(socket: &OwnedFd, message: &impl Message) -> bool {
    socket::send(socket, message.as_bytes(), &[]).is_ok()
}

/// The next message; `None` when the daemon closed the connection.
pub(crate) fn receive(socket: &OwnedFd) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut buffer = [0; message::MAX_BYTES];
    let received = socket::receive(socket, &mut buffer).ok()?;
    (received.bytes > 0).then(|| (buffer[..received.bytes].to_vec(), received.fds))
}

impl Fake {
    /// A producer named `x`, in a run of the host with rings of `cap` events.
    pub(crate) fn captured(host: &mut Host, cap: u64) -> Self {
        let fake = Self::attach(host, "x");
        host.start(host_run(cap)).unwrap();
        fake
    }

    /// Attaches a producer without token, cores not known.
    pub(crate) fn attach(host: &Host, name: &str) -> Self {
        Self::attach_as(
            host.daemon.producer_socket(),
            &hello(name, "", &[]),
            Answer::Honest,
        )
    }

    /// Attaches a producer with a token.
    pub(crate) fn attach_with_token(host: &Host, token: &str) -> Self {
        Self::attach_as(
            host.daemon.producer_socket(),
            &hello("worker", token, &[]),
            Answer::Honest,
        )
    }

    pub(crate) fn attach_as(path: &Path, hello: &Hello, answer: Answer) -> Self {
        let socket = socket::connect(path).unwrap();
        assert!(send(&socket, hello));
        let (packet, fds) = receive(&socket).unwrap();
        let welcome: Welcome = message::parse(&packet).unwrap_or_else(|bad| {
            let refuse: Result<Refuse, _> = message::parse(&packet);
            panic!(
                "not welcome: {bad}: {:?}",
                refuse.as_ref().map(Refuse::text)
            )
        });
        let [page, names] = <[OwnedFd; 2]>::try_from(fds).unwrap();
        memfd::check(&page, control::WORDS as u64 * 8).unwrap();
        memfd::check(&names, welcome.string_bytes).unwrap();
        let shared = Arc::new(Shared {
            answer: AtomicU8::new(answer as u8),
            rings: Mutex::default(),
            heard: Mutex::default(),
            answers: Mutex::default(),
            refused: Mutex::default(),
        });
        let socket = Arc::new(socket);
        let thread = {
            let (socket, shared) = (socket.clone(), shared.clone());
            std::thread::spawn(move || serve(&socket, &shared))
        };
        Self {
            id: welcome.producer_id,
            welcome,
            page: ReadMapping::map(&page, control::WORDS as u64 * 8).unwrap(),
            names: WriteMapping::map(&names, welcome.string_bytes).unwrap(),
            socket,
            shared,
            thread: Some(thread),
        }
    }

    /// Changes how messages are answered from now on.
    pub(crate) fn answer(&self, answer: Answer) {
        self.shared.answer.store(answer as u8, Ordering::Relaxed);
    }

    pub(crate) fn send(&self, message: &impl Message) -> bool {
        send(&self.socket, message)
    }

    /// Says that the last Arm's rings are in place, whatever the answers are set to.
    pub(crate) fn send_armed(&self) {
        self.wait_heard::<Arm>(1);
        let generation = self.rings().generation;
        assert!(self.send(&Armed {
            header: Armed::header(),
            generation,
            errno: 0,
            reserved: 0,
        }));
    }

    /// Asks for a capture of its own; the answer comes with [`Fake::own_answer`].
    pub(crate) fn start_own(&self, request: u64, cap: u64, types: u64, ncs: u64) {
        assert!(self.send(&StartOwn {
            header: StartOwn::header(),
            request,
            max_events_per_nc: cap,
            types,
            ncs: [ncs, 0, 0, 0],
        }));
    }

    /// Asks for the end of it.
    pub(crate) fn stop_own(&self, request: u64) {
        assert!(self.send(&StopOwn {
            header: StopOwn::header(),
            request,
        }));
    }

    /// The answer to a request, which comes once: its status, and whether the capture joined another run.
    pub(crate) fn own_answer(&self, request: u64) -> (u32, bool) {
        let found = || {
            let answers = self.shared.answers.lock().unwrap();
            let mut fitting = answers.iter().filter(|answer| answer.request == request);
            let answer = fitting.next().copied();
            assert!(fitting.next().is_none(), "answered twice");
            answer
        };
        wait_for("the answer", || found().is_some());
        found()
            .map(|answer| (answer.status, answer.joined == 1))
            .unwrap()
    }

    /// Waits until it is told that a run goes on without it; code and reason.
    pub(crate) fn refusal(&self) -> (u32, String) {
        self.wait_heard::<Refuse>(1);
        self.shared.refused.lock().unwrap().clone().unwrap()
    }

    /// How many requests were answered.
    pub(crate) fn own_answers(&self) -> usize {
        self.shared.answers.lock().unwrap().len()
    }

    pub(crate) fn send_raw(&self, packet: &[u8]) {
        socket::send(&*self.socket, packet, &[]).unwrap();
    }

    /// The gate of an NC.
    pub(crate) fn gate(&self, nc: u32) -> u64 {
        self.page.words()[control::GATES + nc as usize].get()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.page.words()[control::STATE].get() & 1 == 1
    }

    /// How many messages of kind `M` came.
    pub(crate) fn heard<M: Message>(&self) -> usize {
        self.shared
            .heard
            .lock()
            .unwrap()
            .iter()
            .filter(|kind| **kind == M::KIND)
            .count()
    }

    /// Waits for the `n`th message of kind `M`.
    pub(crate) fn wait_heard<M: Message>(&self, n: usize) {
        wait_for(&format!("message {}", M::KIND), || self.heard::<M>() >= n);
    }

    /// The rings of the last Arm.
    pub(crate) fn rings(&self) -> Arc<Rings> {
        self.shared.rings.lock().unwrap().clone().unwrap()
    }

    /// Emits as a library does: gate, ring, push. True if it was stored.
    pub(crate) fn emit(&self, nc: u32, trace_type: u32, data: [u64; 5]) -> bool {
        let gate = self.gate(nc);
        if !gate::passes(gate, trace_type) {
            return false;
        }
        let rings = self.rings();
        assert_eq!(
            gate::generation(gate),
            rings.generation & 0xFFFF,
            "the gate is this segment's"
        );
        let words = rings.map.words();
        let Some(first) = rings.layout.ring_word(nc as usize) else {
            words[segment::NO_RING].fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let ring = Producer::new(
            &words[first..first + rings.layout.ring_words()],
            *rings.layout.geometry(),
        )
        .unwrap();
        let draft = Draft {
            trace_type,
            nc_idx: nc,
            thread_id: 7,
            timestamp_ns: 1,
            data,
            ..Draft::default()
        };
        matches!(ring.push(|seq| draft.finish(seq)), Outcome::Stored { .. })
    }

    /// Emits `count` events of type 0 on an NC.
    pub(crate) fn emit_many(&self, nc: u32, count: u64) {
        for n in 0..count {
            assert!(self.emit(nc, 0, [n, 0, 0, 0, 0]));
        }
    }

    /// Interns a name.
    pub(crate) fn intern(&self, text: &str) -> u64 {
        let id = get_id(text.as_bytes());
        self.intern_as(id, text.as_bytes());
        id
    }

    /// Publishes any bytes under any id.
    pub(crate) fn intern_as(&self, id: u64, bytes: &[u8]) {
        let layout = StringTableLayout::new(self.welcome.string_bytes).unwrap();
        append(self.names.words(), &layout, id, bytes, 0).unwrap();
    }

    /// Closes the connection, as a program does that detaches.
    pub(crate) fn detach(mut self) {
        self.close();
    }

    fn close(&mut self) {
        let _ = rustix::net::shutdown(&*self.socket, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.close();
    }
}

/// The library's own thread.
fn serve(socket: &OwnedFd, shared: &Shared) {
    while let Some((packet, fds)) = receive(socket) {
        let kind = message::kind_of(&packet).unwrap();
        let answer = shared.answer.load(Ordering::Relaxed);
        let silent = answer == Answer::Mute as u8;
        if let Ok(arm) = message::parse::<Arm>(&packet) {
            let [fd] = <[OwnedFd; 1]>::try_from(fds).unwrap();
            memfd::check(&fd, arm.segment_bytes).unwrap();
            let Some(rings) = map(&fd, arm.segment_bytes) else {
                // Its memory was taken back already: the other thread has closed the connection.
                return;
            };
            assert_eq!(rings.generation, arm.generation);
            *shared.rings.lock().unwrap() = Some(Arc::new(rings));
            shared.heard.lock().unwrap().push(kind); // before the answer, which others may wait for
            let errno = if answer == Answer::CannotMap as u8 {
                12
            } else {
                0
            };
            let armed = Armed {
                header: Armed::header(),
                generation: arm.generation,
                errno,
                reserved: 0,
            };
            if !silent {
                send(socket, &armed);
            }
        } else if let Ok(disarm) = message::parse::<Disarm>(&packet) {
            shared.heard.lock().unwrap().push(kind);
            let quiescent = u32::from(answer != Answer::Busy as u8);
            let generation = disarm.generation;
            let disarmed = Disarmed {
                header: Disarmed::header(),
                generation,
                quiescent,
                reserved: 0,
            };
            if !silent {
                send(socket, &disarmed);
            }
        } else if let Ok(answer) = message::parse::<OwnAnswer>(&packet) {
            shared.answers.lock().unwrap().push(answer);
        } else {
            assert!([Go::KIND, Refuse::KIND].contains(&kind), "{kind}");
            if let Ok(refuse) = message::parse::<Refuse>(&packet) {
                let text = refuse.text().unwrap().to_owned();
                *shared.refused.lock().unwrap() = Some((refuse.code, text));
            }
            shared.heard.lock().unwrap().push(kind);
        }
    }
}

fn map(fd: &OwnedFd, bytes: u64) -> Option<Rings> {
    let map = WriteMapping::map(fd.as_fd(), bytes).unwrap();
    let header = std::array::from_fn(|at| map.words()[at].load(Ordering::Relaxed));
    let (layout, generation) = SegmentLayout::from_header(&header, bytes)?;
    Some(Rings {
        map,
        layout,
        generation,
    })
}
