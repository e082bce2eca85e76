//! What the daemon promises a service manager.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod watchdog;
