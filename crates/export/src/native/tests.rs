use std::io::Cursor;

use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_proto::v1::{FetchEnd, Records, TracePart, trace_part::Part};
use prost::Message as _;

use super::block::{self, Content, Label};
use super::regroup::Merge;
use super::*;

fn end_part(fetch_id: u64) -> TracePart {
    TracePart {
        part: Some(Part::End(FetchEnd {
            fetch_id,
            ..FetchEnd::default()
        })),
    }
}

/// A file with one block of these bytes as parts.
fn file_of(parts: &[u8]) -> Vec<u8> {
    let frame = zstd::bulk::compress(parts, 1).unwrap();
    let size = |n: usize| u32::try_from(n).unwrap();
    let label = Label {
        content: Content::General,
        frame: size(frame.len()),
        raw: size(parts.len()),
    };
    [block::header(), label.to_bytes(), frame, block::end()].concat()
}

#[test]
fn parts_of_a_later_protocol_are_skipped() {
    let mut parts = Vec::new();
    end_part(1).encode_length_delimited(&mut parts).unwrap();
    parts.extend([4, 0x7A, 2, 1, 1]); // field 15, which no part has, with two bytes
    end_part(2).encode_length_delimited(&mut parts).unwrap();
    let file = file_of(&parts);
    let read: Vec<_> = NativeReader::new(file.as_slice())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(read, [end_part(1), end_part(2)]);
    assert_eq!(
        Spool::open(Cursor::new(file))
            .unwrap()
            .index
            .end
            .map(|e| e.fetch_id),
        Some(2)
    );
}

#[test]
fn parts_that_do_not_decode_are_damage_and_not_a_panic() {
    for parts in [&[0xFF; 11][..], &[5, 0x0A][..], &[2, 0x0A, 0xFF][..]] {
        let file = file_of(parts);
        let read: Vec<_> = NativeReader::new(file.as_slice()).unwrap().collect();
        assert!(
            matches!(read[..], [Err(NativeError::Damaged { offset: 24, .. })]),
            "{read:?}"
        );
        assert!(matches!(
            Spool::open(Cursor::new(file)),
            Err(NativeError::Damaged { .. })
        ));
    }
}

#[test]
fn a_frame_that_contradicts_its_label_is_damage() {
    let mut parts = Vec::new();
    end_part(1).encode_length_delimited(&mut parts).unwrap();
    let frame = zstd::bulk::compress(&parts, 1).unwrap();
    let size = |n: usize| u32::try_from(n).unwrap();
    for raw in [size(parts.len()) + 1, size(parts.len()) - 1] {
        let label = Label {
            content: Content::General,
            frame: size(frame.len()),
            raw,
        };
        let file = [
            block::header(),
            label.to_bytes(),
            frame.clone(),
            block::end(),
        ]
        .concat();
        let read: Vec<_> = NativeReader::new(file.as_slice()).unwrap().collect();
        assert!(
            matches!(read[..], [Err(NativeError::Damaged { .. })]),
            "{read:?}"
        );
    }
}

#[test]
fn a_later_version_is_refused_by_number() {
    let mut file = block::header();
    file[12] = 9;
    let error = NativeReader::new(file.as_slice()).unwrap_err();
    assert!(matches!(error, NativeError::Version { found: 9 }));
    assert_eq!(
        error.to_string(),
        "the file has format version 9; this program reads version 1"
    );
}

#[test]
fn what_is_late_beyond_the_bound_stays_where_it_came() {
    let packed: Vec<u8> = [5, 1, 6, 2]
        .iter()
        .flat_map(|seq| Draft::default().finish(*seq).to_bytes())
        .collect();
    let late = vec![Draft::default().finish(1)]; // there was room for this one only
    let mut merge = Merge::new((1, 2), late);
    let mut seqs = Vec::new();
    let mut give = |part| {
        let Part::Records(records) = part else {
            panic!("only records come out of a merge")
        };
        assert_eq!((records.producer_id, records.nc_idx), (1, 2));
        seqs.extend(
            records
                .packed
                .as_chunks()
                .0
                .iter()
                .map(|b| Record::from_bytes(b).seq()),
        );
        Ok::<(), NativeError>(())
    };
    merge
        .records(
            Records {
                producer_id: 1,
                nc_idx: 2,
                packed: packed.into(),
            },
            &mut give,
        )
        .unwrap();
    merge.rest(&mut give).unwrap();
    assert_eq!(seqs, [1, 5, 6, 2]);
}
