//! Events and losses per process and core, and the warnings that follow from them.

use std::collections::BTreeMap;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use super::human;
use super::table::printable;

/// Bytes of a packed record.
const RECORD_BYTES: usize = 112;

/// What came from where.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    processes: BTreeMap<u32, Process>,
}

#[derive(Debug, Default)]
struct Process {
    producer: Option<v1::Producer>,
    rings: BTreeMap<u32, Ring>,
    without_ring: v1::ProducerAccount,
}

#[derive(Debug, Default)]
struct Ring {
    events: u64,
    account: v1::RingAccount,
}

impl Tally {
    /// Takes note of a part of a trace.
    pub(crate) fn part(&mut self, part: &Part) {
        match part {
            Part::Producer(producer) => self.producer(producer.clone()),
            Part::Records(records) => {
                let ring = self.ring(records.producer_id, records.nc_idx);
                ring.events += (records.packed.len() / RECORD_BYTES) as u64;
            }
            Part::Account(account) => self.account(*account),
            Part::ProducerAccount(account) => {
                self.process(account.producer_id).without_ring = *account;
            }
            _ => {}
        }
    }

    /// Takes note of a process; each of its rings counts, also when nothing came from it.
    pub(crate) fn producer(&mut self, producer: v1::Producer) {
        let process = self.process(producer.producer_id);
        for nc in &producer.rings {
            process.rings.entry(*nc).or_default();
        }
        process.producer = Some(producer);
    }

    /// Takes a ring's account, in place of an earlier one.
    pub(crate) fn account(&mut self, account: v1::RingAccount) {
        self.ring(account.producer_id, account.nc_idx).account = account;
    }

    /// Events that came.
    pub(crate) fn events(&self) -> u64 {
        self.rings().map(|ring| ring.events).sum()
    }

    /// Events that will never come, given up ones not counted.
    pub(crate) fn dropped(&self) -> u64 {
        self.rings().map(|ring| dropped(&ring.account)).sum()
    }

    /// Processes seen.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// One line for each process: how many of its events came, core by core.
    pub(crate) fn fetched_lines(&self) -> Vec<String> {
        self.lines(|ring| ring.events)
    }

