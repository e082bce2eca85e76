//! C and C++ programs that go through every result and every error of the calls that need no session.
//!
//! They run against the shared library of this build, without a daemon and without the background thread.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the shared library: the one of this test's own program.
fn library() -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let folder = folder.parent().unwrap();
    assert!(
        folder.join("libnrt_trace.so").exists(),
        "no libnrt_trace.so in {}",
        folder.display()
    );
    folder.to_owned()
}

/// Compiles a program of `tests/c`, with every warning an error; what the compiler says if it fails.
fn compile(source: &str, made: &str, options: &[&str]) -> Result<PathBuf, String> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(made);
    let library = library();
    let (compiler, standard) = if source.ends_with(".cpp") {
        ("c++", "-std=c++11")
    } else {
        ("cc", "-std=c11")
    };
    // Without built-ins, so that allocations which the program frees at once are not left out.
    let output = Command::new(compiler)
        .args([standard, "-O1", "-g", "-fno-builtin"])
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(options)
        .arg("-I")
        .arg(crate_folder.join("include"))
        .arg(crate_folder.join("tests/c").join(source))
        .arg("-o")
        .arg(&made)
        .arg("-L")
        .arg(&library)
        .arg("-lnrt_trace")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()
        .unwrap();
    if output.status.success() {
        Ok(made)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Runs a program to its end, which it says it reached; what it said before.
fn run(program: &mut Command) -> String {
    if program
        .get_envs()
        .all(|(name, _)| name != "NRT_TRACE_EMBEDDED")
    {
        program.env("NRT_TRACE_DISABLE", "1");
        program.env("NRT_TRACE_PRODUCER_SOCKET", "/nowhere/producer.sock");
    }
    // Cargo's points to the folder above, whose library may be of another build, and wins over the program's own path.
    program.env_remove("LD_LIBRARY_PATH");
    let output = program.output().unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && said.ends_with("done\n"),
        "{program:?}: {}\n{said}{errors}",
        output.status
    );
    said
}

/// Has the program make its rings itself: a capture needs them, and nobody else shall take part.
fn embedded(program: &mut Command) -> &mut Command {
    program.env("NRT_TRACE_EMBEDDED", "1");
    program.env(
        "NRT_TRACE_PRODUCER_SOCKET",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("none.sock"),
    )
}

/// "session" captures; the others need no background thread, and have none.
const PROGRAMS: [&str; 4] = ["surface", "strings", "session", "host"];

fn prepared<'a>(name: &str, program: &'a mut Command) -> &'a mut Command {
    if name == "session" {
        embedded(program)
    } else {
        program
    }
}

fn source(name: &str) -> String {
    format!("{name}.c")
}

#[test]
fn every_result_and_error_is_as_documented() {
    for name in PROGRAMS {
        let program = compile(&source(name), name, &[]).unwrap();
        run(prepared(name, &mut Command::new(program)));
    }
}

#[test]
fn programs_written_for_neuron_compile_as_they_are() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("NOT RUN: no C++ compiler");
        return;
    }
    let program = compile("usage.cpp", "usage", &[]).unwrap();
    run(&mut Command::new(program));
}

/// Each pairing of what allocates and what frees, by memcheck's book: nothing twice, nothing by another allocator's
/// function, nothing left.
#[test]
fn valgrind_finds_nothing() {
    for name in PROGRAMS {
        let program = compile(&source(name), &format!("{name}-memcheck"), &[]).unwrap();
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        valgrind.args(["--errors-for-leak-kinds=definite,indirect"]);
        run(prepared(name, valgrind.arg(program)));
    }
}

/// The same by the address sanitizer, which sees the stack and the library's reads as well.
#[test]
fn the_address_sanitizer_finds_nothing() {
    for name in PROGRAMS {
        let made = format!("{name}-asan");
        match compile(&source(name), &made, &["-fsanitize=address,undefined"]) {
            Ok(program) => {
                run(prepared(name, &mut Command::new(program)));
            }
            Err(said) => {
                assert!(
                    said.contains("asan") || said.contains("fsanitize"),
                    "{said}"
                );
                eprintln!("NOT RUN: the compiler has no address sanitizer: {said}");
            }
        }
    }
}

#[test]
fn out_of_memory_is_said_and_leaves_nothing_behind() {
    let program = compile("out_of_memory.c", "out_of_memory", &[]).unwrap();
    let said = run(&mut Command::new(program));
    // The array and 46 names, each of which failed once.
    assert!(said.contains("event types 47\n"), "{said}");
}

/// Memory for a document runs out: the call says so, and everything can still be fetched.
#[test]
fn out_of_memory_in_a_fetch_loses_nothing() {
    let program = compile("out_of_memory_fetch.c", "out_of_memory_fetch", &[]).unwrap();
    run(embedded(&mut Command::new(program)));
}
