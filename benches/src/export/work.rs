//! One measurement: a native file from the page cache to /dev/null.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use nrt_trace_export::{
    CsvWriter, JsonOptions, JsonWriter, NativeError, PftraceOptions, PftraceWriter, Spool, Summary,
};
use nrt_trace_proto::v1::TracePart;
use rustix::time::{ClockId, clock_gettime};

use super::{Measured, Product};

/// /dev/null, and how much went there.
struct Null {
    file: File,
    bytes: u64,
}

impl Write for Null {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Makes the product.
pub(super) fn measure(product: Product, file: &Path) -> Result<Measured> {
    let (wall, cpu) = (Instant::now(), cpu_ns());
    let mut spool = Spool::open(File::open(file)?)?;
    let null = Null {
        file: File::options().write(true).open("/dev/null")?,
        bytes: 0,
    };
    let bytes = match product {
        Product::Read => {
            each(&mut spool, |_| Ok(()))?;
            0
        }
        Product::Pftrace => {
            let mut writer = PftraceWriter::new(null, PftraceOptions::default())?;
            each(&mut spool, |part| writer.part(part))?;
            writer.finish()?.bytes
        }
        Product::Json => {
            let mut writer = JsonWriter::new(null, JsonOptions::default());
            each(&mut spool, |part| writer.part(part))?;
            writer.finish()?.bytes
        }
        Product::Summary => {
            let mut summary = Summary::default();
            each(&mut spool, |part| {
                summary.part(part);
                Ok(())
            })?;
            summary.to_json().len() as u64
        }
        Product::Csv => {
            let mut writer = CsvWriter::new(null);
            each(&mut spool, |part| writer.part(part))?;
            writer.finish()?.bytes
        }
    };
    let wall_ns = u64::try_from(wall.elapsed().as_nanos())?;
    Ok(Measured {
        events: spool.events(),
        bytes,
        wall_ns,
        cpu_ns: cpu_ns() - cpu,
        peak_bytes: peak_bytes()?,
    })
}

fn each(spool: &mut Spool<File>, mut take: impl FnMut(&TracePart) -> io::Result<()>) -> Result<()> {
    spool
        .regroup_ahead(|part| take(&part).map_err(NativeError::from))
        .map_err(Into::into)
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
}

/// The most memory that this process ever had resident.
fn peak_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let kib: u64 = number.context("no VmHWM in /proc/self/status")?.parse()?;
    Ok(kib * 1024)
}
