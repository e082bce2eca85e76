//! One document for each process, each exactly as Neuron's runtime would have written it.
//!
//! `trace.json` becomes `trace.4711.json`, `trace.4712.json` and so on. All files are complete before the first of them
//! gets its name.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nrt_trace_export::{JsonOptions, JsonWriter, ProcessIdMode};
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{Producer, TracePart};

use super::file::WholeFile;
use super::target::Sink;

/// The documents that are being written.
#[derive(Debug)]
pub(crate) struct Split {
    place: PathBuf,
    options: JsonOptions,
    /// What every document begins with: how the stream is laid out, and the names so far.
    common: Vec<TracePart>,
    documents: BTreeMap<u32, JsonWriter<Sink>>,
    taken: HashSet<PathBuf>,
}

impl Split {
    /// Documents beside `place`, whose name they vary.
    pub(crate) fn new(place: PathBuf, options: JsonOptions) -> Self {
        let process_id = ProcessIdMode::Never;
        Self {
            place,
            options: JsonOptions {
                process_id,
                ..options
            },
            common: Vec::new(),
            documents: BTreeMap::new(),
            taken: HashSet::new(),
        }
    }

    /// Gives a part to whom it concerns.
    pub(crate) fn part(&mut self, part: &TracePart) -> io::Result<()> {
        let producer_id = match &part.part {
            Some(Part::Producer(producer)) => return self.producer(producer, part),
            Some(Part::Begin(_) | Part::Strings(_)) => {
                self.common.push(part.clone());
                let mut documents = self.documents.values_mut();
                return documents.try_for_each(|document| document.part(part));
            }
            Some(Part::Records(records)) => records.producer_id,
            Some(Part::Correlations(correlations)) => correlations.producer_id,
            Some(Part::Account(account)) => account.producer_id,
            Some(Part::ProducerAccount(account)) => account.producer_id,
            Some(Part::End(_) | Part::HostInfo(_) | Part::HostSample(_)) | None => return Ok(()),
        };
        match self.documents.get_mut(&producer_id) {
            Some(document) => document.part(part),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("producer {producer_id} was not introduced"),
            )),
        }
    }

    fn producer(&mut self, producer: &Producer, part: &TracePart) -> io::Result<()> {
        let id = producer.producer_id;
        if !self.documents.contains_key(&id) {
            let path = self.path(producer);
            let sink = Sink::File(WholeFile::create(&path)?);
            let mut document = JsonWriter::new(sink, self.options);
            self.common
                .iter()
                .try_for_each(|part| document.part(part))?;
            self.taken.insert(path);
            self.documents.insert(id, document);
        }
        let document = self.documents.get_mut(&id).expect("it is there by now");
        document.part(part)
    }

    /// The file of a process: by its pid, and by its number where that says too little.
    fn path(&self, producer: &Producer) -> PathBuf {
        let id = producer.producer_id;
        let by_number = || beside(&self.place, &format!("producer-{id}"));
        let Some(pid) = producer.pid else {
            return by_number();
        };
        let path = beside(&self.place, &pid.to_string());
        if self.taken.contains(&path) {
            return beside(&self.place, &format!("{pid}-{id}"));
        }
        path
    }

    /// Completes all documents.
    pub(crate) fn finish(self) -> io::Result<Vec<Sink>> {
        self.documents
            .into_values()
            .map(JsonWriter::finish)
            .collect()
    }
}

/// `place` with `what` before its extension.
fn beside(place: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(place.file_stem().unwrap_or_default());
    name.push(".");
    name.push(what);
    if let Some(extension) = place.extension() {
        name.push(".");
        name.push(extension);
    }
    place.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_stands_before_the_extension() {
        for (place, name) in [
            ("/x/trace.json", "/x/trace.7.json"),
            ("trace.v1.json", "trace.v1.7.json"),
            ("trace", "trace.7"),
        ] {
            assert_eq!(beside(Path::new(place), "7"), Path::new(name));
        }
    }

    #[test]
    fn a_pid_that_comes_twice_and_none_at_all_have_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.json");
        let mut split = Split::new(place, JsonOptions::default());
        for (producer_id, pid) in [(1, Some(40)), (2, Some(40)), (3, None), (1, Some(40))] {
            let producer = Producer {
                producer_id,
                pid,
                ..Producer::default()
            };
            let part = Some(Part::Producer(producer));
            split.part(&TracePart { part }).unwrap();
        }
        let sinks = split.finish().unwrap();
        let count = || std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(count(), 0, "nothing shows before all is complete");
        sinks.into_iter().try_for_each(Sink::finish).unwrap();
        assert_eq!(count(), 3);
        for name in ["t.40.json", "t.40-2.json", "t.producer-3.json"] {
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(text, r#"{"events":[],"data_version":2}"#, "{name}");
        }
    }

    #[test]
    fn an_event_of_nobody_is_an_error() {
        let mut split = Split::new(PathBuf::from("/nowhere/t.json"), JsonOptions::default());
        let part = Some(Part::Records(nrt_trace_proto::v1::Records::default()));
        let error = split.part(&TracePart { part }).unwrap_err();
        assert_eq!(error.to_string(), "producer 0 was not introduced");
    }
}
