//! The text that people read in files that are not Rust.

use std::sync::LazyLock;

use regex::Regex;

/// A piece of text for people, with code spans removed.
#[derive(Clone)]
pub struct Prose {
    /// The line where it begins, from 1.
    pub line: usize,
    pub text: String,
}

impl Prose {
    /// Removes `code spans` and format placeholders, which may contain any word.
    pub fn new(line: usize, text: &str) -> Self {
        static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`[^`\n]*`|\{[A-Za-z0-9_.]*(:[^{}\s]*)?\}").unwrap());
        Self { line, text: CODE.replace_all(text, " _ ").into_owned() }
    }
}

/// Returns the prose of a Markdown, HTML, TOML, or SQL file, by its suffix, one piece per line.
pub fn of_text(path: &str, text: &str) -> Vec<Prose> {
    let kept = match path.rsplit('.').next() {
        Some("md") => without(text, r"(?ms)^ *```.*?^ *```|<!--.*?-->"),
        Some("html") => {
            without(text, r"(?s)<style.*?</style>|<script.*?</script>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|<[^>]*>")
        }
        Some("toml") => only(text, r##"(?m)(^|\s)#[^\n]*|"(\\.|[^"\\\n])* (\\.|[^"\\\n])*""##),
        _ => only(text, r"(?m)--[^\n]*"),
    };
    let lines = kept.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| Prose::new(number + 1, line)).collect()
}

/// Replaces every match with blanks, so that line numbers stay true.
fn without(text: &str, pattern: &str) -> String {
    Regex::new(pattern).unwrap().replace_all(text, |found: &regex::Captures<'_>| blank(&found[0])).into_owned()
}

/// Replaces everything but the matches with blanks.
fn only(text: &str, pattern: &str) -> String {
    let (mut kept, mut end) = (String::with_capacity(text.len()), 0);
    for found in Regex::new(pattern).unwrap().find_iter(text) {
        kept += &blank(&text[end..found.start()]);
        kept += found.as_str();
        end = found.end();
    }
    kept + &blank(&text[end..])
}

fn blank(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}
