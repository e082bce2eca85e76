//! Names: each producer's table, checked, merged into one that only grows.
//!
//! The id of a name is a hash of its bytes, so all producers agree on it, and a name outlives the process that told it
//! and any number of ring laps. The merged table is a list, so that a reader asks for "those from n on".

mod room;

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use nrt_trace_model::strings::get_id;
use nrt_trace_proto::v1;
use nrt_trace_shm::strings::StringReader;

use room::Room;
pub(crate) use room::{NameBudgets, Refused};

/// The merged table of all producers' names.
#[derive(Debug)]
pub(crate) struct Names {
    merged: Mutex<Merged>,
}

#[derive(Debug)]
struct Merged {
    /// Position in `list` of each id.
    places: HashMap<u64, usize>,
    list: Vec<(u64, Box<str>)>,
    room: Room,
    /// Names that were not taken, by [`Refused`].
    refused: [u64; Refused::ALL.len()],
}

/// Bytes that an entry takes beside its text, roughly.
const ENTRY_BYTES: u64 = 64;

impl Names {
    /// An empty table that takes at most about as many bytes as `budgets` say.
    pub(crate) fn new(budgets: NameBudgets) -> Self {
        let merged = Merged {
            places: HashMap::new(),
            list: Vec::new(),
            room: Room::new(budgets),
            refused: [0; Refused::ALL.len()],
        };
        Self {
            merged: Mutex::new(merged),
        }
    }

    /// Names in the table.
    pub(crate) fn len(&self) -> usize {
        lock(&self.merged).list.len()
    }

    /// The names from position `from` on, as many as `max_bytes` of text hold, at least one if there is one.
    pub(crate) fn from(&self, from: usize, max_bytes: usize) -> Vec<v1::StringEntry> {
        let merged = lock(&self.merged);
        let mut bytes = 0;
        let some = merged
            .list
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|(_, text)| {
                let first = bytes == 0;
                bytes += text.len() + 16;
                first || bytes <= max_bytes
            });
        some.map(|(id, text)| v1::StringEntry {
            id: *id,
            text: text.to_string(),
        })
        .collect()
    }

    /// The name with this id.
    pub(crate) fn get(&self, id: u64) -> Option<v1::StringEntry> {
        let merged = lock(&self.merged);
        let (id, text) = &merged.list[*merged.places.get(&id)?];
        Some(v1::StringEntry {
            id: *id,
            text: text.to_string(),
        })
    }

    /// Bytes that the names take: all of them, and those of the user who has most.
    pub(crate) fn used(&self) -> (u64, u64) {
        lock(&self.merged).room.used()
    }

    /// Names that were not taken, by cause.
    pub(crate) fn refused(&self) -> [u64; Refused::ALL.len()] {
        lock(&self.merged).refused
    }

    /// Takes names that an earlier daemon knew, of a process of `uid`.
    pub(crate) fn learn(&self, uid: u32, texts: &[String]) {
        for text in texts {
            // One that finds no room, or conflicts, is told of as any other.
            let _refused = self.take(uid, get_id(text.as_bytes()), text.as_bytes());
        }
    }

    /// Takes a name that a process of `uid` published.
    fn take(&self, uid: u32, id: u64, bytes: &[u8]) -> Result<(), Refused> {
        let text = std::str::from_utf8(bytes).ok();
        let text = text.filter(|_| id == get_id(bytes));
        let merged = &mut *lock(&self.merged);
        let taken = match text {
            Some(text) => merged.take(uid, id, text),
            None => Err(Refused::Invalid),
        };
        if let Err(why) = taken {
            merged.refused[why as usize] += 1;
        }
        taken
    }
}

impl Merged {
    fn take(&mut self, uid: u32, id: u64, text: &str) -> Result<(), Refused> {
        match self.places.entry(id) {
            Entry::Occupied(place) => {
                let first = &self.list[*place.get()].1;
                if **first != *text {
                    tracing::warn!(
                        "conflicting id {id} with name {first:?} and {text:?}: the first stays"
                    );
                }
            }
            Entry::Vacant(place) => {
                let cost = text.len() as u64 + ENTRY_BYTES;
                self.room.take(uid, cost)?;
                place.insert(self.list.len());
                self.list.push((id, text.into()));
            }
        }
        Ok(())
    }
}

/// One producer's table, as the daemon reads it.
#[derive(Debug)]
pub(crate) struct ProducerNames {
    /// Whose process it is.
    uid: u32,
    state: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// Gone when the producer is.
    reader: Option<StringReader>,
    refused: u64,
    /// The reader's own counts, once it is gone.
    last_full: u64,
}

impl ProducerNames {
    /// The names that `reader` reads, of a process of `uid`.
    pub(crate) fn new(uid: u32, reader: StringReader) -> Self {
        Self {
            uid,
            state: Mutex::new(Table {
                reader: Some(reader),
                refused: 0,
                last_full: 0,
            }),
        }
    }

    /// The names of a process that ended before this daemon began: they were told, and these are the counts.
    pub(crate) fn of_ended(uid: u32, (last_full, refused): (u64, u64)) -> Self {
        Self {
            uid,
            state: Mutex::new(Table {
                reader: None,
                refused,
                last_full,
            }),
        }
    }

