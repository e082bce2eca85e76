//! `nrt-tracectl host --follow --format json`, line by line.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use nrt_trace_tests::{Host, Running};
use serde_json::Value;

/// A follower of a host's monitor.
pub(crate) struct Follow(Running);

impl Follow {
    /// Follows, at ten ticks a second if this starts the monitor.
    pub(crate) fn start(host: &Host) -> Self {
        let arguments = ["host", "--follow", "--format", "json", "--period", "100ms"];
        Self(Running::start(host.tracectl_command(&arguments)))
    }

    /// The next tick.
    pub(crate) fn next(&mut self) -> Tick {
        Tick(serde_json::from_str(&self.0.read_line()).unwrap())
    }

    /// The first tick that was taken after this was called.
    pub(crate) fn fresh(&mut self) -> Tick {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.until(|tick| u128::from(tick.timestamp()) > since.as_nanos())
    }

    /// The first tick from now on for which `is_it` holds.
    pub(crate) fn until(&mut self, is_it: impl Fn(&Tick) -> bool) -> Tick {
        loop {
            let tick = self.next();
            if is_it(&tick) {
                return tick;
            }
        }
    }
}

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Tick(pub(crate) Value);

impl Tick {
    /// When it was taken, ns.
    pub(crate) fn timestamp(&self) -> u64 {
        self.0["timestamp"].as_u64().unwrap()
    }

    /// Busy shares by CPU; none where the line has none.
    pub(crate) fn utils(&self) -> BTreeMap<u32, Option<f64>> {
        let cpus = self.0["cpu_util"].as_array().unwrap().iter();
        cpus.map(|cpu| {
            let id = cpu["cpu_id"].as_str().unwrap().parse().unwrap();
            (id, cpu.get("util").map(|util| util.as_f64().unwrap()))
        })
        .collect()
    }

    /// An attached process.
    pub(crate) fn producer(&self, pid: u32) -> Option<&Value> {
        let producers = self.0["producers"].as_array().unwrap().iter();
        producers
            .into_iter()
            .find(|producer| producer["pid"] == pid)
    }
}
