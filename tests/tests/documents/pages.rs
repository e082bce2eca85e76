//! Each page of the documents, run from its own text.
//!
//! `NRT_TRACE_BLESS=1` writes what the commands print into the pages where it differs from what is shown, or where nothing but
//! `…` is shown; what varies has to be replaced by `…` by hand.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use nrt_trace_tests::checkout::Checkout;
use nrt_trace_tests::page::{Page, Step, agrees};
use nrt_trace_tests::{Host, PATIENT, artifacts, run};

/// Pages whose commands are run, each by a test below. Why a block of them is not run stands at the block.
const FOLLOWED: [&str; 13] = [
    "README.md",
    "docs/api.md",
    "docs/commands.md",
    "docs/configuration.md",
    "docs/containers.md",
    "docs/formats.md",
    "docs/host-monitor.md",
    "docs/install.md",
    "docs/operations.md",
    "docs/quick-start.md",
    "docs/security.md",
    "docs/troubleshooting.md",
    "examples/README.md",
];

/// The page whose programs are those that it installs: none is in the path before.
const INSTALLS: &str = "docs/install.md";

/// Follows a page from top to bottom in one shell, in a folder that is a source tree after a build, with the programs in
/// the path and `./train`, unless there is one, for the user's own program.
#[expect(clippy::print_stdout, reason = "what was not run has to be said")]
fn follow(name: &str, host: &Host) {
    assert!(FOLLOWED.contains(&name), "{name} is not listed");
    let checkout = Checkout::new(host);
    let workspace = &artifacts().workspace;
    let path = workspace.join(name);
    let page = Page::read(&path);
    assert!(!page.steps.is_empty(), "{name} has no commands");
    if !host.path("train").exists() {
        symlink(&artifacts().workload, host.path("train")).unwrap();
    }
    let notes = host.path(".steps");
    fs::create_dir(&notes).unwrap();

    let mut shell = host.command("bash");
    checkout.prepare(&mut shell);
    if name != INSTALLS {
        let search = std::env::var("PATH").unwrap();
        let (built, clients) = (checkout.built(), workspace.join("target/clients/bin"));
        let own = host.path("bin");
        let path = [&own, &built, &clients].map(|folder| folder.display().to_string());
        let path = format!("{}:{search}", path.join(":"));
        shell.env("PATH", path);
    }
    shell
        .env("HOME", host.path(""))
        .env("PYTHONPATH", workspace.join("target/clients/python"))
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "dumb");
    shell.args(["--norc", "-c", &script(&page.steps, &notes, host)]);
    let views = page.steps.iter().any(|step| is_view(&step.command));
    let port = views.then(|| PORT.lock().unwrap_or_else(PoisonError::into_inner));
    let _ended = run(shell);
    drop(port);

    let mut wrong = Vec::new();
    let mut text = fs::read_to_string(&path).unwrap();
    // From the end, so that lines before keep their numbers.
    for (number, step) in page.steps.iter().enumerate().rev() {
        let printed = fs::read_to_string(notes.join(format!("{number}.out"))).unwrap_or_default();
        let printed = as_at_home(&printed, host);
        let status = fs::read_to_string(notes.join(format!("{number}.status")));
        let status = status.ok().and_then(|status| status.trim().parse().ok());
        let shown = step.output.as_deref();
        let agrees = shown.is_none_or(|shown| agrees(shown, &printed));
        if !agrees || shown.is_some_and(|shown| shown == ["…"]) {
            replace(&mut text, step, &printed);
        }
        if status != Some(step.status) || !agrees {
            wrong.push(format!(
                "{name}:{}: $ {}\nstatus {status:?}, the page says {}; printed:\n{printed}\n--- shown:\n{}",
                step.line,
                step.command,
                step.status,
                shown.unwrap_or_default().join("\n"),
            ));
        }
    }
    wrong.reverse();
    for unrun in &page.unrun {
        println!(
            "NOT RUN: {name}:{}: {} ({} commands)",
            unrun.line,
            unrun.reason,
            unrun.commands.len()
        );
    }
    println!("{name}: {} commands run", page.steps.len());
    if std::env::var_os("NRT_TRACE_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The browser that a link of the Perfetto UI is opened in: it fetches the trace that the link names, and shows nothing.
const BROWSER: &str = r#"browse() {
    local trace=
    until trace=$(sed -n 's/.*[?]url=//p' "$1") && [ -n "$trace" ]; do sleep 0.01; done
    curl --silent --fail --output /dev/null "$trace"
}
"#;

