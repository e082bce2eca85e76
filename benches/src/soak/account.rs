//! What was delivered and what was said to be lost, against what each process wrote down for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{RingAccount, TracePart};
use nrt_trace_tests::ledger::{self, Gave};
use nrt_trace_tests::payload;

/// A ring: run, the daemon's number for the process, NC.
type RingKey = (u64, u32, u32);
/// An event: its thread and its number there.
type EventKey = (u64, u64);

/// One fetch, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) fetch_id: u64,
    run: u64,
    /// Process numbers, with the pids of those processes.
    pids: BTreeMap<u32, u32>,
    events: BTreeMap<RingKey, Vec<(u64, EventKey)>>,
    accounts: BTreeMap<RingKey, RingAccount>,
    pub(crate) ended: bool,
}

impl Batch {
    /// Takes a fetch apart; an event that does not hold together is an error.
    pub(crate) fn of(parts: &[TracePart]) -> Result<Self> {
        let mut batch = Self::default();
        for part in parts.iter().filter_map(|part| part.part.as_ref()) {
            match part {
                Part::Begin(begin) => {
                    batch.fetch_id = begin.fetch_id;
                    batch.run = begin.run.as_ref().map_or(0, |run| run.run_id);
                }
                Part::Producer(producer) => {
                    let pid = producer.pid.context("a pid")?.unsigned_abs();
                    batch.pids.insert(producer.producer_id, pid);
                }
                Part::Records(records) => {
                    let key = (batch.run, records.producer_id, records.nc_idx);
                    let events = batch.events.entry(key).or_default();
                    for bytes in records.packed.as_chunks::<RECORD_BYTES>().0 {
                        let record = Record::from_bytes(bytes);
                        let data = record.data();
                        let (number, thread) = (data[0], data[2]);
                        ensure!(
                            data == payload::numbered(thread, number),
                            "a torn event: {record:?}"
                        );
                        events.push((record.seq(), (thread, number)));
                    }
                }
                Part::Account(account) => {
                    let key = (batch.run, account.producer_id, account.nc_idx);
                    batch.accounts.insert(key, *account);
                }
                Part::End(end) => batch.ended = end.run_ended,
                _ => {}
            }
        }
        Ok(batch)
    }

    fn repeats(&self, other: &Self) -> bool {
        let first = |batch: &Self| -> BTreeSet<(RingKey, u64)> {
            let events = batch.events.iter();
            events
                .filter_map(|(key, events)| Some((*key, events.first()?.0)))
                .collect()
        };
        !first(self).is_disjoint(&first(other))
    }
}

/// Everything that was told.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pids: BTreeMap<u32, u32>,
    delivered: BTreeMap<RingKey, Vec<(u64, EventKey)>>,
    accounts: BTreeMap<RingKey, RingAccount>,
    /// A fetch whose commit was not answered: it counts if the next one does not bring it again.
    unsure: Option<Batch>,
    pub(crate) unsure_commits: u64,
}

/// Sums over all processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) processes: u64,
    pub(crate) begun: u64,
    pub(crate) recorded: u64,
    pub(crate) claimed: u64,
    pub(crate) delivered: u64,
    pub(crate) overwritten: u64,
    pub(crate) dropped: u64,
    pub(crate) abandoned: u64,
    pub(crate) unfinished: u64,
    /// Processes with a ring whose last account was not exact, and events of theirs that no account names.
    pub(crate) inexact: u64,
    pub(crate) untold: u64,
}

impl Books {
    /// Notes a committed fetch.
    pub(crate) fn take(&mut self, batch: Batch) -> Result<()> {
        self.settle(&batch)?;
        self.add(batch)
    }

    /// Notes a fetch of which nobody knows whether it was committed.
    pub(crate) fn take_unsure(&mut self, batch: Batch) -> Result<()> {
        self.settle(&batch)?;
        self.unsure = Some(batch);
        self.unsure_commits += 1;
        Ok(())
    }

    /// Decides about the last unsure fetch: whatever is read now, it begins before or after it.
    fn settle(&mut self, next: &Batch) -> Result<()> {
        let Some(unsure) = self.unsure.take() else {
            return Ok(());
        };
        if unsure.run == next.run && unsure.repeats(next) {
            return Ok(()); // not committed: it came again
        }
        // Not committed and overwritten meanwhile looks the same, but for the count of what was delivered before.
        let committed = |key: &RingKey, events: &Vec<(u64, EventKey)>| {
            let account = next.accounts.get(key)?;
            let now = next.events.get(key).map_or(0, Vec::len) as u64;
            let known = self.delivered.get(key).map_or(0, Vec::len) as u64;
            (!events.is_empty()).then(|| account.delivered - now > known)
        };
        let said: BTreeSet<bool> = (unsure.events.iter())
            .filter_map(|(key, events)| committed(key, events))
            .collect();
        ensure!(said.len() <= 1, "half of a commit: {:?}", unsure.fetch_id);
        if said.contains(&true) {
            self.add(unsure)?;
        }
        Ok(())
    }

