use std::convert::Infallible;

use nrt_trace_abi::record::Draft;
use nrt_trace_model::payload::{DeviceExecStart, DeviceExecStop, ExecPre, TimestampSync};

use super::*;

/// Feeds events in order and collects what comes out: (seq, timestamp, model).
#[derive(Default)]
struct Feed {
    seq: u64,
    out: Vec<(u64, u64, Option<u64>)>,
}

impl Feed {
    fn event(
        &mut self,
        r: &mut Resolver<Record>,
        trace_type: u32,
        phase: u32,
        tracking_id: u64,
        data: [u64; 5],
    ) {
        self.seq += 1;
        let draft = Draft {
            trace_type,
            phase,
            tracking_id,
            timestamp_ns: self.seq,
            data,
            ..Draft::default()
        };
        let out = &mut self.out;
        let done: Result<(), Infallible> =
            r.record(&draft.finish(self.seq), &mut |record, resolved| {
                out.push((record.seq(), resolved.timestamp_ns, resolved.model_id));
                Ok(())
            });
        done.unwrap();
    }

    fn start(&mut self, r: &mut Resolver<Record>, exec_id: u32, nc: u64) {
        let data = DeviceExecStart {
            exec_id,
            nc_timestamp_ns: nc,
            ..Default::default()
        }
        .to_data();
        self.event(r, 7, 0, 1_000 + u64::from(exec_id), data);
    }

    fn stop(&mut self, r: &mut Resolver<Record>, exec_id: u32, nc: u64) {
        let data = DeviceExecStop {
            nc_timestamp_ns: nc,
            ..Default::default()
        }
        .to_data();
        self.event(r, 7, 1, 1_000 + u64::from(exec_id), data);
    }

    fn sync(&mut self, r: &mut Resolver<Record>, exec_id: u64, nc: u64, cpu: u64) {
        let sync = TimestampSync {
            exec_id,
            nc_timestamp_ns: nc,
            cpu_timestamp_ns: cpu,
        };
        self.event(r, 25, 2, 0, sync.to_data());
    }

    fn pre(&mut self, r: &mut Resolver<Record>, exec_id: u64, model_id: u64) {
        self.event(r, 17, 0, 0, ExecPre { exec_id, model_id }.to_data());
    }

    fn plain(&mut self, r: &mut Resolver<Record>) {
        self.event(r, 0, 2, 0, [0; 5]);
    }

    fn flush(&mut self, r: &mut Resolver<Record>) {
        let out = &mut self.out;
        let done: Result<(), Infallible> = r.flush(&mut |record, resolved| {
            out.push((record.seq(), resolved.timestamp_ns, resolved.model_id));
            Ok(())
        });
        done.unwrap();
    }
}

#[test]
fn events_wait_for_sync_point_and_model_and_keep_their_order() {
    let (mut r, mut f) = (Resolver::new(true), Feed::default());
    f.start(&mut r, 7, 100);
    f.plain(&mut r);
    f.stop(&mut r, 7, 150);
    f.sync(&mut r, (9 << 32) | 7, 90, 5_000);
    assert_eq!(f.out, [], "the model is still missing");
    f.pre(&mut r, (9 << 32) | 7, 77);
    assert_eq!(
        f.out,
        [
            (1, 5_010, Some(77)),
            (2, 2, None),
            (3, 5_060, None),
            (4, 5_000, None),
            (5, 5, None)
        ],
        "exec ids compare as 32 bits, the stop takes its start's execution"
    );
    f.plain(&mut r);
    assert_eq!(f.out.len(), 6, "nothing is held any more");
}

#[test]
fn knowledge_from_elsewhere_counts() {
    let (mut r, mut f) = (Resolver::new(true), Feed::default());
    r.learn(7, Fact::Model(77));
    r.learn(
        7,
        Fact::Sync(Sync {
            nc_timestamp_ns: 10,
            cpu_timestamp_ns: 1_000,
        }),
    );
    f.start(&mut r, 7, 20);
    assert_eq!(f.out, [(1, 1_010, Some(77))]);
}

#[test]
fn the_end_gives_events_up_as_they_are() {
    let (mut r, mut f) = (Resolver::new(true), Feed::default());
    f.start(&mut r, 1, 100);
    f.sync(&mut r, 1, 100, 900);
    f.start(&mut r, 2, 100);
    assert!(f.out.is_empty() && r.held() == 3);
    f.flush(&mut r);
    assert_eq!(
        f.out,
        [(1, 900, None), (2, 900, None), (3, 3, None)],
        "what is known is used"
    );
    assert_eq!(r.held(), 0);
}

#[test]
fn a_sink_without_models_does_not_wait_for_them() {
    let (mut r, mut f) = (Resolver::new(false), Feed::default());
    f.sync(&mut r, 1, 100, 900);
    f.start(&mut r, 1, 100);
    assert_eq!(f.out, [(1, 900, None), (2, 900, None)]);
}

#[test]
fn a_stop_without_its_start_keeps_the_hosts_time() {
    let (mut r, mut f) = (Resolver::new(true), Feed::default());
    f.sync(&mut r, 1, 100, 900);
    f.stop(&mut r, 1, 100);
    assert_eq!(f.out[1], (2, 2, None));
}

#[test]
fn no_more_than_the_bound_is_held() {
    let (mut r, mut f) = (Resolver::new(true), Feed::default());
    f.start(&mut r, 1, 100);
    for _ in 1..HELD_MAX {
        f.plain(&mut r);
    }
    assert_eq!((f.out.len(), r.held.len()), (0, HELD_MAX));
    f.start(&mut r, 2, 100);
    assert_eq!(
        f.out.len(),
        HELD_MAX,
        "the first is given up, and those behind it need nothing"
    );
    assert_eq!(f.out[0], (1, 1, None));
    assert!(f.out.is_sorted());
    assert_eq!(r.held.len(), 1);
}

#[test]
fn sync_points_that_move_time_out_of_64_bits_move_nothing() {
    let (mut r, mut f) = (Resolver::new(false), Feed::default());
    f.sync(&mut r, 1, 0, u64::MAX);
    f.start(&mut r, 1, 100);
    assert_eq!(f.out[1], (2, 2, None));
}
