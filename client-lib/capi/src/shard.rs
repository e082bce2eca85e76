//! A table of names by id, which grows without ending the process when memory runs out.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, TryReserveError};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nrt_trace_client::log;

/// The level of a warning.
const WARN: u8 = 1;

type Names = HashMap<u64, String>;

/// `nrt_interned_string_db_shard_t`. C programs share shards between threads, so each has its lock.
#[derive(Debug, Default)]
pub struct Shard(Mutex<Names>);

/// An id with two names.
#[derive(Debug)]
struct Conflict(String);

impl Conflict {
    /// `None` if the two are the same, or nobody wants to know.
    fn of(id: u64, first: &str, second: &str) -> Option<Self> {
        let wanted = first != second && log::is_on(WARN);
        wanted.then(|| {
            Self(format!(
                "conflicting id {id} with name {first} and {second}"
            ))
        })
    }

    /// Says so; without a lock, since whoever listens may use the shard.
    fn tell(&self) {
        log::say(WARN, &self.0);
    }
}

/// A copy of a string.
fn copy(text: &str) -> Result<String, TryReserveError> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len())?;
    copy.push_str(text);
    Ok(copy)
}

impl Shard {
    /// Enters a name. Where the id has one, it stays.
    ///
    /// # Errors
    /// If memory ran out; then nothing changed.
    pub(crate) fn register(&self, id: u64, name: &str) -> Result<(), TryReserveError> {
        let mut names = self.names();
        if let Some(first) = names.get(&id) {
            let conflict = Conflict::of(id, first, name);
            drop(names);
            conflict.iter().for_each(Conflict::tell);
            return Ok(());
        }
        let name = copy(name)?;
        names.try_reserve(1)?;
        names.insert(id, name);
        Ok(())
    }

    /// A copy of all entries, by id.
    ///
    /// # Errors
    /// If memory ran out.
    pub(crate) fn entries(&self) -> Result<Vec<(u64, String)>, TryReserveError> {
        let names = self.names();
        let mut entries = Vec::new();
        entries.try_reserve_exact(names.len())?;
        for (id, name) in names.iter() {
            entries.push((*id, copy(name)?));
        }
        entries.sort_unstable_by_key(|(id, _)| *id);
        Ok(entries)
    }

    /// Enters all of another shard's entries. Where both have an id, the name here stays.
    ///
    /// # Errors
    /// If memory ran out; then nothing changed.
    pub(crate) fn merge(&self, from: &Self) -> Result<(), TryReserveError> {
        // Copied first, so that one lock is held at a time: two threads may merge two shards into each other, and a shard may
        // be merged into itself.
        let entries = from.entries()?;
        let mut names = self.names();
        names.try_reserve(entries.len())?;
        let mut conflicts = Vec::new();
        for (id, name) in entries {
            match names.entry(id) {
                Entry::Occupied(first) => conflicts.extend(Conflict::of(id, first.get(), &name)),
                Entry::Vacant(place) => {
                    place.insert(name);
                }
            }
        }
        drop(names);
        conflicts.iter().for_each(Conflict::tell);
        Ok(())
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // Each change is one insertion, so a table that a panic left behind is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn shard(entries: &[(u64, &str)]) -> Shard {
        let shard = Shard::default();
        for (id, name) in entries {
            shard.register(*id, name).unwrap();
        }
        shard
    }

    fn owned(entries: &[(u64, &str)]) -> Vec<(u64, String)> {
        entries
            .iter()
            .map(|(id, name)| (*id, (*name).to_owned()))
            .collect()
    }

    #[test]
    fn the_first_name_of_an_id_stays() {
        let shard = shard(&[(7, "first"), (7, "first"), (7, "second"), (3, "")]);
        assert_eq!(shard.entries().unwrap(), owned(&[(3, ""), (7, "first")]));
    }

    #[test]
    fn a_merge_is_a_union_in_which_the_receiver_wins() {
        let into = shard(&[(1, "here"), (2, "both")]);
        let from = shard(&[(1, "there"), (2, "both"), (5, "new")]);
        into.merge(&from).unwrap();
        let want = owned(&[(1, "here"), (2, "both"), (5, "new")]);
        assert_eq!(into.entries().unwrap(), want);
        into.merge(&into).unwrap();
        assert_eq!(into.entries().unwrap(), want, "into itself");
        assert_eq!(from.entries().unwrap()[0].1, "there", "from is as it was");
    }

    #[test]
    fn two_shards_can_be_merged_into_each_other_at_once() {
        let (one, two) = (shard(&[(1, "one")]), shard(&[(2, "two")]));
        thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| one.merge(&two).unwrap()));
            scope.spawn(|| (0..1000).for_each(|_| two.merge(&one).unwrap()));
        });
        let want = owned(&[(1, "one"), (2, "two")]);
        assert_eq!(one.entries().unwrap(), want);
        assert_eq!(two.entries().unwrap(), want);
    }
}
