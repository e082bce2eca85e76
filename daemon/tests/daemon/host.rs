//! The host monitor over the control API and the producer socket.

use std::collections::BTreeSet;

use nrt_trace_abi::host_stats::{DATA_BYTES, HostStatsAsk, HostStatsHead, tick_bytes};
use nrt_trace_abi::message;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::HostRetention;
use nrt_trace_shm::socket;
use nrt_traced::Retention;
use tonic::{Code, Status, Streaming};

use crate::support::{Client, Fake, Host, connect, receive, refused, send, wait_for};

impl Client {
    fn start_host(
        &mut self,
        request: v1::StartHostRequest,
    ) -> Result<v1::StartHostResponse, Status> {
        self.runtime
            .block_on(self.rpc.start_host(request))
            .map(tonic::Response::into_inner)
    }

    fn stop_host(&mut self) -> v1::HostState {
        let reply = self
            .runtime
            .block_on(self.rpc.stop_host(v1::StopHostRequest {}));
        reply.unwrap().into_inner().state.unwrap()
    }

    fn host_stats(&mut self, after_seq: Option<u64>) -> v1::GetHostStatsResponse {
        let request = v1::GetHostStatsRequest { after_seq };
        let reply = self.runtime.block_on(self.rpc.get_host_stats(request));
        reply.unwrap().into_inner()
    }

    fn host_state(&mut self) -> v1::HostState {
        self.host_stats(None).state.unwrap()
    }

    fn watch(&mut self, start: bool) -> Result<Streaming<v1::WatchHostStatsResponse>, Status> {
        let request = v1::WatchHostStatsRequest {
            start,
            period_ms: None,
        };
        self.runtime
            .block_on(self.rpc.watch_host_stats(request))
            .map(tonic::Response::into_inner)
    }

    fn next(
        &mut self,
        stream: &mut Streaming<v1::WatchHostStatsResponse>,
    ) -> Option<v1::WatchHostStatsResponse> {
        self.runtime.block_on(stream.message()).unwrap()
    }
}

/// A daemon whose monitor ticks as fast as it may.
fn quick(change: impl FnOnce(&mut nrt_traced::HostSettings)) -> Host {
    Host::with(|config| {
        config.host.period_ms = 100;
        change(&mut config.host);
    })
}

/// A tick is all of one reading.
fn check(sample: &v1::HostSample) {
    assert!(sample.interval_ns > 0 && sample.timestamp_ns > 0);
    assert!(!sample.cpus.is_empty());
    let ids: BTreeSet<u32> = sample.cpus.iter().map(|cpu| cpu.cpu_id).collect();
    assert_eq!(ids.len(), sample.cpus.len());
    for cpu in &sample.cpus {
        let shares = [
            cpu.util, cpu.user, cpu.system, cpu.idle, cpu.iowait, cpu.steal,
        ];
        assert!(
            shares
                .iter()
                .flatten()
                .all(|share| (0.0..=100.0).contains(share)),
            "{cpu:?}"
        );
    }
    assert!(sample.memory.is_some() && sample.load.is_some());
}

#[test]
fn the_monitor_is_off_until_somebody_starts_it() {
    let mut host = quick(|_| {});
    let answer = host.host_stats(Some(0));
    let state = answer.state.unwrap();
    assert_eq!(
        (state.running, state.num_samples, state.max_samples),
        (false, 0, 10_000)
    );
    assert!(answer.info.is_none() && answer.samples.is_empty());
    refused(host.watch(false), Code::FailedPrecondition, "off");

    let started = host.start_host(v1::StartHostRequest::default()).unwrap();
    assert!(started.state.unwrap().running && !started.was_running);
    wait_for("a few ticks", || host.host_state().num_samples >= 3);
    let answer = host.host_stats(Some(0));
    let info = answer.info.unwrap();
    assert!(info.cpus > 0 && info.page_bytes > 0 && !info.instance_id.is_empty());
    assert!(!answer.more && answer.samples.len() >= 3);
    for (expected, sample) in (1..).zip(&answer.samples) {
        assert_eq!(sample.seq, expected);
        check(sample);
    }
    assert!(
        answer
            .samples
            .is_sorted_by_key(|sample| sample.timestamp_ns)
    );
    let newest = host.host_stats(None).samples;
    assert_eq!(newest.len(), 1);
    let later = host.host_stats(Some(newest[0].seq)).samples;
    assert!(later.iter().all(|sample| sample.seq > newest[0].seq));

    assert!(
        host.start_host(v1::StartHostRequest::default())
            .unwrap()
            .was_running
    );
    let other = v1::StartHostRequest {
        period_ms: Some(200),
        ..Default::default()
    };
    refused(
        host.start_host(other),
        Code::FailedPrecondition,
        "period of 100 ms",
    );
    let stopped = host.stop_host();
    assert!(
        !stopped.running && stopped.num_samples >= 3,
        "what it kept stays"
    );
    assert!(host.start_host(other).unwrap().state.unwrap().period_ms == 200);
}

