//! Checks a template at load: its names, filters, and windows. Then renders it twice, with a record that has every field and with
//! one that has none.

use std::{ops::Range, sync::Arc};

use minijinja::{Error, ErrorKind};

use crate::aggregate::Flow;
use crate::finding::Finding;
use crate::on::On;
use crate::synonyms;
use crate::vocabulary::{KnownName, OF_UNLOCKS, PRICE_AGE, SHARE, Vocabulary, unknown_name};
use model::{Resource, closest};

use super::bounds::{Unbounded, guard, tags_of, unbounded};
use super::context::{ContextTree, window_of};
use super::engine::{TemplateEngine, describe};
use super::sample::SampleScope;
use super::tags::{filters_in, find_word};
use super::{Template, Words, filters};

/// The maximum length of a template, in bytes.
const MAX_TEMPLATE: usize = 16 << 10;

/// The maximum length of `{{ … }}` or `{% … %}`, in bytes, because the engine's parser and compiler recurse over chains such as
/// `1+1+1`.
const MAX_TAG: usize = 800;

/// The maximum number of tags in a template, because the engine also recurses over chains of `elif`.
const MAX_TAGS: usize = 200;

impl Template {
    /// Checks `source` for a rule with this `on`. `labels` contains the label names for an annotation, and is `None` for a label,
    /// which cannot refer to labels. A template with errors is also returned; the caller drops the rule.
    pub fn check(engine: &Arc<TemplateEngine>, source: &str, on: On, labels: Option<&[String]>) -> (Self, Vec<Finding>) {
        let mut template = Self {
            engine: Arc::clone(engine),
            source: source.into(),
            guarded: source.into(),
            words: Words::default(),
            windows: Vec::new(),
            has_supply: false,
            has_rate_steps: false,
        };
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
        template.guarded = guard(source, &tags).into();
        template.words = Words::of(source, &tags);
        let mut findings = Vec::new();
        if on.has_windows() {
            for tag in &tags {
                template.find_windows(tag, &mut findings);
            }
        }
        // A name in a string counts too, which only costs time.
        let reads = |words: &[&str]| {
            tags.iter().filter_map(|tag| source.get(tag.clone())).any(|tag| words.iter().any(|word| tag.contains(word)))
        };
        template.has_supply = on.has_windows() && reads(&["linearPerDay", "nextRate", PRICE_AGE]);
        template.has_rate_steps = on.resource() == Some(Resource::Unlock) && reads(&OF_UNLOCKS.map(|(name, _)| name));
        findings.extend(template.unknown_names(on, labels.is_none()));
        findings.extend(template.unknown_filters());
        if findings.is_empty() {
            findings.extend(template.trial(on, labels));
        }
        (template, findings)
    }

    /// Collects the windows that a tag reads. Their lengths must be literals, because sums are computed before rendering.
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
                    None => format!("`{word}` requires one window length in quotes"),
                };
                let span = tag.start + at..tag.start + at + word.len();
                findings.push(Finding::error(span, message).help(format!("example: `{word}(\"30d\")`")));
            }
        }
    }

    fn unknown_names(&self, on: On, is_label: bool) -> Vec<Finding> {
        let compiled = match self.engine.environment.template_from_named_str("template", &self.source) {
            Ok(compiled) => compiled,
            Err(error) => return vec![finding_of(&self.source, &error, "cannot parse this template")],
        };
        let vocabulary = Vocabulary::of(on);
        let mut names = vocabulary.all();
        let extra = extra_names(on, is_label);
        names.extend(&extra);
        // The trial checks the parts of a list, a record, or a window.
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
                // A synonym that is valid here is a better suggestion than a name that is valid elsewhere.
                let is_meant = synonyms::name(&path, &names).is_some();
                let (message, help) = match vocabulary.other_rules_hint(&path).filter(|_| !is_meant) {
                    Some(help) => (format!("`{path}` is not available here"), help),
                    None => unknown_name(&path, &names),
                };
                Finding::error(find_word(&self.source, &path), message).help(help)
            })
            .collect()
    }

    fn unknown_filters(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for range in filters_in(&self.source) {
            let Some(name) = self.source.get(range.clone()).filter(|name| !self.engine.has_filter(name)) else { continue };
            let known = filters::known();
            let help = closest(name, known.iter().copied())
                .map_or_else(|| format!("expected one of {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
            findings.push(Finding::error(range, format!("unknown filter `{name}`")).help(help));
        }
        findings
    }

    /// Renders the template with all fields set, then with all fields missing.
    fn trial(&self, on: On, labels: Option<&[String]>) -> Option<Finding> {
        for is_full in [true, false] {
            let sample = SampleScope::of(on, is_full, &self.windows);
            let mut tree = ContextTree::of(&sample.scope(), &|_| true);
            if is_full {
                tree.fill_gaps(&Vocabulary::of(on));
            }
            if let Some(names) = labels {
                let labels = names.iter().filter(|_| is_full).map(|name| (name.clone(), "sample".to_owned())).collect();
                tree.put_labels(names, &labels);
            }
            let Err(error) = self.engine.render(&self.guarded, tree.into_value()) else { continue };
            // Positions in a rewritten template do not match the file.
            let source = if self.guarded == self.source { &*self.source } else { "" };
            if is_full {
                return Some(finding_of(source, &error, "this template fails"));
            }
            let mut finding = finding_of(source, &error, "this template fails if fields are missing");
            finding.is_error = false;
            return Some(
                finding.help("add a default, `{{ cliffValue | default(0) }}`, or a check, `{% if cliffValue is not none %}`"),
            );
        }
        None
    }
}

/// Returns the names in templates that are not fields: `when` and `record` for records and changes, `labels` in annotations, parts of
/// `change` for changes, the window functions for tokens and groups, and `share` for tokens.
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
    // A portfolio has no share.
    names.extend(Vocabulary::of(on).functions().into_iter().filter(|name| *name != SHARE || on == On::Token));
    names
}

/// Returns the tags of a template that is within the limits. This runs before any parser.
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
    // Raw blocks have other tag boundaries than this scan finds.
    let is_raw = |tag: &&Range<usize>| {
        source.get((*tag).clone()).is_some_and(|tag| tag.trim_start_matches(['-', '+']).trim_start().starts_with("raw"))
    };
    if let Some(tag) = tags.iter().find(is_raw) {
        return Err(Finding::error(tag.clone(), "raw blocks are not supported").help("use `{{ '{{' }}` for braces"));
    }
    if tags.len() > MAX_TAGS {
        let message = format!("this template has {} tags; at most {MAX_TAGS} are allowed", tags.len());
        return Err(Finding::error(None, message).help("shorten it"));
    }
    Ok(tags)
}

fn finding_of(source: &str, error: &Error, what: &str) -> Finding {
    // The engine counts one byte for an unknown character, so extend the range to character boundaries.
    let place = error
        .range()
        .filter(|_| !source.is_empty())
        .map(|bytes| source.floor_char_boundary(bytes.start)..source.ceil_char_boundary(bytes.end));
    let finding = Finding::error(place, format!("{what}: {}", describe(error)));
    match error.kind() {
        ErrorKind::SyntaxError => finding.help("put values in `{{ … }}` and statements in `{% … %}`"),
        ErrorKind::OutOfFuel => finding.help("the template takes too many steps: shorten its loops"),
        _ => finding,
    }
}
