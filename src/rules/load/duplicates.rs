//! Finds duplicate rules: same subjects, equivalent conditions, and same audience.

use toml::de::{DeTable, DeValue};

use crate::{condition::Logic, rule::Rule};
use model::Diagnostic;

/// The maximum number of rules that are compared with each other, from the start of the list.
const MAX_COMPARED: usize = 1_000;

/// The keys that select subjects and set durations. Rules that differ in one of them need not fire together.
const SCOPE_KEYS: [&str; 9] =
    ["within", "since", "for", "keep_firing_for", "missing", "tokens", "listed_methods", "allocations", "clear_when"];

/// The keys of a rule that decide what it is about and who receives its alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleSubject {
    scope: Vec<(&'static str, String)>,
    audience: Vec<(String, String)>,
}

impl RuleSubject {
    pub fn of(table: &DeTable<'_>) -> Self {
        let scope = SCOPE_KEYS.into_iter().filter_map(|key| Some((key, normalize(table.get(key)?.get_ref())))).collect();
        let mut audience: Vec<(String, String)> = Vec::new();
        if let Some(labels) = table.get("labels").and_then(|value| value.get_ref().as_table()) {
            let others = labels.iter().filter(|(name, _)| name.get_ref() != "severity");
            audience.extend(others.map(|(name, value)| (name.get_ref().to_string(), normalize(value.get_ref()))));
        }
        for key in ["receivers", "expires"] {
            audience.extend(table.get(key).map(|value| (format!("[{key}]"), normalize(value.get_ref()))));
        }
        audience.sort();
        Self { scope, audience }
    }
}

/// Formats a value in a normalized form. Lists are sorted, because their order means nothing here.
fn normalize(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Array(items) => {
            let mut items: Vec<String> = items.iter().map(|item| normalize(item.get_ref())).collect();
            items.sort();
            format!("[{}]", items.join(","))
        }
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(at) => at.to_string(),
        DeValue::Table(table) => {
            let mut items: Vec<String> =
                table.iter().map(|(key, value)| format!("{}={}", key.get_ref(), normalize(value.get_ref()))).collect();
            items.sort();
            format!("{{{}}}", items.join(","))
        }
    }
}

/// Warns about rules that always fire together. Rules for different teams (other labels, other receivers) are not reported.
pub(super) fn duplicates(rules: &[Rule], subjects: &[RuleSubject]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let always = Logic::always();
    let logic = |rule: &Rule| rule.body.when.as_ref().map_or_else(|| always.clone(), |when| when.logic.clone());
    let known: Vec<(&Rule, &RuleSubject, Logic)> =
        rules.iter().zip(subjects).take(MAX_COMPARED).map(|(rule, subject)| (rule, subject, logic(rule))).collect();
    for (index, (rule, subject, logic)) in known.iter().enumerate() {
        // For incidents only the first matching rule fires, so a duplicate never does.
        let duplicate = known.iter().take(index).find(|(other, other_subject, other_logic)| {
            other.on == rule.on && other_subject == subject && other_logic.is_equivalent(logic)
        });
        if let Some((duplicate, ..)) = duplicate {
            warnings.push(
                Diagnostic::warning(
                    rule.location.file.to_path_buf(),
                    Some(rule.location.span.clone()),
                    format!("`{}` and `{}` always fire together", duplicate.name, rule.name),
                )
                .help("to get one message, remove one of them, or make it a `[[rule.level]]` of the other"),
            );
        }
    }
    warnings
}