    /// Whether the last fetch's commit is in doubt.
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure.is_some()
    }

    fn add(&mut self, batch: Batch) -> Result<()> {
        self.pids.extend(batch.pids);
        for (key, events) in batch.events {
            let all = self.delivered.entry(key).or_default();
            for event in events {
                let after = all.last().map_or(0, |last| last.0);
                ensure!(event.0 > after, "{key:?}: {event:?} after {after}");
                all.push(event);
            }
        }
        for (key, account) in batch.accounts {
            check_sum(key, &account)?;
            let delivered = self.delivered.get(&key).map_or(0, Vec::len) as u64;
            ensure!(
                account.delivered == delivered,
                "{key:?}: {delivered} came, and it says {account:?}"
            );
            self.accounts.insert(key, account);
        }
        Ok(())
    }

    /// Notes accounts that came without events.
    pub(crate) fn accounts(&mut self, run: u64, accounts: &[RingAccount]) -> Result<()> {
        for account in accounts {
            let key = (run, account.producer_id, account.nc_idx);
            check_sum(key, account)?;
            self.accounts.insert(key, *account);
        }
        Ok(())
    }

    pub(crate) fn processes(&mut self, producers: &[nrt_trace_proto::v1::Producer]) {
        let pid = |p: &nrt_trace_proto::v1::Producer| Some((p.producer_id, p.pid?.unsigned_abs()));
        self.pids.extend(producers.iter().filter_map(pid));
    }

    /// Events that came, over all runs.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
            .values()
            .map(|events| events.len() as u64)
            .sum()
    }

    /// The last accounts of a process's rings in all runs.
    pub(crate) fn accounts_of(&self, pid: u32) -> impl Iterator<Item = &RingAccount> {
        let of_pid = move |id: u32| self.pids.get(&id) == Some(&pid);
        (self.accounts.iter())
            .filter(move |(key, _)| of_pid(key.1))
            .map(|(_, account)| account)
    }

    /// Compares all of it with the logs of all processes, by their pids.
    pub(crate) fn check(&self, logs: &[(u32, PathBuf)]) -> Result<Sums> {
        let mut sums = Sums::default();
        let mut rings = BTreeMap::<u32, Vec<RingKey>>::new();
        for key in self.accounts.keys().chain(self.delivered.keys()) {
            let pid = self
                .pids
                .get(&key.1)
                .with_context(|| format!("whose is {key:?}"))?;
            let of_pid = rings.entry(*pid).or_default();
            if !of_pid.contains(key) {
                of_pid.push(*key);
            }
        }
        for (pid, path) in logs {
            let keys = rings.remove(pid).unwrap_or_default();
            self.check_process(path, &keys, &mut sums)
                .with_context(|| format!("process {pid}, {}", path.display()))?;
        }
        ensure!(rings.is_empty(), "rings of nobody: {rings:?}");
        Ok(sums)
    }

    fn check_process(&self, path: &Path, keys: &[RingKey], sums: &mut Sums) -> Result<()> {
        let (mut begun, mut recorded, mut unfinished) = (BTreeSet::new(), 0, 0);
        // A process that was killed before it had made its log has emitted nothing.
        let emits = if path.exists() {
            ledger::read(path)
        } else {
            Vec::new()
        };
        for emit in emits {
            let event = (emit.thread, emit.number);
            match emit.gave {
                Gave::Id(_) => recorded += 1,
                Gave::Unfinished => unfinished += 1,
                Gave::Nothing => continue,
            }
            begun.insert(event);
        }
        sums.processes += 1;
        sums.begun += begun.len() as u64;
        sums.recorded += recorded;
        sums.unfinished += unfinished;
        let mut seen = BTreeSet::new();
        let (mut claimed, mut dropped, mut exact) = (0, 0, true);
        for key in keys {
            for (_, event) in self.delivered.get(key).into_iter().flatten() {
                ensure!(begun.contains(event), "{event:?} was never emitted");
                ensure!(seen.insert(*event), "{event:?} came twice");
            }
            let account = self.accounts.get(key).context("an account for what came")?;
            let delivered = self.delivered.get(key).map_or(0, Vec::len) as u64;
            ensure!(
                account.delivered == delivered,
                "{delivered} came: {account:?}"
            );
            exact &= account.exact;
            claimed += account.claimed;
            dropped += account.dropped_in_flight + account.dropped_lapped;
            sums.overwritten += account.overwritten;
            sums.abandoned += account.abandoned + account.unread;
        }
        sums.claimed += claimed;
        sums.delivered += seen.len() as u64;
        sums.dropped += dropped;
        // An emit that was cut off has taken its number, or has not.
        let (least, most) = (recorded + dropped, recorded + dropped + unfinished);
        if exact {
            ensure!(
                (least..=most).contains(&claimed),
                "{recorded} recorded, {dropped} dropped and {unfinished} cut off, but {claimed} claimed"
            );
        } else {
            ensure!(
                claimed <= most,
                "{claimed} claimed of {most}, and not exact"
            );
            sums.inexact += 1;
            sums.untold += least.saturating_sub(claimed);
        }
        Ok(())
    }
}

fn check_sum(key: RingKey, account: &RingAccount) -> Result<()> {
    let sum = account.delivered + account.lost + account.pending + account.unread;
    ensure!(account.claimed == sum, "{key:?}: {account:?}");
    Ok(())
}
