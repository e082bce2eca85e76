//! Recorded processes that outlive the command: what they do after the recording is in no file.

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;

use crate::output::human;
use crate::output::table::printable;

/// Processes named in the warning. More don't help anybody.
const SHOWN: usize = 8;

/// What to say of those of a run's processes that still live once the run is over; `None` if there is none.
pub(super) fn warning(producers: &[v1::Producer]) -> Option<String> {
    let living: Vec<&v1::Producer> = producers.iter().filter(|p| lives(p)).collect();
    if living.is_empty() {
        return None;
    }
    let one = living.len() == 1;
    let mut shown: Vec<String> = living.iter().take(SHOWN).map(|p| label(p)).collect();
    if living.len() > SHOWN {
        shown.push(format!("and {} more", living.len() - SHOWN));
    }
    Some(format!(
        "{} of this recording {} on after the command ended: {}. What {} from here on is not in the trace: let the command \
         wait for {} (`wait` in a shell script), or record the host (nrt-traced, and `record` without a command)",
        human::processes(living.len()),
        if one { "goes" } else { "go" },
        shown.join(", "),
        if one { "it does" } else { "they do" },
        if one { "it" } else { "them" },
    ))
}

/// Whether it goes on as far as the daemon knows. By the end of a run that is no guess: each process has confirmed that it
/// stopped recording, or its connection has broken.
fn lives(producer: &v1::Producer) -> bool {
    match producer.state() {
        ProducerState::Attached | ProducerState::Capturing | ProducerState::Away => true,
        ProducerState::Unspecified
        | ProducerState::Dead
        | ProducerState::Detached
        | ProducerState::Quarantined => false,
    }
}

/// `pid 42 (name)`.
fn label(producer: &v1::Producer) -> String {
    let name = printable(&producer.name);
    match producer.pid {
        Some(pid) => format!("pid {pid} ({name})"),
        None => format!("{name} (a pid that is not visible here)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producer(pid: i32, state: ProducerState) -> v1::Producer {
        v1::Producer {
            pid: Some(pid),
            name: format!("p\n{pid}"),
            state: state.into(),
            ..v1::Producer::default()
        }
    }

    #[test]
    fn only_those_that_live_are_told_of() {
        let ended = [
            ProducerState::Dead,
            ProducerState::Detached,
            ProducerState::Quarantined,
        ];
        let mut producers: Vec<v1::Producer> = ended.map(|state| producer(1, state)).to_vec();
        assert_eq!(warning(&producers), None);
        producers.push(producer(7, ProducerState::Attached));
        let said = warning(&producers).unwrap();
        let words = "1 process of this recording goes on after the command ended: pid 7 (p\\n7). What it does from";
        assert!(said.starts_with(words), "{said}");
    }

    #[test]
    fn many_are_told_of_in_a_line() {
        let many: Vec<v1::Producer> = (1..=1000)
            .map(|pid| producer(pid, ProducerState::Capturing))
            .collect();
        let said = warning(&many).unwrap();
        assert!(said.starts_with("1000 processes of this recording go on"));
        assert!(said.contains("pid 8 (p\\n8), and 992 more. What they do from"));
        assert!(!said.contains("pid 9 "), "{said}");
    }
}
