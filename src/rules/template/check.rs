//! The check of a template at load: its names, its filters, its windows; then it is rendered twice, with a record that has every field
//! and with one that has none.

use std::{ops::Range, sync::Arc};

use minijinja::{Error, ErrorKind};

use crate::aggregate::Flow;
use crate::finding::Finding;
use crate::on::On;
use crate::synonyms;
use crate::vocabulary::{KnownName, SHARE, Vocabulary, unknown_name};
use model::closest;

use super::bounds::{Unbounded, guarded, tags_of, unbounded};
use super::context::{ContextTree, window_of};
use super::engine::{TemplateEngine, describe};
use super::sample::SampleScope;
use super::tags::{filters_in, find_word};
use super::{Template, filters};

/// Longest template, bytes.
const MAX_TEMPLATE: usize = 16 << 10;

/// Longest `{{ … }}` or `{% … %}`, bytes: the engine's parser and compiler recurse over chains such as `1+1+1`.
const MAX_TAG: usize = 800;

/// Tags of one template: chains of `elif` recurse too.
const MAX_TAGS: usize = 200;

impl Template {
    /// Checks `source` for a rule that listens to `on`. An annotation may use the rule's labels, whose names are given; a label may
    /// not. A template with errors is still returned; the caller drops the rule.
    pub fn check(engine: &Arc<TemplateEngine>, source: &str, on: On, labels: Option<&[String]>) -> (Self, Vec<Finding>) {
        let mut template =
            Self { engine: Arc::clone(engine), source: source.into(), guarded: source.into(), windows: Vec::new() };
        if source.len() <= MAX_TEMPLATE && !["{{", "{%", "{#"].iter().any(|open| source.contains(open)) {
            return (template, Vec::new());
        }
        let tags = match bounded_tags(source) {
            Ok(tags) => tags,
            Err(finding) => return (template, vec![finding]),
        };
        if let Some(Unbounded { at, message, help }) = unbounded(source, &tags) {
            return (template, vec![Finding::error(at, message).help(help)]);
        }
        template.guarded = guarded(source, &tags).into();
        let mut findings = Vec::new();
        if on.has_windows() {
            for tag in &tags {
                template.find_windows(tag, &mut findings);
            }
        }
        findings.extend(template.unknown_names(on, labels.is_none()));
        findings.extend(template.unknown_filters());
        if findings.is_empty() {
            findings.extend(template.trial(on, labels));
        }
        (template, findings)
    }

    /// The windows that a tag asks for. One that is computed only as the template is rendered would not be there.
    fn find_windows(&mut self, tag: &Range<usize>, findings: &mut Vec<Finding>) {
        let source = Arc::clone(&self.source);
        let Some(text) = source.get(tag.clone()) else { return };
        for flow in Flow::ALL {
            for (at, word) in text.match_indices(flow.as_str()) {
                let before = text.get(..at).and_then(|text| text.chars().next_back());
                let Some(rest) = text.get(at + word.len()..) else { continue };
                let is_part = |c: char| c.is_alphanumeric() || c == '_';
                let Some(argument) = rest.trim_start().strip_prefix('(') else { continue };
                if before.is_some_and(is_part) {
                    continue;
                }
                let argument = argument.trim_start();
                let quoted = argument.chars().next().filter(|c| matches!(c, '"' | '\'')).and_then(|quote| {
                    let (text, rest) = argument.get(1..)?.split_once(quote)?;
                    rest.trim_start().starts_with(')').then_some(text)
                });
                let message = match quoted.map(|text| window_of(flow, text)) {
                    Some(Ok(window)) => {
                        if !self.windows.contains(&window) {
                            self.windows.push(window);
                        }
                        continue;
                    }
                    Some(Err(message)) => message,
                    None => format!("`{word}` takes one window, written out in quotes"),
                };
                let span = tag.start + at..tag.start + at + word.len();
                findings.push(Finding::error(span, message).help(format!("write it like `{word}(\"30d\")`")));
            }
        }
    }

    fn unknown_names(&self, on: On, is_label: bool) -> Vec<Finding> {
        let compiled = match self.engine.environment.template_from_named_str("template", &self.source) {
            Ok(compiled) => compiled,
            Err(error) => return vec![finding_of(&self.source, &error, "this template cannot be read")],
        };
        let vocabulary = Vocabulary::of(on);
        let mut names = vocabulary.all();
        let extra = extra_names(on, is_label);
        names.extend(&extra);
        // The trial looks at what is inside of a list, a record, a window.
        let holds_more = |name: &str| {
            let known = vocabulary.find(name);
            extra.contains(&name) || matches!(known, Some(KnownName::Texts(_) | KnownName::Fact(..) | KnownName::Items(..)))
        };
        let is_below = |path: &str, name: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let is_known = |path: &str| {
            names.iter().any(|name| *name == path || is_below(name, path) || (is_below(path, name) && holds_more(name)))
                || matches!(path.split('.').next(), Some("range" | "dict" | "namespace" | "loop"))
        };
        let mut unknown: Vec<String> = compiled.undeclared_variables(true).into_iter().filter(|path| !is_known(path)).collect();
        unknown.sort();
        unknown
            .into_iter()
            .map(|path| {
                // What it is called here says more than where else it is known.
                let is_meant = synonyms::name(&path, &names).is_some();
                let (message, help) = match vocabulary.misplaced(&path).filter(|_| !is_meant) {
                    Some(help) => (format!("`{path}` is not known here"), help),
                    None => unknown_name(&path, &names),
                };
                Finding::error(find_word(&self.source, &path), message).help(help)
            })
            .collect()
    }

