//! The host monitor's ticks as JSON: a line for each tick, all that there is for programs, or the objects that Neuron's tools
//! use.
//!
//! A key is left out where its value is not known.

mod values;

use std::io::{self, Write};

use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{HostInfo, HostSample, TracePart};
use serde::Serialize;

use values::{Memory, Producer, Sample, percent};

/// Writes a tick as one line:
/// `{"timestamp":ns,"cpu_util":[{"cpu_id":"0","util":percent},…],"mem_usage":{…},"producers":[…],"saturated":bool}`.
///
/// # Errors
/// Of the writer.
pub fn line(sample: &HostSample, saturated: bool, out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Util {
        cpu_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        util: Option<f32>,
    }
    #[derive(Serialize)]
    struct Line {
        timestamp: u64,
        cpu_util: Vec<Util>,
        mem_usage: Memory,
        producers: Vec<Producer>,
        saturated: bool,
    }
    let util = |cpu: &nrt_trace_proto::v1::HostCpu| Util {
        cpu_id: cpu.cpu_id.to_string(),
        util: cpu.util,
    };
    let line = Line {
        timestamp: sample.timestamp_ns,
        cpu_util: sample.cpus.iter().map(util).collect(),
        mem_usage: Memory::of(sample),
        producers: sample.producers.iter().map(Producer::of).collect(),
        saturated,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// All that a tick has, as an object.
///
/// # Errors
/// None that is known: a tick has no keys that are not strings.
pub fn value(sample: &HostSample) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(Sample::of(sample))
}

/// Writes the ticks of a trace as Neuron's tools do: `{"cpu_util":[…],"mem_usage":[…]}`, with a
/// `{cpu_id, duration, instance_id, timestamp, util}` for each core and tick, and a
/// `{duration, instance_id, percent_usage, timestamp, usage}` for each tick.
///
/// `timestamp` is the tick's, ns; `duration` is the time before it that `util` is over, ns; `usage` is the machine's
/// memory in use, bytes. Memory use: 32 bytes for each tick.
#[derive(Debug)]
pub struct HostWriter<W: Write> {
    out: W,
    instance_id: String,
    usage: Vec<Usage>,
    any: bool,
}

/// A tick's memory, which is written when all cores are.
#[derive(Debug)]
struct Usage {
    duration: u64,
    timestamp: u64,
    usage: u64,
    percent: Option<f32>,
}

impl<W: Write> HostWriter<W> {
    /// Begins a document.
    ///
    /// # Errors
    /// Of the writer.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"cpu_util\":[")?;
        Ok(Self {
            out,
            instance_id: String::new(),
            usage: Vec::new(),
            any: false,
        })
    }

    /// Takes a part of a trace: those that are no tick say nothing here.
    ///
    /// # Errors
    /// Of the writer.
    pub fn part(&mut self, part: &TracePart) -> io::Result<()> {
        match &part.part {
            Some(Part::HostInfo(info)) => {
                self.info(info);
                Ok(())
            }
            Some(Part::HostSample(sample)) => self.sample(sample),
            _ => Ok(()),
        }
    }

    /// Notes whose the ticks are.
    pub fn info(&mut self, info: &HostInfo) {
        self.instance_id.clone_from(&info.instance_id);
    }

    /// Takes a tick.
    ///
    /// # Errors
    /// Of the writer.
    pub fn sample(&mut self, sample: &HostSample) -> io::Result<()> {
        #[derive(Serialize)]
        struct Util<'a> {
            cpu_id: String,
            duration: u64,
            instance_id: &'a str,
            timestamp: u64,
            util: f32,
        }
        for cpu in &sample.cpus {
            let Some(util) = cpu.util else { continue };
            let object = Util {
                cpu_id: cpu.cpu_id.to_string(),
                duration: sample.interval_ns,
                instance_id: &self.instance_id,
                timestamp: sample.timestamp_ns,
                util,
            };
            if std::mem::replace(&mut self.any, true) {
                self.out.write_all(b",")?;
            }
            serde_json::to_writer(&mut self.out, &object)?;
        }
        if let Some((memory, usage)) = sample.memory.and_then(|m| Some((m, m.used_bytes?))) {
            self.usage.push(Usage {
                duration: sample.interval_ns,
                timestamp: sample.timestamp_ns,
                usage,
                percent: percent(&memory),
            });
        }
        Ok(())
    }

    /// Completes the document.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        #[derive(Serialize)]
        struct Object<'a> {
            duration: u64,
            instance_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            percent_usage: Option<f32>,
            timestamp: u64,
            usage: u64,
        }
        self.out.write_all(b"],\"mem_usage\":[")?;
        for (i, usage) in self.usage.iter().enumerate() {
            if i > 0 {
                self.out.write_all(b",")?;
            }
            let object = Object {
                duration: usage.duration,
                instance_id: &self.instance_id,
                percent_usage: usage.percent,
                timestamp: usage.timestamp,
                usage: usage.usage,
            };
            serde_json::to_writer(&mut self.out, &object)?;
        }
        self.out.write_all(b"]}")?;
        self.out.flush()?;
        Ok(self.out)
    }
}
