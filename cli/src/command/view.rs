//! `view`: a trace for the Perfetto UI, from this machine's memory to this machine's browser.
//!
//! The UI runs in the browser and fetches the trace from a loopback port, if the answer says that it may (CORS). It accepts
//! port 9001 only. The trace is served once, under a path that nobody can guess.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write, stdout};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use nrt_trace_export::{Format, NativeError, PftraceOptions, PftraceWriter};

use crate::cli::ViewArgs;
use crate::error::Failure;
use crate::input::Trace;
use crate::output::progress::Progress;
use crate::output::{human, tell};

/// How long a connection may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lines of a request that are read.
const LINES: usize = 200;

/// What is served.
struct Served {
    path: String,
    origin: String,
    file: PathBuf,
    /// Holds a converted trace.
    _folder: Option<tempfile::TempDir>,
}

/// Serves the trace until it was fetched.
pub(crate) fn run(args: &ViewArgs) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new();
    let served = served(args, &mut progress);
    progress.clear();
    let served = Arc::new(served?);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener = TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
    let port = listener.local_addr()?.port();
    let mut out = stdout().lock();
    writeln!(
        out,
        "{}/#!/?url=http://127.0.0.1:{port}{}",
        args.ui.trim_end_matches('/'),
        served.path
    )?;
    out.flush()?;
    drop(out);
    tell::note("open this link in a browser of this machine; it works once (Ctrl-C ends)");
    let (done, finished) = channel();
    let acceptor = {
        let served = Arc::clone(&served);
        move || accept(&listener, &served, &done)
    };
    std::thread::Builder::new()
        .name("view".to_owned())
        .spawn(acceptor)
        .map_err(|error| Failure::file("start", "the server", &error))?;
    let bytes = finished
        .recv()
        .map_err(|_| Failure::Failed("the server ended".to_owned()))?;
    tell::note(format!("{} served", human::bytes(bytes)));
    Ok(ExitCode::SUCCESS)
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let failure = Failure::file("listen on", address.to_string(), error);
    match (failure, error.kind()) {
        (Failure::Failed(text), io::ErrorKind::AddrInUse) => Failure::Failed(format!(
            "{text}. The Perfetto UI fetches traces from port 9001 of this machine and no other: end what uses it (another \
             `view`, or trace_processor --httpd), or write the trace with `convert -o FILE.pftrace` and open that file in the UI"
        )),
        (failure, _) => failure,
    }
}

fn served(args: &ViewArgs, progress: &mut Progress) -> Result<Served, Failure> {
    let mut secret = [0_u8; 16];
    rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Failure::file("get", "random bytes", &error.into()))?;
    let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/{secret}/trace.pftrace");
    let origin = origin_of(&args.ui);
    let mut head = [0; 1];
    let mut file =
        File::open(&args.file).map_err(|error| Failure::file("read", &args.file, &error))?;
    let first = file.read(&mut head);
    first.map_err(|error| Failure::file("read", &args.file, &error))?;
    // A Perfetto trace begins with a packet's tag.
    let ready = head == [0x0A] || Format::from_path(&args.file) == Ok(Format::Pftrace);
    if ready {
        return Ok(Served {
            path,
            origin,
            file: args.file.clone(),
            _folder: None,
        });
    }
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::file("write a temporary file in", std::env::temp_dir(), &error)
    })?;
    let file = folder.path().join("trace.pftrace");
    convert(&args.file, &file, progress)?;
    Ok(Served {
        path,
        origin,
        file,
        _folder: Some(folder),
    })
}

/// What broke while a trace was converted.
enum Broken {
    Read(NativeError),
    Written(io::Error),
}

impl From<NativeError> for Broken {
    fn from(error: NativeError) -> Self {
        Self::Read(error)
    }
}

fn convert(from: &Path, to: &Path, progress: &mut Progress) -> Result<(), Failure> {
    let failed = |error| Failure::file("write", to, &error);
    let mut trace = Trace::open(from, progress)?;
    let all = trace.spool.events();
    let file = File::create(to).map_err(failed)?;
    let mut writer = PftraceWriter::new(file, PftraceOptions::default()).map_err(failed)?;
    let copied = trace.spool.regroup(|part| {
        progress.writing(writer.events(), all);
        writer.part(&part).map_err(Broken::Written)
    });
    copied.map_err(|broken| match broken {
        Broken::Read(error) => trace.broken(&error),
        Broken::Written(error) => failed(error),
    })?;
    writer.finish().map_err(failed)?;
    if let Err(cut) = trace.ended() {
        tell::warning(cut);
    }
    Ok(())
}

/// `https://ui.perfetto.dev` of `https://ui.perfetto.dev/some/page`.
fn origin_of(ui: &str) -> String {
    let rest = ui.find("://").map_or(0, |at| at + 3);
    let end = ui[rest..].find('/').map_or(ui.len(), |at| rest + at);
    ui[..end].to_owned()
}

fn accept(listener: &TcpListener, served: &Arc<Served>, done: &Sender<u64>) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else { continue };
        let (served, done) = (Arc::clone(served), done.clone());
        // A browser opens connections that it may never use: each has a thread of its own.
        let answer = move || {
            if let Ok(Some(bytes)) = answer(&connection, &served) {
                // Nobody waits any more if it was fetched twice at once.
                let _second = done.send(bytes);
            }
        };
        let _refused = std::thread::Builder::new().spawn(answer);
    }
}

/// Answers one request. Says how many bytes of the trace were taken, if all were.
fn answer(connection: &TcpStream, served: &Served) -> io::Result<Option<u64>> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(connection.take(64 * 1024));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    for _ in 0..LINES {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" || line == "\n" {
            break;
        }
    }
    let mut words = request.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let mut out = connection;
    let allow = format!(
        "Access-Control-Allow-Origin: {}\r\nAccess-Control-Allow-Methods: GET, HEAD\r\nAccess-Control-Allow-Private-Network: true\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n",
        served.origin
    );
    let short = |mut out: &TcpStream, status: &str| {
        write!(out, "HTTP/1.1 {status}\r\n{allow}Content-Length: 0\r\n\r\n")
    };
    match (method, path == served.path) {
        ("OPTIONS", _) => short(out, "204 No Content")?,
        (_, false) => short(out, "404 Not Found")?,
        ("GET" | "HEAD", true) => {
            let mut file = File::open(&served.file)?;
            let length = file.seek(io::SeekFrom::End(0))?;
            file.rewind()?;
            write!(
                out,
                "HTTP/1.1 200 OK\r\n{allow}Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
            )?;
            if method == "GET" && io::copy(&mut file.take(length), &mut out)? == length {
                out.shutdown(std::net::Shutdown::Write)?;
                // The browser has it when it closes, too.
                let _closed = reader.read(&mut [0; 1]);
                return Ok(Some(length));
            }
        }
        _ => short(out, "405 Method Not Allowed")?,
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(
            origin_of("https://ui.perfetto.dev"),
            "https://ui.perfetto.dev"
        );
        assert_eq!(
            origin_of("http://127.0.0.1:10000/a/b"),
            "http://127.0.0.1:10000"
        );
    }
}