/// Whether a command waits for a browser.
fn is_view(command: &str) -> bool {
    command.starts_with("nrt-tracectl view ")
}

/// One page at a time: the UI fetches from one port of the machine and no other.
static PORT: Mutex<()> = Mutex::new(());

/// The page as a script that notes what each command prints and how it ends.
fn script(steps: &[Step], notes: &Path, host: &Host) -> String {
    let notes = notes.display();
    let sockets = host.path("").display().to_string();
    let mut script = format!("exec </dev/null\n{BROWSER}");
    for (number, step) in steps.iter().enumerate() {
        fs::write(
            format!("{notes}/{number}.sh"),
            step.command.replace("/run/nrt-trace/", &sockets) + "\n",
        )
        .unwrap();
        script.push_str(&format!("exec >'{notes}/{number}.out' 2>&1\n"));
        // A shown command that waits for its reader's browser has one: it opens the link as soon as it is printed.
        if is_view(&step.command) {
            script.push_str(&format!("browse '{notes}/{number}.out' &\n"));
        }
        script.push_str(&format!(
            ". '{notes}/{number}.sh'\necho $? >'{notes}/{number}.status'\n"
        ));
        // Who follows the page types the next line when the program in the background is ready: when it listens. The
        // kernel lists sockets that do with this flag.
        if step.command.trim_end().ends_with('&') {
            script.push_str(
                "until grep -q \"00010000 .*$NRT_TRACE_SOCKET\" /proc/net/unix || ! kill -0 $!; do sleep 0.01; done\n",
            );
        }
    }
    // What it left running ends with it.
    script.push_str("exec >/dev/null 2>&1\nkill $(jobs -p)\nwait\n");
    script
}

/// Paths as they are on a machine where the daemon is installed, and people work at home.
fn as_at_home(printed: &str, host: &Host) -> String {
    let folder = host.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let mut text = printed.to_owned();
    for socket in ["control.sock", "producer.sock"] {
        text = text.replace(
            &format!("{folder}/{socket}"),
            &format!("/run/nrt-trace/{socket}"),
        );
    }
    text.replace(folder, "/home/you")
}

/// Puts what was printed in the place of what is shown.
fn replace(text: &mut String, step: &Step, printed: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let first = step.line - 1 + step.command.lines().count();
    let shown = step.output.as_ref().map_or(0, Vec::len);
    let mut all = lines[..first].to_vec();
    all.extend(printed.trim_end().lines());
    all.extend(&lines[first + shown..]);
    *text = all.join("\n") + "\n";
}

