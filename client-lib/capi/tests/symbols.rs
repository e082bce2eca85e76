//! Case C10: the library exports what its headers declare, and nothing else.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod names;

use std::path::Path;
use std::process::Command;

#[test]
fn c10_exported_are_the_functions_of_the_headers() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    assert_eq!(
        names::exported(&names::built("libnrt_trace.so")),
        names::declared(&include)
    );
}

#[test]
fn the_soname_has_the_c_api_version() {
    let library = "libnrt_trace.so";
    names::assert_soname(library, include_str!("../c-api-version").trim());
}

/// What the library brings into a process: no runtime for asynchronous code, no HTTP, no compression.
#[test]
fn the_librarys_dependencies_are_few() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .args(["--package", env!("CARGO_PKG_NAME")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(tree.contains("nrt-trace-export"), "{tree}");
    for heavy in [
        "tokio",
        "tonic",
        "hyper",
        "h2 ",
        "zstd",
        "hdrhistogram",
        "serde_json",
    ] {
        assert!(
            !tree.lines().any(|line| line.starts_with(heavy)),
            "{heavy}: {tree}"
        );
    }
}
