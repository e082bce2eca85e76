//! The committed header is what the event table says, and C and C++ compilers agree with it.
//!
//! `NRT_TRACE_BLESS=1 cargo test -p nrt-trace-capi` writes it anew.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nrt_trace_model::EventType;
use nrt_trace_model::payload::{self, FieldKind, PayloadLayout};

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

#[test]
fn the_committed_header_is_current() {
    let path = crate_path("include/nrt_trace.h");
    let want = render();
    if std::env::var_os("NRT_TRACE_BLESS").is_some() {
        std::fs::write(&path, &want).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap();
    assert!(
        have == want,
        "include/nrt_trace.h differs from the table: NRT_TRACE_BLESS=1 writes it anew"
    );
}

/// Case C10: one header, clean in C and C++ by itself.
#[test]
fn c10_the_header_is_clean_in_c_and_cpp() {
    let header = crate_path("include/nrt_trace.h");
    let compilers = [
        ("cc", "c", "c99"),
        ("cc", "c", "c17"),
        ("c++", "c++", "c++11"),
        ("c++", "c++", "c++20"),
    ];
    for (compiler, language, standard) in compilers {
        if language == "c++" && Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("NOT RUN: no C++ compiler, the header was not compiled as {standard}");
            continue;
        }
        let output = Command::new(compiler)
            .args([
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-fsyntax-only",
                "-x",
                language,
            ])
            .arg(format!("-std={standard}"))
            .arg(&header)
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        let text = String::from_utf8_lossy(&output.stderr);
        // A header as the main file: the one warning that is about this test and not about the header.
        let text: Vec<_> = text
            .lines()
            .filter(|line| line.contains("error:") && !line.contains("pragma"))
            .collect();
        assert!(text.is_empty(), "{compiler} -std={standard}: {text:#?}");
    }
}