    /// One line for each process: how many events it claimed since the run began, core by core.
    pub(crate) fn claimed_lines(&self) -> Vec<String> {
        self.lines(|ring| ring.account.claimed)
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

    /// What the person should know: losses with their causes, and processes from which nothing came.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        let (dropped, claimed) = (
            self.dropped(),
            self.rings().map(|r| r.account.claimed).sum::<u64>(),
        );
        if dropped > 0 {
            let lost: u64 = self.rings().map(|ring| ring.account.lost).sum();
            // The words of Neuron's own tools, which people search for.
            out.push(format!(
                "{dropped} trace events were dropped during capture (stored {} out of {claimed} total events). \
                 Consider increasing buffer size, reducing trace duration, or filtering events.",
                claimed.saturating_sub(lost)
            ));
            for (id, process) in &self.processes {
                out.extend(process.loss(*id));
            }
        }
        for (id, process) in &self.processes {
            out.extend(process.other_losses(*id));
            out.extend(process.silence(*id));
        }
        out
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
    fn loss(&self, id: u32) -> Option<String> {
        let sum = |field: fn(&v1::RingAccount) -> u64| -> u64 {
            self.rings.values().map(|ring| field(&ring.account)).sum()
        };
        if self.rings.values().all(|ring| dropped(&ring.account) == 0) {
            return None;
        }
        let causes = [
            ("overwritten before they were read", sum(|a| a.overwritten)),
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
        let cores: Vec<u32> = self
            .rings
            .iter()
            .filter(|(_, ring)| dropped(&ring.account) > 0)
            .map(|(nc, _)| *nc)
            .collect();
        let exact = self.rings.values().all(|ring| ring.account.exact);
        Some(format!(
            "{}, nc {}: {}{}",
            self.name(id),
            human::ranges(&cores),
            causes.join(", "),
            if exact {
                ""
            } else {
                " (the total is exact, its split is not: a thread was inside an emit)"
            }
        ))
    }

    /// Losses that no ring knows of.
    fn other_losses(&self, id: u32) -> Vec<String> {
        let account = &self.without_ring;
        let name = self.name(id);
        let mut out = Vec::new();
        if account.no_ring > 0 {
            out.push(format!(
                "{name}: {} for a NeuronCore that has no ring were not recorded; set NEURON_RT_VISIBLE_CORES or \
                 NEURON_RT_NUM_CORES for it",
                human::events(account.no_ring)
            ));
        }
        if account.nc_out_of_range > 0 {
            out.push(format!(
                "{name}: {} named a NeuronCore of 256 or more and were recorded as nc 0",
                human::events(account.nc_out_of_range)
            ));
        }
        if account.strings_full > 0 {
            out.push(format!(
                "{name}: {} names did not fit its string table and stay unresolved",
                human::count(account.strings_full)
            ));
        }
        if account.strings_refused > 0 {
            out.push(format!(
                "{name}: {} names were refused (not UTF-8, or not what their id says)",
                human::count(account.strings_refused)
            ));
        }
        out
    }

    /// Why nothing at all may have come from this process.
    fn silence(&self, id: u32) -> Option<String> {
        let claimed: u64 = self.rings.values().map(|ring| ring.account.claimed).sum();
        let came: u64 = self.rings.values().map(|ring| ring.events).sum();
        if claimed + came + self.without_ring.no_ring > 0 {
            return None;
        }
        let name = self.name(id);
        let producer = self.producer.as_ref()?;
        Some(if producer.state() == v1::ProducerState::Quarantined {
            format!(
                "{name}: no events, because its shared memory was found corrupt and is not read any more"
            )
        } else if producer.armed_from_ns.is_none() {
            format!(
                "{name}: no events, because it was not armed in this run: it has not answered the daemon yet"
            )
        } else if self.rings.is_empty() {
            format!(
                "{name}: no events, because none of its NeuronCores passes the filter of the run (see status)"
            )
        } else {
            format!(
                "{name}: no events; it emitted none since it was armed, or only of types and NeuronCores that the \
                 run's filters leave out (see status)"
            )
        })
    }
}

/// Events that a consumer will never get although nobody gave them up.
fn dropped(account: &v1::RingAccount) -> u64 {
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

    fn records(nc_idx: u32, events: usize) -> Part {
        let packed = vec![0u8; events * RECORD_BYTES].into();
        Part::Records(v1::Records {
            producer_id: 3,
            nc_idx,
            packed,
        })
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
        assert_eq!(tally.warnings(), Vec::<String>::new());
    }

    #[test]
    fn a_silent_process_is_warned_about() {
        let mut tally = Tally::default();
        tally.producer(trainer(vec![0]));
        let [warning] = tally.warnings().try_into().unwrap();
        assert!(
            warning.starts_with("42 trainer: no events; it emitted none"),
            "{warning}"
        );
    }

    #[test]
    fn losses_are_told_in_the_known_words_and_by_cause() {
        let mut tally = Tally::default();
        tally.producer(trainer(vec![0]));
        tally.part(&records(0, 1024));
        tally.account(v1::RingAccount {
            producer_id: 3,
            nc_idx: 0,
            claimed: 10_000,
            delivered: 1024,
            lost: 8976,
            overwritten: 8976,
            exact: true,
            ..v1::RingAccount::default()
        });
        let [known, cause] = tally.warnings().try_into().unwrap();
        assert_eq!(
            known,
            "8976 trace events were dropped during capture (stored 1024 out of 10000 total events). Consider \
             increasing buffer size, reducing trace duration, or filtering events."
        );
        assert_eq!(
            cause,
            "42 trainer, nc 0: 8,976 overwritten before they were read"
        );
    }

    #[test]
    fn what_was_given_up_on_request_is_no_loss() {
        let mut tally = Tally::default();
        tally.producer(trainer(vec![0]));
        tally.account(v1::RingAccount {
            producer_id: 3,
            claimed: 5,
            lost: 5,
            abandoned: 5,
            exact: true,
            ..v1::RingAccount::default()
        });
        assert_eq!(tally.dropped(), 0);
        assert_eq!(tally.warnings(), Vec::<String>::new());
    }
}
