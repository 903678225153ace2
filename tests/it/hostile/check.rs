//! Checks what must never appear in each kind of output.

use serde_json::Value;

use super::world::FORGED;
use cliffwatch::model::text::is_hostile;

/// The kind of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Lines on a terminal: tables, messages, and the human-readable log.
    Terminal,
    Csv,
    /// JSON that may be shown on a terminal.
    Json,
    /// One JSON object per line.
    JsonLines,
    Html,
    /// The text format of Prometheus.
    Metrics,
    Calendar,
    /// A raw mail with headers.
    Mail,
    /// The request body for a chat service.
    Chat,
    /// The request body for a program, in JSON, which may contain any text.
    Data,
}

/// Panics if `text` contains something that must not appear in this kind of output.
#[track_caller]
pub fn check(what: &str, kind: OutputKind, text: &str) {
    let show = |at: usize| {
        let from = text[..at].char_indices().rev().nth(80).map_or(0, |(from, _)| from);
        format!("…{}", text[from..].chars().take(160).collect::<String>().escape_debug())
    };
    if !matches!(kind, OutputKind::Chat | OutputKind::Data) {
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let breaks = c == '\n' || (c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n'));
            assert!(breaks || !is_hostile(c), "{what}: {:?} in {}", c, show(at));
        }
    }
    // A receiver's response is printed line by line, each after a bar.
    let is_forged = |line: &str| line.trim_start_matches([' ', '<', '>', '6']).starts_with(FORGED);
    match kind {
        OutputKind::Terminal | OutputKind::Metrics | OutputKind::Calendar => {
            // A calendar folds long lines: a line that begins with a space continues the one before.
            let text = if kind == OutputKind::Calendar { text.replace("\r\n ", "") } else { text.to_owned() };
            assert!(!text.lines().any(is_forged), "{what}: a forged line:\n{text}");
        }
        OutputKind::Csv => {
            for cell in cells(text) {
                let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
                assert!(!is_formula, "{what}: a cell that starts a formula: {cell:?}");
            }
        }
        OutputKind::Json | OutputKind::Data => {
            serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
        }
        OutputKind::JsonLines => {
            for line in text.lines() {
                let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{what}: {error}: {line}"));
                assert!(value["timestamp"].is_string() && value["level"].is_string(), "{what}: {line}");
            }
        }
        OutputKind::Html => {
            for tag in ["<script>alert", "javascript:x\"", "<!channel>", "<@U1>"] {
                assert!(!text.contains(tag), "{what}: raw {tag} in {}", show(text.find(tag).unwrap_or_default()));
            }
        }
        OutputKind::Chat => {
            let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
            each_text(&value, &mut |text| {
                let hostile = text.chars().find(|c| *c != '\n' && is_hostile(*c));
                assert!(hostile.is_none(), "{what}: {hostile:?} in {:?}", text.chars().take(300).collect::<String>());
            });
        }
        OutputKind::Mail => mail(what, text),
    }
    if kind == OutputKind::Metrics {
        let is_ours = |line: &str| ["#", "cliffwatch_", "process_"].iter().any(|begin| line.starts_with(begin));
        assert!(text.lines().all(is_ours), "{what}: {text}");
    }
    if kind == OutputKind::Calendar {
        let is_property = |line: &str| {
            line.starts_with(' ')
                || line.split([':', ';']).next().is_some_and(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '-'))
        };
        let stray = text.lines().find(|line| !is_property(line));
        assert!(stray.is_none(), "{what}: {stray:?}");
        assert_eq!(text.matches("BEGIN:VEVENT").count(), text.lines().filter(|line| *line == "END:VEVENT").count(), "{what}");
    }
}

/// Checks that a mail has no forged header or recipient, and that its HTML part is escaped.
fn mail(what: &str, text: &str) {
    let (headers, _) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{what}: no end of the headers: {text}"));
    for line in headers.split("\r\n") {
        let is_header = line.split_once(':').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
        assert!(is_header || line.starts_with([' ', '\t']), "{what}: {line:?}");
        assert!(line.is_ascii() && !line.contains(['\r', '\n']), "{what}: {line:?}");
        assert!(!line.to_ascii_lowercase().starts_with("bcc"), "{what}: {line:?}");
    }
    // The plain text part may contain anything. The HTML part must be escaped.
    let (_, page) = text.split_once("Content-Type: text/html").unwrap_or_else(|| panic!("{what}: no HTML: {text}"));
    let page = page.split("\r\n--").next().unwrap_or_default().replace("=\r\n", "");
    assert!(!page.contains("<script>alert") && !page.contains("<!channel>"), "{what}: {page}");
}

fn each_text(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(fields) => {
            for (name, value) in fields {
                see(name);
                each_text(value, see);
            }
        }
        _ => {}
    }
}

/// The unquoted cells of a CSV file.
fn cells(page: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    let mut chars = page.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cells.last_mut().expect("a cell").push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' | '\n' if !is_quoted => cells.push(String::new()),
            '\r' if !is_quoted => {}
            c => cells.last_mut().expect("a cell").push(c),
        }
    }
    cells
}
