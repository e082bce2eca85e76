use nrt_trace_abi::layout::{SegmentLayout, StringTableLayout};
use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_model::strings::get_id;
use nrt_trace_ring::Producer;
use nrt_trace_ring::strings::append;
use nrt_trace_shm::WriteMapping;
use nrt_trace_shm::strings::StringReader;

use super::*;

const CAP: u64 = 8;
const LABEL: Label = Label {
    run: 1,
    producer: 4,
    generation: 3,
};

/// Rings of two NCs, with so many events in each.
fn segment(events: [u64; 2]) -> Arc<Segment> {
    let layout = SegmentLayout::new(CAP, [0, 3]).unwrap();
    let segment = Segment::create(layout, [LABEL.run, 2], LABEL.generation, LABEL.producer);
    let segment = Arc::new(segment.unwrap());
    let map = WriteMapping::map(segment.fd(), segment.bytes()).unwrap();
    for (nc, events) in [0, 3].into_iter().zip(events) {
        let first = segment.layout().ring_word(nc).unwrap();
        let ring = Producer::new(&map.words()[first..], *segment.layout().geometry()).unwrap();
        for number in 0..events {
            let _ = ring.push(|seq| {
                let draft = Draft {
                    timestamp_ns: number,
                    ..Draft::default()
                };
                draft.finish(seq)
            });
        }
    }
    segment
}

/// What a cursor finds of a ring: the events, and the account.
fn read(
    segment: &Segment,
    nc: usize,
    mut cursor: Cursor,
) -> (Vec<Record>, nrt_trace_ring::Account) {
    let reader = segment.reader(nc).unwrap();
    let until = reader.begin(&mut cursor).unwrap();
    let mut events = Vec::new();
    let _done = reader
        .read(&mut cursor, until, usize::MAX, &mut |r| events.push(*r))
        .unwrap();
    (events, reader.account(&cursor).unwrap())
}

/// A cursor that has read the first `seen` events.
fn after(segment: &Segment, nc: usize, seen: u64) -> Cursor {
    let reader = segment.reader(nc).unwrap();
    let mut cursor = Cursor::default();
    let _until = reader.begin(&mut cursor).unwrap();
    let _done = reader
        .read(&mut cursor, seen, usize::MAX, &mut |_| ())
        .unwrap();
    cursor
}

fn names(texts: &[&str]) -> Arc<ProducerNames> {
    let (reader, fd) = StringReader::create(1 << 16).unwrap();
    let map = WriteMapping::map(&fd, 1 << 16).unwrap();
    let layout = StringTableLayout::new(1 << 16).unwrap();
    for text in texts {
        append(
            map.words(),
            &layout,
            get_id(text.as_bytes()),
            text.as_bytes(),
            0,
        )
        .unwrap();
    }
    append(map.words(), &layout, 7, b"liar", 0).unwrap();
    Arc::new(ProducerNames::new(0, reader))
}

fn left(segment: &Arc<Segment>, cursors: Vec<(usize, Cursor)>) -> Left {
    Left {
        label: LABEL,
        segment: segment.clone(),
        cursors,
        names: names(&["a.neff", "b"]),
    }
}

/// Writes what was left, and lets the thread come to its end.
fn written(folder: &Path, left: Left) {
    let mut spool = Spool::in_folder(folder).unwrap().unwrap();
    spool.keep(left);
}

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join(FOLDER).join("segment-3")
}

/// However far a ring had gone and its reader had come: the rings that are made again say the same to that reader.
#[test]
fn rings_come_back_as_their_reader_would_have_found_them() {
    for events in [0, 1, CAP - 1, CAP, CAP + 3, 2 * CAP, 3 * CAP + 5] {
        for seen in [0, 1, CAP / 2, CAP, 2 * CAP + 1, events] {
            let folder = tempfile::tempdir().unwrap();
            let segment = segment([events, 2]);
            let seen = after(&segment, 0, seen.min(events));
            let cursors = vec![(0, seen.clone()), (3, Cursor::default())];
            written(folder.path(), left(&segment, cursors));

            let id = segment.file_id().unwrap();
            let mut spool = Spool::in_folder(folder.path()).unwrap().unwrap();
            let layout = segment.layout().clone();
            let (fd, beside) = spool.load(LABEL, &layout, &id).unwrap();
            assert_eq!(beside.names, ["a.neff", "b"]);
            let firsts = std::collections::BTreeMap::new();
            let again = Segment::adopt(fd, layout, LABEL.run, &id, LABEL.producer, &firsts);
            let again = again.unwrap();
            assert_eq!(read(&again, 0, seen.clone()), read(&segment, 0, seen));
            let fresh = Cursor::default;
            assert_eq!(read(&again, 3, fresh()), read(&segment, 3, fresh()));
            spool.remove(LABEL.generation);
            drop(spool);
            assert!(!folder.path().join(FOLDER).exists(), "nothing is left");
        }
    }
}

