//! What can be wrong, and the words for it. Nothing here asks anybody: it is given what was seen.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nrt_trace_abi::ABI_VERSION;
use nrt_trace_proto::v1::{self, ProducerState};
use rustix::fs::Access;

use crate::client::ConnectError;
use crate::command::start::{filter, scope};
use crate::output::human;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Its name, for programs.
    pub(super) code: &'static str,
    /// What is wrong.
    pub(super) what: String,
    /// What to do.
    pub(super) todo: String,
}

impl Finding {
    fn new(code: &'static str, what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            todo: todo.into(),
        }
    }
}

/// The control socket's place, as the file system shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) socket: PathBuf,
    /// Group and mode of the socket, where it can be seen.
    group: Option<(u32, u32)>,
    /// A record of runs lies beside it: a daemon was here, and what it did goes on.
    record: bool,
}

impl Place {
    pub(super) fn look(socket: &Path) -> Self {
        let meta = std::fs::metadata(socket).ok();
        Self {
            socket: socket.to_owned(),
            group: meta.map(|meta| (meta.gid(), meta.mode() & 0o777)),
            record: socket.with_file_name("nrt-traced.state").exists(),
        }
    }
}

/// What a daemon that answers showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) status: &'a v1::GetStatusResponse,
    pub(super) producers: &'a [v1::Producer],
    /// This environment turns the library off.
    pub(super) disabled: bool,
    /// Whether this user may attach; an error says why not.
    pub(super) producer_socket: Result<(), rustix::io::Errno>,
}

/// Whether this user's programs may connect to a socket.
pub(super) fn may_connect(socket: &Path) -> Result<(), rustix::io::Errno> {
    rustix::fs::access(socket, Access::WRITE_OK)
}

/// No daemon that this user may ask.
pub(super) fn of_refusal(error: &ConnectError, place: &Place) -> Vec<Finding> {
    let path = place.socket.display();
    let start = "start it: `systemctl start nrt-traced`, or `nrt-traced`. To record one program none is needed: \
                 `nrt-tracectl record -- CMD`";
    let finding = match error {
        ConnectError::Absent { why, .. } if place.record => Finding::new(
            "daemon_away",
            format!(
                "the daemon at {path} is away ({why}); it left a record of its runs. Programs that it captured go on \
                 recording for ten minutes"
            ),
            format!("{start}. The next one goes on where it stopped"),
        ),
        ConnectError::Absent { why, .. } => Finding::new(
            "no_daemon",
            format!("no daemon at {path}: {why}"),
            format!("{start}. If it runs with another socket, name that with --socket or NRT_TRACE_SOCKET"),
        ),
        ConnectError::Denied { .. } => Finding::new(
            "no_permission",
            format!("this user may not use the daemon at {path}"),
            match place.group {
                // Root's own group is nobody's to join.
                Some((group, mode)) if mode & 0o020 != 0 && group != 0 => format!(
                    "become a member of group {group} (`usermod -aG {group} USER`, and log in again), or ask root. \
                     `nrt-tracectl record -- CMD` works without, with a daemon of its own"
                ),
                _ => "ask root, or the user who started it. `nrt-tracectl record -- CMD` works without, with a daemon of \
                      its own"
                    .to_owned(),
            },
        ),
        ConnectError::TooLong { .. } => Finding::new(
            "path_too_long",
            error.to_string(),
            "use a shorter path, for the daemon and here",
        ),
        ConnectError::Foreign { why, .. } => Finding::new(
            "not_the_daemon",
            format!("what is at {path} is not the control socket of nrt-traced: {why}"),
            "name the control socket with --socket or NRT_TRACE_SOCKET (not the producer socket)",
        ),
        ConnectError::Silent { .. } => Finding::new(
            "no_answer",
            error.to_string(),
            "restart it (`systemctl restart nrt-traced`): runs go on where they stopped. If somebody stopped it with a signal or a \
             debugger, let it go on",
        ),
        ConnectError::System { .. } => Finding::new(
            "cannot_connect",
            error.to_string(),
            "see what the system says",
        ),
    };
    vec![finding]
}

/// What was looked at and is well.
pub(super) fn well(seen: &Seen<'_>) -> Vec<String> {
    let status = seen.status;
    let mut well = vec![format!(
        "the daemon at {} answers: version {}, pid {}",
        status.control_socket, status.version, status.pid
    )];
    if status.producers > 0 {
        well.push(format!("{} processes are attached", status.producers));
    }
    for run in status.runs.iter().filter(|run| run.capturing) {
        let (what, recorded) = (run.run.clone().unwrap_or_default(), sum(run, |a| a.claimed));
        if recorded > 0 {
            well.push(format!(
                "{} is captured: {} recorded",
                scope(&what),
                human::events(recorded)
            ));
        }
    }
    if status.tsc_clock {
        well.push("event times come from the time stamp counter".to_owned());
    }
    well
}

