//! The control API, on a unix socket.
//!
//! | file | what |
//! |---|---|
//! | `serve` | the server's threads, from listening to the end |
//! | `authority`, `hpack` | what clients of unix sockets call the host, made acceptable |
//! | `service` | one method for each RPC |
//! | `strings` | the names, a page at a time |
//! | `fit` | the list of processes, within the size of a message |
//! | `host` | the host monitor's calls |
//! | `metrics` | the metrics' text |
//! | `scrape` | the metrics over HTTP, on a socket of their own |
//! | `stream` | a fetch as a stream |
//! | `subscribe` | a subscription as a stream |
//! | `ending` | the server's end, told to its streams |
//! | `carried` | the runtime's code on refusals that no method made |
//! | `status` | errors as gRPC statuses; the process's own figures |

mod authority;
mod carried;
mod ending;
mod fit;
mod host;
mod hpack;
mod metrics;
mod scrape;
mod serve;
mod service;
mod status;
mod stream;
mod strings;
mod subscribe;

pub(crate) use serve::Server;
pub(crate) use service::Control;
