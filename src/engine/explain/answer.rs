//! The head and the end of an explanation: what it is about, what became of each message, and what is said where there is nothing.

use std::collections::BTreeMap;

use super::{ExplainCase, ExplainQuery, ExplainStep, Explainer, Explanation, Mark, status::told, words::one_line};
use model::{Alert, ChangeKind, ReceiverName, Resource, Token, format};
use rules::{Rule, aggregate::Totals};

/// What an explanation is about: `BigCliffAhead for ARB, unlock on 16 Mar 2026`.
pub(super) fn about(rule: &Rule, case: &ExplainCase<'_>) -> String {
    let ExplainCase { token, record, change, totals, source, .. } = case;
    let symbol = token.map_or_else(String::new, |token| format::name(token.symbol()));
    match (change, record) {
        (Some((change, at)), _) => {
            let resource = change.resource.map_or("", Resource::as_str);
            format!("{} for {symbol}, {resource} {} seen {}", rule.name, change.summary, format::instant(*at))
        }
        (None, Some(tracked)) => {
            let when = tracked.record.interval().as_ref().map(format::when).unwrap_or_else(|| tracked.key.to_string());
            format!("{} for {symbol}, {} {when}", rule.name, tracked.record.resource())
        }
        (None, None) => match (token, totals, source) {
            (None, _, Some(source)) => format!("{} for {} since {}", rule.name, source.kind, format::instant(source.since)),
            (None, Some(totals), _) => format!("{} for {}", rule.name, pool_name(totals)),
            _ => format!("{} for {symbol}", rule.name),
        },
    }
}

/// A group, or all watched tokens.
pub(super) fn pool_name(totals: &Totals) -> String {
    totals.group.as_ref().map_or_else(|| "all watched tokens".to_owned(), |group| format!("the group {}", format::name(group)))
}

impl Explainer<'_> {
    /// What became of each message. Gives the words for the end: how the last message to each receiver ended.
    pub(super) fn statuses(&mut self) -> Option<String> {
        let ExplainQuery { statuses, records, .. } = *self.query;
        let mut last: BTreeMap<Option<&ReceiverName>, (&'static str, String)> = BTreeMap::new();
        for status in statuses {
            let in_words = told(status, &records, self.now());
            let mut step = ExplainStep::new(in_words.mark, in_words.text);
            step.parts.push(ExplainStep::new(
                Mark::Note,
                format!("{}, decided {}: {}", status.kind, format::instant(status.at), one_line(&status.summary)),
            ));
            self.steps.push(step);
            last.insert(status.receiver.as_ref(), in_words.end);
        }
        let mut verbs: Vec<(&'static str, Vec<String>)> = Vec::new();
        for (verb, part) in last.into_values() {
            match verbs.iter_mut().find(|(known, _)| *known == verb) {
                Some((_, parts)) => parts.push(part),
                None => verbs.push((verb, vec![part])),
            }
        }
        let words = verbs.into_iter().map(|(verb, mut parts)| {
            parts.dedup();
            format!("{verb} {}", parts.join(", "))
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The explanation where no change was ever seen that the rule could hear of.
pub fn unheard(rule: &Rule, token: &Token, resource: Resource, kind: Option<ChangeKind>) -> Explanation {
    let what = match kind {
        None => format!("change of {resource} records"),
        Some(kind) => format!("change `{resource}.{kind}`"),
    };
    nothing(rule, &format::name(token.symbol()), &format!("no {what} was ever seen for {}", token.id))
}

/// The explanation where there is nothing that the rule could look at.
pub fn nothing(rule: &Rule, about: &str, because: &str) -> Explanation {
    Explanation {
        about: format!("{} for {about}", rule.name),
        steps: vec![ExplainStep::new(Mark::No, because)],
        fired: false,
        so: format!("not fired, because {because}"),
    }
}

/// The explanation of an incident: where all holds and its alert bears another rule's name, that rule told it.
pub fn of_incident(explanation: Explanation, rule: &Rule, alert: &Alert) -> Explanation {
    if alert.name == rule.name || explanation.so.starts_with("not fired, because") {
        return explanation;
    }
    let so = format!("it was told as {}: another rule stands before this one, or this one was not there then", alert.name);
    Explanation { so, ..explanation }
}
