//! The programs that the tests drive, built once for a test run.
//!
//! `cargo test` builds neither the binaries of other packages nor a shared library for C programs. So the first test
//! that needs them runs cargo itself, in the profile of the tests, and takes the paths from cargo's messages. A file
//! in the target folder holds them for the other test processes of the same run.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Packages to build: those whose programs are wanted, and the one whose tests ask most of the dependencies, so that all
/// features are those of `cargo test --workspace`, and nothing is compiled twice.
const PACKAGES: [&str; 7] = [
    "nrt-traced",
    "nrt-tracectl",
    "nrt-trace-workload",
    "nrt-trace-capi",
    "nrt-trace-capi-prefixed",
    "nrt-trace-tests",
    "nrt-trace-export",
];

/// Where everything is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Artifacts {
    /// The daemon.
    pub traced: PathBuf,
    /// The command line.
    pub tracectl: PathBuf,
    /// The workload by itself.
    pub workload: PathBuf,
    /// The small traced program of this crate.
    pub probe: PathBuf,
    /// A program that becomes another one, with descriptors handed over.
    pub handover: PathBuf,
    /// `libnrt_trace.so`.
    pub library: PathBuf,
    /// `libnrt_trace.a`.
    pub archive: PathBuf,
    /// `libnrt_trace_prefixed.so`.
    pub prefixed: PathBuf,
    /// Folder of the C header.
    pub include: PathBuf,
    /// Root of the workspace.
    pub workspace: PathBuf,
}

/// The artifacts; builds them if this run has not yet.
///
/// # Panics
///
/// If cargo can't build them: no test can say anything then.
#[must_use]
pub fn artifacts() -> &'static Artifacts {
    static ARTIFACTS: OnceLock<Artifacts> = OnceLock::new();
    ARTIFACTS.get_or_init(|| {
        find("tests", build).expect("the programs that the tests drive can be built")
    })
}

/// The stepper: producer and daemon with the steps of the crash tests compiled in, which no other build has.
///
/// # Panics
///
/// If cargo can't build it.
#[must_use]
pub fn stepper() -> &'static Path {
    static STEPPER: OnceLock<PathBuf> = OnceLock::new();
    STEPPER.get_or_init(|| find("stepper", build_stepper).expect("the stepper can be built"))
}

/// Variable that names the profile of [`failpoints`]; absent: that of the test, which builds it sooner.
pub const FAILPOINTS_PROFILE: &str = "NRT_TRACE_FAILPOINTS_PROFILE";

/// The daemon with places where its threads can be made to hang, which no other build has.
///
/// # Panics
///
/// If cargo can't build it.
#[must_use]
pub fn failpoints() -> &'static Path {
    static FAILPOINTS: OnceLock<PathBuf> = OnceLock::new();
    FAILPOINTS.get_or_init(|| {
        find("failpoints", build_failpoints).expect("the daemon with failpoints can be built")
    })
}

/// What a file in the target folder says.
#[derive(Serialize, Deserialize)]
struct Built<T> {
    run: String,
    artifacts: T,
}

fn find<T: Clone + Serialize + DeserializeOwned>(
    what: &str,
    build: fn(&Place) -> Result<T>,
) -> Result<T> {
    let place = Place::of_this_test()?;
    let path = place
        .target
        .join(format!("nrt-trace-{what}-{}.json", place.profile_name));
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)?;
    // Other test processes wait here while one builds.
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let run = run_id()?;
    if let Ok(built) = serde_json::from_str::<Built<T>>(&text)
        && built.run == run
    {
        return Ok(built.artifacts);
    }
    let artifacts = build(&place)?;
    write_over(
        &mut file,
        &serde_json::to_string(&Built {
            run,
            artifacts: artifacts.clone(),
        })?,
    )?;
    Ok(artifacts)
}

fn write_over(file: &mut File, text: &str) -> Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    Ok(file.write_all(text.as_bytes())?)
}

/// What distinguishes this test run: nextest's own id, else the process that started the test binaries.
fn run_id() -> Result<String> {
    if let Ok(id) = env::var("NEXTEST_RUN_ID") {
        return Ok(id);
    }
    let parent = std::os::unix::process::parent_id();
    let stat = fs::read_to_string(format!("/proc/{parent}/stat"))?;
    let after_name = stat
        .rsplit_once(')')
        .context("a stat line without a name")?
        .1;
    let start_time = after_name
        .split_whitespace()
        .nth(19)
        .context("a stat line that is too short")?;
    Ok(format!("{parent}@{start_time}"))
}

