//! Man pages: one for the program, one for each command.
//!
//! What `--help` says after the options becomes sections of its own: examples and exit status under their titles, the
//! rest as notes.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::around::Around;

/// When the command line last changed: not when the page was made, so that making it again gives the same.
const DATE: &str = "2026-11-30";
/// Titles in `--help` that are sections of a page.
const TITLES: [&str; 2] = ["Examples", "Exit status"];

/// File names and texts of a program's pages.
pub(super) fn pages(program: &Command, section: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut program = program.clone();
    program.build();
    let mut pages = Vec::new();
    let whole = Whole {
        version: program.get_version().unwrap_or_default().to_owned(),
        section,
        exit_status: parts(&program)
            .into_iter()
            .find(|part| part.title == "Exit status"),
    };
    whole.render(&program, &mut pages)?;
    Ok(pages)
}

/// What the pages of a program have in common.
struct Whole<'a> {
    version: String,
    section: &'a str,
    exit_status: Option<Part>,
}

impl Whole<'_> {
    fn render(&self, command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name());
        let mut page = Vec::new();
        let man = Man::new(command.clone())
            .section(self.section)
            .date(DATE)
            .source(format!("nrt-trace {}", self.version))
            .manual("nrt-trace");
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        synopsis(command).to_writer(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page)?;
        }
        let mut parts = parts(command);
        if !parts.iter().any(|part| part.title == "Exit status") {
            parts.extend(self.exit_status.clone());
        }
        // Notes come last, whatever stands where in the help.
        parts.sort_by_key(|part| part.title == NOTES);
        let mut rest = Roff::default();
        for part in &parts {
            part.render(&mut rest);
        }
        Around::of(self.section).render(&mut rest);
        rest.control("SH", ["SEE ALSO"]);
        let programs = [("nrt-tracectl", "(1)"), ("nrt-traced", "(8)")];
        let others = programs.into_iter().filter(|(program, _)| *program != name);
        for (number, (program, section)) in others.enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            rest.text([roman(comma), bold(program), roman(section)]);
        }
        rest.to_writer(&mut page)?;
        pages.push((format!("{name}.{}", self.section), page));
        for command in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            self.render(command, pages)?;
        }
        Ok(())
    }
}

/// How it is called, with the values that options take: the line that `--help` has.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::default();
    roff.control("SH", ["SYNOPSIS"]);
    let lines = usage.trim_start_matches("Usage:").lines();
    for (number, line) in lines.enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line.trim())]);
    }
    roff
}

const NOTES: &str = "Notes";

/// A part of what stands after the options.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    title: String,
    lines: Vec<String>,
}

impl Part {
    fn render(&self, roff: &mut Roff) {
        roff.control("SH", [self.title.to_uppercase().as_str()]);
        let mut verbatim = false;
        for line in &self.lines {
            // Indented lines are columns or commands, which must not be filled.
            if line.starts_with(' ') != verbatim {
                verbatim = !verbatim;
                roff.control(if verbatim { "nf" } else { "fi" }, []);
            }
            match line.as_str() {
                "" => roff.control("PP", []),
                line => roff.text([roman(line)]),
            };
        }
        if verbatim {
            roff.control("fi", []);
        }
    }
}

/// What stands after the options, by title.
fn parts(command: &Command) -> Vec<Part> {
    let text = command.get_after_long_help().map(ToString::to_string);
    let mut parts = Vec::<Part>::new();
    for paragraph in text.unwrap_or_default().split("\n\n") {
        let mut lines: Vec<String> = paragraph.lines().map(str::to_owned).collect();
        let title = lines.first().and_then(|line| line.strip_suffix(':'));
        let title = match title {
            Some(title) if TITLES.contains(&title) => {
                let title = title.to_owned();
                lines.remove(0);
                title
            }
            _ => NOTES.to_owned(),
        };
        if lines.is_empty() {
            continue;
        }
        match parts.iter_mut().find(|part| part.title == title) {
            Some(part) => {
                part.lines.push(String::new());
                part.lines.append(&mut lines);
            }
            None => parts.push(Part { title, lines }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_after_the_options_becomes_sections() {
        let command = Command::new("t").after_long_help("Examples:\n  t a\n\nOne.\n\nTwo:\n  x");
        let part = |title: &str, lines: &[&str]| Part {
            title: title.to_owned(),
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        };
        assert_eq!(
            parts(&command),
            [
                part("Examples", &["  t a"]),
                part(NOTES, &["One.", "", "Two:", "  x"])
            ]
        );
    }
}