/// Case G10 for the retention: a number that is none of its names is refused, and not taken for the first of them.
#[test]
fn g10_values_that_are_not_allowed_are_refused() {
    let mut host = quick(|_| {});
    for (request, words) in [
        (
            v1::StartHostRequest {
                period_ms: Some(99),
                ..Default::default()
            },
            "100 to 60000",
        ),
        (
            v1::StartHostRequest {
                period_ms: Some(60_001),
                ..Default::default()
            },
            "100 to 60000",
        ),
        (
            v1::StartHostRequest {
                max_samples: Some(0),
                ..Default::default()
            },
            "at least 1",
        ),
        (
            v1::StartHostRequest {
                retention: 9,
                ..Default::default()
            },
            "retention 9",
        ),
    ] {
        refused(host.start_host(request), Code::InvalidArgument, words);
    }
    assert!(!host.host_state().running);
}

#[test]
fn at_max_samples_sampling_stops_and_every_answer_says_so() {
    let mut host = quick(|settings| settings.max_samples = 3);
    host.start_host(v1::StartHostRequest::default()).unwrap();
    let mut stream = host.watch(true).unwrap();
    let mut seen = Vec::new();
    while let Some(response) = host.next(&mut stream) {
        seen.push((response.sample.unwrap().seq, response.saturated));
    }
    assert_eq!(seen.last(), Some(&(3, true)));
    assert!(
        seen.iter().rev().skip(1).all(|(_, saturated)| !saturated),
        "{seen:?}"
    );
    for _ in 0..3 {
        let state = host.host_state();
        assert!(state.saturated && !state.running);
        assert_eq!((state.num_samples, state.max_samples), (3, 3));
    }
    // Later comers are told at once, and nothing is sampled for them.
    for start in [true, false] {
        let mut late = host.watch(start).unwrap();
        let response = host.next(&mut late).unwrap();
        assert_eq!(
            (response.sample.unwrap().seq, response.saturated),
            (3, true)
        );
        assert!(host.next(&mut late).is_none());
    }
    assert_eq!(host.host_stats(Some(0)).samples.len(), 3);
    // Started again, it begins anew.
    let state = host
        .start_host(v1::StartHostRequest::default())
        .unwrap()
        .state
        .unwrap();
    assert!(state.running && !state.saturated);
    wait_for("a new tick", || {
        host.host_stats(None)
            .samples
            .iter()
            .any(|sample| sample.seq > 3)
    });
}

#[test]
fn a_ring_keeps_the_newest() {
    let mut host = quick(|settings| {
        settings.enabled = true;
        settings.max_samples = 2;
        settings.retention = Retention::Ring;
    });
    wait_for("the fifth tick", || {
        host.host_stats(None).samples.iter().any(|s| s.seq >= 5)
    });
    let answer = host.host_stats(Some(0));
    let state = answer.state.unwrap();
    assert_eq!(
        (state.retention(), state.num_samples),
        (HostRetention::Ring, 2)
    );
    assert!(state.running && state.armed && !state.saturated);
    assert!(answer.samples.len() == 2 && answer.samples[0].seq + 1 == answer.samples[1].seq);
}

#[test]
fn a_stream_keeps_the_monitor_going_and_no_longer() {
    let mut host = quick(|_| {});
    let mut first = host.watch(true).unwrap();
    let response = host.next(&mut first).unwrap();
    assert!(response.info.is_some() && !response.saturated);
    check(&response.sample.unwrap());
    let state = host.host_state();
    assert!(state.running && !state.armed && state.watchers == 1);
    let mut second = host.watch(true).unwrap();
    drop(first);
    wait_for("the first to be gone", || host.host_state().watchers == 1);
    let seq = host.next(&mut second).unwrap().sample.unwrap().seq;
    assert_eq!(
        host.next(&mut second).unwrap().sample.unwrap().seq,
        seq + 1,
        "no tick is left out"
    );
    assert!(host.stop_host().running, "a stream keeps it");
    drop(second);
    wait_for("the monitor to stop", || !host.host_state().running);
    // An armed one does not care for streams, and ends those that did not start it.
    host.start_host(v1::StartHostRequest::default()).unwrap();
    let mut third = host.watch(false).unwrap();
    assert!(host.next(&mut third).is_some());
    host.stop_host();
    while host.next(&mut third).is_some() {}
}

