//! Clients as they are: that go in the middle, read nothing, ask for too much, hold on to a daemon that ends.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::SubscribeFrom;
use tonic::{Code, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::support::{Client, Fake, Host, Live, fetch, host_run, refused, subscription, wait_for};

/// How a stream ends.
fn end_of<T>(client: &Client, mut stream: Streaming<T>) -> Result<(), Status> {
    client.runtime.block_on(async {
        while stream.message().await?.is_some() {}
        Ok(())
    })
}

/// What an open stream is told when the daemon ends, by a daemon that is ended while its streams are read.
struct Told {
    /// A fetch, a snapshot, a subscription and a watch of the host.
    ends: Vec<Status>,
    /// What health watches of the whole server and of the service saw last.
    health: Vec<ServingStatus>,
}

fn end_with_open_streams() -> Told {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(100_000)).unwrap();
    fake.emit_many(0, 100_000); // more than fits between the daemon and a client that does not read
    let watch = v1::WatchHostStatsRequest {
        start: true,
        ..v1::WatchHostStatsRequest::default()
    };
    let socket = host.daemon.control_socket().to_owned();
    let Client { rpc, runtime } = &mut *host;
    let mut health = HealthClient::new(Client::channel(runtime, &socket));
    let (fetched, snapped, ticks, followed, watches) = runtime.block_on(async {
        let of = |service: &str| HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut watches = Vec::new();
        for service in ["", "nrt.trace.v1.TraceControl"] {
            let mut watch = health.watch(of(service)).await.unwrap().into_inner();
            let first = watch.message().await.unwrap().unwrap();
            assert_eq!(first.status(), ServingStatus::Serving);
            watches.push(watch);
        }
        (
            rpc.fetch(fetch()).await.unwrap().into_inner(),
            rpc.snapshot(v1::SnapshotRequest::default())
                .await
                .unwrap()
                .into_inner(),
            rpc.watch_host_stats(watch).await.unwrap().into_inner(),
            rpc.subscribe(subscription(SubscribeFrom::Now))
                .await
                .unwrap()
                .into_inner(),
            watches,
        )
    });
    let Host { daemon, client, .. } = host;
    std::thread::scope(|scope| {
        // Read while the daemon ends: who reads nothing has no status to see.
        scope.spawn(move || daemon.shutdown());
        let mut ends = vec![
            end_of(&client, followed).unwrap_err(),
            end_of(&client, ticks).unwrap_err(),
        ];
        for stream in [fetched, snapped] {
            ends.push(end_of(&client, stream).unwrap_err());
        }
        let health = watches.into_iter().map(|mut watch| {
            client.runtime.block_on(async {
                let mut last = ServingStatus::Serving;
                while let Ok(Some(next)) = watch.message().await {
                    last = next.status();
                }
                last
            })
        });
        let health = health.collect();
        Told { ends, health }
    })
}

/// Case G03: every stream that is open when the daemon ends is told so, read or not, and none keeps it from ending. A client
/// that gets no time to read for a second, on a machine that is busy with other things, sees its connection end instead: that one
/// is asked again.
#[test]
fn g03_open_streams_are_told_that_the_daemon_ends() {
    const TRIES: usize = 20;
    for _ in 0..TRIES {
        let Told { ends, health } = end_with_open_streams();
        let told = |status: &Status| {
            let nrt = status.metadata().get("nrt-status");
            status.code() == Code::Unavailable
                && status.message().contains("shutting down")
                && nrt.is_some_and(|code| code == "14")
        };
        let late = |status: &Status| {
            let lost = [Code::Unavailable, Code::Unknown, Code::Cancelled];
            status.metadata().get("nrt-status").is_none() && lost.contains(&status.code())
        };
        for status in &ends {
            assert!(told(status) || late(status), "{status:?}");
        }
        if ends.iter().all(told) && health == [ServingStatus::NotServing; 2] {
            return;
        }
    }
    panic!("in {TRIES} tries never all streams were told");
}

#[test]
fn g02_a_message_above_the_limit_is_refused_in_either_direction_and_nothing_else() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 10_000);
    fake.emit_many(0, 10_000);
    let mut request = host_run(64);
    request.token = "x".repeat(5 << 20);
    refused(host.start(request), Code::OutOfRange, "4194304");
    // A client whose own limit is below a chunk of records.
    let rpc = host.rpc.clone();
    host.rpc = rpc.max_decoding_message_size(1000);
    refused(host.fetch(fetch()), Code::OutOfRange, "1000");
    host.client = Client::of(host.daemon.control_socket());
    wait_for("the fetch that broke off", || {
        let fetched = host.fetch(fetch());
        fetched.is_ok_and(|fetched| fetched.end().events == 10_000)
    });
}

/// A client that goes without a word in the middle of a subscription, and one whose call is cancelled, leave nothing.
#[test]
fn who_goes_in_the_middle_leaves_nothing_behind() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 100_000);
    let subscribers = |host: &mut Host| {
        let text = crate::metrics::text(host);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("nrt_trace_subscribers "));
        line.unwrap().parse::<f64>().unwrap()
    };
    let other = Client::of(host.daemon.control_socket());
    let gone = Live::of(&other, subscription(SubscribeFrom::Now), 1);
    let cancelled = Live::of(&host, subscription(SubscribeFrom::Now), 1);
    assert!((subscribers(&mut host) - 2.0).abs() < 0.1);
    fake.emit_many(0, 100_000);
    drop(cancelled);
    wait_for("the cancelled call to end", || subscribers(&mut host) < 1.5);
    // The whole connection, with its stream open and full.
    drop(other);
    drop(gone);
    wait_for("the connection to end", || subscribers(&mut host) < 0.5);
    assert_eq!(host.consume().end().events, 100_000);
}

/// Keep-alive pings are answered, as many as a client likes, while nothing else goes on.
#[test]
fn pings_are_answered() {
    const FRAME: usize = 9;
    let host = Host::new();
    let mut socket = UnixStream::connect(host.daemon.control_socket()).unwrap();
    let frame = |kind: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap();
        let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, 0];
        frame.extend_from_slice(payload);
        frame
    };
    socket
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    socket.write_all(&frame(4, &[])).unwrap();
    let (ping, ack) = (6, 1);
    for n in 0..50 {
        socket.write_all(&frame(ping, &[n; 8])).unwrap();
        // Whatever comes beside it: settings, and their acknowledgement.
        loop {
            let mut head = [0; FRAME];
            socket.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            socket.read_exact(&mut payload).unwrap();
            if head[3] == ping {
                assert_eq!((head[4], payload), (ack, vec![n; 8]));
                break;
            }
        }
    }
}
