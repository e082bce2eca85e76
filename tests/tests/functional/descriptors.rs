//! Programs that close descriptors that they did not open: the library's are among them.

use std::fs;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Host, Link, Running, artifacts, compile, run};

use crate::restart::kill_daemon;

/// Is captured, closes every descriptor as a program does that becomes a daemon, and opens files of its own. For each line of
/// its input: each file still is what it was and takes a line; how many of five events were recorded.
const SCRIPT: &str = r#"
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
emit = library.nrt_sys_trace_new_event
emit.restype = ctypes.c_uint64
emit.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p]
def emit_five():
    return sum(emit(0, 0, 0, 0, None) != 0 for _ in range(5))
assert library.nrt_trace_wait_armed(60000)
print(emit_five(), flush=True)
os.closerange(3, 1024)
files = [os.open(f"own{n}", os.O_CREAT | os.O_RDWR) for n in range(9)]
are = [os.fstat(file).st_ino for file in files]
for _ in sys.stdin:
    for file, inode in zip(files, are):
        assert os.fstat(file).st_ino == inode, file
        assert os.write(file, b"line\n") == 5
    print(emit_five(), flush=True)
for file, inode in zip(files, are):
    assert os.fstat(file).st_ino == inode, file
"#;

/// Waits until a process that closed the library's connection has another one, and rings.
fn until_captured_anew(host: &Host, pid: u32) {
    until("it to be captured anew", || {
        let attached = host.producers();
        let attached = attached.iter().filter(|p| p["pid"] == pid).count();
        (attached == 2 && host.state_of(pid)? == "capturing").then_some(())
    });
}

/// The library finds its connection gone, attaches anew, and leaves alone what has taken its numbers: through another daemon,
/// and another run.
#[test]
fn a_program_may_close_what_it_did_not_open() {
    let mut host = Host::with_daemon();
    fs::write(host.path("closes.py"), SCRIPT).unwrap();
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    let mut python = host.command("python3");
    python.arg("closes.py").arg(&artifacts().library);
    let mut python = Running::start(python);
    let pid = python.pid();
    assert_eq!(python.read_line(), "5\n");
    let mut lines = 0;
    let mut ask = |python: &mut Running| {
        lines += 1;
        python.ask("go").trim().parse::<usize>().unwrap()
    };
    let mut taken = 5 + ask(&mut python); // its connection goes, and comes again
    until_captured_anew(&host, pid);
    taken += ask(&mut python);
    assert_eq!(host.fetch().events.len(), taken);
    kill_daemon(&mut host);
    assert_eq!(ask(&mut python), 5, "rings that are in place stay");
    host.start_daemon(&[]);
    host.until_state(pid, "capturing");
    assert_eq!(ask(&mut python), 5);
    assert_eq!(host.fetch().events.len(), 10);
    host.tracectl(&["stop"]).ok();
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    host.until_state(pid, "capturing");
    assert_eq!(ask(&mut python), 5);
    assert_eq!(host.fetch().events.len(), 5);
    host.tracectl(&["stop"]).ok();
    python.wait().ok();
    for n in 0..9 {
        let text = fs::read_to_string(host.path(format!("own{n}"))).unwrap();
        assert_eq!(text, "line\n".repeat(lines), "own{n}");
    }
}

/// In C, with everything closed at once, and a hundred files under the numbers that it made free: what was taken of the program's
/// events is what is recorded.
#[test]
fn a_program_may_close_everything_at_once() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "4096"])
        .ok();
    let folder = host.path("files");
    fs::create_dir(&folder).unwrap();
    let mut program = host.command(compile(&host, "tests/c/closes.c", Link::Linked));
    program.arg(&folder);
    let mut program = Running::start(program);
    assert_eq!(program.read_line(), "closed\n");
    until_captured_anew(&host, program.pid());
    let taken: u64 = program.ask("go").trim().parse().unwrap();
    program.wait().ok();
    assert!(taken >= 1010, "{taken}");
    let document = host.fetch();
    assert_eq!(
        numbers(&document.events)[&0],
        (1..=taken).collect::<Vec<_>>()
    );
    for n in 0..100 {
        let text = fs::read_to_string(folder.join(n.to_string())).unwrap();
        assert_eq!(text, format!("file {n} of the program\n"));
    }
}

/// Prints how many descriptors of the library's the parent has, a forked child, and a child that has looked at the trace; and how
/// many of five events each of them recorded.
const FORKS: &str = r#"
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
emit = library.nrt_sys_trace_new_event
emit.restype = ctypes.c_uint64
emit.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p]
def emit_five():
    return sum(emit(0, 0, 0, 0, None) != 0 for _ in range(5))
def held():
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            pass  # the folder itself
    return sum(link.startswith(("/memfd:nrt-trace", "socket:")) for link in links)
def shared():
    return sum("memfd:nrt-trace" in line and " rw-s " in line for line in open("/proc/self/maps"))
assert library.nrt_trace_wait_armed(60000)
print(held(), shared() > 0, emit_five(), flush=True)
child = os.fork()
if child == 0:
    print(held(), shared() > 0, flush=True)
    assert library.nrt_trace_wait_armed(60000)
    print(held(), shared() > 0, emit_five(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(held(), shared() > 0, emit_five(), flush=True)
"#;

/// A child closes what it has of its parent's, and has its own when it looks at the trace; the parent keeps what it has.
#[test]
fn a_forked_child_keeps_nothing_of_its_parent() {
    let host = Host::with_daemon();
    fs::write(host.path("forks.py"), FORKS).unwrap();
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    let mut python = host.command("python3");
    python.arg("forks.py").arg(&artifacts().library);
    let told = run(python).ok().text();
    // A connection and the rings.
    let has = "2 True 5\n";
    assert_eq!(told, [has, "0 False\n", has, has].concat());
    assert_eq!(host.fetch().events.len(), 15);
}
