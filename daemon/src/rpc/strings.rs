//! `GetStrings`: the merged table of names, a page at a time.

use nrt_trace_model::Status as NrtStatus;
use nrt_trace_proto::v1;
use tonic::Status;

use super::status;
use crate::registry::command::{Command, Handle, NameTables};
use crate::run::error::RunError;

/// Bytes of names in one reply, about: stock clients take 4 MiB.
const PAGE_BYTES: usize = 1 << 20;

/// Ids that one request may ask for.
const IDS_MAX: usize = 4096;

/// Answers a request. What producers published a moment ago is in the answer.
pub(super) async fn get(
    handle: &Handle,
    request: v1::GetStringsRequest,
) -> Result<v1::GetStringsResponse, Status> {
    if request.id.len() > IDS_MAX {
        return Err(status::of_error(&RunError::invalid(format_args!(
            "{} ids are too many; at most {IDS_MAX} may be asked for at a time",
            request.id.len()
        ))));
    }
    let tables = handle
        .ask(Command::Names)
        .await
        .map_err(|error| status::of_error(&error))?;
    // Reading a table that was just filled takes a while, which is no business of the threads that serve everybody.
    tokio::task::spawn_blocking(move || page(&tables, &request))
        .await
        .map_err(|error| status::with_nrt(Status::internal(error.to_string()), NrtStatus::Failure))
}

fn page((names, tables): &NameTables, request: &v1::GetStringsRequest) -> v1::GetStringsResponse {
    tables.iter().for_each(|table| table.merge_into(names));
    let total = names.len();
    if !request.id.is_empty() {
        let entries = request.id.iter().filter_map(|id| names.get(*id)).collect();
        return v1::GetStringsResponse {
            entries,
            next: total as u64,
            total: total as u64,
        };
    }
    let from = usize::try_from(request.from).map_or(total, |from| from.min(total));
    let entries = names.from(from, PAGE_BYTES);
    v1::GetStringsResponse {
        next: (from + entries.len()) as u64,
        // Others may have added to the table since it was looked at.
        total: names.len() as u64,
        entries,
    }
}
