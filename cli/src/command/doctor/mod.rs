//! `doctor`: what is wrong, in plain words, and what to do about it.

mod findings;

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::{DoctorArgs, ListFormat, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::table::printable;
use findings::{Finding, Place, Seen};

/// Looks, and says what there is to do. Status 0: nothing.
pub(crate) async fn run(socket: &SocketArg, args: DoctorArgs) -> Result<ExitCode, Failure> {
    let path = socket.path();
    let place = Place::look(&path);
    let (findings, well) = match Client::connect(&path).await {
        Err(error) => (findings::of_refusal(&error, &place), Vec::new()),
        Ok(mut client) => {
            let status = client.status_at_connect().clone();
            let producers = client.producers(None).await?;
            let seen = Seen {
                status: &status,
                producers: &producers,
                disabled: is_on("NRT_TRACE_DISABLE"),
                producer_socket: findings::may_connect(Path::new(&status.producer_socket)),
            };
            (findings::of(&seen), findings::well(&seen))
        }
    };
    let mut out = stdout().lock();
    match args.format.format {
        ListFormat::Table => text(&findings, &well, &mut out)?,
        ListFormat::Json => writeln!(out, "{:#}", document(&path, &findings, &well))?,
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}

fn is_on(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

fn text(findings: &[Finding], well: &[String], out: &mut impl Write) -> Result<(), Failure> {
    for line in well {
        writeln!(out, "well     {}", printable(line))?;
    }
    for finding in findings {
        writeln!(
            out,
            "found    {}: {}",
            finding.code,
            printable(&finding.what)
        )?;
        writeln!(out, "  do     {}", printable(&finding.todo))?;
    }
    match findings.len() {
        0 => writeln!(out, "all well")?,
        1 => writeln!(out, "1 thing to do")?,
        n => writeln!(out, "{n} things to do")?,
    }
    Ok(())
}

fn document(socket: &Path, findings: &[Finding], well: &[String]) -> serde_json::Value {
    let finding = |finding: &Finding| json!({ "code": finding.code, "what": finding.what, "do": finding.todo });
    json!({
        "socket": socket.display().to_string(),
        "well": findings.is_empty(),
        "checked": well,
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
