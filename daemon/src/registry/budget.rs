//! How much anybody may have: processes, descriptors, memory of rings; and who was refused what, and why.
//!
//! A refusal says what is needed, what is allowed, and which setting decides: to the process, to whoever asked for the run,
//! in status, and in the log once for each cause and minute. It tells nothing of other users' processes.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Instant;

use nrt_trace_abi::layout::SegmentLayout;
use nrt_trace_abi::message::{Refuse, refuse};
use nrt_trace_proto::v1;
use nrt_trace_shm::socket::Peer;
use rustix::process::{Resource, getrlimit};

use super::Registry;
use super::producer::{Link, Phase};
use crate::config::Allocate;
use crate::drain::segment::Segment;
use crate::handshake::Refusal;
use crate::run::Run;
use crate::run::share::Share;

/// Descriptors that are left for clients, fetches and files when processes have taken all others.
const SPARE: i32 = 32;

/// The cause of a process that sees no captured NeuronCore.
pub(super) const NO_CORES: &str = "nc";

/// The cause of what is refused for want of descriptors: the setting of a systemd unit.
pub(super) const NO_DESCRIPTORS: &str = "LimitNOFILE";

/// Why something is not given, and the setting that decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) cause: &'static str,
    pub(super) text: String,
}

/// Descriptors that this process may have.
pub(super) fn descriptor_limit() -> i32 {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(i32::MAX, |limit| i32::try_from(limit).unwrap_or(i32::MAX))
}

/// A process has no room for its rings in its address space.
pub(super) fn cannot_map(bytes: u64, errno: u32) -> Denial {
    let error = std::io::Error::from_raw_os_error(errno.cast_signed());
    Denial {
        cause: "mapping",
        text: format!(
            "it can't map its rings of {}: {error} (its limit of address space, ulimit -v, or fewer events in a ring)",
            size(bytes)
        ),
    }
}

impl Registry {
    /// Whether a process may use the producer socket at all.
    pub(super) fn check_access(&self, peer: Peer) -> Result<(), Refusal> {
        if self.access.allows(peer.uid, peer.gid, peer.pid) {
            return Ok(());
        }
        Err(Refusal {
            code: refuse::ACCESS,
            cause: "producer_group",
            reason: format!(
                "user {} may not attach to this daemon: {} (producer_group)",
                peer.uid,
                self.access.who()
            ),
        })
    }

    /// Whether a process of this user may attach over this connection.
    pub(super) fn check_attach(&self, uid: u32, connection: impl AsFd) -> Result<(), Refusal> {
        let connected = || {
            self.producers
                .values()
                .filter(|producer| producer.is_connected())
        };
        let budgets = &self.config.budgets;
        let denial = if connected().count() >= budgets.producers {
            Denial {
                cause: "max_producers",
                text: format!(
                    "{} processes are attached, which is the limit (max_producers)",
                    budgets.producers
                ),
            }
        } else if connected().filter(|producer| producer.uid == uid).count()
            >= budgets.producers_per_uid
        {
            let limit = budgets.producers_per_uid;
            Denial {
                cause: "max_producers_per_uid",
                text: format!(
                    "{limit} processes of user {uid} are attached, which is the limit (max_producers_per_uid)"
                ),
            }
        } else {
            match self.check_descriptors(&connection) {
                Ok(()) => return Ok(()),
                Err(denial) => denial,
            }
        };
        Err(Refusal {
            code: refuse::BUDGET,
            cause: denial.cause,
            reason: denial.text,
        })
    }

    /// The kernel gives the lowest number that is free: one near the limit says that most are taken.
    fn check_descriptors(&self, newest: impl AsFd) -> Result<(), Denial> {
        let number = newest.as_fd().as_raw_fd();
        if number < self.descriptors.saturating_sub(SPARE) {
            return Ok(());
        }
        Err(Denial {
            cause: NO_DESCRIPTORS,
            text: format!(
                "the daemon has about {number} files open, and {} are allowed (LimitNOFILE of its unit, ulimit -n)",
                self.descriptors
            ),
        })
    }

