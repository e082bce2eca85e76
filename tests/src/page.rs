//! A document whose commands are run.
//!
//! In blocks marked `console`, a line that begins with `$ ` is a command; one that ends with a backslash goes on in the
//! next line. What follows up to the next command is what it prints, on standard output and standard error together, if
//! anything is shown. A command ends with status 0, unless its comment says otherwise: `# exit 2`.
//!
//! In what it prints, a number stands for any number, with or without a unit, a run's id for any, and a run of blanks for any; `…` stands for
//! any text in a line, and in a line of its own for any lines. Everything else has to come as it is shown.
//!
//! A block that can't be run says why: `console (not run: needs systemd as process 1)`.

use std::fs;
use std::path::Path;

/// What a document asks its reader to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line on which the command is, from 1.
    pub line: usize,
    /// The command, without the prompt.
    pub command: String,
    /// Its exit status.
    pub status: i32,
    /// What it prints; none if the document does not show it.
    pub output: Option<Vec<String>>,
}

/// A block of commands that is only shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrun {
    /// The line on which it begins.
    pub line: usize,
    /// Why.
    pub reason: String,
    /// The commands.
    pub commands: Vec<String>,
}

/// The commands of a document.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Those that can be run, in order.
    pub steps: Vec<Step>,
    /// Those that can't.
    pub unrun: Vec<Unrun>,
}

impl Page {
    /// Reads a document.
    ///
    /// # Panics
    ///
    /// If it can't be read, or a block says neither that it is run nor why it is not.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path);
        Self::parse(&text.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Reads the text of a document.
    ///
    /// # Panics
    ///
    /// As [`Page::read`].
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                continue;
            };
            let body: Vec<(&str, usize)> = lines
                .by_ref()
                .take_while(|(line, _)| !line.starts_with("```"))
                .collect();
            let steps = steps(&body);
            let commands = || steps.iter().map(|step| step.command.clone()).collect();
            match info.strip_prefix("console") {
                Some("") => page.steps.extend(steps),
                Some(reason) => {
                    let reason = reason
                        .strip_prefix(" (not run: ")
                        .and_then(|reason| reason.strip_suffix(')'));
                    page.unrun.push(Unrun {
                        line: number,
                        reason: reason
                            .unwrap_or_else(|| panic!("line {number}: what is `{info}`?"))
                            .to_owned(),
                        commands: commands(),
                    });
                }
                None => assert!(
                    info != "sh" && !body.iter().any(|(line, _)| is_command(line)),
                    "line {number}: commands in a block that is not marked `console`"
                ),
            }
        }
        page
    }
}

/// Programs that the documents call. A message of one begins with its name, too, but with a colon after it.
const PROGRAMS: [&str; 9] = [
    "nrt-tracectl",
    "nrt-traced",
    "cargo",
    "make",
    "systemctl",
    "systemd-sysusers",
    "journalctl",
    "grpcurl",
    "curl",
];

/// Whether a line of a block is a command, with a prompt or without.
fn is_command(line: &str) -> bool {
    line.starts_with("$ ") || PROGRAMS.contains(&line.split(' ').next().unwrap_or_default())
}

fn steps(lines: &[(&str, usize)]) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    let mut goes_on = false;
    for &(line, number) in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: number,
                command: command.to_owned(),
                status: status(command),
                output: None,
            });
            goes_on = command.ends_with('\\');
        } else if let Some(step) = steps.last_mut() {
            if goes_on {
                step.command.push('\n');
                step.command.push_str(line);
                step.status = status(line);
                goes_on = line.ends_with('\\');
            } else {
                step.output.get_or_insert_default().push(line.to_owned());
            }
        }
    }
    steps
}

fn status(command: &str) -> i32 {
    let said = command.rsplit_once("# exit ");
    said.and_then(|(_, status)| status.trim().parse().ok())
        .unwrap_or(0)
}

/// Whether what was printed is what the document shows.
#[must_use]
pub fn agrees(shown: &[String], printed: &str) -> bool {
    let printed: Vec<String> = printed.trim_end().lines().map(plain).collect();
    let mut shown: Vec<String> = shown.iter().map(|line| plain(line)).collect();
    while shown.last().is_some_and(String::is_empty) {
        shown.pop();
    }
    fits(&shown, &printed, &|shown, printed| {
        let pieces = |line: &str| line.chars().map(|c| c.to_string()).collect::<Vec<_>>();
        fits(&pieces(shown), &pieces(printed), &|a, b| a == b)
    })
}

