//! Link options of the shared library.

fn main() {
    // Not `rustc-cdylib-link-arg`, which would reach the libraries that are made of this one too. Tests get these as well,
    // and an executable does not mind them.
    // Never unloaded: the background thread and the fork handler run its code, whatever the host does with dlclose.
    println!("cargo::rustc-link-arg=-Wl,-z,nodelete");
    // The file's own name, so that a program linked with -lnrt_trace finds it in the build tree.
    println!("cargo::rustc-link-arg=-Wl,-soname,libnrt_trace.so");
    println!("cargo::rerun-if-changed=build.rs");
}
