//! What rules say together, and what they say of the tokens that are watched: two rules that always fire together, a rule that no
//! watched token can match, a window longer than the history that is read.

use toml::de::{DeTable, DeValue};

use crate::{
    aggregate::Flow,
    config::Span,
    diagnostic::Diagnostic,
    supply::{Resource, Token},
};

use super::{On, Rule, RuleSet, builtin::days_in_words, imply::Logic};

/// Rules that are compared with each other; of more, the first ones.
const MAX_COMPARED: usize = 1_000;

/// Keys that say what a rule lets in, and how it holds. Two rules that differ in one of them need not fire together.
const SCOPE_KEYS: [&str; 9] =
    ["within", "since", "for", "keep_firing_for", "missing", "tokens", "listed_methods", "allocations", "clear_when"];

/// What a rule is about and who hears of it, as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    scope: Vec<(&'static str, String)>,
    audience: Vec<(String, String)>,
}

impl Subject {
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
pub(super) fn twins(rules: &[Rule], subjects: &[Subject]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let always = Logic::always();
    let logic = |rule: &Rule| rule.body.when.as_ref().map_or_else(|| always.clone(), |when| when.logic.clone());
    let known: Vec<(&Rule, &Subject, Logic)> =
        rules.iter().zip(subjects).take(MAX_COMPARED).map(|(rule, subject)| (rule, subject, logic(rule))).collect();
    for (index, (rule, subject, logic)) in known.iter().enumerate() {
        // The first rule on the source words the alert, and no other: there an equal one is never heard.
        let twin = known.iter().take(index).find(|(other, other_subject, other_logic)| {
            other.on == rule.on && other_subject == subject && other_logic.is_equivalent(logic)
        });
        if let Some((twin, ..)) = twin {
            warnings.push(
                Diagnostic::warning(
                    rule.place.file.to_path_buf(),
                    Some(rule.place.span.clone()),
                    format!("`{}` and `{}` always fire together", twin.name, rule.name),
                )
                .help("one message is enough: remove one, or make it a `[[rule.level]]` of the other"),
            );
        }
    }
    warnings
}

/// What is known of the surroundings in which rules work.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The watched tokens with their groups; none where they are not known yet.
    pub tokens: Option<&'a [Token]>,
    /// Records that are read on a schedule.
    pub asked: &'a [Resource],
    /// How far back burns, buybacks and emission are read.
    pub history: Span,
    /// How far ahead unlocks are read.
    pub horizon: Span,
}

/// Warnings of rules that cannot do what they say, given what is watched and asked for.
#[must_use]
pub fn advise(set: &RuleSet, known: &Known<'_>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for rule in &set.rules {
        let mut warn = |message: String, help: String| {
            let place = (rule.place.file.to_path_buf(), Some(rule.place.span.clone()));
            warnings.push(Diagnostic::warning(place.0, place.1, message).help(help));
        };
        if let Some(tokens) = known.tokens.filter(|tokens| !tokens.is_empty() && rule.on != On::Source)
            && !tokens.iter().any(|token| reaches(rule, token))
        {
            warn(
                format!("no watched token matches `{}`", rule.name),
                match tokens.len() {
                    1 => "one token is watched; see `tokens` of the rule and of `[watch]`".to_owned(),
                    many => format!("{many} tokens are watched; see `tokens` of the rule and of `[watch]`"),
                },
            );
        }
        let wanted = match rule.on {
            On::Record(resource) | On::Change(resource, _) => vec![resource],
            On::Token | On::Portfolio => rule.windows().iter().map(|window| window.flow.resource()).collect(),
            On::Source => Vec::new(),
        };
        let mut unread: Vec<Resource> = wanted.into_iter().filter(|resource| !known.asked.contains(resource)).collect();
        unread.sort();
        unread.dedup();
        for resource in unread {
            warn(
                format!("`{}` waits for {resource} records, which are never asked for", rule.name),
                format!("set {} in `[schedule]`", keys_of(resource)),
            );
        }
        for window in rule.windows() {
            let (limit, key) = match window.flow {
                Flow::Ahead => (known.horizon.delta(), "horizon"),
                _ => (known.history.delta(), "history"),
            };
            if window.span > limit {
                let word = window.flow.as_str();
                let (asked, read) = (days_in_words(days(window.span)), days_in_words(days(limit)));
                warn(
                    format!("`{}` asks `{word}` for {asked}, but only {read} are read", rule.name),
                    format!("make `{key}` in `[source]` at least as long"),
                );
            }
        }
    }
    warnings
}

fn days(span: chrono::TimeDelta) -> f64 {
    crate::supply::days(span)
}

fn reaches(rule: &Rule, token: &Token) -> bool {
    match rule.on {
        On::Portfolio => rule.pools.iter().any(|pool| match pool.group() {
            Some(group) => token.groups.iter().any(|known| known == group),
            None => rule.lets_in(token),
        }),
        _ => rule.lets_in(token),
    }
}

fn keys_of(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "`unlock_events`",
        Resource::Burn => "`burn`",
        Resource::Buyback => "`buyback`",
        Resource::Emission => "`daily_emission` or `weekly_emission`",
        Resource::Allocation => "`allocations`",
        Resource::Funding => "`investors`",
    }
}
