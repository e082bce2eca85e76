//! The man pages, as `man` shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nrt_trace_tests::{Ended, run};

use crate::install::Installed;

/// Reads a page as a terminal shows it, with everything that the formatter has to say about it.
fn read(installed: &Installed, page: &Path) -> Option<Ended> {
    // Not the system's settings: the page is named by its path.
    let mut man: Command = installed.host.command("man");
    man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(page);
    man.env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "200")
        .env("MANPAGER", "cat");
    let there = Command::new("man").arg("--version").output();
    there
        .is_ok_and(|shown| shown.status.success())
        .then(|| run(man).ok())
}

fn pages(installed: &Installed) -> Vec<PathBuf> {
    let folders = ["man1", "man8"].map(|f| installed.root().join("usr/share/man").join(f));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_command_has_a_page_that_reads_without_a_warning() {
    let installed = Installed::new(&["prefix=/usr"]);
    let pages = pages(&installed);
    let commands = installed.host.tracectl(&["--help"]).ok().text();
    let listed = commands.split("Commands:\n").nth(1).unwrap();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    // Lines that begin further in go on with a description.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut count = 0;
    for name in names.map(|line| line.split_whitespace().next().unwrap()) {
        count += 1;
        let file = format!("nrt-tracectl-{name}.1");
        let has = pages.iter().any(|page| page.ends_with(&file));
        assert!(has || name == "help", "no page of {name}");
    }
    assert!(count > 10, "{commands}");
    for page in &pages {
        let Some(shown) = read(&installed, page) else {
            println!("NOT RUN: there is no `man` here to read the pages with");
            return;
        };
        assert_eq!(shown.stderr, "", "{}", page.display());
        let text = shown.text();
        for title in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "ENVIRONMENT",
            "FILES",
            "SEE ALSO",
        ] {
            let has = text.lines().any(|line| line == title);
            assert!(has, "{} has no {title}: {text}", page.display());
        }
        assert!(text.to_lowercase().contains("exit status"), "{text}");
        assert!(
            !text.contains("demo-w") && !text.contains("demo-p"),
            "{text}"
        );
    }
    let record = pages
        .iter()
        .find(|page| page.ends_with("nrt-tracectl-record.1"))
        .unwrap();
    let text = read(&installed, record).unwrap().text();
    for line in [
        "EXAMPLES",
        "--duration <TIME>",
        "127  record: the command was not found",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
}
