//! Random traces, against a model that knows nothing of tracks.

use std::collections::{BTreeMap, HashMap};

use nrt_trace_model::EventType;
use nrt_trace_proto::v1::trace_part::Part;

use crate::engine::ask;
use crate::make::{Ring, begin};
use crate::parts::{part, process};
use crate::pftrace;

/// xorshift: the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What the slices of a name have to be.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    /// Count and sum of durations of whole spans, by name.
    spans: BTreeMap<String, (i128, i128)>,
    instants: BTreeMap<String, (i128, i128)>,
    /// Starts without stop that are open at the end, and all others without a partner.
    open: i128,
    lost: i128,
    backward: i128,
}

/// Types without payloads that would move times: software, and one of the device.
const KINDS: [EventType; 5] = [
    EventType::ExecuteApi,
    EventType::TensorRead,
    EventType::HostccExec,
    EventType::CcPrepare,
    EventType::NumErr,
];

fn trace(seed: u64) -> (Vec<u8>, Expected) {
    let mut dice = Dice(seed);
    let mut expected = Expected::default();
    let mut parts = vec![begin()];
    for producer in 1..=3 {
        parts.push(part(Part::Producer(process(producer, 4000))));
        for nc in 0..3 {
            let mut ring = Ring::new(nc);
            let mut open: HashMap<(u32, u64), u64> = HashMap::new();
            let mut now = dice.below(1000);
            for _ in 0..dice.below(1500) {
                now += dice.below(40);
                // Two threads are never quite in order.
                let at = now.saturating_sub(dice.below(8));
                let kind = KINDS[usize::try_from(dice.below(5)).unwrap()];
                let tracking_id = dice.below(6) + 1;
                ring.thread = 4000 + dice.below(3);
                let key = (kind.value(), tracking_id);
                let phase = u32::try_from(dice.below(5).min(2)).unwrap();
                let phase = if phase == 2 && dice.below(2) == 0 {
                    1
                } else {
                    phase
                };
                ring.push(kind, phase, tracking_id, at);
                let name = kind.name().to_owned();
                match phase {
                    0 => expected.lost += i128::from(open.insert(key, at).is_some()),
                    1 => match open.remove(&key) {
                        None => expected.lost += 1,
                        Some(start) if start > at => expected.backward += 1,
                        Some(start) => {
                            let spans = expected.spans.entry(name).or_default();
                            spans.0 += 1;
                            spans.1 += i128::from(at - start);
                        }
                    },
                    _ => expected.instants.entry(name).or_default().0 += 1,
                }
            }
            expected.open += i128::try_from(open.len()).unwrap();
            parts.extend(ring.parts(producer));
        }
    }
    (pftrace(&parts), expected)
}

#[test]
fn random_traces_have_exactly_their_slices() {
    let given = std::env::var("NRT_TRACE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = given.map_or_else(|| vec![1, 2, 3], |seed| vec![seed]);
    for seed in seeds {
        println!("NRT_TRACE_TEST_SEED={seed}");
        let (file, expected) = trace(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15) | 1);
        let unmatched = "extract_arg(arg_set_id, 'debug.unmatched')";
        let queries = [
            format!(
                "select name, count(*), sum(dur) from slice where {unmatched} is null group by name"
            ),
            format!("select count(*) from slice where dur = -1 and {unmatched} = 'start'"),
            format!(
                "select count(*) from slice where dur = 0 and {unmatched} in ('start', 'stop')"
            ),
            format!("select count(*) from slice where {unmatched} = 'stop before start'"),
            "select count(*) from slice where dur < -1".to_owned(),
            "select count(*) from slice s join slice p on s.parent_id = p.id \
                where p.dur >= 0 and s.ts + s.dur > p.ts + p.dur"
                .to_owned(),
        ];
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let answer = ask(&file, &queries, &[]);
        let mut all = expected.spans;
        for (name, (count, _)) in expected.instants {
            all.entry(name).or_default().0 += count;
        }
        assert_eq!(answer.by_name(0), all);
        let counts: Vec<i128> = (1..6).map(|query| answer.number(query)).collect();
        assert_eq!(
            counts,
            [expected.open, expected.lost, expected.backward, 0, 0]
        );
    }
}