/// Whether a sequence fits a pattern in which `…` stands for any number of items.
fn fits(pattern: &[String], items: &[String], same: &dyn Fn(&str, &str) -> bool) -> bool {
    // The places up to which the pattern so far can reach.
    let mut reached = vec![false; items.len() + 1];
    reached[0] = true;
    for wanted in pattern {
        let mut next = vec![false; items.len() + 1];
        if wanted == "…" {
            let first = reached.iter().position(|&there| there);
            next[first.unwrap_or(items.len() + 1).min(items.len() + 1)..].fill(true);
        } else {
            for (place, item) in items.iter().enumerate() {
                next[place + 1] = reached[place] && same(wanted, item);
            }
        }
        reached = next;
    }
    reached[items.len()]
}

/// Units that go with how large the number before them happens to be.
const UNITS: [&str; 18] = [
    "ns", "us", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "KiB/s", "MiB/s", "GiB/s",
    "/s", "k/s", "M/s", "ago",
];

/// A line with each number as `#` and each run of blanks as one.
fn plain(line: &str) -> String {
    let mut words = Vec::<String>::new();
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', ';', ')', '.', ':']);
        let after_number = words.last().is_some_and(|last| last.starts_with('#'));
        if after_number && UNITS.contains(&bare) {
            let end = &word[bare.len()..];
            if let Some(last) = words.last_mut() {
                last.push_str(end);
            }
            continue;
        }
        // A run's id, or a day.
        let is_id = word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
        if is_id || is_day(word) {
            words.push("#".to_owned());
            continue;
        }
        let open = word.len() - word.trim_start_matches(['(', '"', '-', '+']).len();
        let (start, rest) = word.split_at(open);
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            let number = rest.trim_end_matches([',', ';', ')', '.', ':', '"']);
            let digits =
                number.trim_start_matches(|c: char| c.is_ascii_digit() || ".,:".contains(c));
            let digits = if UNITS.contains(&digits) { "" } else { digits };
            words.push(format!(
                "{}#{digits}{}",
                start.trim_matches(['-', '+']),
                &rest[number.len()..]
            ));
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

/// Whether a word is a day, as 2026-11-30.
fn is_day(word: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    word.len() == 10 && word.split('-').map(str::len).eq([4, 2, 2]) && word.split('-').all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(shown: &str, printed: &str) -> bool {
        agrees(
            &shown.lines().map(str::to_owned).collect::<Vec<_>>(),
            printed,
        )
    }

    #[test]
    fn a_document_gives_its_commands_in_order() {
        let page = Page::parse(
            "# T\n```console\n$ a\nout\n$ b \\\n  c # exit 2\n```\n```toml\nx = 1\n```\n```console (not run: why)\n$ d\n```\n",
        );
        let step = |line, command: &str, status, output: Option<&str>| Step {
            line,
            command: command.to_owned(),
            status,
            output: output.map(|line| vec![line.to_owned()]),
        };
        assert_eq!(
            page.steps,
            [
                step(3, "a", 0, Some("out")),
                step(5, "b \\\n  c # exit 2", 2, None)
            ]
        );
        assert_eq!(page.unrun[0].reason, "why");
        assert_eq!(page.unrun[0].commands, ["d"]);
    }

    #[test]
    #[should_panic(expected = "not marked")]
    fn commands_elsewhere_are_refused() {
        let _page = Page::parse("```\n$ a\n```\n");
    }

    #[test]
    #[should_panic(expected = "line 2: commands")]
    fn commands_without_a_prompt_are_refused() {
        let _page = Page::parse("\n```\nnrt-tracectl: a message\nnrt-tracectl start\n```\n");
    }

    #[test]
    fn figures_may_differ_and_words_may_not() {
        assert!(agree("took 1.2 ms, 3 events", "took 980 us, 4,000 events"));
        assert!(agree("a   1   -2 (3)", "a 100 55 (7)"));
        assert!(!agree("a 1 b", "a 1 c"));
        assert!(agree(
            "on 2026-11-30 15:37:51.580 UTC",
            "on 2027-01-02 00:00:00.1 UTC"
        ));
        assert!(!agree("on 2026-11-30", "on 2026-11"));
        assert!(!agree("worker-3 1", "worker-4 1"));
        assert!(agree("\"pid\": 12,\n", "\"pid\": 4711,\n"));
    }

    #[test]
    fn an_ellipsis_stands_for_any_text_and_any_lines() {
        assert!(agree("a\n…\nz", "a\nb\nc\nz\n"));
        assert!(agree("a\n…\nz", "a\nz"));
        assert!(!agree("a\n…\nz", "a\nb"));
        assert!(agree("in /x… done", "in /x/y/z done"));
        assert!(!agree("in /x… done", "in /x/y/z"));
        assert!(agree("…", ""));
    }
}
