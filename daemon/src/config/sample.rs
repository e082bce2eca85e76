//! The sample file: every key, commented out, with what it is for.

use std::fmt::Write;

use super::keys::{self, Key};

/// Longest line.
const WIDTH: usize = 96;

const HEAD: &str = "Configuration of nrt-traced: the keys with their defaults. A flag overrides a variable of the \
environment, which overrides this file. `nrt-traced check-config` looks for mistakes, `nrt-traced print-config` shows what \
holds, and why. SIGHUP (`systemctl reload nrt-traced`) has the file read again; a key that needs a restart says so. This \
text is what `nrt-traced print-config --sample` prints.";

/// The text of the sample file.
#[must_use]
pub fn sample() -> String {
    let mut text = String::new();
    paragraph(&mut text, HEAD);
    let mut sections: Vec<&str> = Vec::new();
    for key in keys::shown() {
        if !sections.contains(&key.section) {
            sections.push(key.section);
        }
    }
    for section in sections {
        let _ = write!(text, "\n## {section}\n");
        for key in keys::shown().filter(|key| key.section == section) {
            entry(&mut text, key);
        }
    }
    text
}

fn entry(text: &mut String, key: &Key) {
    text.push('\n');
    paragraph(text, key.text);
    let default = match key.default {
        Some(words) => format!(" Default: {words}."),
        None => String::new(),
    };
    let reload = if key.reload {
        "Can be reloaded."
    } else {
        "Needs a restart."
    };
    paragraph(
        text,
        &format!("Allowed: {}.{default} {reload}", key.allowed),
    );
    let shared = key.shared_variable();
    let shared = shared.map_or_else(String::new, |name| format!(", or {name}"));
    paragraph(text, &format!("Variable: {}{shared}.", key.variable()));
    // Writing to a string does not fail.
    let _ = writeln!(text, "#{} = {}", key.name, key.sample);
}

/// Words in comment lines.
fn paragraph(text: &mut String, words: &str) {
    let mut line = "#".to_owned();
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