    fn unknown_filters(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for range in filters_in(&self.source) {
            let Some(name) = self.source.get(range.clone()).filter(|name| !self.engine.knows_filter(name)) else { continue };
            let known = filters::known();
            let help = closest(name, known.iter().copied())
                .map_or_else(|| format!("filters are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
            findings.push(Finding::error(range, format!("there is no filter `{name}`")).help(help));
        }
        findings
    }

    /// Renders with everything there, then with everything missing.
    fn trial(&self, on: On, labels: Option<&[String]>) -> Option<Finding> {
        for is_full in [true, false] {
            let sample = SampleScope::of(on, is_full, &self.windows);
            let mut tree = ContextTree::of(&sample.scope());
            if is_full {
                tree.fill_gaps(&Vocabulary::of(on));
            }
            if let Some(names) = labels {
                let labels = names.iter().filter(|_| is_full).map(|name| (name.clone(), "sample".to_owned())).collect();
                tree.put_labels(names, &labels);
            }
            let Err(error) = self.engine.render(&self.guarded, tree.into_value()) else { continue };
            // Where the text was changed its places are not those of the file.
            let source = if self.guarded == self.source { &*self.source } else { "" };
            if is_full {
                return Some(finding_of(source, &error, "this template fails"));
            }
            let mut finding = finding_of(source, &error, "this template fails where fields are missing");
            finding.is_error = false;
            return Some(
                finding.help("give a default, `{{ cliffValue | default(0) }}`, or ask first, `{% if cliffValue is not none %}`"),
            );
        }
        None
    }
}

/// Names that templates have beside those of conditions.
pub fn extra_names(on: On, is_label: bool) -> Vec<&'static str> {
    let mut names = Vec::new();
    if on.resource().is_some() {
        names.extend(["when", "record"]);
    }
    if !is_label {
        names.push("labels");
    }
    if matches!(on, On::Change(..)) {
        names.extend(["change.fields", "change.before", "change.after"]);
    }
    // A portfolio has no share of itself.
    names.extend(Vocabulary::of(on).functions().into_iter().filter(|name| *name != SHARE || on == On::Token));
    names
}

/// The tags of a template that is within bounds: they are looked at before any parser sees them.
fn bounded_tags(source: &str) -> Result<Vec<Range<usize>>, Finding> {
    if source.len() > MAX_TEMPLATE {
        let message = format!("this template is {} bytes long; at most {MAX_TEMPLATE} are allowed", source.len());
        return Err(Finding::error(None, message).help("shorten it"));
    }
    let tags = tags_of(source);
    if let Some(tag) = tags.iter().find(|tag| tag.len() > MAX_TAG) {
        let message = format!("this tag is {} bytes long; at most {MAX_TAG} are allowed", tag.len());
        return Err(Finding::error(tag.clone(), message).help("split it with `{% set … %}`"));
    }
    // Inside a raw block the engine reads other bounds than this look does.
    let is_raw = |tag: &&Range<usize>| {
        source.get((*tag).clone()).is_some_and(|tag| tag.trim_start_matches(['-', '+']).trim_start().starts_with("raw"))
    };
    if let Some(tag) = tags.iter().find(is_raw) {
        return Err(Finding::error(tag.clone(), "raw blocks are not supported").help("write braces as `{{ '{{' }}`"));
    }
    if tags.len() > MAX_TAGS {
        let message = format!("this template has {} tags; at most {MAX_TAGS} are allowed", tags.len());
        return Err(Finding::error(None, message).help("shorten it"));
    }
    Ok(tags)
}

fn finding_of(source: &str, error: &Error, what: &str) -> Finding {
    // The engine counts one byte for a character that it does not know: a place holds whole characters.
    let place = error
        .range()
        .filter(|_| !source.is_empty())
        .map(|bytes| source.floor_char_boundary(bytes.start)..source.ceil_char_boundary(bytes.end));
    let finding = Finding::error(place, format!("{what}: {}", describe(error)));
    match error.kind() {
        ErrorKind::SyntaxError => finding.help("values stand in `{{ … }}`, statements in `{% … %}`"),
        ErrorKind::OutOfFuel => finding.help("it takes too many steps: shorten its loops"),
        _ => finding,
    }
}
