//! Start, stop and start again, with other sizes and filters, while eight processes emit as fast as they can.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use nrt_trace_proto::v1;
use nrt_trace_tests::Host;
use nrt_trace_tests::control::{Control, Fetched};
use nrt_trace_tests::held::{Held, maps};
use nrt_trace_tests::wait::until;

const PROCESSES: u32 = 8;
/// Cycles after which what a process holds has come to what it stays at: the library keeps eight sets of rings.
const WARM: u32 = 16;

/// How often: a thousand times with `NRT_TRACE_LONG_TESTS=1`.
fn cycles() -> u32 {
    if std::env::var_os("NRT_TRACE_LONG_TESTS").is_some() {
        1000
    } else {
        60
    }
}

/// A process that emits until this is dropped: the long form takes longer than any one program may.
struct Emitter(Child);

impl Emitter {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("the probe can be started"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Emitter {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// One start, by the cycle's number: sizes, cores and types are all combinations in turn.
fn request(cycle: u32) -> v1::StartRequest {
    let pick = |list: &[u64]| list[cycle as usize % list.len()];
    v1::StartRequest {
        max_events_per_nc: Some(pick(&[1024, 1500, 4096, 8192, 2000])),
        nc: if cycle.is_multiple_of(3) {
            vec![1]
        } else {
            Vec::new()
        },
        events: match cycle % 4 {
            0 => Vec::new(),
            1 => vec!["software".to_owned()],
            2 => vec!["hardware".to_owned()],
            _ => vec!["^cc_running".to_owned()],
        },
        arm_timeout_ms: Some(10_000),
        ..v1::StartRequest::default()
    }
}

/// Whether the start lets the events of the process on this core through: they are of a type of the host's software.
fn is_captured(request: &v1::StartRequest, nc: u32) -> bool {
    let core = request.nc.is_empty() || request.nc.contains(&nc);
    core && request.events != ["hardware"]
}

/// Checks a run's events of one process, and says which the last one was: all whole (the harness looks at each), of this run,
/// in order.
fn check(fetched: &Fetched, pid: u32, captured: bool, last: u64) -> u64 {
    let rings = fetched.rings(pid);
    assert_eq!(rings.len(), usize::from(captured), "{rings:?}");
    let Some(ring) = rings.first() else {
        return last;
    };
    let numbers: Vec<u64> = ring.events.iter().map(|event| event.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "in order, each once");
    assert!(
        numbers[0] > last,
        "an event of an earlier run: {} after {last}",
        numbers[0]
    );
    let account = &ring.account;
    assert_eq!(account.delivered, numbers.len() as u64, "{account:?}");
    assert_eq!(
        account.claimed,
        account.delivered + account.lost + account.pending,
        "{account:?}"
    );
    assert!(ring.events.iter().all(|event| event.seq <= account.claimed));
    *numbers.last().expect("it emits all the time")
}

#[test]
fn started_again_and_again_at_full_speed_nothing_tears_leaks_or_mixes() {
    let host = Host::with_daemon();
    let probes: Vec<Emitter> = (0..PROCESSES)
        .map(|n| {
            let nc = (n % 2).to_string();
            let mut command = host.probe_command(&["-n", "0", "--nc", &nc]);
            command.env("NEURON_RT_NUM_CORES", "2");
            command.env("NRT_TRACE_WAIT_MS", "0");
            Emitter::start(command)
        })
        .collect();
    until("all to attach", || {
        (host.attached().len() == probes.len()).then_some(())
    });
    let mut control = Control::connect(&host);
    let daemon = host.daemon_pid();
    let mut last: BTreeMap<u32, u64> = probes.iter().map(|probe| (probe.pid(), 0)).collect();
    let mut base = BTreeMap::new();
    for cycle in 0..cycles() {
        let start = request(cycle);
        let answer = control.start_as(start.clone());
        assert!(answer.warnings.is_empty(), "{answer:?}");
        until("events of everybody who is captured", || {
            let waited = (probes.iter().zip(0..)).filter(|(_, n)| is_captured(&start, n % 2));
            let mut waited = waited.map(|(probe, _)| probe.pid());
            waited.all(|pid| control.claimed(pid) > 0).then_some(())
        });
        let stopped = control.stop("");
        let fetched = control.try_fetch("").expect("a fetch");
        for (probe, n) in probes.iter().zip(0..) {
            let pid = probe.pid();
            let captured = is_captured(&start, n % 2);
            let last = last.get_mut(&pid).expect("one of them");
            *last = check(&fetched, pid, captured, *last);
        }
        assert!(stopped.away.is_empty());
        if cycle == WARM {
            for pid in last.keys().copied().chain([daemon]) {
                base.insert(pid, Held::of(pid));
            }
        }
    }
    for (pid, base) in base {
        until("what it had mapped to go", || {
            (!maps(pid).contains("nrt-trace-segment") && Held::of(pid).is_flat(base)).then_some(())
        });
    }
}
