//! Captures that programs start, read and stop themselves through the C API.

mod embedded;
mod joined;
mod many;
mod single;

use std::process::Command;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Ended, Host, Link, Running, compile};

/// The status codes that come here.
const SUCCESS: &str = "0";
const FAILURE: &str = "1";
const INVALID: &str = "2";
const TIMEOUT: &str = "5";

/// `tests/c/own.c`, which does what it is told.
struct Own(Running);

impl Own {
    /// The program's command, not started.
    fn command(host: &Host) -> Command {
        let mut command = host.command(compile(host, "tests/c/own.c", Link::Linked));
        // It starts captures; nothing else is worth waiting for.
        command.env_remove("NRT_TRACE_WAIT_MS");
        command
    }

    fn start(command: Command) -> Self {
        Self(Running::start(command))
    }

    fn new(host: &Host) -> Self {
        Self::start(Self::command(host))
    }

    fn ask(&mut self, line: &str) -> String {
        self.0.ask(line).trim().to_owned()
    }

    /// Does all of it, each with the answer it should have.
    fn does(&mut self, steps: &[(&str, &str)]) {
        for (line, answer) in steps {
            assert_eq!(self.ask(line), *answer, "{line}");
        }
    }

    /// Fetches, with the options of `line`.
    fn fetch(&mut self, line: &str) -> Document {
        document(&self.ask(line))
    }

    /// Numbers of thread 0 in a whole fetch.
    fn numbers(&mut self) -> Vec<u64> {
        numbers(self.fetch("fetch").events)
            .remove(&0)
            .unwrap_or_default()
    }

    fn end(self) -> Ended {
        self.0.wait().ok()
    }
}

/// The document of a fetch's answer.
fn document(answer: &str) -> Document {
    let (status, text) = answer.split_once(' ').unwrap_or((answer, ""));
    assert_eq!(status, SUCCESS, "{answer}");
    Document::parse(text.as_bytes())
}
