//! Events and losses per process and core, and the warnings that follow from them.

use std::collections::BTreeMap;

use nrt_trace_export::Summary;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use super::human;
use super::table::printable;
use super::tell;

/// Bytes of a packed record.
const RECORD_BYTES: usize = 112;

/// What came from where.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    processes: BTreeMap<u32, Process>,
    /// Judges the accounts. It is not given the records: matching them costs more than fetching them.
    judge: Summary,
}

#[derive(Debug, Default)]
struct Process {
    producer: Option<v1::Producer>,
    rings: BTreeMap<u32, Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    events: u64,
    account: v1::RingAccount,
}

impl Tally {
    /// Takes note of a part of a trace.
    pub(crate) fn part(&mut self, part: &v1::TracePart) {
        match &part.part {
            Some(Part::Producer(producer)) => {
                let process = self.process(producer.producer_id);
                // A ring counts also when nothing came from it.
                for nc in &producer.rings {
                    process.rings.entry(*nc).or_default();
                }
                process.producer = Some(producer.clone());
            }
            Some(Part::Records(records)) => {
                let ring = self.ring(records.producer_id, records.nc_idx);
                ring.events += (records.packed.len() / RECORD_BYTES) as u64;
                return;
            }
            Some(Part::Account(account)) => {
                self.ring(account.producer_id, account.nc_idx).account = *account;
            }
            _ => {}
        }
        self.judge.part(part);
    }

    /// Takes note of a process.
    pub(crate) fn producer(&mut self, producer: v1::Producer) {
        self.part(&v1::TracePart {
            part: Some(Part::Producer(producer)),
        });
    }

    /// Takes a ring's account, in place of an earlier one.
    pub(crate) fn account(&mut self, account: v1::RingAccount) {
        self.part(&v1::TracePart {
            part: Some(Part::Account(account)),
        });
    }

    /// Events that came.
    pub(crate) fn events(&self) -> u64 {
        self.rings().map(|ring| ring.events).sum()
    }

    /// Events that will never come, given up ones not counted.
    pub(crate) fn dropped(&self) -> u64 {
        self.rings().map(|ring| dropped(&ring.account)).sum()
    }

    /// Processes that were described.
    pub(crate) fn producers(&self) -> impl Iterator<Item = &v1::Producer> {
        self.processes
            .values()
            .filter_map(|process| process.producer.as_ref())
    }

