//! The committed headers are what the tables say, and C and C++ compilers agree with them.
//!
//! `NRT_TRACE_BLESS=1 cargo test -p nrt-trace-capi` writes it anew.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nrt_trace_model::payload::{self, FieldKind, PayloadLayout};
use nrt_trace_model::{EventType, Status};

fn crate_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// `DeviceExecStart` to `device_exec_start`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn c_type(kind: FieldKind) -> (&'static str, usize) {
    match kind {
        FieldKind::Bool => ("bool", 1),
        FieldKind::U8 => ("uint8_t", 1),
        FieldKind::U16 => ("uint16_t", 2),
        FieldKind::U32 => ("uint32_t", 4),
        FieldKind::U64 => ("uint64_t", 8),
        FieldKind::I32 => ("int32_t", 4),
    }
}

fn phases(layout: &PayloadLayout) -> String {
    layout
        .phases
        .iter()
        .map(|phase| phase.name())
        .collect::<Vec<_>>()
        .join(", ")
}

fn payload_struct(out: &mut String, layout: &PayloadLayout) {
    let name = snake(layout.name);
    writeln!(out, "/** {}: {}. */", layout.event.name(), phases(layout)).unwrap();
    writeln!(out, "typedef struct nrt_sys_trace_{name} {{").unwrap();
    let (mut at, mut pad) = (0, 0);
    for field in layout.fields {
        let (ty, size) = c_type(field.kind);
        if field.offset > at {
            writeln!(out, "    uint8_t reserved{pad}[{}];", field.offset - at).unwrap();
            pad += 1;
        }
        writeln!(out, "    {ty} {};", field.name).unwrap();
        at = field.offset + size;
    }
    writeln!(out, "}} nrt_sys_trace_{name}_t;\n").unwrap();
}

fn offset_checks(out: &mut String, layout: &PayloadLayout) {
    let name = snake(layout.name);
    for field in layout.fields {
        writeln!(
            out,
            "NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_{name}_t, {}) == {}, \"{name}.{}\");",
            field.name, field.offset, field.name
        )
        .unwrap();
    }
}

/// The header, from the frame in `tests/header/frame.h` and the event table.
fn render() -> String {
    let frame = std::fs::read_to_string(crate_path("tests/header/frame.h")).unwrap();
    let (mut types, mut structs, mut members, mut checks) =
        (String::new(), String::new(), String::new(), String::new());
    for event in EventType::ALL {
        writeln!(
            types,
            "    NRT_SYS_TRACE_EVENT_TYPE_{} = {}, /**< {} */",
            event.c_suffix(),
            event.value(),
            event.name()
        )
        .unwrap();
    }
    for layout in &payload::ALL {
        payload_struct(&mut structs, layout);
        let name = snake(layout.name);
        writeln!(members, "    nrt_sys_trace_{name}_t {name};").unwrap();
        offset_checks(&mut checks, layout);
    }
    frame
        .replace("@TYPES@\n", &types)
        .replace("@STRUCTS@\n", &structs)
        .replace("@MEMBERS@\n", &members)
        .replace("@CHECKS@\n", &checks)
}

/// The status header, from the frame in `tests/header/status.h` and the table of codes.
fn render_status() -> String {
    let frame = std::fs::read_to_string(crate_path("tests/header/status.h")).unwrap();
    let last = Status::ALL.len() - 1;
    let mut statuses = String::new();
    for (position, status) in Status::ALL.into_iter().enumerate() {
        // C99 takes a comma after the last one, C++11 does too, and readers of the public header expect none.
        let comma = if position == last { "" } else { "," };
        writeln!(
            statuses,
            "    {status} = {}{comma} /**< {} */",
            status.code(),
            status.meaning()
        )
        .unwrap();
    }
    frame.replace("@STATUSES@\n", &statuses)
}

#[test]
fn the_committed_headers_are_current() {
    for (file, want) in [
        ("nrt_trace.h", render()),
        ("nrt/nrt_status.h", render_status()),
    ] {
        let path = crate_path("include").join(file);
        if std::env::var_os("NRT_TRACE_BLESS").is_some() {
            std::fs::write(&path, &want).unwrap();
        }
        let have = std::fs::read_to_string(&path).unwrap();
        assert!(
            have == want,
            "include/{file} differs from its table: NRT_TRACE_BLESS=1 writes it anew"
        );
    }
}

/// Compiles a file of nothing but `includes`; what the compiler says is a failure.
fn is_clean(compiler: &str, language: &str, standard: &str, includes: &[&str]) {
    let mut text = String::new();
    for header in includes {
        writeln!(text, "#include <{header}>").unwrap();
    }
    // ISO C wants a declaration in every file.
    text.push_str("extern int not_empty;\n");
    let mut running = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(["-fsyntax-only", "-x", language])
        .arg(format!("-std={standard}"))
        // -isystem would hide the warnings.
        .arg("-I")
        .arg(crate_path("include"))
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect(compiler);
    let mut input = running.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let ended = running.wait_with_output().unwrap();
    assert!(
        ended.status.success(),
        "{compiler} -std={standard} {includes:?}: {}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

/// Case C10: the headers, each by itself and in either order, are clean in every C since C99 and C++ since C++11.
#[test]
fn c10_the_headers_are_clean_in_c_and_cpp() {
    // `c2x` and `c++2b` are C23 and C++23 to compilers of before and after.
    let c = ["c99", "c11", "c17", "c2x"];
    let cpp = ["c++11", "c++14", "c++17", "c++20", "c++2b"];
    let sets: [&[&str]; 6] = [
        &["nrt_trace_host.h"],
        &["nrt_trace.h"],
        &["nrt/nrt_status.h"],
        &["nrt/nrt_sys_trace.h"],
        &["nrt_trace.h", "nrt/nrt_sys_trace.h", "nrt/nrt_status.h"],
        &["nrt/nrt_status.h", "nrt/nrt_sys_trace.h", "nrt_trace.h"],
    ];
    for (compiler, language, standards) in [
        ("cc", "c", &c[..]),
        ("c++", "c++", &cpp[..]),
        ("clang", "c", &c[..]),
        ("clang++", "c++", &cpp[..]),
    ] {
        if compiler != "cc" && Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("NOT RUN: no {compiler}, the headers were not compiled with it");
            continue;
        }
        for (standard, includes) in standards
            .iter()
            .flat_map(|standard| sets.iter().map(move |includes| (standard, includes)))
        {
            is_clean(compiler, language, standard, includes);
        }
    }
}
