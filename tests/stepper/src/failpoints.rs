//! The daemon as it is, but that threads of it can be made to hang: what the tests of the watchdog drive.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    nrt_traced::service::main()
}
