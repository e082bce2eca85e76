//! Memory of rings and names, kept beyond this daemon and given up in order.
//!
//! ```text
//!  record written  ──▶  given to the service manager  ──▶  sent to the process
//!  record written without it  ──▶  taken from the manager, memory freed
//! ```
//!
//! So the next daemon, which begins with the last record, never misses what that one names.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nrt_trace_shm::memfd;
use nrt_trace_shm::strings::StringReader;

use super::Registry;
use super::producer::Producer;
use crate::drain::segment::Segment;
use crate::state::{Label, Left, Store, TableRecord};
use crate::strings::ProducerNames;

/// A table of names that the service manager keeps, or is to keep.
#[derive(Debug)]
pub(super) struct KeptTable {
    /// What is written down of it.
    pub record: TableRecord,
    fd: OwnedFd,
}

impl KeptTable {
    fn name(&self) -> String {
        format!("strings-{}", self.record.number)
    }

    /// Names in it, as its producer says.
    fn entries(&self) -> u64 {
        StringReader::adopt(&self.fd, self.record.bytes).map_or(0, |reader| reader.entries())
    }
}

/// The name under which a segment is kept.
pub(super) fn segment_name(generation: u64) -> String {
    format!("segment-{generation}")
}

impl Registry {
    /// Notes the table of names that a producer gets, to be kept as soon as a run holds something of the producer.
    pub(super) fn note_table(&mut self, producer: &mut Producer, fd: &OwnedFd, bytes: u64) {
        if !self.store.is_there() {
            return;
        }
        let (Ok((device, inode)), Ok(fd)) = (memfd::identity(fd), fd.try_clone()) else {
            return;
        };
        self.next.generation += 1;
        let number = self.next.generation;
        let record = TableRecord {
            number,
            device,
            inode,
            bytes,
        };
        producer.tables.push(KeptTable { record, fd });
    }

    /// Takes over what was kept of a producer that came back: the table with the most names, because the new one has
    /// none before the producer has heard its Welcome.
    pub(super) fn keep_tables_of(&mut self, earlier: Producer, producer: &mut Producer) {
        earlier.names.close(&self.names);
        let mut tables = earlier.tables;
        tables.sort_by_key(KeptTable::entries);
        let fullest = tables.pop();
        self.to_forget.extend(tables);
        producer.tables.splice(..0, fullest);
    }

    /// Has the service manager keep the rings that a producer is about to get, and its names. They are written down.
    pub(super) fn keep_rings(&mut self, id: u32, segment: &Segment) {
        let kept = |run: &crate::run::Run| run.own.is_none() && run.shares.contains_key(&id);
        if self.store.is_there() && self.runs.iter().any(kept) {
            self.store
                .put(&segment_name(segment.generation()), segment.fd());
        }
    }

    /// Frees rings after the next record is written, which does not name them.
    pub(super) fn free(&mut self, segment: Arc<Segment>) {
        self.to_free.push(segment);
        self.changed = true;
    }

    /// Does what had to wait until a record was written that names the producers `held`, and no memory that is to go.
    pub(super) fn after_record(&mut self, held: &BTreeSet<u32>) {
        for segment in std::mem::take(&mut self.to_free) {
            let generation = segment.generation();
            self.store.remove(&segment_name(generation));
            self.spool.iter_mut().for_each(|s| s.remove(generation));
            self.memory.free(segment);
        }
        for table in std::mem::take(&mut self.to_forget) {
            self.store.remove(&table.name());
        }
        for producer in self.producers.values() {
            for table in &producer.tables {
                if held.contains(&producer.id) {
                    self.store.put(&table.name(), table.fd.as_fd());
                } else {
                    self.store.remove(&table.name());
                }
            }
        }
    }

    /// Has written to files what producers that ended have left unread. What a client fetches all the while is left to it
    /// for a moment, unless it is `late` for that.
    pub(super) fn spool_ended(&mut self, ids: impl IntoIterator<Item = u32>, late: bool) {
        let Some(spool) = &mut self.spool else { return };
        for id in ids {
            let Some(producer) = self.producers.get(&id) else {
                continue;
            };
            let runs = self.runs.iter().filter(|run| run.own.is_none());
            for (run, share) in runs.flat_map(|run| run.parts_of(id).map(move |part| (run, part))) {
                if share.quarantined {
                    continue;
                }
                let Some(segment) = share.segment() else {
                    continue;
                };
                let generation = segment.generation();
                let kept =
                    spool.has(generation) || self.store.surely_keeps(&segment_name(generation));
                if kept || !(late || run.asked.elapsed() >= super::ROUND) || !share.has_more() {
                    continue;
                }
                spool.keep(Left {
                    label: Label {
                        run: run.id,
                        producer: id,
                        generation,
                    },
                    segment: segment.clone(),
                    cursors: share.cursors(),
                    names: producer.names.clone(),
                });
            }
        }
    }

    /// Takes what was kept of the memory that the record names: by the service manager, or in files.
    pub(super) fn adopt_kept(&mut self) {
        for run in &mut self.runs {
            let run_id = run.id;
            for (id, share) in run.parts_mut() {
                let Some(away) = share.away() else { continue };
                let (file, name) = (away.file, segment_name(away.file.generation));
                let layout = away.layout.clone();
                let label = Label {
                    run: run_id,
                    producer: id,
                    generation: file.generation,
                };
                let fd = if let Some(fd) = self.store.take(&name, (file.device, file.inode)) {
                    self.spool.iter_mut().for_each(|s| s.note(file.generation));
                    fd
                } else {
                    let spool = self.spool.as_mut();
                    let Some((fd, beside)) = spool.and_then(|s| s.load(label, &layout, &file))
                    else {
                        continue;
                    };
                    if let Some(producer) = self.producers.get_mut(&id) {
                        self.names.learn(producer.uid, &beside.names);
                        let names = ProducerNames::of_ended(producer.uid, beside.counts);
                        producer.names = Arc::new(names);
                    }
                    fd
                };
                match Segment::adopt(fd, layout, run_id, &file, id, &away.firsts) {
                    Ok(segment) => {
                        let segment = Arc::new(segment);
                        if let Some(producer) = self.producers.get(&id) {
                            self.memory.add(segment.clone(), producer.page.clone());
                        }
                        share.found(segment);
                    }
                    Err(error) => {
                        tracing::warn!(
                            producer = id,
                            run = %crate::run::RunId(run_id),
                            "rings that were kept are of no use: {error}"
                        );
                        self.store.remove(&name);
                    }
                }
            }
        }
    }
}

/// The tables of names that the service manager kept of a producer of `uid`, and the reader of the last one.
pub(super) fn take_tables(
    store: &mut Store,
    records: &[TableRecord],
    uid: u32,
    names: &crate::strings::Names,
) -> (Vec<KeptTable>, Option<ProducerNames>) {
    let (mut tables, mut last) = (Vec::new(), None);
    for record in records {
        let name = format!("strings-{}", record.number);
        let Some(fd) = store.take(&name, (record.device, record.inode)) else {
            continue;
        };
        match StringReader::adopt(&fd, record.bytes) {
            Ok(reader) => {
                let reader = ProducerNames::new(uid, reader);
                reader.merge_into(names);
                last = Some(reader);
                tables.push(KeptTable {
                    record: *record,
                    fd,
                });
            }
            Err(error) => {
                tracing::warn!("names that the service manager kept are of no use: {error}");
                store.remove(&name);
            }
        }
    }
    (tables, last)
}