#[test]
fn attached_processes_are_sampled_until_they_detach() {
    let mut host = quick(|settings| settings.enabled = true);
    let fake = Fake::attach(&host, "trainer");
    let of = |host: &mut Host| -> Option<v1::HostProducer> {
        let samples = host.host_stats(None).samples;
        let producers = samples.into_iter().flat_map(|sample| sample.producers);
        producers
            .into_iter()
            .find(|producer| producer.name == "trainer")
    };
    wait_for("its first entry", || {
        of(&mut host).is_some_and(|p| p.cpu_percent.is_some())
    });
    let seen = of(&mut host).unwrap();
    assert_eq!(seen.producer_id, fake.id);
    assert_eq!(seen.pid, i32::try_from(std::process::id()).ok());
    // Other tests run in this process: it grows and shrinks between the monitor's look and ours, but not always.
    wait_for("its memory to be what it is", || {
        let seen = of(&mut host).and_then(|seen| seen.rss_bytes);
        let process = procfs::process::Process::myself().unwrap();
        let rss = process.status().unwrap().vmrss.unwrap() * 1024;
        seen.is_some_and(|seen| seen.abs_diff(rss) < rss / 2)
    });
    assert!(
        seen.threads > Some(1) && seen.vm_size_bytes > seen.rss_bytes,
        "{seen:?}"
    );
    assert!(
        seen.cpu_ns.is_some() && seen.voluntary_switches.is_some(),
        "{seen:?}"
    );
    let id = fake.id;
    fake.detach();
    wait_for("its last entry", || {
        let all = host.host_stats(Some(0)).samples;
        all.iter()
            .flat_map(|s| &s.producers)
            .any(|p| p.producer_id == id && p.ended)
    });
    wait_for("no entry", || of(&mut host).is_none());
}

#[test]
fn a_reader_in_a_loop_never_sees_half_a_tick() {
    let mut host = quick(|settings| settings.enabled = true);
    wait_for("the first tick", || host.host_state().num_samples > 0);
    let mut whole = std::collections::BTreeMap::new();
    while whole.len() < 8 {
        for sample in host.host_stats(Some(0)).samples {
            check(&sample);
            let first = whole.entry(sample.seq).or_insert_with(|| sample.clone());
            assert_eq!(*first, sample, "a tick is never changed");
        }
    }
}

#[test]
fn a_long_history_comes_in_pages() {
    let mut host = quick(|settings| settings.enabled = true);
    wait_for("two ticks", || host.host_state().num_samples >= 2);
    let answer = host.host_stats(Some(0));
    let (mut seen, mut after) = (0, 0);
    loop {
        let page = host.host_stats(Some(after));
        seen += page.samples.len();
        after = page.samples.last().map_or(after, |sample| sample.seq);
        if !page.more {
            break;
        }
    }
    assert!(seen >= answer.samples.len());
}

/// Asks as a C program does.
fn ask(host: &Host) -> (HostStatsHead, Vec<u8>) {
    let socket = connect(host);
    assert!(send(&socket, &HostStatsAsk::new()));
    let (head, _) = receive(&socket).unwrap();
    let head = message::parse(&head).unwrap();
    let (mut bytes, mut packet) = (Vec::new(), vec![0; DATA_BYTES]);
    loop {
        match socket::receive(&socket, &mut packet).unwrap().bytes {
            0 => break,
            n => bytes.extend_from_slice(&packet[..n]),
        }
    }
    (head, bytes)
}

#[test]
fn a_c_program_gets_the_ticks_on_the_producer_socket() {
    let mut host = quick(|settings| settings.max_samples = 4);
    let (head, bytes) = ask(&host);
    assert_eq!((head.samples, head.max_samples, bytes.len()), (0, 4, 0));

    let _attached = Fake::attach(&host, "asker");
    host.client
        .start_host(v1::StartHostRequest::default())
        .unwrap();
    wait_for("the end", || host.client.host_state().saturated);
    let (head, bytes) = ask(&host);
    let kept = host.client.host_stats(Some(0));
    assert_eq!((head.samples, head.saturated, head.period_ms), (4, 1, 100));
    assert_eq!(head.cpu_name(), Some(kept.info.unwrap().cpu_name.as_str()));
    assert_eq!(bytes.len(), 4 * tick_bytes(head.cpus));
    for (bytes, sample) in bytes.chunks(tick_bytes(head.cpus)).zip(&kept.samples) {
        let at = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap());
        assert_eq!(at(0), sample.timestamp_ns);
        assert_eq!(Some(at(8)), sample.producers[0].rss_bytes);
        for cpu in &sample.cpus {
            let i = 16 + cpu.cpu_id as usize * 4;
            let util = f32::from_le_bytes(bytes[i..i + 4].try_into().unwrap());
            assert_eq!((!util.is_nan()).then_some(util), cpu.util);
        }
    }
}
