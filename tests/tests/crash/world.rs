//! A daemon with small rings, and a process that nobody stops.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nrt_trace_tests::Host;
use nrt_trace_tests::control::Control;
use nrt_trace_tests::oracle::Oracle;
use nrt_trace_tests::stepper::Stepper;

/// Slots of the witness's ring.
const CAP: u64 = 7;
/// Its token.
const WITNESS: &str = "witness";
/// A program under the deadline of programs does not live for as long as some tests take.
const LIFE: Duration = Duration::from_secs(20);

/// Everything that cases share.
#[derive(Debug)]
pub(crate) struct World {
    pub host: Host,
    pub control: Control,
    witness: Option<Witness>,
}

#[derive(Debug)]
struct Witness {
    stepper: Stepper,
    oracle: Oracle,
    born: Instant,
}

impl Witness {
    /// A process that is armed, in the run of all witnesses.
    fn start(host: &Host) -> Self {
        let mut stepper = Stepper::start(host, WITNESS, None);
        stepper.until_armed();
        Self {
            stepper,
            oracle: Oracle::new(CAP),
            born: Instant::now(),
        }
    }
}

/// A host whose daemon allows small rings, not started.
pub(crate) fn host() -> (Host, [String; 2]) {
    let host = Host::new();
    let config = host.path("daemon.toml");
    // A busy machine must not make a process look as if it did not answer.
    fs::write(
        &config,
        "test_small_rings = true\ndisarm_timeout_ms = 5000\n",
    )
    .unwrap();
    let config = config.to_str().unwrap().to_owned();
    (host, ["--config".to_owned(), config])
}

/// A token that no other case has.
pub(crate) fn token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("case-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl World {
    pub(crate) fn new() -> Self {
        let (mut host, config) = host();
        host.start_daemon(&[&config[0], &config[1]]);
        let mut control = Control::connect(&host);
        control.start(WITNESS, CAP, 0);
        let witness = Some(Witness::start(&host));
        Self {
            host,
            control,
            witness,
        }
    }

    /// The witness has been disturbed by nothing: it emits more than a lap, and its ring has what it must.
    pub(crate) fn ask_witness(&mut self) {
        let mut witness = self.witness.take().unwrap();
        if witness.born.elapsed() > LIFE {
            let _ended = witness.stepper.end();
            witness = Witness::start(&self.host);
        }
        witness.stepper.emit(0, CAP + 2);
        let ring = self.control.fetch(WITNESS).ring(witness.stepper.pid());
        let log = witness.stepper.log();
        witness.oracle.check(&log, &BTreeMap::new(), &ring);
        let last = log.last().unwrap();
        assert_eq!(ring.events.last().map(|e| e.number), Some(last.number));
        self.witness = Some(witness);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let Some(witness) = self.witness.take() else {
            return;
        };
        if !std::thread::panicking() {
            let _ended = witness.stepper.end();
        }
    }
}
