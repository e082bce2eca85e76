//! Link options of the shared library.

include!("../soname.rs");

/// As cargo names it.
const LIBRARY: &str = "libnrt_trace_prefixed.so";

fn main() {
    // Never unloaded: the background thread and the fork handler run its code, whatever the host does with dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,-soname,{}",
        soname(LIBRARY)
    );
    // The functions under their own names come in an archive, and stay inside.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    link_in_build_tree(LIBRARY);
    for file in ["build.rs", "../soname.rs", "../c-api-version"] {
        println!("cargo::rerun-if-changed={file}");
    }
}