/// Everything that there is to do, the most likely cause of an empty trace first.
pub(super) fn of(seen: &Seen<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    version(seen, &mut found);
    attaching(seen, &mut found);
    refusals(seen, &mut found);
    runs(seen, &mut found);
    budgets(seen, &mut found);
    if seen.status.quarantined > 0 {
        found.push(Finding::new(
            "quarantined",
            format!(
                "{} processes wrote impossible words into their rings: nothing more is read from them",
                seen.status.quarantined
            ),
            "look for writes through wild pointers in them; `nrt-tracectl producers` says which, the daemon's log why",
        ));
    }
    if !seen.status.tsc_clock {
        found.push(Finding::new(
            "clocksource",
            format!(
                "event times come from clock_gettime, which makes each event dearer: the kernel's clock source is {:?}, \
                 not \"tsc\"",
                seen.status.clocksource
            ),
            "where the machine has a stable counter: write tsc to \
             /sys/devices/system/clocksource/clocksource0/current_clocksource, and restart the daemon; else this is as \
             good as it gets",
        ));
    }
    found
}

fn version(seen: &Seen<'_>, found: &mut Vec<Finding>) {
    let status = seen.status;
    let ours = env!("CARGO_PKG_VERSION");
    if status.abi_version != u32::from(ABI_VERSION) || status.version != ours {
        found.push(Finding::new(
            "other_version",
            format!(
                "the daemon is version {} (ABI {}), this program {ours} (ABI {ABI_VERSION})",
                status.version, status.abi_version
            ),
            "install both from one release, and restart the daemon: runs go on over that",
        ));
    }
}

fn attaching(seen: &Seen<'_>, found: &mut Vec<Finding>) {
    let socket = &seen.status.producer_socket;
    match seen.producer_socket {
        Ok(()) => {}
        Err(rustix::io::Errno::NOENT) => found.push(Finding::new(
            "producer_socket_gone",
            format!("there is no {socket}: no program can attach"),
            "restart the daemon, and find out who removes its socket",
        )),
        Err(_) => found.push(Finding::new(
            "may_not_attach",
            format!("programs of this user may not attach: {socket} is not open to them"),
            "become a member of its group (producer_group of the daemon's configuration)",
        )),
    }
    if seen.disabled {
        found.push(Finding::new(
            "disabled",
            "NRT_TRACE_DISABLE is set here: programs started from here do not attach",
            "unset it",
        ));
    }
    if seen.status.producers == 0 {
        found.push(Finding::new(
            "nobody_attached",
            "no process is attached",
            format!(
                "start a program that is linked with libnrt_trace; it must find {socket} (NRT_TRACE_PRODUCER_SOCKET, in a \
                 container a mount of its folder). NRT_TRACE_LOG=debug makes it say what keeps it"
            ),
        ));
    }
}

fn refusals(seen: &Seen<'_>, found: &mut Vec<Finding>) {
    for producer in seen.producers {
        let connected = matches!(
            producer.state(),
            ProducerState::Attached | ProducerState::Capturing
        );
        if connected && !producer.not_captured.is_empty() {
            let pid = producer.pid.unwrap_or_default();
            let (code, todo) = remedy(&producer.not_captured);
            found.push(Finding::new(
                code,
                format!(
                    "process {pid} ({}) is not captured: {}",
                    producer.name, producer.not_captured
                ),
                todo,
            ));
        }
    }
    // What kept processes from being captured is told above, of those that are still there.
    for refusal in &seen.status.refusals {
        let todo = match refusal.cause.as_str() {
            "version" => {
                "link those programs with the library of the daemon's release, or install that daemon"
            }
            "protocol" => {
                "something that is not libnrt_trace connects to the producer socket: find it by the pid in the log"
            }
            "producer_group" => {
                "they are not members of producer_group: add their users, or widen it"
            }
            "max_producers" | "max_producers_per_uid" => {
                "raise the limit in the daemon's configuration, or find out what starts so many"
            }
            "LimitNOFILE" => {
                "raise LimitNOFILE of the daemon's unit (ulimit -n), or lower max_producers"
            }
            _ => continue,
        };
        found.push(Finding::new(
            "refused",
            format!(
                "{} processes were not attached: {}",
                human::count(refusal.count),
                refusal.text
            ),
            todo,
        ));
    }
}

