//! `cargo +nightly fuzz run reader`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nrt_trace_testkit::reader_survives(bytes));
