//! Problems in files that users edit. All problems of a load are reported together.
//!
//! A parser collects [`Diagnostic`]s and keeps the text as [`SourceText`], with secrets redacted. [`render`] formats them for
//! people, and [`to_json`] for programs. Neither panics for any span, and no control character of a file reaches a terminal.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet, renderer::DecorStyle};
use serde::Serialize;

use crate::text::{harmless, is_hostile};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticLevel {
    /// Valid, but probably not what the user meant.
    Warning,
    /// Invalid.
    Error,
}

/// One problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: DiagnosticLevel,
    /// The path, or `environment` for environment variables.
    pub file: PathBuf,
    /// The affected bytes; `None` if the problem concerns the whole file.
    pub span: Option<Range<usize>>,
    /// The problem on one line, in lowercase and without a full stop.
    pub message: String,
    /// The text under the caret.
    pub label: Option<String>,
    /// The suggestion, such as `did you mean \`cliffValue\`?`
    pub help: Option<String>,
}

/// The text of a file, for showing lines of it. Lines with secrets are redacted before.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// The path as the operator knows it.
    pub file: PathBuf,
    pub text: String,
}

impl Diagnostic {
    pub fn error(file: impl Into<PathBuf>, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self { severity: DiagnosticLevel::Error, file: file.into(), span, message: message.into(), label: None, help: None }
    }

    pub fn warning(file: impl Into<PathBuf>, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self { severity: DiagnosticLevel::Warning, ..Self::error(file, span, message) }
    }

    /// Sets the text under the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Returns the candidate that is closest to `word`; `None` if none is close.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let near = candidates.into_iter().filter_map(|candidate| Some((near_distance(&lower, candidate)?, candidate)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Other words for the kinds of change, for cases in which spelling does not help.
const KIND_SYNONYMS: [(&str, &str); 23] = [
    ("moved", "rescheduled"),
    ("delayed", "rescheduled"),
    ("postponed", "rescheduled"),
    ("advanced", "rescheduled"),
    ("date", "rescheduled"),
    ("shifted", "series_shifted"),
    ("amount", "resized"),
    ("increased", "resized"),
    ("decreased", "resized"),
    ("grown", "resized"),
    ("reduced", "resized"),
    ("rescaled", "series_rescaled"),
    ("new", "added"),
    ("appeared", "added"),
    ("created", "added"),
    ("deleted", "removed"),
    ("gone", "removed"),
    ("cancelled", "removed"),
    ("canceled", "removed"),
    ("vanished", "removed"),
    ("claimed", "committed"),
    ("announced", "committed"),
    ("corrected", "revised"),
];

/// Returns the kind of change that another word for it means.
pub fn kind_synonym(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    KIND_SYNONYMS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
}

/// Returns the candidate that `word` means: the kind of change for which it is another word, or else the [`closest`] one.
pub fn meant(word: &str, candidates: &[&'static str]) -> Option<&'static str> {
    let synonym = kind_synonym(word).filter(|kind| candidates.contains(kind));
    synonym.or_else(|| closest(word, candidates.iter().copied()))
}

/// Returns the number of edits from `lower` to a candidate in lower case; `None` if they are not alike.
pub(crate) fn near_distance(lower: &str, candidate: &str) -> Option<usize> {
    let candidate = candidate.to_lowercase();
    let (length, other) = (lower.chars().count(), candidate.chars().count());
    let most = (length.max(other) / 3).max(1);
    // The distance is at least the difference of the lengths. This bounds the work for a long text.
    if length.abs_diff(other) > most {
        return None;
    }
    Some(strsim::damerau_levenshtein(lower, &candidate)).filter(|distance| *distance <= most)
}

/// The maximum width of a rendered problem. Longer source lines are cut around the caret.
const RENDER_WIDTH: usize = 120;

/// The maximum number of problems shown; more are counted.
const MAX_SHOWN: usize = 100;

/// The start and end of a span. Lines and columns count from 1, columns in characters, and the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    /// The column after the last character.
    pub end_column: usize,
}

/// Returns the position of `span`. A span outside of the text or inside a character is moved to the nearest valid one.
pub fn position(text: &str, span: &Range<usize>) -> TextPosition {
    LineIndex::of(text).position(span)
}

/// An index of the lines of a text, for many lookups of positions.
#[derive(Clone, Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// The start of each line.
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Returns the line of a byte offset, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    pub fn position(&self, span: &Range<usize>) -> TextPosition {
        let place = |offset: usize| {
            let offset = self.text.floor_char_boundary(offset);
            let line = self.line(offset);
            let start = self.starts.get(line - 1).copied().unwrap_or_default();
            let column = self.text.get(start..offset).unwrap_or_default().chars().count() + 1;
            (line, column)
        };
        let (line, column) = place(span.start);
        let (end_line, end_column) = place(span.end.max(span.start));
        TextPosition { line, column, end_line, end_column }
    }
}

/// Sorts for display: errors first, then by file in the order of `sources`, then by position. Removes duplicates.
pub fn in_order<'a>(diagnostics: &'a [Diagnostic], sources: &[SourceText]) -> Vec<&'a Diagnostic> {
    let rank = |file: &Path| sources.iter().position(|source| source.file == file).unwrap_or(sources.len());
    let mut seen = HashSet::new();
    let mut ordered: Vec<&Diagnostic> = diagnostics
        .iter()
        .filter(|diagnostic| seen.insert((&diagnostic.file, &diagnostic.span, diagnostic.severity, &diagnostic.message)))
        .collect();
    ordered.sort_by(|a, b| {
        let key = |d: &Diagnostic| (rank(&d.file), d.span.as_ref().map(|span| span.start));
        b.severity.cmp(&a.severity).then_with(|| key(a).cmp(&key(b))).then_with(|| a.file.cmp(&b.file))
    });
    ordered
}

