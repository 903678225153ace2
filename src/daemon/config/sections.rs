//! The sections of a config text. A syntax error confuses the parser until the end of the file, so each section is also parsed alone: the
//! error is reported once, in the section that contains it, and commands that do not need this section can use the others.

use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::{Environment, Loaded, load_text, read_text, syntax_problem};
use model::{Diagnostic, DiagnosticLevel};

/// The maximum number of sections whose errors are reported.
const MAX_SECTIONS_WITH_ERRORS: usize = 50;
/// The maximum number of times that sections are left out because of errors which the absence of others caused.
const MAX_ROUNDS: usize = 8;

/// A table of the file, from its header to the next header.
struct TextSection {
    /// The first key of the header, such as `route` for `[[route.routes]]`. Empty for the lines before the first header.
    name: String,
    span: Range<usize>,
}

/// Splits a text at its headers. A line within a multi-line list or text can look like a header, so this is only used after an error.
fn sections(text: &str) -> Vec<TextSection> {
    let mut found = vec![TextSection { name: String::new(), span: 0..text.len() }];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = header(line) {
            if let Some(last) = found.last_mut() {
                last.span.end = start;
            }
            found.push(TextSection { name, span: start..text.len() });
        }
        start += line.len();
    }
    found
}

fn header(line: &str) -> Option<String> {
    let inner = line.trim_start().strip_prefix('[')?;
    let inner = inner.strip_prefix('[').unwrap_or(inner).trim_start();
    let name: String = inner.chars().take_while(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-')).collect();
    let rest = inner.get(name.len()..)?.trim();
    // A header that is not closed is one, too.
    ((rest.is_empty() || rest.starts_with([']', '.'])) && !name.is_empty()).then_some(name)
}

/// Replaces the sections that are not kept with spaces, so that all positions stay the same.
fn blanked(text: &str, sections: &[TextSection], is_left_out: &[bool]) -> String {
    let blank = |char: char| if char == '\n' { "\n".to_owned() } else { " ".repeat(char.len_utf8()) };
    let rest = sections.iter().zip(is_left_out).map(|(section, is_left_out)| {
        let text = text.get(section.span.clone()).unwrap_or_default();
        if *is_left_out { text.chars().map(blank).collect() } else { text.to_owned() }
    });
    rest.collect()
}

fn first(errors: &[toml::de::Error]) -> Option<&toml::de::Error> {
    errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start))
}

/// Returns the syntax errors of a text, one for each section that has any. `errors` are those of the whole text.
pub(super) fn syntax_problems(file: &Path, text: &str, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
    if errors.is_empty() {
        return Vec::new();
    }
    let problem_of = |section: &TextSection| {
        let alone = text.get(section.span.clone())?.trim_end();
        let (_, errors) = DeTable::parse_recoverable(alone);
        let problem = syntax_problem(file, first(&errors)?);
        let start = section.span.start;
        let span = problem.span.map(|span| span.start + start..span.end + start);
        Some(Diagnostic { span, ..problem })
    };
    let problems: Vec<Diagnostic> = sections(text).iter().filter_map(problem_of).take(MAX_SECTIONS_WITH_ERRORS).collect();
    if problems.is_empty() { first(errors).map(|error| syntax_problem(file, error)).into_iter().collect() } else { problems }
}

/// Loads a config like [`super::load`]. If it has errors, loads it without the sections that contain them, unless one of these is
/// `needed`. The errors stay among the diagnostics.
pub fn load_valid_sections(path: Option<&Path>, environment: &Environment, needed: &[&str]) -> Loaded {
    let all = super::load(path, environment);
    let Some(Ok(text)) = path.filter(|_| all.config.is_none()).map(read_text) else { return all };
    let sections = sections(&text);
    let mut left_out: Vec<bool> = vec![false; sections.len()];
    let mut diagnostics = all.diagnostics.clone();
    // Without a receiver, routes that name it have errors as well.
    for _ in 0..MAX_ROUNDS {
        let errors = diagnostics.iter().filter(|problem| problem.severity == DiagnosticLevel::Error);
        for error in errors {
            let Some(start) = error.span.as_ref().map(|span| span.start) else { return all };
            // An error at the end of the text belongs to the last section.
            let found = sections.iter().zip(&mut left_out).rfind(|(section, _)| section.span.start <= start);
            match found {
                Some((section, out)) if !section.name.is_empty() && !needed.contains(&section.name.as_str()) => *out = true,
                _ => return all,
            }
        }
        let rest = load_text(path, &blanked(&text, &sections, &left_out), environment);
        if rest.config.is_some() {
            return Loaded { diagnostics: all.diagnostics, sources: all.sources, ..rest };
        }
        diagnostics = rest.diagnostics;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[source]
base_url = \"https://api.example.com\"
[watch]
tokens = [\"arbitrum\", \"aptos\"
[store]
path = \"x.db\"
[[receiver]]
name = \"ops\"
type = \"webhook\"
url = \"https://example.com/x\"
[route]
receivers = [\"ops\"]
";

    fn load(text: &str, needed: &[&str]) -> (Loaded, usize) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cliffwatch.toml");
        std::fs::write(&path, text).expect("written");
        let loaded = load_valid_sections(Some(&path), &Environment::default(), needed);
        let errors = loaded.diagnostics.iter().filter(|problem| problem.severity == DiagnosticLevel::Error).count();
        (loaded, errors)
    }

    #[test]
    fn headers_split_a_text() {
        let names: Vec<String> =
            sections("a = 1\n[b]\n  [[c.d]] # x\ne = [\n  [\"f\"],\n]\n[\"g\"]\n").into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["", "b", "c"]);
    }

    #[test]
    fn slip_is_one_error_at_its_line() {
        let slips = [
            ("\"aptos\"\n", 4),
            ("[store]\npath = \"x.db\n", 6),
            ("[store\npath = \"x.db\"\n", 5),
            ("[store]\npath : \"x.db\"\n", 6),
        ];
        let closed = CONFIG.replace("\"aptos\"\n", "\"aptos\"]\n");
        for (slip, line) in slips {
            let text = if line == 4 { CONFIG.to_owned() } else { closed.replace("[store]\npath = \"x.db\"\n", slip) };
            let (loaded, errors) = load(&text, &[]);
            let all = model::diagnostic::render(&loaded.diagnostics, &loaded.sources, false);
            assert_eq!(errors, 1, "{slip}: {all}");
            assert!(all.contains(&format!("cliffwatch.toml:{line}:")), "{slip}: {all}");
        }
    }

    #[test]
    fn sections_without_an_error_are_loaded() {
        let (loaded, errors) = load(CONFIG, &["store"]);
        let config = loaded.config.expect("the rest");
        assert_eq!((errors, config.receivers.len(), config.store.path.ends_with("x.db")), (1, 1, true));
        assert!(load(CONFIG, &["watch"]).0.config.is_none(), "a needed section has the error");
        let (loaded, errors) =
            load(&CONFIG.replace("\"aptos\"\n", "\"aptos\"]\n").replace("[\"ops\"]\n", "[\"ops\""), &["store"]);
        assert!(errors == 1 && loaded.config.is_some(), "an error at the end of the text");

        // An unknown key in a receiver, so that the route names a receiver that is left out.
        let text = CONFIG.replace("\"aptos\"\n", "\"aptos\"]\n").replace("type = \"webhook\"", "kind = \"webhook\"");
        let (loaded, errors) = load(&text, &["store", "watch"]);
        let config = loaded.config.expect("the rest");
        assert!(errors > 0 && config.receivers.is_empty() && config.watch.tokens.len() == 2, "{config:?}");
    }
}
