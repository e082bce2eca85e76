//! Link options of the shared library.

fn main() {
    // Never unloaded: the background thread and the fork handler run its code, whatever the host does with dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // The file's own name, so that a program linked with -lnrt_trace_prefixed finds it in the build tree.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnrt_trace_prefixed.so");
    // The functions under their own names come in an archive, and stay inside.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    println!("cargo::rerun-if-changed=build.rs");
}
