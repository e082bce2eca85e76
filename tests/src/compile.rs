//! C programs against the library of the build tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::artifacts::artifacts;
use crate::host::Host;
use crate::run::run;

/// How a program gets at the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `-lnrt_trace`, as the README says.
    Linked,
    /// With `dlopen`; the program gets the path as its first argument.
    Opened,
}

/// Compiles a C or C++ file of the workspace, with every warning an error, into the host's folder.
///
/// # Panics
///
/// If the compiler is missing or complains.
#[must_use]
pub fn compile(host: &Host, source: &str, link: Link) -> PathBuf {
    let made = host.path(Path::new(source).file_stem().expect("a file"));
    let library = artifacts().library.parent().expect("a folder").display();
    let cpp = source.ends_with(".cpp");
    let mut compiler = Command::new(if cpp { "c++" } else { "cc" });
    compiler.arg(if cpp { "-std=c++11" } else { "-std=gnu11" });
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    compiler.arg(&artifacts().include).arg("-o").arg(&made);
    compiler.arg(artifacts().workspace.join(source));
    if link == Link::Linked {
        compiler.args([&format!("-L{library}"), "-lnrt_trace"]);
        compiler.arg(format!("-Wl,-rpath,{library}"));
    }
    compiler.args(["-ldl", "-lm"]);
    run(compiler).ok();
    made
}
