//! `cargo +nightly fuzz run packets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nrt_trace_testkit::packet_survives(bytes));