    /// Accounts of rings, with how many events came from each.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (v1::RingAccount, u64)> {
        self.processes.iter().flat_map(|(id, process)| {
            process.rings.iter().map(|(nc, ring)| {
                // Of a ring that was left out by a filter no account came.
                let account = v1::RingAccount {
                    producer_id: *id,
                    nc_idx: *nc,
                    ..ring.account
                };
                (account, ring.events)
            })
        })
    }

    /// Processes seen.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// One line for each process: how many of its events came, core by core.
    pub(crate) fn fetched_lines(&self) -> Vec<String> {
        self.lines(|ring| ring.events)
    }

    /// One line for each process: how many events it recorded since the run began, core by core.
    pub(crate) fn claimed_lines(&self) -> Vec<String> {
        self.lines(|ring| ring.account.claimed)
    }

    /// Says on standard error what the person should know: losses and their causes, and processes from which nothing
    /// came, with the likely reasons.
    fn warn(&self) {
        for warning in self.judge.report().warnings {
            tell::warning(printable(warning.trim_start_matches("Warning: ")));
        }
        for (id, process) in &self.processes {
            let why = process
                .producer
                .as_ref()
                .map(|producer| &producer.not_captured);
            if let Some(why) = why.filter(|why| !why.is_empty()) {
                let name = process.name(*id);
                tell::warning(format!("{name} is not captured: {}", printable(why)));
                continue;
            }
            for line in process.causes(*id).into_iter().chain(process.silence(*id)) {
                tell::note(line);
            }
        }
    }

    /// [`Tally::warn`] for a whole recording, which knows every process that ever was in it.
    pub(crate) fn warn_of_all(&self) {
        self.warn();
        if self.processes.is_empty() {
            tell::warning(
                "no process was captured: is the program linked with libnrt_trace, NRT_TRACE_DISABLE not set, and a NeuronCore of --nc its own? NRT_TRACE_LOG=debug in its environment says why",
            );
        }
    }

    /// Says why processes were not attached, or not captured, while a recording went on: one of them may belong to it, and it
    /// has no other word of it. Those that are listed with their reason are left out.
    pub(crate) fn warn_of_refused(&self, refusals: &[v1::Refusal]) {
        let listed = |text: &str| self.producers().any(|one| one.not_captured == text);
        for refusal in refusals {
            // What the log left out under `log` refused nobody.
            if refusal.cause != "log" && !listed(&refusal.text) {
                let text = printable(&refusal.text);
                tell::warning(format!(
                    "a process of this host was refused meanwhile, and is in no account: {text}"
                ));
            }
        }
    }

    /// [`Tally::warn`] for what there is now. Processes that have ended and were fetched are forgotten.
    pub(crate) fn warn_of_rest(&self) {
        self.warn();
        if self.processes.is_empty() {
            tell::note(
                "  no process is attached to this run, and none has left unread events; one that should be there must \
                 be linked with libnrt_trace, and reach the producer socket (see status)",
            );
        }
    }

    fn lines(&self, value: impl Fn(&Ring) -> u64) -> Vec<String> {
        let line = |(id, process): (&u32, &Process)| {
            let total: u64 = process.rings.values().map(&value).sum();
            let cores: Vec<String> = process
                .rings
                .iter()
                .map(|(nc, ring)| format!("nc {nc}: {}", human::count(value(ring))))
                .collect();
            let cores = match cores.len() {
                0 => "no core".to_owned(),
                _ => cores.join(", "),
            };
            format!("{}: {} ({cores})", process.name(*id), human::events(total))
        };
        self.processes.iter().map(line).collect()
    }

    fn process(&mut self, id: u32) -> &mut Process {
        self.processes.entry(id).or_default()
    }

    fn ring(&mut self, id: u32, nc: u32) -> &mut Ring {
        self.process(id).rings.entry(nc).or_default()
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        self.processes
            .values()
            .flat_map(|process| process.rings.values())
    }
}

impl Process {
    fn name(&self, id: u32) -> String {
        match &self.producer {
            Some(producer) => producer_name(producer),
            None => format!("producer {id}"),
        }
    }

    /// Where the dropped events of this process went.
    fn causes(&self, id: u32) -> Option<String> {
        let sum = |field: fn(&v1::RingAccount) -> u64| -> u64 {
            self.rings.values().map(|ring| field(&ring.account)).sum()
        };
        let lossy = |ring: &Ring| dropped(&ring.account) > 0;
        let cores: Vec<u32> = self
            .rings
            .iter()
            .filter(|(_, ring)| lossy(ring))
            .map(|(nc, _)| *nc)
            .collect();
        if cores.is_empty() {
            return None;
        }
        // Where a thread ended inside an emit, only the sum is known.
        let overwritten = if self.rings.values().all(|ring| ring.account.exact) {
            "overwritten before they were read"
        } else {
            "overwritten, or unfinished when their thread ended"
        };
        let causes = [
            (overwritten, sum(|a| a.overwritten)),
            (
                "dropped while another thread wrote the slot",
                sum(|a| a.dropped_in_flight),
            ),
            (
                "dropped because the ring had gone round meanwhile",
                sum(|a| a.dropped_lapped),
            ),
            (
                "dropped because the sequence number did not fit",
                sum(|a| a.dropped_seq),
            ),
        ];
        let causes: Vec<String> = causes
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(cause, n)| format!("{} {cause}", human::count(*n)))
            .collect();
        Some(format!(
            "  {}, nc {}: {}",
            self.name(id),
            human::ranges(&cores),
            causes.join(", ")
        ))
    }

    /// Why nothing at all may have come from this process.
    fn silence(&self, id: u32) -> Option<String> {
        let something = |ring: &Ring| ring.account.claimed + ring.events > 0;
        let producer = self.producer.as_ref()?;
        if self.rings.values().any(something) || producer.state() == v1::ProducerState::Quarantined
        {
            return None;
        }
        let reason = if producer.state() == v1::ProducerState::Away {
            "it has not come back since the daemon started anew: what it recorded can be fetched when it has"
        } else if producer.armed_from_ns.is_none() {
            "it was not armed in this run: it has not answered the daemon"
        } else if self.rings.is_empty() {
            "none of its NeuronCores passes the filter of the run (see status)"
        } else {
            "it emitted none since it was armed, or only of types or NeuronCores that the filters of the run leave out \
             (see status)"
        };
        Some(format!("  {}: no events: {reason}", self.name(id)))
    }
}

