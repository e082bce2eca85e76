//! Without a daemon: control page and rings that the process makes itself, of the same kind as the daemon's.
//!
//! Emit, fork and reading are the same code. What a daemon would do beside is left out: event times come from
//! `clock_gettime`, and memory is taken page by page as events come.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nrt_trace_abi::layout::SegmentLayout;
use nrt_trace_abi::{MAX_NCS, gate};
use nrt_trace_model::Status as Code;
use nrt_trace_shm::clock::realtime_ns;
use nrt_trace_shm::control::ControlPage;
use nrt_trace_shm::{memfd, threads};

use super::rings::Rings;
use super::{Capture, OwnConfig, own};
use crate::process::{self, CONTROL};
use crate::segment::{BadSegment, Segment};
use crate::{fork, log};

/// How long the end waits for threads to leave their emits.
const LEAVE: Duration = Duration::from_millis(80);

/// Numbers of captures, which gates and segments carry. The low 16 bits of an earlier daemon's may be the same only while
/// its segment is not published.
static GENERATION: AtomicU64 = AtomicU64::new(1);

/// What has to be undone.
#[derive(Debug)]
pub(super) struct Embedded {
    page: ControlPage,
}

/// Makes rings and gates, and opens them. The caller has claimed the right to.
pub(super) fn begin(config: OwnConfig) -> Result<Capture, Code> {
    make(config).map_err(|why| {
        process::release_embedded();
        log::write(log::WARN, &format!("no memory for the system trace: {why}"));
        Code::Resource
    })
}

fn make(config: OwnConfig) -> Result<Capture, String> {
    let mut ncs: Vec<usize> = (0..fork::cores())
        .filter(|&nc| config.wants_nc(nc))
        .collect();
    if ncs.is_empty() {
        ncs.push(0); // a ring whose gate stays closed
    }
    let layout =
        SegmentLayout::new(config.max_events_per_nc, ncs).ok_or("so many events fit no memory")?;
    let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
    let text = |error: nrt_trace_shm::ShmError| error.to_string();
    let fd = memfd::create("nrt-trace-segment", layout.bytes()).map_err(text)?;
    memfd::write_words(
        &fd,
        &layout.header([realtime_ns(), generation], generation, 0),
    )
    .map_err(text)?;
    memfd::seal_size(&fd).map_err(text)?;
    let segment =
        Segment::map(fd.as_fd(), layout.bytes(), generation).map_err(|bad| match bad {
            BadSegment::Shm(error) => error.to_string(),
            BadSegment::Header => "its header contradicts itself".to_owned(),
        })?;
    let (page, page_fd) = ControlPage::create(0).map_err(text)?;
    page.set_clock(None);
    // Before anything is to be unmapped in a given time: the first call takes some itself.
    let _known = threads::barriers_work();
    // Closed gates first, as when a daemon attaches.
    CONTROL.map(&page_fd).map_err(text)?;
    process::new_instance();
    own().mail.forget_rings();
    own().mail.add_rings(&segment);
    if let Some(orphan) = process::segment().replace(Some(Box::new(segment))) {
        // Of a daemon that is gone. Threads that stay inside it keep it.
        drop(orphan.reclaim(Instant::now() + LEAVE));
    }
    let open = gate::open(config.types, generation);
    let gates =
        std::array::from_fn::<_, MAX_NCS, _>(|nc| if config.wants_nc(nc) { open } else { 0 });
    page.set_gates(&gates);
    page.set_state(true, generation);
    Ok(Capture {
        config,
        rings: Rings::default(),
        embedded: Some(Embedded { page }),
        memo: None,
        told: false,
    })
}

impl Embedded {
    /// Closes the gates and takes the rings away.
    pub(super) fn end(self) {
        self.page.set_gates(&[0; MAX_NCS]);
        self.page.set_state(false, 0);
        if let Some(old) = process::segment().replace(None) {
            // A thread that is stopped inside an emit keeps it: it is leaked.
            drop(old.reclaim(Instant::now() + LEAVE));
        }
        CONTROL.clear();
        process::release_embedded();
    }
}
