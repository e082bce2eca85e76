//! The library against a daemon that this test plays: attach, arm, record, disarm, arm again, lose the daemon.
//!
//! A process has one tracer, so this is one test.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nrt_trace_abi::layout::{SegmentLayout, segment, strings};
use nrt_trace_abi::message::{Arm, Armed, Disarm, Disarmed, Go, Hello, Message, Welcome};
use nrt_trace_abi::record::Record;
use nrt_trace_abi::{MAX_NCS, gate};
use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_ring::{Account, Cursor, Reader};
use nrt_trace_shm::clock::{TscClock, realtime_ns};
use nrt_trace_shm::control::ControlPage;
use nrt_trace_shm::strings::StringReader;
use nrt_trace_shm::{ReadMapping, memfd, socket};
use zerocopy::IntoBytes;

use crate::support::{PATIENCE, poll, receive};

/// The daemon's end of one attach.
struct Daemon {
    fd: OwnedFd,
    page: ControlPage,
    names: StringReader,
}

impl Daemon {
    fn accept(listener: &OwnedFd) -> (Self, Hello) {
        let fd = poll(|| socket::accept(listener).ok());
        let hello: Hello = receive(&fd);
        let (page, page_fd) = ControlPage::create(1).unwrap();
        let (names, names_fd) = StringReader::create(strings::DEFAULT_BYTES).unwrap();
        let welcome = Welcome {
            header: Welcome::header(),
            producer_id: 1,
            run_follows: 1,
            orphan_keep_s: 600,
            reserved: 0,
            string_bytes: strings::DEFAULT_BYTES,
        };
        socket::send(
            &fd,
            welcome.as_bytes(),
            &[page_fd.as_fd(), names_fd.as_fd()],
        )
        .unwrap();
        (Self { fd, page, names }, hello)
    }

    fn arm(&self, layout: &SegmentLayout, generation: u64) -> ReadMapping {
        let fd = memfd::create("test", layout.bytes()).unwrap();
        memfd::write_words(&fd, &layout.header([1, 2], generation, 1)).unwrap();
        memfd::seal_size(&fd).unwrap();
        let arm = Arm {
            header: Arm::header(),
            generation,
            segment_bytes: layout.bytes(),
        };
        socket::send(&self.fd, arm.as_bytes(), &[fd.as_fd()]).unwrap();
        let armed: Armed = receive(&self.fd);
        assert_eq!((armed.generation, armed.errno), (generation, 0));
        ReadMapping::map(&fd, layout.bytes()).unwrap()
    }

    fn go(&self, types: u64, generation: u64) {
        self.page
            .set_gates(&[gate::open(types, generation); MAX_NCS]);
        self.page.set_state(true, generation);
        let go = Go {
            header: Go::header(),
            generation,
        };
        socket::send(&self.fd, go.as_bytes(), &[]).unwrap();
    }

    fn disarm(&self, generation: u64) {
        self.page.set_gates(&[0; MAX_NCS]);
        self.page.set_state(false, generation);
        let disarm = Disarm {
            header: Disarm::header(),
            generation,
        };
        socket::send(&self.fd, disarm.as_bytes(), &[]).unwrap();
        let disarmed: Disarmed = receive(&self.fd);
        assert_eq!((disarmed.generation, disarmed.quiescent), (generation, 1));
    }

    /// The first `count` names, which come one by one.
    fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        poll(|| {
            self.names
                .poll(|_, bytes, _| names.push(String::from_utf8(bytes.to_vec()).unwrap()));
            (names.len() >= count).then_some(())
        });
        names
    }
}

/// Answers a Hello as a daemon of the next version would, and sees the library go.
fn answer_in_another_version(listener: &OwnedFd) {
    let fd = poll(|| socket::accept(listener).ok());
    let _hello: Hello = receive(&fd);
    let (_page, page_fd) = ControlPage::create(1).unwrap();
    let (_names, names_fd) = StringReader::create(strings::DEFAULT_BYTES).unwrap();
    let mut welcome = Welcome {
        header: Welcome::header(),
        producer_id: 1,
        run_follows: 1,
        orphan_keep_s: 600,
        reserved: 0,
        string_bytes: strings::DEFAULT_BYTES,
    };
    welcome.header.abi += 1;
    let fds = [page_fd.as_fd(), names_fd.as_fd()];
    socket::send(&fd, welcome.as_bytes(), &fds).unwrap();
    let closed = poll(|| socket::receive(&fd, &mut [0; 64]).ok());
    assert_eq!(closed.bytes, 0, "it says nothing more");
}

fn listen(path: &Path) -> OwnedFd {
    socket::listen(path, 0o600).unwrap()
}

/// Everything unread in the ring of `nc`.
fn read(mapping: &ReadMapping, layout: &SegmentLayout, nc: usize) -> (Vec<Record>, Account) {
    let first = layout.ring_word(nc).unwrap();
    let words = &mapping.words()[first..first + layout.ring_words()];
    let reader = Reader::new(words, *layout.geometry()).unwrap();
    let mut cursor = Cursor::default();
    let until = reader.begin(&mut cursor).unwrap();
    let mut records = Vec::new();
    let _progress = reader
        .read(&mut cursor, until, usize::MAX, &mut |record| {
            records.push(*record);
        })
        .unwrap();
    (records, reader.account(&cursor).unwrap())
}

