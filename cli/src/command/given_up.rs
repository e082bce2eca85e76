//! How many events a command gave up, of the accounts before and after it: they count since the run began.

use std::collections::HashMap;

use nrt_trace_proto::v1;

/// What each ring of a run had given up.
#[derive(Debug)]
pub(super) struct GivenUp {
    rings: HashMap<(u32, u32), u64>,
}

impl GivenUp {
    /// Of the run of `token`, by what the daemon says of it.
    pub(super) fn of(status: &v1::GetStatusResponse, token: &str) -> Self {
        let of_token =
            |one: &&v1::RunStatus| one.run.as_ref().is_some_and(|run| run.token == token);
        let runs = status.runs.iter().filter(of_token);
        let accounts = runs.flat_map(|one| &one.accounts);
        Self {
            rings: accounts.map(|a| (key(a), a.abandoned)).collect(),
        }
    }

    /// What has been given up since then, of rings of these accounts.
    pub(super) fn since(&self, accounts: &[v1::RingAccount]) -> u64 {
        let one = |account: &v1::RingAccount| {
            let before = self.rings.get(&key(account)).copied();
            account.abandoned.saturating_sub(before.unwrap_or(0))
        };
        accounts.iter().map(one).sum()
    }
}

const fn key(account: &v1::RingAccount) -> (u32, u32) {
    (account.producer_id, account.nc_idx)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(nc_idx: u32, abandoned: u64) -> v1::RingAccount {
        v1::RingAccount {
            nc_idx,
            abandoned,
            ..v1::RingAccount::default()
        }
    }

    #[test]
    fn what_was_given_up_before_is_not_counted_again() {
        let run = |token: &str, accounts| v1::RunStatus {
            run: Some(v1::Run {
                token: token.to_owned(),
                ..v1::Run::default()
            }),
            accounts,
            ..v1::RunStatus::default()
        };
        let status = v1::GetStatusResponse {
            runs: vec![
                run("", vec![account(0, 10), account(1, 1)]),
                run("t", vec![account(2, 100)]),
            ],
            ..v1::GetStatusResponse::default()
        };
        let after = [account(0, 12), account(1, 1), account(2, 5)];
        assert_eq!(GivenUp::of(&status, "").since(&after), 2 + 5);
        assert_eq!(GivenUp::of(&status, "other").since(&after), 12 + 1 + 5);
    }
}
