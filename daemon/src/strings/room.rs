//! How much the merged table may hold: of one user's names, and of all.
//!
//! A name is charged to the user whose process told it first; to the others it costs nothing.

use std::collections::BTreeMap;

/// Bytes that names may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameBudgets {
    /// All of them.
    pub total: u64,
    /// Those of a user.
    pub per_uid: u64,
}

/// Why a name was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its bytes are no text, or its id is not their hash.
    Invalid,
    /// The names of its user have taken their share.
    UserFull,
    /// The table is full.
    Full,
}

impl Refused {
    /// All causes.
    pub(crate) const ALL: [Self; 3] = [Self::Invalid, Self::UserFull, Self::Full];

    /// Its name in metrics: that of the setting that decides, if there is one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::UserFull => "names_budget_bytes_per_uid",
            Self::Full => "names_budget_bytes",
        }
    }
}

/// What is taken.
#[derive(Debug)]
pub(super) struct Room {
    budgets: NameBudgets,
    used: u64,
    /// Of each user whose process told a name.
    users: BTreeMap<u32, User>,
    told_full: bool,
}

#[derive(Debug, Default)]
struct User {
    used: u64,
    told_full: bool,
}

impl Room {
    pub(super) fn new(budgets: NameBudgets) -> Self {
        Self {
            budgets,
            used: 0,
            users: BTreeMap::new(),
            told_full: false,
        }
    }

    /// Takes `cost` bytes for a name that a process of `uid` told. That there is no room any more is said once.
    pub(super) fn take(&mut self, uid: u32, cost: u64) -> Result<(), Refused> {
        let user = self.users.entry(uid).or_default();
        if cost > self.budgets.per_uid.saturating_sub(user.used) {
            if !std::mem::replace(&mut user.told_full, true) {
                tracing::warn!(
                    uid,
                    "a user's names have taken their share (names_budget_bytes_per_uid): its new names stay unresolved"
                );
            }
            return Err(Refused::UserFull);
        }
        if cost > self.budgets.total.saturating_sub(self.used) {
            if !std::mem::replace(&mut self.told_full, true) {
                tracing::warn!(
                    "the table of names is full (names_budget_bytes): new names stay unresolved"
                );
            }
            return Err(Refused::Full);
        }
        user.used += cost;
        self.used += cost;
        Ok(())
    }

    /// Bytes that are taken: by all, and by the user who has most.
    pub(super) fn used(&self) -> (u64, u64) {
        let most = self.users.values().map(|user| user.used).max();
        (self.used, most.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_share_and_all_have_a_bound() {
        let mut room = Room::new(NameBudgets {
            total: 100,
            per_uid: 60,
        });
        assert_eq!(room.take(1, 60), Ok(()));
        assert_eq!(room.take(1, 1), Err(Refused::UserFull));
        assert_eq!(room.take(2, 41), Err(Refused::Full));
        assert_eq!(room.take(2, 40), Ok(()));
        assert_eq!(room.take(3, 1), Err(Refused::Full));
        assert_eq!(room.used(), (100, 60));
    }
}
