//! Measures a fetch: events a second from a full ring over gRPC, records counted and thrown away.
//!
//! `cargo run --release -p nrt-traced --example fetch_rate [events]`

#![expect(clippy::print_stdout, reason = "its figures are what it is run for")]

use std::error::Error;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::Instant;

use nrt_trace_abi::layout::SegmentLayout;
use nrt_trace_abi::message::{self, Arm, Armed, Hello, Message};
use nrt_trace_abi::record::{Draft, RECORD_BYTES};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_ring::Producer;
use nrt_trace_shm::{WriteMapping, socket};
use nrt_traced::{Config, Daemon};
use tonic::transport::Endpoint;

/// Event types of a step of a training program, hardware events and what explains them among them.
const STEP: [u32; 12] = [3, 17, 25, 7, 8, 8, 7, 19, 20, 9, 10, 3];

fn main() -> Result<(), Box<dyn Error>> {
    let events: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(4_000_000), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("nrt-fetch-rate-{}", std::process::id()));
    let mut config = Config::embedded_in(&folder);
    config.default_cores = 1;
    let daemon = Daemon::start(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let endpoint = Endpoint::from_shared(format!("unix://{}", daemon.control_socket().display()))?;
    let mut client =
        runtime.block_on(async { endpoint.connect().await.map(TraceControlClient::new) })?;

    let connection = socket::connect(daemon.producer_socket())?;
    socket::send(
        &connection,
        zerocopy::IntoBytes::as_bytes(&Hello::new()),
        &[],
    )?;
    let (sender, rings) = mpsc::channel();
    std::thread::spawn(move || serve(&connection, &sender));
    while runtime
        .block_on(client.get_status(v1::GetStatusRequest {}))?
        .into_inner()
        .producers
        == 0
    {}
    let start = v1::StartRequest {
        max_events_per_nc: Some(events),
        ..Default::default()
    };
    runtime.block_on(client.start(start))?;

    let (map, layout) = rings.recv()?;
    let first = layout.ring_word(0).ok_or("no ring")?;
    let ring = Producer::new(&map.words()[first..], *layout.geometry()).ok_or("a short ring")?;
    let began = Instant::now();
    for n in 0..events {
        let trace_type = STEP[usize::try_from(n)? % STEP.len()];
        let exec = n / STEP.len() as u64;
        let data = if matches!(trace_type, 7) {
            [exec << 32, n, 0, 0, 0]
        } else {
            [exec, exec, exec, 0, 0]
        };
        let draft = Draft {
            trace_type,
            timestamp_ns: n,
            data,
            ..Draft::default()
        };
        let _ = ring.push(|seq| draft.finish(seq));
    }
    report("emitted", events, began);

    for round in 1..=3 {
        let began = Instant::now();
        let records = runtime.block_on(async {
            let mut stream = client
                .fetch(v1::FetchRequest::default())
                .await?
                .into_inner();
            let mut records = 0;
            while let Some(part) = stream.message().await? {
                if let Some(Part::Records(chunk)) = part.part {
                    records += (chunk.packed.len() / RECORD_BYTES) as u64;
                }
            }
            Ok::<_, tonic::Status>(records)
        })?;
        assert_eq!(records, events);
        report(&format!("fetch {round}"), records, began);
    }
    let status = runtime
        .block_on(client.get_status(v1::GetStatusRequest {}))?
        .into_inner();
    println!(
        "CPU {:.2} s, memory {} MiB beside {} MiB of rings",
        std::time::Duration::from_nanos(status.cpu_ns).as_secs_f64(),
        status.rss_bytes >> 20,
        status.resident_bytes >> 20
    );
    daemon.shutdown();
    std::fs::remove_dir(&folder)?;
    Ok(())
}

fn report(what: &str, events: u64, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{what}: {events} events in {seconds:.3} s, {:.2} M/s",
        f64::from(u32::try_from(events).unwrap_or(0)) / seconds / 1e6
    );
}

/// The library's side: maps the rings it is sent and says so.
fn serve(connection: &OwnedFd, rings: &mpsc::Sender<(WriteMapping, SegmentLayout)>) -> Option<()> {
    let mut packet = [0; message::MAX_BYTES];
    loop {
        let received = socket::receive(connection, &mut packet)
            .ok()
            .filter(|received| received.bytes > 0)?;
        let Ok(arm) = message::parse::<Arm>(&packet[..received.bytes]) else {
            continue;
        };
        let map = WriteMapping::map(received.fds.first()?, arm.segment_bytes).ok()?;
        let header =
            std::array::from_fn(|at| map.words()[at].load(std::sync::atomic::Ordering::Relaxed));
        let (layout, generation) = SegmentLayout::from_header(&header, arm.segment_bytes)?;
        rings.send((map, layout)).ok()?;
        let armed = Armed {
            header: Armed::header(),
            generation,
            errno: 0,
            reserved: 0,
        };
        socket::send(connection, zerocopy::IntoBytes::as_bytes(&armed), &[]).ok()?;
    }
}
