//! From arguments to a command, or to how the program ends without one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, Parser};

use super::{Cli, SOCKET_VARIABLE, Verb};
use crate::output::tell;

/// Reads the arguments. `Err` is how the program ends without a verb: help and version, or a usage error, which is
/// told in one line.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    let cli = Cli::try_parse_from(&arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader that has seen enough (`--help | head -1`) is no failure.
            let _best_effort = error.print();
            ExitCode::from(u8::from(error.use_stderr()) * 2)
        }
        kind => {
            let mut text = one_line(&error.render().to_string());
            if kind == ErrorKind::UnknownArgument {
                let record = arguments.iter().any(|a| a == "record");
                text = match taken_for_an_option(&error, &arguments) {
                    Some(joined) => {
                        without_tip(&text, &format!("; if it is a value, join it: {joined}"))
                    }
                    None if record => without_tip(&text, "; the command to record goes after --"),
                    None => match taken_for_options(&text, &error, &arguments) {
                        Some(file) => without_tip(&text, &format!("; if it is a file: ./{file}")),
                        None => text,
                    },
                };
            }
            if text.contains("'--socket <PATH>'") && empty_variable() {
                text = format!(
                    "{SOCKET_VARIABLE} is set, but to nothing: give it a path, or unset it"
                );
            }
            tell::error(&text);
            ExitCode::from(2)
        }
    })?;
    // Who writes the dashes does not mean the whole host: a variable was empty.
    if let Verb::Record(record) = &cli.verb
        && record.command.is_empty()
        && arguments.last().is_some_and(|last| last == "--")
    {
        tell::error(&"there is no command after --; without the dashes the whole host is recorded");
        return Err(ExitCode::from(2));
    }
    Ok(cli)
}

/// How a value that begins with a dash has to be written, if that is what clap took for an option: `--output=-y.json`.
fn taken_for_an_option(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let text = |at: usize| arguments.get(at)?.to_str();
    // Of `-y.json` clap names `-y`.
    let at = (2..arguments.len()).find(|at| text(*at).is_some_and(|a| a.starts_with(unknown)))?;
    let (before, value) = (text(at - 1)?, text(at)?);
    let join = if before.starts_with("--") { "=" } else { "" };
    (takes_a_value(before) && value.starts_with('-')).then(|| format!("{before}{join}{value}"))
}

/// A whole argument of which clap names the first letter only, as if it were options, where a file may stand.
fn taken_for_options<'a>(
    text: &str,
    error: &clap::Error,
    arguments: &'a [OsString],
) -> Option<&'a str> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let mut all = arguments
        .iter()
        .skip(2)
        .filter_map(|argument| argument.to_str());
    let found = all.find(|argument| argument.starts_with(unknown.as_str()))?;
    let cut = found.len() > unknown.len() && !unknown.starts_with("--");
    (cut && text.contains("; tip: to pass ")).then_some(found)
}

/// Whether some command has this option, with a value.
fn takes_a_value(option: &str) -> bool {
    let program = Cli::command();
    let commands = program.get_subcommands().chain([&program]);
    let named = |arg: &Arg| {
        let long = arg
            .get_long()
            .is_some_and(|name| option.strip_prefix("--") == Some(name));
        long || (arg.get_short()).is_some_and(|name| option == format!("-{name}"))
    };
    (commands.flat_map(clap::Command::get_arguments))
        .any(|arg| named(arg) && arg.get_action().takes_values())
}

/// A line with a tip of ours in the place of clap's, which is to put `--` in front, as for a positional argument.
fn without_tip(text: &str, ours: &str) -> String {
    let (error, help) = text.rsplit_once(" (").unwrap_or((text, "try --help)"));
    let error = match error.find("; tip: to pass ") {
        Some(at) => &error[..at],
        None => error,
    };
    format!("{error}{ours} ({help}")
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

    use super::*;

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
