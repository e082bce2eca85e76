//! Random bytes, and what the fuzzer found worth keeping.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use nrt_trace_testkit::{packet_survives, reader_survives, string_reader_survives};
use proptest::prelude::*;

/// Runs a check over a target's committed corpus; there must be one.
fn corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut count = 0;
    for file in files {
        check(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn the_corpus_of_the_reader_holds() {
    corpus("reader", reader_survives);
}

#[test]
fn the_corpus_of_the_string_reader_holds() {
    corpus("strings", string_reader_survives);
}

#[test]
fn the_corpus_of_the_packets_holds() {
    corpus("packets", packet_survives);
}

proptest! {
    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
        reader_survives(&bytes);
        string_reader_survives(&bytes);
        packet_survives(&bytes);
    }
}
