//! Link options of the shared library.

include!("soname.rs");

/// As cargo names it.
const LIBRARY: &str = "libnrt_trace.so";

fn main() {
    // Not `rustc-cdylib-link-arg`, which would reach the libraries that are made of this one too. Tests get these as well,
    // and an executable does not mind them.
    // Never unloaded: the background thread and the fork handler run its code, whatever the host does with dlclose.
    println!("cargo::rustc-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-link-arg=-Wl,-soname,{}", soname(LIBRARY));
    link_in_build_tree(LIBRARY);
    for file in ["build.rs", "soname.rs", "c-api-version"] {
        println!("cargo::rerun-if-changed={file}");
    }
}
