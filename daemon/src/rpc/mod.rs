//! The control API, on a unix socket.
//!
//! | file | what |
//! |---|---|
//! | `serve` | the server's threads, from listening to the end |
//! | `authority`, `hpack` | what clients of unix sockets call the host, made acceptable |
//! | `service` | one method for each RPC |
//! | `strings` | the names, a page at a time |
//! | `host` | the host monitor's calls |
//! | `metrics` | the metrics' text |
//! | `stream` | a fetch as a stream |
//! | `status` | errors as gRPC statuses; the process's own figures |

mod authority;
mod host;
mod hpack;
mod metrics;
mod serve;
mod service;
mod status;
mod stream;
mod strings;

pub(crate) use serve::Server;
pub(crate) use service::Control;