/// By the setting that a refusal names.
fn remedy(why: &str) -> (&'static str, String) {
    let smaller =
        "start with fewer events in a ring (--max-events-per-nc), or fewer NeuronCores (--nc)";
    let key = [
        "max_segment_bytes_per_uid",
        "max_segment_bytes_total",
        "max_segment_bytes",
    ]
    .into_iter()
    .find(|key| why.contains(&format!("({key})")));
    match key {
        Some(key) => ("over_budget", format!("{smaller}, or raise {key} in the daemon's configuration")),
        None if why.contains("memory_budget_bytes") => (
            "over_budget",
            format!("{smaller}, fetch what ended processes left, or raise memory_budget_bytes"),
        ),
        None if why.contains("none of the NeuronCores") => (
            "sees_no_core",
            "capture a NeuronCore that it sees (--nc, `nrt-tracectl set-filter`; NEURON_RT_VISIBLE_CORES says which)".to_owned(),
        ),
        None if why.contains("can't map") => (
            "no_address_space",
            format!("raise the process's limit of address space (ulimit -v), or {smaller}"),
        ),
        None => ("not_captured", "see the daemon's log".to_owned()),
    }
}

fn runs(seen: &Seen<'_>, found: &mut Vec<Finding>) {
    let capturing = |run: &&v1::RunStatus| run.capturing;
    if !seen.status.runs.iter().any(|run| run.capturing) {
        let unread: u64 = seen
            .status
            .runs
            .iter()
            .map(|run| sum(run, |a| a.unread))
            .sum();
        let kept = if unread > 0 {
            format!("; {} of a stopped run are unread", human::events(unread))
        } else {
            String::new()
        };
        found.push(Finding::new(
            "not_capturing",
            format!("nothing is captured{kept}"),
            if unread > 0 {
                "`nrt-tracectl fetch -o trace.json` takes them; `nrt-tracectl start` captures again"
            } else {
                "`nrt-tracectl start`, or `nrt-tracectl record -- CMD`"
            },
        ));
    }
    for one in seen.status.runs.iter().filter(capturing) {
        let run = one.run.clone().unwrap_or_default();
        let filtered = !run.nc.is_empty() || !run.events.is_empty();
        if !one.accounts.is_empty() && sum(one, |a| a.claimed) == 0 {
            found.push(if filtered {
                Finding::new(
                    "filter_excludes_everything",
                    format!(
                        "{} is captured, but not one event passed the filter: {}",
                        scope(&run),
                        filter(&run.nc, &run.events)
                    ),
                    "widen it: `nrt-tracectl set-filter`, while the run goes on; `nrt-tracectl events` lists the types",
                )
            } else {
                Finding::new(
                    "nothing_emitted",
                    format!("{} is captured, but its processes have emitted nothing", scope(&run)),
                    "let them do something that is traced; a second copy of the library in a process does not record",
                )
            });
        }
        // What nobody has read yet counts as unread until somebody looks, also beyond what a ring holds.
        let gone =
            |a: &v1::RingAccount| a.overwritten + a.unread.saturating_sub(run.max_events_per_nc);
        let lost = one.accounts.iter().map(gone).fold(0, u64::saturating_add);
        let claimed = sum(one, |a| a.claimed);
        if lost > 0 {
            found.push(Finding::new(
                "ring_too_small",
                format!(
                    "{} of {} of {} were overwritten before they were read: a ring holds {}",
                    human::count(lost),
                    human::events(claimed),
                    scope(&run),
                    human::events(run.max_events_per_nc)
                ),
                "larger rings (`start --max-events-per-nc N`), fewer types (--events), or `record`, which reads all the \
                 while. If only the last events matter, nothing",
            ));
        }
    }
}

fn budgets(seen: &Seen<'_>, found: &mut Vec<Finding>) {
    for budget in &seen.status.budgets {
        // Nine tenths.
        if budget.used / 9 < budget.allowed / 10 {
            continue;
        }
        let (used, allowed) = if budget.key.contains("bytes") {
            (human::bytes(budget.used), human::bytes(budget.allowed))
        } else {
            (human::count(budget.used), human::count(budget.allowed))
        };
        let todo = match budget.key.as_str() {
            "memory_budget_bytes" => {
                "fetch or discard what is unread, use smaller rings, or raise it: above it nobody new is captured"
            }
            "LimitNOFILE" => "raise it in the daemon's unit: beyond it nobody can attach",
            "names_budget_bytes" | "names_budget_bytes_per_uid" => {
                "raise it in the daemon's configuration: beyond it new names show as their numbers, until the daemon starts anew"
            }
            _ => "raise it in the daemon's configuration: beyond it nobody new is taken",
        };
        found.push(Finding::new(
            "budget_nearly_used_up",
            format!(
                "{} of {} is used: {used} of {allowed}",
                human::percent(budget.used, budget.allowed),
                budget.key
            ),
            todo,
        ));
    }
}

fn sum(run: &v1::RunStatus, field: fn(&v1::RingAccount) -> u64) -> u64 {
    run.accounts.iter().map(field).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
