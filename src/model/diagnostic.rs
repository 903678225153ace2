//! Problems in files that people edit: where, what, and what was probably meant. All of a load's problems are shown together.
//!
//! Whoever reads a file gathers [`Diagnostic`]s and keeps the text ([`SourceText`], secrets masked). [`render`] shows them to people,
//! [`to_json`] to programs. Neither ever panics, whatever the span, and nothing from a file reaches a terminal as a control code.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet, renderer::DecorStyle};
use serde::Serialize;

use crate::text::{harmless, is_hostile};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works, but probably not as meant.
    Warning,
    /// It cannot be used.
    Error,
}

/// One problem in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Which file; for the environment, `environment`.
    pub file: PathBuf,
    /// Bytes concerned; none where the file as a whole is meant.
    pub span: Option<Range<usize>>,
    /// What is wrong, in one line, in lower case, without a full stop.
    pub message: String,
    /// What stands under the caret, if more is to be said there.
    pub label: Option<String>,
    /// What to do: `did you mean \`cliffValue\`?`
    pub help: Option<String>,
}

/// A file's text, kept for showing lines of it. Lines that hold secrets are masked before they are kept.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// Its path as the operator knows it.
    pub file: PathBuf,
    pub text: String,
}

impl Diagnostic {
    pub fn error(file: impl Into<PathBuf>, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, file: file.into(), span, message: message.into(), label: None, help: None }
    }

    pub fn warning(file: impl Into<PathBuf>, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, span, message) }
    }

    /// With what stands under the caret.
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

/// The candidate that `word` was probably meant to be, if one is near enough.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count().max(word.chars().count()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Columns that a rendered problem may take; longer source lines are cut around the caret.
const RENDER_WIDTH: usize = 120;

/// Problems that are shown; the rest is counted. A file of a thousand equal mistakes needs no thousand pictures.
const MAX_SHOWN: usize = 100;

/// Where a span begins and ends, counted from 1, columns in characters. The end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    /// Column after the last character.
    pub end_column: usize,
}

/// Where `span` lies in `text`. A span outside of the text, or inside a character, is moved to the nearest place that exists.
pub fn position(text: &str, span: &Range<usize>) -> TextPosition {
    LineIndex::of(text).position(span)
}

/// The lines of a text, for many places in it: the text is gone through once.
#[derive(Clone, Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// Where each begins.
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    /// Those of a text.
    pub fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The line of a place, from 1.
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

/// Sorts for reading: errors first, then by file in the order of `sources`, then by place; what is said twice is said once.
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

/// How many errors and warnings, in words: `2 errors, 1 warning`; empty where there are none.
pub fn summary(diagnostics: &[&Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let word = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        _ => Some(format!("{count} {noun}s")),
    };
    [word(count(Severity::Error), "error"), word(count(Severity::Warning), "warning")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// All problems with their lines and carets, as a compiler shows them; the last line counts them. Empty where there are none.
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
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
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

/// The lines around `span`, as a byte range of `text`, and the span within them: rendering cost must not grow with the file.
fn window(text: &str, span: &Range<usize>) -> ((usize, usize), Range<usize>) {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    // A caret on a line break would point at the next line: it points at the end of its own.
    let end = if end > start { text.get(start..end).and_then(|part| part.find('\n')).map_or(end, |at| start + at) } else { end };
    let from = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let until = text.get(end..).and_then(|after| after.find('\n')).map_or(text.len(), |at| end + at);
    ((from, until), start - from..end - from)
}

/// Replaces control characters by a character of the same length in bytes, so that spans stay true and a terminal stays calm.
fn expose_controls(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c.to_string(),
            c if is_hostile(c) => "?".repeat(c.len_utf8()),
            c => c.to_string(),
        })
        .collect()
}

/// A problem in the form for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonDiagnostic<'a> {
    file: String,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    severity: Severity,
    message: &'a str,
    label: Option<&'a str>,
    help: Option<&'a str>,
}

/// All problems as a JSON array: `file`, `line`, `column`, `endLine`, `endColumn` (from 1, the end exclusive, null where the file as a
/// whole is meant), `severity`, `message`, `label`, `help`.
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
