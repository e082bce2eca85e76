//! A map that remembers the newest entries and forgets the oldest, so that what a trace makes us remember stays
//! bounded whatever the trace holds.
//!
//! Entries stand in a slab, linked from oldest to newest; the hash table holds slab positions. Removed entries are
//! reused at once, so an entry that lives long costs its own slot and no more (a queue with tombstones would grow
//! behind it).

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    older: u32,
    newer: u32,
}

/// At most `limit` entries; a new one beyond that pushes out the one that was inserted first.
#[derive(Clone, Debug)]
pub(crate) struct Recent<K, V> {
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    slots: Vec<Slot<K, V>>,
    /// Head of the list of unused slots, linked by `newer`.
    free: u32,
    oldest: u32,
    newest: u32,
    /// Where the last answer stood: what is asked for in a row is mostly the same. Never an unused slot.
    last: u32,
    limit: usize,
}

impl<K: Hash + Eq + Copy, V: Copy + Default> Recent<K, V> {
    /// An empty map; it takes memory only as it fills.
    pub(crate) fn new(limit: usize) -> Self {
        let hasher = DefaultHashBuilder::default();
        let (table, slots) = (HashTable::new(), Vec::new());
        Self {
            hasher,
            table,
            slots,
            free: NONE,
            oldest: NONE,
            newest: NONE,
            last: NONE,
            limit,
        }
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.slots.clear();
        (self.free, self.oldest, self.newest, self.last) = (NONE, NONE, NONE, NONE);
    }

    /// The value of `key`.
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        if self.table.is_empty() {
            return None;
        }
        if self.last != NONE && self.slots[at(self.last)].key == *key {
            return Some(&self.slots[at(self.last)].value);
        }
        let hash = self.hasher.hash_one(key);
        let position = self.table.find(hash, |&i| self.slots[at(i)].key == *key)?;
        Some(&self.slots[at(*position)].value)
    }

    /// The value of `key`, inserted as the default if it is new.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, key: K) -> &mut V {
        if self.last != NONE && self.slots[at(self.last)].key == key {
            return &mut self.slots[at(self.last)].value;
        }
        let hash = self.hasher.hash_one(key);
        if let Some(&position) = self.table.find(hash, |&i| self.slots[at(i)].key == key) {
            self.last = position;
            return &mut self.slots[at(position)].value;
        }
        if self.table.len() == self.limit {
            let oldest = self.slots[at(self.oldest)].key;
            self.remove(&oldest);
        }
        let slot = Slot {
            key,
            value: V::default(),
            older: self.newest,
            newer: NONE,
        };
        let position = if self.free == NONE {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("the limit is far below 2^32")
        } else {
            let position = self.free;
            self.free = self.slots[at(position)].newer;
            self.slots[at(position)] = slot;
            position
        };
        match self.newest {
            NONE => self.oldest = position,
            newest => self.slots[at(newest)].newer = position,
        }
        self.newest = position;
        self.last = position;
        let Self {
            table,
            slots,
            hasher,
            ..
        } = self;
        table.insert_unique(hash, position, |&i| hasher.hash_one(slots[at(i)].key));
        &mut slots[at(position)].value
    }

    /// Gives `key` this value, and hands back what had to give way: the value that it had, else the oldest entry's if there
    /// is no room for another.
    #[cfg(any(feature = "pftrace", test))]
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let known = self.table.find(hash, |&i| self.slots[at(i)].key == key);
        let gone = if known.is_some() {
            // It goes to the end of the row, with the newest.
            self.remove(&key)
        } else if self.table.len() == self.limit {
            let oldest = self.slots[at(self.oldest)].key;
            self.remove(&oldest)
        } else {
            None
        };
        *self.get_or_insert(key) = value;
        gone
    }

    /// Takes the oldest entry out.
    #[cfg(any(feature = "pftrace", test))]
    pub(crate) fn remove_oldest(&mut self) -> Option<V> {
        let oldest = self.slots.get(at(self.oldest))?.key;
        self.remove(&oldest)
    }

    /// Entries.
    #[cfg(any(feature = "pftrace", test))]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Takes `key` out.
    #[inline]
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let entry = self
            .table
            .find_entry(hash, |&i| self.slots[at(i)].key == *key)
            .ok()?;
        let (position, _) = entry.remove();
        if position == self.last {
            self.last = NONE;
        }
        let Slot {
            value,
            older,
            newer,
            ..
        } = self.slots[at(position)];
        match older {
            NONE => self.oldest = newer,
            older => self.slots[at(older)].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[at(newer)].older = older,
        }
        self.slots[at(position)].newer = self.free;
        self.free = position;
        Some(value)
    }
}

const fn at(position: u32) -> usize {
    position as usize
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let mut map = Recent::new(2);
        *map.get_or_insert(1) = 'a';
        *map.get_or_insert(2) = 'b';
        *map.get_or_insert(1) = 'A';
        *map.get_or_insert(3) = 'c';
        assert_eq!(
            (map.get(&1), map.get(&2), map.get(&3)),
            (None, Some(&'b'), Some(&'c'))
        );
        assert_eq!(map.remove(&2), Some('b'));
        assert_eq!(map.remove(&2), None);
        *map.get_or_insert(4) = 'd';
        assert_eq!(
            (map.get(&3), map.get(&4)),
            (Some(&'c'), Some(&'d')),
            "a removed entry made room"
        );
        assert_eq!(map.slots.len(), 2, "slots are reused");
        map.clear();
        assert_eq!(map.get(&4), None);
        assert_eq!(map.remove(&3), None);
        *map.get_or_insert(4) = 'e';
        assert_eq!(map.get(&4), Some(&'e'));
    }

    #[test]
    fn an_insertion_hands_back_what_gives_way() {
        let mut map = Recent::new(2);
        assert_eq!((map.insert(1, 'a'), map.insert(2, 'b')), (None, None));
        assert_eq!(map.insert(1, 'A'), Some('a'), "the same key");
        assert_eq!(map.insert(3, 'c'), Some('b'), "now the oldest");
        assert_eq!((map.remove_oldest(), map.len()), (Some('A'), 1));
        assert_eq!(
            (map.remove_oldest(), map.remove_oldest()),
            (Some('c'), None)
        );
    }

    proptest! {
        #[test]
        fn it_is_a_queue_of_pairs_with_a_limit(ops in prop::collection::vec((0u8..3, 0u8..12, any::<u16>()), 0..300)) {
            let mut map = Recent::new(5);
            let mut model: VecDeque<(u8, u16)> = VecDeque::new();
            for (op, key, value) in ops {
                let known = model.iter().position(|(k, _)| *k == key);
                match (op, known) {
                    (0, _) => prop_assert_eq!(map.get(&key).copied(), known.map(|i| model[i].1)),
                    (1, _) => prop_assert_eq!(map.remove(&key), known.and_then(|i| model.remove(i)).map(|(_, v)| v)),
                    (_, Some(i)) => {
                        *map.get_or_insert(key) = value;
                        model[i].1 = value;
                    }
                    (_, None) => {
                        *map.get_or_insert(key) = value;
                        if model.len() == 5 {
                            model.pop_front();
                        }
                        model.push_back((key, value));
                    }
                }
            }
        }
    }
}
