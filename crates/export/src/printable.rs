//! Text from elsewhere, fit for a terminal.

/// Text that came from a process or is a path, fit for a terminal: characters that could move the cursor, hide what follows or
/// turn its direction are shown as escapes, `\n` or `\u{1b}`.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Controls; ends of lines and paragraphs; marks, embeddings, overrides and isolates of the direction of writing; what has no
/// width, so that two names look alike (spaces, joiners, tags).
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61C}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FEFF}'
            | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable("\u{202E}x\u{9b}"), "\\u{202e}x\\u{9b}");
        assert_eq!(
            printable("r\u{200F}a\u{61C}\u{FEFF}"),
            "r\\u{200f}a\\u{61c}\\u{feff}"
        );
        assert_eq!(printable("é 日本"), "é 日本");
    }
}
