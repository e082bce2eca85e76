//! The figures of a trace, in text and as JSON.

use serde_json::Value;

use crate::convert::{Folder, T};
use crate::tool::{finish, tool};

#[test]
fn a_summary_has_its_figures_in_text_and_json() {
    let folder = Folder::new();
    folder.convert("t.nrtt", "t.json", &[]);
    let of = |name: &str, more: &[&str]| {
        let mut command = tool();
        command.arg("summary").arg(folder.path(name)).args(more);
        let ended = finish(&mut command);
        assert_eq!(
            (ended.status, ended.stderr.as_str()),
            (Some(0), ""),
            "{ended:?}"
        );
        ended.stdout
    };
    for name in ["t.nrtt", "t.json"] {
        let report: Value = serde_json::from_str(&of(name, &["--format", "json"])).unwrap();
        let types = report["types"].as_array().unwrap();
        let running = types
            .iter()
            .find(|row| row["event_type"] == "nc_exec_running")
            .unwrap();
        assert_eq!(
            (
                running["event_count"].as_u64(),
                running["pair_count"].as_u64()
            ),
            (Some(160), Some(80))
        );
        let durations = &running["durations"];
        for (key, ns) in [
            ("total_ns", 40_000),
            ("mean_ns", 500),
            ("p50_ns", 500),
            ("p90_ns", 500),
            ("p99_ns", 500),
            ("max_ns", 500),
        ] {
            assert_eq!(durations[key], ns, "{key} of {name}");
        }
        let accounts = report["accounts"].as_array().unwrap();
        assert_eq!(accounts.len(), 4);
        assert_eq!(accounts[0]["pair_count"], 60);
        let idle = &accounts[0]["occupancy"];
        assert_eq!(
            (idle["execution_count"].as_u64(), idle["gap_count"].as_u64()),
            (Some(20), Some(19))
        );
        assert_eq!(
            (idle["busy_ns"].as_u64(), idle["idle_ns"].as_u64()),
            (Some(10_000), Some(9_500))
        );
        let slowest = report["slowest"].as_array().unwrap();
        assert_eq!(slowest.len(), 10);
        assert_eq!(
            (
                slowest[0]["event_type"].as_str(),
                slowest[0]["duration_ns"].as_u64()
            ),
            (Some("nrt_execute"), Some(800))
        );
        assert!(
            slowest
                .iter()
                .all(|slow| slow["start_ns"].as_u64() >= Some(T + 100))
        );
    }
    // The document has no place for losses.
    let report: Value = serde_json::from_str(&of("t.json", &["--format", "json"])).unwrap();
    assert!(report["totals"].is_null() && report["accounts"][0]["lost"].is_null());
    let text = of("t.json", &[]);
    assert!(text.contains("claimed and lost: unknown"), "{text}");
    let text = of("t.nrtt", &[]);
    let warning = "Warning: 20 trace events were dropped during capture (stored 640 out of 660 total events). \
        Consider increasing buffer size, reducing trace duration, or filtering events.";
    for word in [
        "nrt_execute",
        "p90",
        "idle gaps",
        "slowest",
        "worker 2",
        warning,
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert!(!text.contains('\x1b'), "colours are for terminals");
}