    /// Makes the rings of a producer in a run, if it may have them.
    pub(super) fn make_segment(
        &mut self,
        id: u32,
        run_id: u64,
        cap: u64,
        rings: &[usize],
        next: &BTreeMap<usize, u64>,
    ) -> Result<Arc<Segment>, Denial> {
        let layout = match self.check_rings(id, cap, rings) {
            // Rings that are to be freed count until they are.
            Err(_) if !self.to_free.is_empty() => {
                self.write_down();
                self.check_rings(id, cap, rings)?
            }
            checked => checked?,
        };
        self.next.generation += 1;
        let run_id = [run_id, super::random()];
        let segment = Segment::create_after(layout, run_id, self.next.generation, id, next);
        let segment = segment.map(Arc::new).map_err(|error| Denial {
            cause: "system",
            text: error.to_string(),
        })?;
        self.check_descriptors(segment.fd())?;
        Ok(segment)
    }

    pub(super) fn check_rings(
        &self,
        id: u32,
        cap: u64,
        rings: &[usize],
    ) -> Result<SegmentLayout, Denial> {
        let budgets = &self.config.budgets;
        let what = format!("{} rings of {cap} events", rings.len());
        let denied = |cause, text: String| Err(Denial { cause, text });
        let Some(layout) = SegmentLayout::new(cap, rings.iter().copied()) else {
            return denied(
                "max_segment_bytes",
                format!("{what} are more than any memory holds (max_segment_bytes)"),
            );
        };
        let need = layout.bytes();
        if need > budgets.segment_bytes {
            return denied(
                "max_segment_bytes",
                format!(
                    "{what} need {}, and a process may have {} (max_segment_bytes)",
                    size(need),
                    size(budgets.segment_bytes)
                ),
            );
        }
        let uid = self.producers.get(&id).map(|producer| producer.uid);
        let of_user = self.reserved_of(uid);
        if need.saturating_add(of_user) > budgets.segment_bytes_per_uid {
            return denied(
                "max_segment_bytes_per_uid",
                format!(
                    "{what} need {}, and the processes of a user may have {} together, of which {} are taken \
                     (max_segment_bytes_per_uid)",
                    size(need),
                    size(budgets.segment_bytes_per_uid),
                    size(of_user)
                ),
            );
        }
        let reserved = self.memory.reserved();
        if need.saturating_add(reserved) > budgets.segment_bytes_total {
            return denied(
                "max_segment_bytes_total",
                format!(
                    "{what} need {}, and all processes together may have {} (max_segment_bytes_total)",
                    size(need),
                    size(budgets.segment_bytes_total)
                ),
            );
        }
        if self.memory.resident() > budgets.memory_bytes {
            return denied(
                "memory_budget_bytes",
                format!(
                    "the memory of all rings, {}, is taken (memory_budget_bytes)",
                    size(budgets.memory_bytes)
                ),
            );
        }
        if self.config.allocate == Allocate::All
            && need.saturating_add(reserved) > budgets.memory_bytes
        {
            return denied(
                "memory_budget_bytes",
                format!(
                    "{what} need {} at once (allocate = \"all\"), and the memory of all rings may be {} \
                     (memory_budget_bytes)",
                    size(need),
                    size(budgets.memory_bytes)
                ),
            );
        }
        Ok(layout)
    }

    /// Bytes of the rings of a user's processes, those that ended included.
    fn reserved_of(&self, uid: Option<u32>) -> u64 {
        let of_user = |id: &u32| self.producers.get(id).map(|producer| producer.uid) == uid;
        self.runs
            .iter()
            .flat_map(Run::parts)
            .filter(|(id, _)| of_user(id))
            .filter_map(|(_, share)| Some(share.segment()?.bytes()))
            .sum()
    }

    /// A producer gets no rings in a run: it is told, and so is everybody who asks.
    pub(super) fn deny(&mut self, id: u32, run_id: u64, denial: Denial) {
        let Some(run) = self.runs.iter_mut().find(|run| run.id == run_id) else {
            return;
        };
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        let known = (run_id, &denial.text);
        if (producer.not_captured.as_ref()).is_some_and(|(run, text)| (*run, text) == known) {
            return; // it was told
        }
        if self
            .refusals
            .note(denial.cause, &denial.text, Instant::now())
        {
            tracing::warn!(
                producer = id,
                pid = producer.pid(),
                uid = producer.uid,
                run = %crate::run::RunId(run_id),
                "not captured: {}",
                denial.text
            );
        }
        let own = run.own.is_some();
        // A run that takes other NeuronCores later may capture it then.
        if denial.cause != NO_CORES {
            run.shares.entry(id).or_insert_with(Share::barred);
        }
        let message = Refuse::new(refuse::BUDGET, &denial.text);
        producer.not_captured = Some((run_id, denial.text));
        // Of its own capture it hears by the answer to its start.
        if !own && producer.send(&message) == Link::Down {
            self.connection_lost(id);
        }
    }

