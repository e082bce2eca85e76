//! The daemon's metrics as OpenMetrics text.
//!
//! | file | what |
//! |---|---|
//! | `table` | every metric: its name, what it says, where its value comes from |
//! | `calls` | what is counted while calls are served |
//!
//! Everything but the calls' own counters is read when it is asked for, from the same answers that `status`, `producers` and
//! `host` give, so that no two of them disagree.

mod calls;
mod table;

use std::fmt;

use nrt_trace_proto::v1;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

pub(crate) use calls::{Calls, Outcome, Seat};
use table::{FAMILIES, Kind};

use crate::host::Ever;
use crate::registry::command::Totals;

/// What the metrics are made from.
#[derive(Debug)]
pub(crate) struct View {
    /// The daemon and its runs.
    pub status: v1::GetStatusResponse,
    /// The processes, those that ended among them.
    pub producers: Vec<v1::Producer>,
    /// What became of all events.
    pub totals: Totals,
    /// The host monitor.
    pub host: v1::HostState,
    /// What it has counted.
    pub ticks: Ever,
    /// The calls so far.
    pub calls: Calls,
}

impl View {
    /// All of it as text, which ends with `# EOF`.
    pub(crate) fn text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for View {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in FAMILIES {
            let metric = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut lines = encoder.encode_descriptor(family.name, family.help, None, metric)?;
            let write = |value: f64, line: MetricEncoder<'_>| match family.kind {
                Kind::Counter => ConstCounter::new(value).encode(line),
                Kind::Gauge => ConstGauge::new(value).encode(line),
            };
            let mut samples = Vec::new();
            (family.samples)(self, &mut |labels, value| samples.push((labels, value)));
            // One without labels has no braces either.
            if let [(labels, value)] = &samples[..]
                && labels.is_empty()
            {
                write(*value, lines)?;
                continue;
            }
            for (labels, value) in samples {
                let labels: Vec<_> = labels
                    .iter()
                    .map(|(name, value)| (*name, escaped(value)))
                    .collect();
                write(value, lines.encode_family(&labels)?)?;
            }
        }
        let seconds = self.calls.seconds();
        let line = encoder.encode_descriptor(
            "nrt_trace_fetch_seconds",
            "Time from a fetch's first part to its last, the client's pace included",
            None,
            seconds.metric_type(),
        )?;
        seconds.encode(line)
    }
}

/// A label's value as the format wants it between its quotes; the library writes what it is given.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text
}