    /// All names in the table that are text, and have the id that they should.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(reader) = &lock(&self.state).reader {
            reader.all(|id, bytes, _nc| {
                let text = std::str::from_utf8(bytes).ok();
                texts.extend(text.filter(|_| id == get_id(bytes)).map(str::to_owned));
            });
        }
        texts
    }

    /// Merges what was published since the last time into `names`.
    pub(crate) fn merge_into(&self, names: &Names) {
        let table = &mut *lock(&self.state);
        let Some(reader) = &mut table.reader else {
            return;
        };
        let refused = &mut table.refused;
        reader
            .poll(|id, bytes, _nc| *refused += u64::from(names.take(self.uid, id, bytes).is_err()));
    }

    /// Merges the last names and lets the table's memory go.
    pub(crate) fn close(&self, names: &Names) {
        self.merge_into(names);
        let table = &mut *lock(&self.state);
        if let Some(reader) = table.reader.take() {
            table.refused += reader.refused();
            table.last_full = reader.full();
        }
    }

    /// Names that found no room in the producer's table, and names that were refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let table = lock(&self.state);
        match &table.reader {
            Some(reader) => (reader.full(), table.refused + reader.refused()),
            None => (table.last_full, table.refused),
        }
    }
}

/// A panic while a table was locked leaves it valid: every change is one push.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::StringTableLayout;
    use nrt_trace_ring::strings::append;
    use nrt_trace_shm::WriteMapping;

    use super::*;

    const ROOM: NameBudgets = NameBudgets {
        total: 1 << 20,
        per_uid: 1 << 20,
    };

    fn texts(names: &Names, from: usize) -> Vec<String> {
        names
            .from(from, 1 << 20)
            .into_iter()
            .map(|entry| entry.text)
            .collect()
    }

    #[test]
    fn names_merge_once_whoever_tells_them() {
        let names = Names::new(ROOM);
        for text in ["a", "b", "a", "日本語"] {
            names
                .take(7, get_id(text.as_bytes()), text.as_bytes())
                .unwrap();
        }
        assert_eq!(texts(&names, 0), ["a", "b", "日本語"]);
        assert_eq!(texts(&names, 2), ["日本語"]);
        assert!(texts(&names, 3).is_empty() && texts(&names, 99).is_empty());
        assert_eq!(names.len(), 3);
        assert_eq!(names.get(get_id(b"b")).unwrap().text, "b");
        assert_eq!(names.get(7), None);
    }

    #[test]
    fn a_piece_of_the_table_has_a_size() {
        let names = Names::new(ROOM);
        for n in 0..100 {
            let text = format!("{n:0100}");
            names
                .take(7, get_id(text.as_bytes()), text.as_bytes())
                .unwrap();
        }
        let piece = names.from(0, 1000);
        assert_eq!(piece.len(), 8, "116 bytes each");
        assert_eq!(
            names.from(0, 1).len(),
            1,
            "a name longer than a piece still goes"
        );
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let names = Names::new(NameBudgets {
            total: 2 * ENTRY_BYTES,
            ..ROOM
        });
        assert_eq!(
            names.take(7, get_id(b"\xFF"), b"\xFF"),
            Err(Refused::Invalid)
        );
        assert_eq!(names.take(7, 7, b"a"), Err(Refused::Invalid));
        names.take(7, get_id(b"a"), b"a").unwrap();
        assert_eq!(names.take(7, get_id(b"b"), b"b"), Err(Refused::Full));
        names.take(7, get_id(b"a"), b"a").unwrap();
        assert_eq!(texts(&names, 0), ["a"]);
        assert_eq!(names.refused(), [2, 0, 1]);
    }

    /// Whoever fills a share has numbers for names; others' names, and those that others told, stay what they are.
    #[test]
    fn one_users_names_leave_room_for_others() {
        let names = Names::new(NameBudgets {
            per_uid: 10 * (ENTRY_BYTES + 5),
            ..ROOM
        });
        let take = |uid, text: &str| names.take(uid, get_id(text.as_bytes()), text.as_bytes());
        take(8, "ours!").unwrap();
        for n in 0..10 {
            take(7, &format!("{n:05}")).unwrap();
        }
        assert_eq!(take(7, "more!"), Err(Refused::UserFull));
        assert_eq!(take(7, "ours!"), Ok(()), "another user's costs nothing");
        take(8, "more!").unwrap();
        assert_eq!(take(7, "more!"), Ok(()));
        let each = ENTRY_BYTES + 5;
        assert_eq!(
            (names.used(), names.refused()),
            ((12 * each, 10 * each), [0, 1, 0])
        );
    }

    #[test]
    fn a_producers_names_stay_when_it_is_gone() {
        let names = Names::new(ROOM);
        let (reader, fd) = StringReader::create(1 << 16).unwrap();
        let layout = StringTableLayout::new(1 << 16).unwrap();
        let map = WriteMapping::map(&fd, 1 << 16).unwrap();
        let table = ProducerNames::new(7, reader);
        append(map.words(), &layout, get_id(b"x"), b"x", 0).unwrap();
        append(map.words(), &layout, 9, b"liar", 0).unwrap();
        table.merge_into(&names);
        assert_eq!(
            (texts(&names, 0), table.counts()),
            (vec!["x".to_owned()], (0, 1))
        );
        append(map.words(), &layout, get_id(b"last"), b"last", 0).unwrap();
        table.close(&names);
        table.close(&names);
        assert_eq!(
            (texts(&names, 1), table.counts()),
            (vec!["last".to_owned()], (0, 1))
        );
    }
}