    /// Producers whose rings are ready to be sent, out of those that wait for that.
    pub(super) fn take_ready(&mut self) -> Vec<u32> {
        let waiting = std::mem::take(&mut self.to_lend);
        let (ready, waiting) = waiting.into_iter().partition(|id| {
            let phase = self.producers.get(id).map(|producer| producer.phase);
            let run = phase.and_then(Phase::run);
            let run = self.runs.iter().find(|other| Some(other.id) == run);
            let share = run.and_then(|run| run.shares.get(id));
            let segment = share.and_then(Share::segment);
            // One that is gone need not wait either.
            segment.is_none_or(|segment| self.memory.is_ready(segment).is_some())
        });
        self.to_lend = waiting;
        ready
    }

    /// The memory of rings could not be had: the run goes on without them.
    pub(super) fn no_memory(&mut self, id: u32, run_id: u64, segment: Arc<Segment>, error: &str) {
        if let Some(producer) = self.producers.get_mut(&id) {
            producer.phase = Phase::Idle;
        }
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == run_id) {
            run.shares
                .entry(id)
                .or_insert_with(Share::barred)
                .drop_rings();
        }
        let text = format!(
            "{error}: its rings need {} (allocate)",
            size(segment.bytes())
        );
        self.memory.free(segment);
        let cause = "allocate";
        self.deny(id, run_id, Denial { cause, text });
        self.answer_own(id);
        self.settle_waits(Instant::now());
    }

    /// Says, once in a while, that lines were left out.
    pub(super) fn tell_of_silence(&mut self) {
        let now = Instant::now();
        let left_out = self.talk.take_left_out();
        if left_out > 0 {
            let text = format!("{left_out} lines about processes that come and go were left out");
            if self.refusals.note("log", &text, now) {
                tracing::warn!("{text}: more come and go than can be told");
            }
        }
    }

    /// Budgets and refusals, for status.
    pub(super) fn fill_budgets(&self, status: &mut v1::GetStatusResponse) {
        let budgets = &self.config.budgets;
        let budget = |key: &str, used, allowed| v1::Budget {
            key: key.to_owned(),
            used,
            allowed,
        };
        let (names, most) = self.names.used();
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        status.budgets = vec![
            budget(
                "max_producers",
                status.producers.into(),
                budgets.producers as u64,
            ),
            budget(
                "max_segment_bytes_total",
                status.reserved_bytes,
                budgets.segment_bytes_total,
            ),
            budget(
                "memory_budget_bytes",
                status.resident_bytes,
                budgets.memory_bytes,
            ),
            budget("names_budget_bytes", names, budgets.names_bytes),
            // Of the user who has most.
            budget(
                "names_budget_bytes_per_uid",
                most,
                budgets.names_bytes_per_uid,
            ),
            budget(
                NO_DESCRIPTORS,
                open as u64,
                u64::from(self.descriptors.unsigned_abs()),
            ),
        ];
        let refusal = |(key, cause): (&str, &crate::ration::Cause)| v1::Refusal {
            cause: key.to_owned(),
            text: cause.text.clone(),
            count: cause.count,
            last_ns: cause.last_ns,
        };
        status.refusals = self.refusals.causes().map(refusal).collect();
    }
}

/// Bytes for people, who compare them with a setting in bytes.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >= 1 << shift) {
        Some((shift, unit)) => {
            let tenths = (bytes >> (shift - 10)).saturating_mul(10) >> 10;
            format!("{bytes} bytes ({}.{} {unit})", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_and_readable() {
        assert_eq!(size(7), "7 bytes");
        assert_eq!(size(1536), "1536 bytes (1.5 KiB)");
        assert_eq!(size(64 << 30), "68719476736 bytes (64.0 GiB)");
        assert_eq!(
            size(u64::MAX),
            "18446744073709551615 bytes (16777215.9 TiB)"
        );
    }
}
