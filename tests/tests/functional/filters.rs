//! What a start captures and leaves out.

use std::collections::BTreeSet;

use nrt_trace_tests::{Document, Host, artifacts, run};

/// Types and host cores that the workload leaves in a trace when captured with these options.
fn captured(options: &[&str]) -> (BTreeSet<String>, BTreeSet<u32>) {
    let host = Host::with_daemon();
    host.tracectl(&[&["start"], options].concat()).ok();
    let mut workload = host.command(&artifacts().workload);
    workload.args([
        "--processes",
        "2",
        "--steps",
        "3",
        "--size",
        "8",
        "--rows",
        "2",
    ]);
    run(workload).ok();
    let Document { events, .. } = host.fetch();
    let types = events.iter().map(|e| e.event_type.clone()).collect();
    (types, events.iter().filter_map(|e| e.host_nc_idx).collect())
}

#[test]
fn hardware_without_one_type() {
    let (types, cores) = captured(&["--events", "hardware,^cc_running"]);
    let expected = [
        "cc_exec_barrier",
        "hw_notify",
        "nc_exec_running",
        "nc_model_switch",
        "timestamp_sync_point",
    ];
    assert_eq!(types, expected.map(str::to_owned).into());
    assert_eq!(cores, [0, 1, 2, 3].into());
}

#[test]
fn names_and_aliases() {
    let (types, _) = captured(&["--events", "execute_api,nrt_load"]);
    assert_eq!(types, ["nrt_execute", "nrt_load"].map(str::to_owned).into());
}

#[test]
fn cores_of_the_host_not_of_the_process() {
    let (types, cores) = captured(&["--nc", "1-2,200"]);
    assert!(types.len() >= 40, "{types:?}");
    // The second process sees cores 2 and 3 as its 0 and 1.
    assert_eq!(cores, [1, 2].into());
}