/// For pages that give the user's own program no sizes: one that takes no time, whatever it is told.
fn short_train(host: &Host) {
    let workload = artifacts().workload.display();
    let text =
        format!("#!/bin/sh\nexec {workload} --processes 2 --threads 1 --steps 5 --size 16\n");
    fs::write(host.path("train"), text).unwrap();
    fs::set_permissions(host.path("train"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn readme() {
    let host = Host::with_daemon();
    short_train(&host);
    follow("README.md", &host);
}

#[test]
fn api() {
    let mut host = Host::new();
    let metrics = host.path("metrics.sock").display().to_string();
    let config = host.path("config.toml");
    fs::write(&config, format!("{PATIENT}metrics_socket = {metrics:?}\n")).unwrap();
    host.start_daemon(&["--config", config.to_str().unwrap()]);
    follow("docs/api.md", &host);
}

#[test]
fn configuration() {
    follow("docs/configuration.md", &Host::new());
}

#[test]
fn formats() {
    let host = Host::new();
    short_train(&host);
    follow("docs/formats.md", &host);
}

#[test]
fn host_monitor() {
    let host = Host::with_daemon();
    short_train(&host);
    follow("docs/host-monitor.md", &host);
}

/// No page has commands that nobody runs.
#[test]
fn every_page_with_commands_is_followed() {
    let root = &artifacts().workspace;
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let others = ["README.md", "CONTRIBUTING.md", "examples/README.md"].map(str::to_owned);
    let mut found: Vec<String> = (docs.chain(others))
        .filter(|name| name.ends_with(".md") && !Page::read(&root.join(name)).steps.is_empty())
        .collect();
    found.sort();
    assert_eq!(found, FOLLOWED);
}

/// From `make install` over socket activation to a trace of a workload. Programs and libraries are not compiled here: `make`
/// finds them in `target/release`, as after `make`, but they are those of this test run, of its profile. Everything from there
/// on is the page's: what is installed where, the daemon that the first connection starts, the compiler's flags, the library
/// that the program loads, and the tool in the path.
#[test]
fn install() {
    follow(INSTALLS, &Host::new());
}

/// The page promises five, and that what was installed is what is used.
#[test]
fn from_the_sources_to_a_trace_in_five_commands() {
    let text = fs::read_to_string(artifacts().workspace.join(INSTALLS)).unwrap();
    let (_, rest) = text.split_once("in five commands").unwrap();
    let (_, block) = rest.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    let page = Page::parse(&format!("```console\n{block}\n```\n"));
    let commands: Vec<&str> = (page.steps.iter())
        .map(|step| step.command.split(' ').next().unwrap())
        .collect();
    let wanted = [
        "make",
        "systemd-socket-activate",
        "cc",
        "nrt-tracectl",
        "nrt-tracectl",
    ];
    assert_eq!(commands, wanted);
    assert!(page.steps[1].command.contains("stage/usr/bin/nrt-traced"));
    assert!(!block.contains("target/"), "{block}");
}

#[test]
fn quick_start() {
    follow("docs/quick-start.md", &Host::with_daemon());
}

#[test]
fn commands() {
    follow("docs/commands.md", &Host::with_daemon());
}

/// The manifest is the page's, and is held against Kubernetes' schema.
#[test]
fn containers() {
    let host = Host::with_daemon();
    let workspace = &artifacts().workspace;
    let text = fs::read_to_string(workspace.join("docs/containers.md")).unwrap();
    let manifests = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let daemon: Vec<&str> = manifests
        .filter(|text| text.contains("kind: DaemonSet"))
        .collect();
    assert_eq!(daemon.len(), 1);
    fs::write(host.path("nrt-traced.yaml"), daemon[0]).unwrap();
    fs::create_dir(host.path("bin")).unwrap();
    let kubectl = workspace.join("tests/tests/documents/kubectl");
    symlink(kubectl, host.path("bin/kubectl")).unwrap();
    follow("docs/containers.md", &host);
}

#[test]
fn operations() {
    follow("docs/operations.md", &Host::with_daemon());
}

#[test]
fn examples() {
    follow("examples/README.md", &Host::new());
}

#[test]
fn security() {
    follow("docs/security.md", &Host::with_daemon());
}

#[test]
fn troubleshooting() {
    follow("docs/troubleshooting.md", &Host::new());
}

/// Commands that need a service manager or a cluster are not run; what they name has to exist all the same.
#[test]
fn commands_that_are_not_run_name_what_exists() {
    let docs = artifacts().workspace.join("docs");
    let units = fs::read_dir(artifacts().workspace.join("systemd")).unwrap();
    let units: Vec<String> = units
        .map(|unit| unit.unwrap().file_name().into_string().unwrap())
        .collect();
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let page = Page::read(&path);
        let commands = page.unrun.iter().flat_map(|unrun| &unrun.commands);
        for word in commands.flat_map(|command| command.split_whitespace()) {
            let unit = [".service", ".socket"]
                .iter()
                .any(|end| word.ends_with(end));
            if unit && word.starts_with("nrt-traced") {
                assert!(
                    units.iter().any(|name| name == word),
                    "{}: there is no {word}",
                    path.display()
                );
            }
        }
    }
}

/// A link that leads nowhere is worse than none.
#[test]
fn links_between_documents_lead_somewhere() {
    let root = &artifacts().workspace;
    let docs = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pages = docs
        .chain(["README.md", "CONTRIBUTING.md", "examples/README.md"].map(|name| root.join(name)));
    for page in pages.filter(|page| page.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&page).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let target = page.parent().unwrap().join(file);
            assert!(target.exists(), "{}: {link}", page.display());
        }
        for name in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.starts_with("docs/") && name.ends_with(".md"))
        {
            assert!(root.join(name).exists(), "{}: {name}", page.display());
        }
    }
}
