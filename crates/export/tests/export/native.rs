//! The native file: lossless, readable up to a cut, recognizably damaged or foreign.

use std::io::Cursor;

use nrt_trace_export::{NativeError, NativeReader, NativeWriter, Spool};
use nrt_trace_proto::v1::{Correlation, ProducerAccount, SyncPoint, TracePart, trace_part::Part};
use prost::Message as _;

use crate::parts::{account, begin, correlations, end, names, part, plain, producer, records};

fn sample() -> Vec<TracePart> {
    let sync = Some(SyncPoint {
        nc_timestamp_ns: 1,
        cpu_timestamp_ns: 2,
    });
    vec![
        begin(1, 2),
        names(0, &[(1, "a\0\u{2028}"), (2, "")]),
        producer(1, 10),
        correlations(
            1,
            0,
            vec![Correlation {
                exec_id: 7,
                model_id: None,
                sync,
            }],
        ),
        records(1, 0, &[plain(0, 1), plain(0, 2)]),
        part(Part::Account(account(1, 0, 2))),
        records(1, 3, &[plain(3, 1)]),
        part(Part::Account(account(1, 3, 1))),
        part(Part::ProducerAccount(ProducerAccount {
            producer_id: 1,
            no_ring: 5,
            ..ProducerAccount::default()
        })),
        end(1, 3),
    ]
}

/// A file of these parts with a frame boundary after each, and where the frames end.
fn file_and_frames(parts: &[TracePart]) -> (Vec<u8>, Vec<usize>) {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    let mut ends = vec![usize::try_from(writer.bytes_written()).unwrap()];
    for part in parts {
        writer.part(part).unwrap();
        writer.flush_frame().unwrap();
        ends.push(usize::try_from(writer.bytes_written()).unwrap());
    }
    (writer.finish().unwrap(), ends)
}

fn file(parts: &[TracePart]) -> Vec<u8> {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    for part in parts {
        writer.part(part).unwrap();
    }
    writer.finish().unwrap()
}

fn read(file: &[u8]) -> Vec<TracePart> {
    NativeReader::new(file)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn every_part_comes_back_as_it_was() {
    assert_eq!(read(&file(&sample())), sample());
    assert_eq!(read(&file_and_frames(&sample()).0), sample());
    assert_eq!(read(&file(&[])), []);
}

#[test]
fn large_traces_come_back_in_many_blocks() {
    let mut parts = vec![begin(1, 1), producer(1, 10)];
    for chunk in 0..30 {
        let chunk: Vec<_> = (1..=3000).map(|i| plain(0, chunk * 3000 + i)).collect();
        parts.push(records(1, 0, &chunk));
    }
    // One part beyond the size of a block.
    parts.push(names(0, &[(1, &"x".repeat(3 << 20))]));
    parts.push(end(1, 90_000));
    let file = file(&parts);
    assert_eq!(read(&file), parts);
    assert_eq!(Spool::open(Cursor::new(&file)).unwrap().events(), 90_000);
}

#[test]
fn any_zstd_reader_gets_the_length_delimited_messages() {
    let plain_stream: Vec<u8> = sample()
        .iter()
        .flat_map(TracePart::encode_length_delimited_to_vec)
        .collect();
    assert_eq!(
        zstd::stream::decode_all(file(&sample()).as_slice()).unwrap(),
        plain_stream
    );
}

#[test]
fn a_file_cut_anywhere_reads_up_to_the_last_whole_frame_and_says_so() {
    let (file, ends) = file_and_frames(&sample());
    for length in 0..file.len() {
        let cut = &file[..length];
        let reader = match NativeReader::new(cut) {
            Ok(reader) => reader,
            Err(error) => {
                assert!(
                    length < ends[0] && matches!(error, NativeError::Foreign),
                    "{length}: {error}"
                );
                continue;
            }
        };
        let whole = ends.iter().filter(|e| **e <= length).count() - 1;
        let items: Vec<_> = reader.collect();
        let (last, parts) = items.split_last().unwrap();
        let parts: Vec<_> = parts.iter().map(|p| p.as_ref().unwrap().clone()).collect();
        assert_eq!(parts, sample()[..whole], "cut at {length}");
        match last {
            Err(NativeError::Cut { offset }) => {
                assert_eq!(*offset, ends[whole] as u64, "cut at {length}");
            }
            other => panic!("cut at {length}: {other:?}"),
        }
        let spool = Spool::open(Cursor::new(cut)).unwrap();
        assert!(
            matches!(spool.cut(), Some(NativeError::Cut { offset }) if *offset == ends[whole] as u64)
        );
    }
    assert!(Spool::open(Cursor::new(&file)).unwrap().cut().is_none());
}

/// Parts up to the first error, and whether there was one.
fn read_damaged(file: &[u8]) -> (Vec<TracePart>, bool) {
    let Ok(reader) = NativeReader::new(file) else {
        return (Vec::new(), true);
    };
    let items: Vec<_> = reader.collect();
    let failed = items.last().is_some_and(Result::is_err);
    (items.into_iter().map_while(Result::ok).collect(), failed)
}

fn regroup(file: Vec<u8>) -> Result<Vec<TracePart>, NativeError> {
    let mut spool = Spool::open(Cursor::new(file))?;
    let mut parts = Vec::new();
    spool.regroup(|part| {
        parts.push(part);
        Ok::<(), NativeError>(())
    })?;
    match spool.cut() {
        Some(cut) => Err(NativeError::Damaged {
            offset: 0,
            what: cut.to_string(),
        }),
        None => Ok(parts),
    }
}

#[test]
fn a_byte_that_changed_anywhere_is_noticed_or_changes_nothing() {
    let (file, _) = file_and_frames(&sample());
    let whole = regroup(file.clone()).unwrap();
    let mut noticed = 0;
    for at in 0..file.len() {
        for flip in [0x01, 0x10, 0x80] {
            let mut damaged = file.clone();
            damaged[at] ^= flip;
            let (parts, failed) = read_damaged(&damaged);
            assert!(failed || parts.len() == sample().len(), "byte {at}");
            assert_eq!(
                parts,
                sample()[..parts.len()],
                "byte {at}: what stands before is sound"
            );
            noticed += usize::from(failed);
            if let Ok(parts) = regroup(damaged) {
                assert_eq!(parts, whole, "byte {at}");
            }
        }
    }
    // Some bits of a zstd frame's header mean nothing for its content.
    assert!(
        noticed * 100 > file.len() * 3 * 97,
        "{noticed} of {} flips",
        file.len() * 3
    );
}

#[test]
fn other_files_are_foreign() {
    for other in [
        &b""[..],
        b"{\"events\":[],\"data_version\":2}",
        &[0x28, 0xB5, 0x2F, 0xFD, 0, 0, 0, 0],
        &[0; 100],
    ] {
        let error = NativeReader::new(other).unwrap_err();
        assert!(matches!(error, NativeError::Foreign));
        assert_eq!(error.to_string(), "this is not a native trace file (.nrtt)");
        assert!(matches!(
            Spool::open(Cursor::new(other)),
            Err(NativeError::Foreign)
        ));
    }
}
