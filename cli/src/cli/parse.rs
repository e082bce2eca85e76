//! From arguments to a command, or to how the program ends without one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use super::{Cli, SOCKET_VARIABLE};
use crate::output::tell;

/// Reads the arguments. `Err` is how the program ends without a verb: help and version, or a usage error, which is
/// told in one line.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    Cli::try_parse_from(&arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader that has seen enough (`--help | head -1`) is no failure.
            let _best_effort = error.print();
            ExitCode::from(u8::from(error.use_stderr()) * 2)
        }
        kind => {
            let mut text = one_line(&error.render().to_string());
            if kind == ErrorKind::UnknownArgument && arguments.iter().any(|a| a == "record") {
                text.push_str("; the command to record goes after --");
            }
            if text.contains("'--socket <PATH>'") && empty_variable() {
                text = format!(
                    "{SOCKET_VARIABLE} is set, but to nothing: give it a path, or unset it"
                );
            }
            tell::error(&text);
            ExitCode::from(2)
        }
    })
}

fn empty_variable() -> bool {
    std::env::var_os(SOCKET_VARIABLE).is_some_and(|path| path.is_empty())
}

/// Folds clap's paragraphs into one line: the error, its tips, and where to read on.
fn one_line(rendered: &str) -> String {
    let mut parts = Vec::new();
    let mut help = "see --help";
    for paragraph in rendered.split("\n\n") {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        let text = words.join(" ");
        match text.as_str() {
            "" => {}
            text if text.starts_with("Usage:") => {}
            text if text.starts_with("For more information") => help = "try --help",
            text => parts.push(text.trim_start_matches("error: ").to_owned()),
        }
    }
    format!("{} ({help})", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Verb;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_errors_fold_into_one_line() {
        let folded = one_line(
            "error: invalid value 'x' for '--format <FORMAT>'\n  [possible values: table, json]\n\n  tip: a tip\n\n\
             For more information, try '--help'.\n",
        );
        assert_eq!(
            folded,
            "invalid value 'x' for '--format <FORMAT>' [possible values: table, json]; tip: a tip (try --help)"
        );
    }

    #[test]
    fn a_command_follows_two_dashes_with_its_own_flags() {
        let cli = Cli::try_parse_from(["t", "record", "-o", "x.nrtt", "--", "ls", "-o", "--help"])
            .unwrap();
        let Verb::Record(record) = cli.verb else {
            panic!("{cli:?}")
        };
        assert_eq!(record.command, ["ls", "-o", "--help"]);
        assert_eq!(record.output, PathBuf::from("x.nrtt"));
    }
}