/// Cut anywhere, changed anywhere, of another process: put aside, and never taken.
#[test]
fn files_that_are_not_whole_are_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let segment = segment([3, 1]);
    let cursors = vec![(0, Cursor::default()), (3, Cursor::default())];
    written(folder.path(), left(&segment, cursors));
    // An empty folder would be removed by the spool's thread, at any moment.
    std::fs::write(folder.path().join(FOLDER).join("another's"), "").unwrap();
    let good = std::fs::read(file(folder.path())).unwrap();
    assert!(good.len() > 4 * 112 && good.len() < 4 * 112 + 200);
    let layout = segment.layout();
    let id = segment.file_id().unwrap();
    let mut spool = Spool::in_folder(folder.path()).unwrap().unwrap();
    let mut bad: Vec<Vec<u8>> = (0..good.len())
        .step_by(7)
        .map(|len| good[..len].to_vec())
        .collect();
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 0x10;
        bad.push(changed);
    }
    bad.push([good.clone(), vec![0]].concat());
    for bytes in bad {
        std::fs::write(file(folder.path()), &bytes).unwrap();
        assert!(spool.load(LABEL, layout, &id).is_none());
        assert!(!file(folder.path()).exists());
        let aside = folder.path().join(FOLDER).join("segment-3.aside-0");
        assert_eq!(std::fs::read(&aside).unwrap(), bytes, "kept for a look");
        std::fs::remove_file(aside).unwrap();
        assert!(spool.load(LABEL, layout, &id).is_none(), "there is nothing");
    }
    for other in [
        Label { run: 2, ..LABEL },
        Label {
            producer: 5,
            ..LABEL
        },
    ] {
        std::fs::write(file(folder.path()), &good).unwrap();
        assert!(spool.load(other, layout, &id).is_none());
    }
    std::fs::write(file(folder.path()), &good).unwrap();
    let nonce = FileId { nonce: 9, ..id };
    assert!(spool.load(LABEL, layout, &nonce).is_none());
    std::fs::write(file(folder.path()), &good).unwrap();
    let larger = SegmentLayout::new(CAP, [0, 1]).unwrap();
    assert!(spool.load(LABEL, &larger, &id).is_none());
    std::fs::write(file(folder.path()), &good).unwrap();
    assert!(spool.load(LABEL, layout, &id).is_some());
}

/// Links and pipes are neither followed nor waited for; what has another name is left alone.
#[test]
fn what_is_no_file_of_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let segment = segment([3, 1]);
    let cursors = || vec![(0, Cursor::default()), (3, Cursor::default())];
    written(folder.path(), left(&segment, cursors()));
    let inside = |name: &str| folder.path().join(FOLDER).join(name);
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    for name in ["segment-3.new", "segment-5", "segment-6.new"] {
        std::os::unix::fs::symlink(&precious, inside(name)).unwrap();
    }
    let (fifo, all) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, inside("segment-7"), fifo, all, 0).unwrap();
    for name in ["segment-8", "segment-9.new", "segment-03", "notes"] {
        std::fs::write(inside(name), "x").unwrap();
    }
    let mut spool = Spool::in_folder(folder.path()).unwrap().unwrap();
    let (layout, id) = (segment.layout().clone(), segment.file_id().unwrap());
    for generation in [5, 7] {
        let label = Label {
            generation,
            ..LABEL
        };
        assert!(spool.load(label, &layout, &id).is_none());
    }
    assert!(spool.load(LABEL, &layout, &id).is_some());
    spool.clear_rest();
    assert!(!inside("segment-8").exists() && !inside("segment-9.new").exists());
    assert!(inside("segment-03").exists() && inside("notes").exists());
    assert!(inside("segment-6.new").is_symlink());
    spool.keep(left(&segment, cursors()));
    drop(spool);
    assert!(file(folder.path()).is_file() && !file(folder.path()).is_symlink());
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
}

/// A folder that others may write to, or a link in its place, is not used.
#[test]
fn a_folder_that_is_not_ours_alone_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join(FOLDER);
    std::fs::create_dir(&inside).unwrap();
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(Spool::in_folder(folder.path()).unwrap().is_none());
    std::fs::remove_dir(&inside).unwrap();
    std::os::unix::fs::symlink("/tmp", &inside).unwrap();
    assert!(Spool::in_folder(folder.path()).unwrap().is_none());
}

/// What can't be written is counted, and no half of it stays.
#[test]
fn what_finds_no_room_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let segment = segment([3, CAP + 2]);
    let cursors = vec![(0, Cursor::default()), (3, Cursor::default())];
    let spool = Spool::in_folder(folder.path()).unwrap().unwrap();
    // The folder's place is taken, as on a full disk: nothing can be made there.
    std::fs::write(folder.path().join(FOLDER), "x").unwrap();
    spool.queue.write(&left(&segment, cursors.clone()));
    spool.queue.write(&left(&segment, cursors.clone()));
    assert_eq!(spool.not_kept(), 2 * (3 + CAP));
    std::fs::remove_file(folder.path().join(FOLDER)).unwrap();
    let _late = spool.queue.end.set(Instant::now());
    spool.queue.write(&left(&segment, cursors));
    assert_eq!(spool.not_kept(), 3 * (3 + CAP));
    // The folder itself may be gone by now: the thread removes an empty one.
    let names = std::fs::read_dir(folder.path().join(FOLDER))
        .into_iter()
        .flatten();
    let names: Vec<_> = names.flatten().collect();
    assert!(names.is_empty(), "{names:?}");
}
