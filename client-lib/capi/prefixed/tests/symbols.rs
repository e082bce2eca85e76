//! The prefixed library has the functions of the other one, under its own names alone, and the header says so.
//!
//! `NRT_TRACE_BLESS=1 cargo test -p nrt-trace-capi-prefixed` writes the header anew.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../tests/names/mod.rs"]
mod names;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")
}

/// `nrt_x` is `nrt_trace_x`.
fn prefixed(name: &str) -> String {
    format!("nrt_trace_{}", name.strip_prefix("nrt_").unwrap())
}

fn header() -> String {
    let frame = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prefixed.h");
    let frame = std::fs::read_to_string(frame).unwrap();
    let mut names = String::new();
    for name in names::declared(&include()) {
        writeln!(names, "#define {name} {}", prefixed(&name)).unwrap();
    }
    frame.replace("@NAMES@\n", &names)
}

#[test]
fn exported_are_the_functions_of_the_headers_under_their_own_names() {
    let want: BTreeSet<String> = names::declared(&include())
        .iter()
        .map(|name| prefixed(name))
        .collect();
    assert_eq!(
        names::exported(&names::built("libnrt_trace_prefixed.so")),
        want
    );
}

#[test]
fn the_soname_has_the_c_api_version() {
    let library = "libnrt_trace_prefixed.so";
    names::assert_soname(library, include_str!("../../c-api-version").trim());
}

#[test]
fn the_committed_header_is_current() {
    let path = include().join("nrt_trace_prefixed.h");
    if std::env::var_os("NRT_TRACE_BLESS").is_some() {
        std::fs::write(&path, header()).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap();
    assert!(have == header(), "NRT_TRACE_BLESS=1 writes it anew");
}

fn compile(arguments: &[&str], out: &Path) {
    let output = Command::new("cc")
        .args([
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-I",
        ])
        .arg(include())
        .args(arguments)
        .arg("-o")
        .arg(out)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A program that has another runtime's functions of the same names, ahead of ours, and uses both.
#[test]
fn a_program_has_both_runtimes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (other, program) = (folder.join("libnrt.so"), folder.join("both"));
    compile(&["-shared", "-fPIC", "other_runtime.c"], &other);
    let library = names::built("libnrt_trace_prefixed.so");
    let ours = library.parent().unwrap().display();
    let theirs = folder.display();
    compile(
        &[
            "both.c",
            &format!("-L{theirs}"),
            "-lnrt",
            &format!("-L{ours}"),
            "-lnrt_trace_prefixed",
            &format!("-Wl,-rpath,{theirs}:{ours}"),
        ],
        &program,
    );
    let output = Command::new(&program)
        .env_remove("LD_LIBRARY_PATH")
        .env("NRT_TRACE_PRODUCER_SOCKET", folder.join("none.sock"))
        .env("NRT_TRACE_EMBEDDED", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said == "done\n",
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
