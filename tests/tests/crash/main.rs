//! Any process may be stopped or killed between any two steps, and no other one hangs, or loses or corrupts an event.
//!
//! | file | what |
//! |---|---|
//! | `spec` | a case in a line of text, by which it can be repeated |
//! | `world` | a daemon with small rings, and a witness: a process that nobody stops |
//! | `ring` | a process of a case: threads that stop at steps, and what its ring must then hold |
//! | `one` | one thread stops, at every step, with every filling of the ring |
//! | `pairs` | two threads stop, of one process and of two |
//! | `names` | a thread stops while it interns a name that another one interns too |
//! | `gate` | a thread stops between its look at the gate and its claim |
//! | `background` | the background thread stops: attach, arm, disarm |
//! | `daemon` | the daemon is killed at every step of its own |
//! | `recording` | the daemon is killed in the commit of a recording, which goes on with the next one |
//! | `reader` | the daemon stops in the middle of a copy |
//! | `random` | no label: everybody at full speed, and a kill at some moment |
//! | `leftovers` | what killed processes leave in the daemon: nothing but events |
//! | `table` | `docs/crash-table.md` is whole |
//!
//! A failed case prints a line that repeats it: `NRT_TRACE_CASE='…' cargo test -p nrt-trace-tests --test crash by_name`.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and shows what it printed"
)]

mod background;
mod daemon;
mod gate;
mod leftovers;
mod names;
mod one;
mod pairs;
mod random;
mod reader;
mod recording;
mod ring;
mod spec;
mod table;
mod world;
