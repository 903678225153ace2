//! Rules that always fire together: the same scope, conditions that imply each other, and the same audience.

use toml::de::{DeTable, DeValue};

use crate::{condition::Logic, rule::Rule};
use model::Diagnostic;

/// Rules that are compared with each other; of more, the first ones.
const MAX_COMPARED: usize = 1_000;

/// Keys that say what a rule lets in, and how it holds. Two rules that differ in one of them need not fire together.
const SCOPE_KEYS: [&str; 9] =
    ["within", "since", "for", "keep_firing_for", "missing", "tokens", "listed_methods", "allocations", "clear_when"];

/// What a rule is about and who hears of it, as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleSubject {
    scope: Vec<(&'static str, String)>,
    audience: Vec<(String, String)>,
}

impl RuleSubject {
    pub fn of(table: &DeTable<'_>) -> Self {
        let scope = SCOPE_KEYS.into_iter().filter_map(|key| Some((key, written(table.get(key)?.get_ref())))).collect();
        let mut audience: Vec<(String, String)> = Vec::new();
        if let Some(labels) = table.get("labels").and_then(|value| value.get_ref().as_table()) {
            let others = labels.iter().filter(|(name, _)| name.get_ref() != "severity");
            audience.extend(others.map(|(name, value)| (name.get_ref().to_string(), written(value.get_ref()))));
        }
        for key in ["receivers", "expires"] {
            audience.extend(table.get(key).map(|value| (format!("[{key}]"), written(value.get_ref()))));
        }
        audience.sort();
        Self { scope, audience }
    }
}

/// A value in one way of writing it; lists in order, since theirs means nothing here.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Array(items) => {
            let mut items: Vec<String> = items.iter().map(|item| written(item.get_ref())).collect();
            items.sort();
            format!("[{}]", items.join(","))
        }
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(at) => at.to_string(),
        DeValue::Table(table) => {
            let mut items: Vec<String> =
                table.iter().map(|(key, value)| format!("{}={}", key.get_ref(), written(value.get_ref()))).collect();
            items.sort();
            format!("{{{}}}", items.join(","))
        }
    }
}

/// Warnings of rules that always fire together: the same scope, conditions that imply each other, and the same audience. Rules for
/// different teams (other labels, other receivers) are meant so.
pub(super) fn twins(rules: &[Rule], subjects: &[RuleSubject]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let always = Logic::always();
    let logic = |rule: &Rule| rule.body.when.as_ref().map_or_else(|| always.clone(), |when| when.logic.clone());
    let known: Vec<(&Rule, &RuleSubject, Logic)> =
        rules.iter().zip(subjects).take(MAX_COMPARED).map(|(rule, subject)| (rule, subject, logic(rule))).collect();
    for (index, (rule, subject, logic)) in known.iter().enumerate() {
        // The first rule on the source words the alert, and no other: there an equal one is never heard.
        let twin = known.iter().take(index).find(|(other, other_subject, other_logic)| {
            other.on == rule.on && other_subject == subject && other_logic.is_equivalent(logic)
        });
        if let Some((twin, ..)) = twin {
            warnings.push(
                Diagnostic::warning(
                    rule.location.file.to_path_buf(),
                    Some(rule.location.span.clone()),
                    format!("`{}` and `{}` always fire together", twin.name, rule.name),
                )
                .help("one message is enough: remove one, or make it a `[[rule.level]]` of the other"),
            );
        }
    }
    warnings
}
