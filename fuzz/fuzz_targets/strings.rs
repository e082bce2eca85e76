//! `cargo +nightly fuzz run strings`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nrt_trace_testkit::string_reader_survives(bytes));
