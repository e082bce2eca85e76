//! `generate`: man pages and completions of both programs, from the definitions that parse their arguments.

mod around;
mod man;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use nrt_traced::config::CommandLine;

use crate::cli::{Cli, GenerateArgs};
use crate::error::Failure;

/// Shells, and the folders of their scripts.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash"),
    (Shell::Zsh, "zsh"),
    (Shell::Fish, "fish"),
];

/// How the daemon ends; its own help says so in a sentence, and each page has it as a section.
const DAEMON_STATUS: &str = "Exit status:\n  \
    0  done, or ended by a signal\n  \
    1  it failed\n  \
    2  an argument or a setting is wrong";

/// Writes them all into a folder.
pub(super) fn run(args: &GenerateArgs) -> Result<ExitCode, Failure> {
    let programs = [
        (visible("nrt-tracectl", &Cli::command()), "1"),
        (
            visible("nrt-traced", &CommandLine::command()).after_long_help(DAEMON_STATUS),
            "8",
        ),
    ];
    for (program, section) in programs {
        let pages = man::pages(&program, section);
        let pages = pages.map_err(|error| Failure::file("write", "a man page", &error))?;
        let folder = made(&args.folder.join(format!("man{section}")))?;
        for (name, text) in pages {
            write(&folder.join(name), &text)?;
        }
        for (shell, name) in SHELLS {
            let folder = made(&args.folder.join(name))?;
            let mut program = program.clone();
            let called = program.get_name().to_owned();
            let file = match shell {
                Shell::Bash => called.clone(),
                Shell::Zsh => format!("_{called}"),
                _ => format!("{called}.fish"),
            };
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut program, called.clone(), &mut script);
            let mut script = String::from_utf8_lossy(&script).into_owned();
            if shell == Shell::Bash {
                // clap_complete 4.6 writes a program's hyphen in two ways, and finds no command of it then.
                let (one, other) = ("__subcmd__", "__");
                script = script.replace(&called.replace('-', one), &called.replace('-', other));
            }
            write(&folder.join(file), script.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The program without the commands that nobody is meant to call: the shells' scripts would offer them.
fn visible(name: &'static str, program: &Command) -> Command {
    let shown = program.get_subcommands().filter(|c| !c.is_hide_set());
    let mut kept = Command::new(name)
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments())
        .groups(program.get_groups())
        .subcommands(shown)
        .disable_help_subcommand(true);
    for (text, set) in [
        (program.get_about(), Command::about as fn(_, _) -> _),
        (program.get_long_about(), Command::long_about),
        (program.get_after_long_help(), Command::after_long_help),
    ] {
        if let Some(text) = text {
            kept = set(kept, text.clone());
        }
    }
    kept
}

fn made(folder: &Path) -> Result<std::path::PathBuf, Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    Ok(folder.to_owned())
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(file, bytes).map_err(|error| Failure::file("write", file, &error))
}