/// Where cargo put this test, which tells how it was built.
#[derive(Clone)]
struct Place {
    target: PathBuf,
    triple: Option<String>,
    /// Name of the profile's folder.
    profile_name: String,
}

impl Place {
    /// From `…/target[/triple]/profile/deps/test-hash`.
    fn of_this_test() -> Result<Self> {
        let exe = env::current_exe()?;
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let profile = exe
            .ancestors()
            .nth(2)
            .context("the test is not in a target folder")?;
        let above = profile
            .parent()
            .context("the test is not in a target folder")?;
        let profile_name = name(profile).context("a profile's name is text")?;
        // cargo writes the first into every target folder, and the second only into one that it made itself.
        if [".rustc_info.json", "CACHEDIR.TAG"]
            .iter()
            .any(|mark| above.join(mark).exists())
        {
            return Ok(Self {
                target: above.to_owned(),
                triple: None,
                profile_name,
            });
        }
        let target = above
            .parent()
            .context("the test is not in a target folder")?
            .to_owned();
        Ok(Self {
            target,
            triple: name(above),
            profile_name,
        })
    }
}

fn build(place: &Place) -> Result<Artifacts> {
    let workspace = workspace()?;
    // Not `cargo build`, which would give dependencies fewer features than the tests have, and so build them again.
    let mut arguments = vec!["test", "--no-run"];
    arguments.extend(PACKAGES.iter().flat_map(|package| ["--package", package]));
    let files = cargo(place, &arguments)?;
    Ok(Artifacts {
        traced: named(&files, "nrt-traced")?,
        tracectl: named(&files, "nrt-tracectl")?,
        workload: named(&files, "nrt-trace-workload")?,
        probe: named(&files, "probe")?,
        handover: named(&files, "handover")?,
        library: named(&files, "libnrt_trace.so")?,
        archive: named(&files, "libnrt_trace.a")?,
        prefixed: named(&files, "libnrt_trace_prefixed.so")?,
        include: workspace.join("client-lib/capi/include"),
        workspace,
    })
}

/// By itself: together with another package it would give the steps to that one's programs too.
fn build_stepper(place: &Place) -> Result<PathBuf> {
    build_featured(place, "steps", "nrt-trace-stepper")
}

fn build_failpoints(place: &Place) -> Result<PathBuf> {
    let program = "nrt-traced-failpoints";
    let Ok(profile) = env::var(FAILPOINTS_PROFILE) else {
        return build_featured(place, "failpoints", program);
    };
    let mut place = place.clone();
    place.profile_name = profile;
    // Of the whole workspace, so that dependencies have the features of its other builds in that profile.
    let feature = "nrt-trace-stepper/failpoints";
    let files = cargo(&place, &["build", "--bin", program, "--features", feature])?;
    named(&files, program)
}

fn build_featured(place: &Place, feature: &str, program: &str) -> Result<PathBuf> {
    let package = ["--package", "nrt-trace-stepper", "--features", feature];
    let files = cargo(
        place,
        &[&["build", "--bin", program], &package[..]].concat(),
    )?;
    named(&files, program)
}

fn workspace() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = manifest.parent();
    Ok(folder
        .context("this crate is in a folder of the workspace")?
        .to_owned())
}

/// Runs cargo in the profile and for the target of this test, and returns the files that it built.
fn cargo(place: &Place, arguments: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace()?).args(arguments);
    command.arg("--message-format=json-render-diagnostics");
    command.arg("--target-dir").arg(&place.target);
    if place.profile_name != "debug" {
        command.args(["--profile", &place.profile_name]);
    }
    if let Some(triple) = &place.triple {
        command.args(["--target", triple]);
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "cargo {} failed ({})",
        arguments[0],
        output.status
    );

    let mut files = Vec::new();
    for line in output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
    {
        let message: Value = serde_json::from_slice(line).context("cargo's messages are JSON")?;
        if message["reason"] == "compiler-artifact" {
            let listed = message["filenames"].as_array().into_iter().flatten();
            files.extend(listed.filter_map(|f| Some(PathBuf::from(f.as_str()?))));
        }
    }
    Ok(files)
}

fn named(files: &[PathBuf], name: &str) -> Result<PathBuf> {
    match files
        .iter()
        .find(|f| f.file_name().is_some_and(|n| n == name))
    {
        Some(file) => Ok(file.clone()),
        None => bail!("cargo built no {name}"),
    }
}