#[test]
fn a_program_attaches_records_and_outlives_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");

    // Without a daemon: nothing is recorded, names are kept.
    let tracer = Tracer::attach(Options::named("unit").cores(&[4, 5]).socket(&path));
    let before = tracer.intern(0, "before the daemon");
    assert_eq!(tracer.emit(Event::instant(EventType::Generic, 0)), None);
    assert!(!tracer.is_capturing());

    // One of another version, whether it refuses or would welcome, is left alone; its successor is attached to.
    let listener = listen(&path);
    answer_in_another_version(&listener);
    let (mut daemon, hello) = Daemon::accept(&listener);
    assert_eq!((hello.name(), hello.visible()), (Some("unit"), &[4, 5][..]));
    let layout = SegmentLayout::new(1024, [0, 1]).unwrap();
    let mapping = daemon.arm(&layout, 1);
    assert_eq!(
        tracer.emit(Event::instant(EventType::Generic, 0)),
        None,
        "the gates are closed"
    );
    let mut clock = TscClock::calibrate();
    daemon.page.set_clock(clock.as_mut().map(TscClock::refresh));
    daemon.go(gate::ALL_TYPES & !(1 << EventType::TensorFree.value()), 1);
    assert!(tracer.wait_armed(PATIENCE));
    assert!(tracer.is_capturing());
    let during = tracer.intern(0, "during the run");
    assert_eq!(tracer.intern(3, "during the run"), during, "told once");
    assert_ne!(before, during);
    assert_eq!(daemon.names(2), ["before the daemon", "during the run"]);

    // Four threads on two NCs, a type that is filtered out, an NC without a ring, one that can't be.
    let begun = realtime_ns();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..250 {
                    let start =
                        Event::start(EventType::ExecuteApi, thread % 2).data([n, !n, 0, 0, 0]);
                    let tracking = tracer.emit(start);
                    assert!(tracking.is_some());
                    let stop = Event::stop(EventType::ExecuteApi, thread % 2, tracking)
                        .data([n, !n, 0, 0, 0]);
                    assert_eq!(tracer.emit_with_seq(stop, n), tracking);
                }
            });
        }
    });
    let ended = realtime_ns();
    assert_eq!(tracer.emit(Event::instant(EventType::TensorFree, 0)), None);
    assert_eq!(tracer.emit(Event::instant(EventType::Generic, 7)), None);
    assert!(
        tracer
            .emit(Event::instant(EventType::Generic, 300))
            .is_some()
    );
    let count = |at: usize| mapping.words()[at].get();
    assert_eq!(
        (count(segment::NO_RING), count(segment::NC_OUT_OF_RANGE)),
        (1, 1)
    );

    for (nc, want) in [(0, 1001), (1, 1000)] {
        let (records, account) = read(&mapping, &layout, nc);
        assert_eq!((records.len(), account.claimed), (want, want as u64));
        let mut threads: Vec<_> = records.iter().map(Record::thread_id).collect();
        threads.sort_unstable();
        threads.dedup();
        assert!(threads.len() >= 2, "{threads:?}");
        for (at, record) in records[..1000].iter().enumerate() {
            assert_eq!(
                (record.seq(), record.data()[0]),
                (at as u64 + 1, !record.data()[1])
            );
            assert!(
                (begun - 2_000..=ended + 2_000).contains(&record.timestamp_ns()),
                "the clock"
            );
            assert_eq!(record.nrta_seq_id().is_some(), record.phase() == 1);
        }
    }

    // Another run, of another size: nothing of it in the old segment, nothing of the old run in it.
    daemon.disarm(1);
    assert_eq!(tracer.emit(Event::instant(EventType::Generic, 0)), None);
    let layout = SegmentLayout::new(7, [1]).unwrap();
    let mapping = daemon.arm(&layout, 2);
    daemon.go(gate::ALL_TYPES, 2);
    assert!(tracer.wait_armed(PATIENCE));
    for n in 0..20 {
        let _id = tracer.emit(Event::instant(EventType::Generic, 1).data([n; 5]));
    }
    let (records, account) = read(&mapping, &layout, 1);
    assert_eq!(
        records
            .iter()
            .map(|record| record.data()[0])
            .collect::<Vec<_>>(),
        (13..20).collect::<Vec<_>>()
    );
    assert_eq!(account.overwritten(), 13);
    {
        let _span = tracer.span(EventType::ModelSubmit, 1, [1; 5]);
    }
    let (records, _) = read(&mapping, &layout, 1);
    let [start, stop] = records.last_chunk::<2>().unwrap();
    assert_eq!((start.phase(), stop.phase()), (0, 1));
    assert_eq!(start.tracking_id(), stop.tracking_id());

    // The daemon dies: the program goes on, and finds the next one, with its names. (Case G09.)
    drop(daemon);
    let _id = tracer.emit(Event::instant(EventType::Generic, 1));
    let (mut daemon, _) = Daemon::accept(&listener);
    assert_eq!(daemon.names(2), ["before the daemon", "during the run"]);
    let mapping = daemon.arm(&layout, 1);
    daemon.go(gate::ALL_TYPES, 1);
    assert!(tracer.wait_armed(PATIENCE));
    assert!(tracer.emit(Event::instant(EventType::Generic, 1)).is_some());
    assert_eq!(read(&mapping, &layout, 1).0.len(), 1);
}
