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

/// The variables that users know are defaults of `start` and `record`; an argument wins, and a bad value is an error that
/// names it before anything happens.
#[test]
fn the_environment_is_the_default_of_start_and_record() {
    const TYPE: &str = "NEURON_RT_INSPECT_EVENT_FILTER_TYPE";
    let host = Host::with_daemon();
    let start = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = host.tracectl_command(&[&["start"], arguments].concat());
        command.envs(variables.iter().copied());
        run(command)
    };
    let variables = [
        (TYPE, "nrt_load"),
        ("NEURON_RT_INSPECT_EVENT_FILTER_NC", "1-2"),
        ("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "3000"),
    ];
    let said = start(&[], &variables).ok().text();
    assert!(
        said.contains("NeuronCores 1-2, event types nrt_load") && said.contains("3,000 events"),
        "{said}"
    );
    host.tracectl(&["stop"]).ok();
    let said = start(&["--events", "nrt_execute"], &variables).ok().text();
    assert!(
        said.contains("NeuronCores 1-2, event types nrt_execute"),
        "{said}"
    );
    host.tracectl(&["stop"]).ok();
    for (name, value) in [
        (TYPE, "nrt_exceute"),
        ("NEURON_RT_INSPECT_EVENT_FILTER_NC", "0-256"),
        ("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "0"),
    ] {
        let refused = start(&[], &[(name, value)]).with_code(2);
        assert!(
            refused.stderr.contains(&format!("{name}={value}: ")),
            "{refused}"
        );
        let mut record = host.probe_recorded(&[]);
        record.env(name, value);
        let refused = run(record).with_code(2);
        assert!(
            refused.stderr.contains(&format!("{name}={value}: ")),
            "{refused}"
        );
        assert!(!host.path("t.json").exists(), "nothing was opened");
    }
    let mut record = host.probe_recorded(&[]);
    record.env(TYPE, "nrt_load");
    run(record).ok();
    assert_eq!(Document::read(&host.path("t.json")).events.len(), 0);
}
