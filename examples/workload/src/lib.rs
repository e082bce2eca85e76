//! A data-parallel training step over several processes, instrumented as Neuron's runtime is.
//!
//! N worker processes of T threads each train one small perceptron. Each thread drives a NeuronCore of its own: it
//! multiplies its share of the batch through the layers and back, all-reduces the gradients with all other threads
//! over unix sockets, and updates its replica of the weights. Around that work it emits what the runtime would:
//! loads, tensor and memory calls, executions with their phases, and what the device notes on its own clock.
//!
//! The arithmetic is real, and checked: every replica must end with the same bits, the loss must go down, and the
//! first steps must agree with one process that trains on the whole batch. So is the account of events, by process
//! and type, that a trace of the run can be compared with.
//!
//! [`run_parent`] runs it all; it starts its workers as `program arguments…` ([`Launcher`]), which has to end in
//! [`run_worker`]. That way a program that links this crate needs no second executable.

#![forbid(unsafe_code)]

mod check;
mod collective;
mod config;
mod device;
mod error;
mod execute;
mod instrument;
mod matrix;
mod mlp;
mod parent;
mod random;
mod replica;
mod report;
mod tensor;
mod worker;

pub use config::{Config, Kill, Launcher, WorkerArgs};
pub use error::WorkloadError;
pub use parent::run_parent;
pub use report::{Check, Count, Report, WorkerReport};
pub use worker::run_worker;
