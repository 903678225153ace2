//! Renders the labels and annotations of an alert from the templates of its rule. If the template of the summary fails, the built-in
//! summary is used. The alert reports each failure.

use std::collections::BTreeMap;

use model::Labels;

use super::builtin::{built_in_of_totals, built_in_summary};
use super::rule::Rule;
use super::scope::Scope;
use super::template;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The labels of the rule and level, plus `alertname`, and, if the scope has them, `token` with its slug and `group`.
    pub labels: Labels,
    /// Always contains `summary`: the built-in one if the rule has none or its template failed. Contains `template_error` if a template
    /// failed.
    pub annotations: BTreeMap<String, String>,
    /// The error of the first template that failed.
    pub error: Option<String>,
}

impl Rule {
    /// Renders labels and annotations, those of the level in place of those of the rule. Never fails: a label or annotation whose template
    /// fails is left out, and [`Rendered::error`] has the error.
    pub fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        let level = level.and_then(|level| self.body.levels.get(usize::try_from(level).ok()?));
        let mut rendered = Rendered::default();
        let mut fail = |what: &str, name: &str, problem: String| {
            rendered.error.get_or_insert_with(|| format!("rule {}: {what} `{name}`: {problem}", self.name));
        };
        let mut labels = Labels::new();
        let mut annotations = BTreeMap::new();
        let label_templates = || self.body.labels.iter().chain(level.map_or(&[][..], |level| &level.labels));
        let own = template::context(scope, &|name| label_templates().any(|(_, template)| template.words.has(name)), None);
        for (name, template) in label_templates() {
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
        let texts = || self.body.annotations.iter().chain(level.map_or(&[][..], |level| &level.annotations));
        let is_read = |name: &str| texts().any(|(_, template)| template.words.has(name));
        let all = template::context(scope, &is_read, Some((&self.body.label_names, &labels)));
        for (name, template) in texts() {
            match template.annotation(&all) {
                Ok(text) => _ = annotations.insert(name.clone(), text),
                Err(problem) => {
                    // Do not fall back to the rule's own text if the level's template fails: it could be wrong at this level.
                    annotations.remove(name);
                    fail("annotation", name, problem);
                }
            }
        }
        // Every alert needs a summary.
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
