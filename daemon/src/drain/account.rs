//! Accounts as messages.

use std::collections::BTreeMap;

use nrt_trace_proto::v1;
use nrt_trace_ring::{Account, Cursor};

/// The message of a ring's account. `skipped` events of those that the cursor got were none that the run asked for: it
/// knows nothing of them.
pub(crate) fn ring_account(
    producer_id: u32,
    nc: usize,
    account: &Account,
    skipped: u64,
    exact: bool,
) -> v1::RingAccount {
    v1::RingAccount {
        producer_id,
        nc_idx: u32::try_from(nc).unwrap_or(u32::MAX),
        claimed: account.claimed.saturating_sub(skipped),
        delivered: account.delivered.saturating_sub(skipped),
        lost: account.lost,
        pending: account.pending,
        unread: account.unread,
        dropped_in_flight: account.dropped_in_flight,
        dropped_lapped: account.dropped_lapped,
        dropped_seq: account.dropped_seq,
        overwritten: account.overwritten(),
        abandoned: account.abandoned,
        skipped,
        exact,
    }
}

/// The account of claims that came in a ring which nobody reads any more.
pub(crate) fn late_account(producer_id: u32, nc: usize, events: u64) -> v1::RingAccount {
    let account = Account {
        claimed: events,
        lost: events,
        abandoned: events,
        ..Account::default()
    };
    ring_account(producer_id, nc, &account, 0, true)
}

/// The accounts of rings that followed one another, summed: one for each producer and NC, in the order of the first.
pub(crate) fn merged(accounts: impl Iterator<Item = v1::RingAccount>) -> Vec<v1::RingAccount> {
    let mut sums = BTreeMap::<(u32, u32), v1::RingAccount>::new();
    for one in accounts {
        sums.entry((one.producer_id, one.nc_idx))
            .and_modify(|sum| add(sum, &one))
            .or_insert(one);
    }
    sums.into_values().collect()
}

fn add(sum: &mut v1::RingAccount, one: &v1::RingAccount) {
    let fields = |account: &v1::RingAccount| {
        [
            account.claimed,
            account.delivered,
            account.lost,
            account.pending,
            account.unread,
            account.dropped_in_flight,
            account.dropped_lapped,
            account.dropped_seq,
            account.overwritten,
            account.abandoned,
            account.skipped,
        ]
    };
    let (a, b) = (fields(sum), fields(one));
    let [
        claimed,
        delivered,
        lost,
        pending,
        unread,
        dropped_in_flight,
        dropped_lapped,
        dropped_seq,
        overwritten,
        abandoned,
        skipped,
    ] = std::array::from_fn(|at| a[at].saturating_add(b[at]));
    *sum = v1::RingAccount {
        producer_id: sum.producer_id,
        nc_idx: sum.nc_idx,
        claimed,
        delivered,
        lost,
        pending,
        unread,
        dropped_in_flight,
        dropped_lapped,
        dropped_seq,
        overwritten,
        abandoned,
        skipped,
        exact: sum.exact && one.exact,
    };
}

/// What a cursor alone can say, of a ring whose words are not to be believed: nothing beyond it exists.
pub(crate) fn without_ring(cursor: &Cursor) -> Account {
    Account {
        claimed: cursor.next(),
        delivered: cursor.delivered(),
        lost: cursor.lost(),
        pending: cursor.pending().len() as u64,
        abandoned: cursor.abandoned(),
        ..Account::default()
    }
}

/// Whether nothing of an account is open: every claim was delivered, dropped, given up, or overwritten beyond doubt.
///
/// A producer that ended without a word may have died inside an emit. Then a claim is missing that nobody dropped; if
/// none is missing, there was no such emit.
pub(crate) fn is_settled(account: &Account) -> bool {
    account.unread == 0 && account.overwritten() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_claim_of_a_dead_producer_leaves_doubt() {
        let whole = Account {
            claimed: 10,
            delivered: 9,
            lost: 1,
            dropped_lapped: 1,
            ..Account::default()
        };
        assert!(is_settled(&whole));
        assert!(!is_settled(&Account {
            delivered: 8,
            pending: 1,
            ..whole
        }));
        assert!(!is_settled(&Account {
            delivered: 8,
            unread: 1,
            ..whole
        }));
        let message = ring_account(3, 4, &whole, 0, true);
        assert_eq!(
            (
                message.producer_id,
                message.nc_idx,
                message.overwritten,
                message.exact
            ),
            (3, 4, 0, true)
        );
    }

    #[test]
    fn rings_that_followed_one_another_have_one_account() {
        let account = Account {
            claimed: 5,
            delivered: 3,
            lost: 2,
            dropped_lapped: 1,
            ..Account::default()
        };
        let of = |nc, exact| ring_account(3, nc, &account, 0, exact);
        let sums = merged([of(1, true), of(0, true), of(1, false)].into_iter());
        assert_eq!(sums[0], of(0, true));
        let both = &sums[1];
        assert_eq!((both.nc_idx, both.claimed, both.delivered), (1, 10, 6));
        assert_eq!(
            (both.lost, both.dropped_lapped, both.overwritten),
            (4, 2, 2)
        );
        assert!(!both.exact && sums.len() == 2);
    }

    #[test]
    fn what_only_another_capture_asked_for_is_neither_claimed_nor_delivered() {
        let account = Account {
            claimed: 10,
            delivered: 7,
            lost: 1,
            unread: 2,
            ..Account::default()
        };
        let message = ring_account(3, 4, &account, 5, false);
        assert_eq!(
            (message.claimed, message.delivered, message.skipped),
            (5, 2, 5)
        );
        assert_eq!(
            message.claimed,
            message.delivered + message.lost + message.unread
        );
    }
}