/// Returns the counts of errors and warnings: `2 errors, 1 warning`. Empty without diagnostics.
pub fn summary(diagnostics: &[&Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let word = |count: usize, noun: &str| (count > 0).then(|| crate::phrase::count(count, noun));
    [word(count(DiagnosticLevel::Error), "error"), word(count(DiagnosticLevel::Warning), "warning")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats all problems with their lines and carets, as a compiler does, and a last line with the counts. Empty without problems.
pub fn render(diagnostics: &[Diagnostic], sources: &[SourceText], color: bool) -> String {
    let ordered = in_order(diagnostics, sources);
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(RENDER_WIDTH).decor_style(DecorStyle::Ascii);
    let mut page = String::new();
    for diagnostic in ordered.iter().take(MAX_SHOWN) {
        let source = sources.iter().find(|source| source.file == diagnostic.file);
        page.push_str(&render_one(diagnostic, source, &renderer));
        page.push_str("\n\n");
    }
    if ordered.len() > MAX_SHOWN {
        let _ = writeln!(page, "… and {} more\n", ordered.len() - MAX_SHOWN);
    }
    if !ordered.is_empty() {
        page.push_str(&summary(&ordered));
        page.push('\n');
    }
    page
}

fn render_one(diagnostic: &Diagnostic, source: Option<&SourceText>, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        DiagnosticLevel::Error => Level::ERROR,
        DiagnosticLevel::Warning => Level::WARNING,
    };
    let path = harmless(&diagnostic.file.display().to_string());
    let mut group = level.primary_title(harmless(&diagnostic.message)).elements(Vec::<Origin<'_>>::new());
    let label = diagnostic.label.as_deref().map(harmless);
    group = match (source, &diagnostic.span) {
        (Some(source), Some(span)) => {
            let (text, span) = window(&source.text, span);
            let start = source.text.get(..text.0).unwrap_or_default().matches('\n').count() + 1;
            let annotation = AnnotationKind::Primary.span(span).label(label);
            let slice = source.text.get(text.0..text.1).unwrap_or_default();
            group.element(Snippet::source(expose_controls(slice)).line_start(start).path(path).annotation(annotation))
        }
        (_, _) => group.element(Origin::path(path)),
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(harmless(help)));
    }
    renderer.render(&[group]).lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Returns the lines around `span` as a byte range, and the span within it, cut at its first line break. Rendering must not take longer for
/// larger files.
fn window(text: &str, span: &Range<usize>) -> ((usize, usize), Range<usize>) {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    // A caret on a line break would point at the next line.
    let end = if end > start { text.get(start..end).and_then(|part| part.find('\n')).map_or(end, |at| start + at) } else { end };
    let from = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let until = text.get(end..).and_then(|after| after.find('\n')).map_or(text.len(), |at| end + at);
    ((from, until), start - from..end - from)
}

/// Replaces control characters by characters with the same number of bytes, so that spans stay valid.
fn expose_controls(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c.to_string(),
            c if is_hostile(c) => "?".repeat(c.len_utf8()),
            c => c.to_string(),
        })
        .collect()
}

/// A problem as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonDiagnostic<'a> {
    file: String,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    severity: DiagnosticLevel,
    message: &'a str,
    label: Option<&'a str>,
    help: Option<&'a str>,
}

/// Returns all problems as a JSON array: `file`, `line`, `column`, `endLine`, `endColumn` (from 1, end exclusive, null for a whole
/// file), `severity`, `message`, `label`, `help`.
pub fn to_json(diagnostics: &[Diagnostic], sources: &[SourceText]) -> serde_json::Value {
    let lines: Vec<LineIndex<'_>> = sources.iter().map(|source| LineIndex::of(&source.text)).collect();
    let list = in_order(diagnostics, sources).into_iter().map(|diagnostic| {
        let source = sources.iter().position(|source| source.file == diagnostic.file).and_then(|at| lines.get(at));
        let place = source.zip(diagnostic.span.as_ref()).map(|(lines, span)| lines.position(span));
        JsonDiagnostic {
            file: diagnostic.file.display().to_string(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            end_line: place.map(|place| place.end_line),
            end_column: place.map(|place| place.end_column),
            severity: diagnostic.severity,
            message: &diagnostic.message,
            label: diagnostic.label.as_deref(),
            help: diagnostic.help.as_deref(),
        }
    });
    serde_json::to_value(list.collect::<Vec<_>>()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
