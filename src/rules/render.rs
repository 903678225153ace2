//! The words of one alert: labels and annotations, rendered from the rule's templates. A template that fails is replaced by the
//! built-in text, and the alert says so.

use std::collections::BTreeMap;

use model::Labels;

use super::builtin::{built_in_of_totals, built_in_summary};
use super::rule::Rule;
use super::scope::Scope;
use super::template;

/// Labels and annotations of one alert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The rule's labels, level's included; `alertname` and `token` (slug, where there is one) are always there.
    pub labels: Labels,
    /// Annotations. `summary` is always there: a built-in one where the rule has none or its template failed.
    pub annotations: BTreeMap<String, String>,
    /// What a template failed with; the built-in text stands in its place.
    pub error: Option<String>,
}

impl Rule {
    /// Labels and annotations. Never fails: see [`Rendered::error`].
    pub fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        let level = level.and_then(|level| self.body.levels.get(usize::try_from(level).ok()?));
        let mut rendered = Rendered::default();
        let mut fail = |what: &str, name: &str, problem: String| {
            rendered.error.get_or_insert_with(|| format!("rule {}: {what} `{name}`: {problem}", self.name));
        };
        let mut labels = Labels::new();
        let mut annotations = BTreeMap::new();
        let own = template::context(scope, None);
        for (name, template) in self.body.labels.iter().chain(level.map_or(&[][..], |level| &level.labels)) {
            match template.label(&own) {
                Ok(text) => _ = labels.insert(name.clone(), text),
                Err(problem) => fail("label", name, problem),
            }
        }
        labels.insert("alertname".into(), self.name.clone());
        if let Some(token) = scope.token {
            labels.insert("token".into(), token.id.as_str().to_owned());
        }
        if let Some(group) = scope.totals.and_then(|totals| totals.group.clone()) {
            labels.insert("group".into(), group);
        }
        let all = template::context(scope, Some((&self.body.label_names, &labels)));
        for (name, template) in self.body.annotations.iter().chain(level.map_or(&[][..], |level| &level.annotations)) {
            match template.annotation(&all) {
                Ok(text) => _ = annotations.insert(name.clone(), text),
                Err(problem) => {
                    // A level's broken text must not leave the rule's own in its place: it may say the opposite.
                    annotations.remove(name);
                    fail("annotation", name, problem);
                }
            }
        }
        // An alert without a line to read is no alert.
        if annotations.get("summary").is_none_or(|summary| summary.trim().is_empty()) {
            let summary = match scope.totals {
                Some(totals) => built_in_of_totals(scope, totals, &self.body.dependencies.windows),
                None => built_in_summary(scope),
            };
            annotations.insert("summary".into(), summary);
        }
        if let Some(error) = &rendered.error {
            annotations.insert("template_error".into(), error.clone());
        }
        rendered.labels = labels;
        rendered.annotations = annotations;
        rendered
    }
}
