//! `demo`: the built-in workload, recorded and compared with what it says of itself.

mod account;
mod pump;

use std::ffi::OsString;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use nrt_trace_workload::{Config, Launcher, Report, WorkerArgs, run_parent, run_worker};

use super::record::report;
use crate::cli::{CaptureArgs, DemoArgs, DemoWorkloadArgs};
use crate::error::Failure;
use crate::output::target::Target;
use crate::output::{human, tell};
use crate::record::{Destination, Outcome, Plan, Session};

pub(super) use pump::pump;

/// Records the workload, prints what came of it, and compares.
pub(super) async fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
    args.workload
        .check()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let target = Target::new(&args.output, None)?;
    let destination = Destination::open(target.clone())?;
    let program = own_program()?;
    let folder = tempfile::Builder::new().prefix("nrt-trace-demo-").tempdir();
    let folder = folder.map_err(|e| Failure::file("make", "a temporary folder", &e))?;
    let report_path = folder.path().join("report.json");

    let Config {
        processes,
        threads,
        steps,
        ..
    } = args.workload;
    tell::note(format!(
        "recording {processes} processes of {threads} threads, {steps} steps, with a private daemon"
    ));
    let plan = Plan {
        capture: CaptureArgs::default(),
        reconnect: None,
        duration: None,
        command: workload_command(&program, &report_path, &args.workload),
        host: None,
    };
    let mut session = Session::open(None).await?;
    let outcome = session.record(plan, destination).await?;
    if let Some(signal) = outcome.signal {
        session.close();
        tell::note(format!(
            "interrupted; what was recorded until then is in {}",
            target.name()
        ));
        return Ok(ExitCode::from(signal.status()));
    }
    let said = Report::read(&report_path);
    report(&outcome, &target)?;
    let failed = |error| Failure::file("read", "the workload's report", &error);
    let verdict = print(&outcome, &said.map_err(failed)?, &target)?;
    if !args.no_rate {
        say(&target, &pump::rate_line(&mut session, &program).await?)?;
    }
    session.close();
    say(&target, &next_line(&target))?;
    verdict
}

/// The account, the figures of the run, and whether it is all right.
fn print(
    outcome: &Outcome,
    said: &Report,
    target: &Target,
) -> Result<Result<ExitCode, Failure>, Failure> {
    let Some(written) = &outcome.written else {
        return Ok(Err(Failure::Closed));
    };
    say(target, "")?;
    say(target, said.to_text().trim_end())?;
    let comparison = account::compare(said, &written.census.counts());
    say(target, "")?;
    say(target, &comparison.text())?;
    say(target, &figures(outcome))?;
    Ok(if !comparison.equal() {
        Err(Failure::Failed(
            "the trace and the workload's own account differ".to_owned(),
        ))
    } else if !said.check.ok {
        Err(Failure::Failed("the workload's result is wrong".to_owned()))
    } else {
        Ok(ExitCode::from(outcome.status()))
    })
}

fn figures(outcome: &Outcome) -> String {
    let best = outcome
        .rate
        .best()
        .map_or_else(String::new, |(events, during)| {
            format!(", at best {} over a second", human::rate(events, during))
        });
    let memory = peak_memory().map_or_else(|| "unknown".to_owned(), human::bytes);
    format!(
        "rate       {} recorded{best}, {} lost\n\
         daemon     CPU {:.2} s; peak memory {memory} (daemon and recorder, this process)",
        human::rate(outcome.events, outcome.lasted),
        human::count(outcome.lost),
        Duration::from_nanos(outcome.daemon.cpu_ns).as_secs_f64(),
    )
}

fn next_line(target: &Target) -> String {
    let look = match target.file() {
        Some(_) => format!("look into {}, then ", target.name()),
        None => String::new(),
    };
    format!(
        "next       {look}record a program of yours: nrt-tracectl record -o trace.json -- PROGRAM"
    )
}

/// Prints a line where the summary goes.
fn say(target: &Target, text: &str) -> Result<(), Failure> {
    if target.is_stdout() {
        let _best_effort = writeln!(stderr().lock(), "{text}");
        return Ok(());
    }
    writeln!(stdout().lock(), "{text}")?;
    Ok(())
}

/// Most memory that this process has had, bytes.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::file("find", "this program's own file", &e))
}

fn workload_command(program: &Path, report: &Path, config: &Config) -> Vec<OsString> {
    let Config {
        processes,
        threads,
        steps,
        size,
        rows,
        kill,
    } = *config;
    let mut command: Vec<OsString> = vec![
        program.into(),
        "demo-workload".into(),
        "--report".into(),
        report.into(),
    ];
    let numbers = [
        ("--processes", processes),
        ("--threads", threads),
        ("--steps", steps),
        ("--size", size),
        ("--rows", rows),
    ];
    for (option, value) in numbers {
        command.extend([option.into(), value.to_string().into()]);
    }
    if let Some(kill) = kill {
        command.extend([
            "--kill".into(),
            format!("{}@{}", kill.rank, kill.step).into(),
        ]);
    }
    command
}

/// The hidden verb that is the workload's first process.
pub(super) fn workload(args: &DemoWorkloadArgs) -> Result<ExitCode, Failure> {
    let launcher = Launcher {
        program: own_program()?,
        arguments: vec!["demo-worker".into()],
        environment: Vec::new(),
    };
    let failed = |error| Failure::file("write", &args.report, &error);
    let report = run_parent(&args.workload, &launcher)
        .map_err(|error| Failure::Failed(format!("the workload: {error}")))?;
    report.write(&args.report).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The hidden verb that is one of its workers.
pub(super) fn worker(args: &WorkerArgs) -> Result<ExitCode, Failure> {
    match run_worker(args) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::Failed(format!("worker {}: {error}", args.rank))),
    }
}