/// Events that a consumer will never get although nobody gave them up.
pub(crate) fn dropped(account: &v1::RingAccount) -> u64 {
    account.lost.saturating_sub(account.abandoned)
}

/// How a process is called in lines for people: pid and name.
pub(crate) fn producer_name(producer: &v1::Producer) -> String {
    let name = printable(&producer.name);
    match producer.pid {
        Some(pid) => format!("{pid} {name}"),
        None => format!("producer {} {name}", producer.producer_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trainer(rings: Vec<u32>) -> v1::Producer {
        v1::Producer {
            producer_id: 3,
            pid: Some(42),
            name: "trainer".to_owned(),
            rings,
            armed_from_ns: Some(1),
            ..v1::Producer::default()
        }
    }

    fn records(nc_idx: u32, events: usize) -> v1::TracePart {
        let packed = vec![0u8; events * RECORD_BYTES].into();
        let records = v1::Records {
            producer_id: 3,
            nc_idx,
            packed,
        };
        v1::TracePart {
            part: Some(Part::Records(records)),
        }
    }

    #[test]
    fn a_core_without_events_is_named_with_its_zero() {
        let mut tally = Tally::default();
        tally.producer(trainer(vec![0, 1]));
        tally.part(&records(0, 1200));
        assert_eq!(
            tally.fetched_lines(),
            ["42 trainer: 1,200 events (nc 0: 1,200, nc 1: 0)"]
        );
        assert_eq!(tally.processes[&3].silence(3), None);
    }

    #[test]
    fn a_silent_process_has_its_reason() {
        let reason = |producer: v1::Producer| {
            let mut tally = Tally::default();
            tally.producer(producer);
            tally.processes[&3].silence(3).unwrap()
        };
        assert!(reason(trainer(vec![0])).starts_with("  42 trainer: no events: it emitted none"));
        assert!(reason(trainer(vec![])).contains("none of its NeuronCores passes"));
        let away = v1::Producer {
            state: v1::ProducerState::Away.into(),
            ..trainer(vec![0])
        };
        assert!(reason(away).contains("it has not come back"));
        let late = v1::Producer {
            armed_from_ns: None,
            ..trainer(vec![0])
        };
        assert!(reason(late).contains("it was not armed in this run"));
    }

    #[test]
    fn losses_are_told_by_cause() {
        let mut tally = Tally::default();
        tally.producer(trainer(vec![0]));
        tally.part(&records(0, 1024));
        let account = v1::RingAccount {
            producer_id: 3,
            nc_idx: 0,
            claimed: 10_000,
            delivered: 1024,
            lost: 8976,
            overwritten: 8976,
            exact: true,
            ..v1::RingAccount::default()
        };
        tally.account(account);
        assert_eq!(tally.dropped(), 8976);
        let causes = tally.processes[&3].causes(3).unwrap();
        assert_eq!(
            causes,
            "  42 trainer, nc 0: 8,976 overwritten before they were read"
        );
        // Given up on request is no loss.
        tally.account(v1::RingAccount {
            lost: 8976,
            abandoned: 8976,
            ..account
        });
        assert_eq!((tally.dropped(), tally.processes[&3].causes(3)), (0, None));
    }
}
