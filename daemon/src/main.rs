//! `nrt-traced`: the trace collector as a service. Everything is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    nrt_traced::service::main()
}
