//! The title and the conclusion of an explanation, the status of each notification, and explanations without a case.

use std::collections::BTreeMap;

use super::{ExplainCase, ExplainQuery, ExplainStep, Explainer, Explanation, Mark, status::describe};
use model::{Alert, ChangeKind, ReceiverName, Resource, Timestamp, Token, phrase};
use rules::{Rule, aggregate::Totals};

/// Returns the title of an explanation, such as `BigCliffAhead for ARB, unlock on 16 Mar 2026`.
pub(super) fn about(rule: &Rule, case: &ExplainCase<'_>) -> String {
    let ExplainCase { token, record, change, totals, source, .. } = case;
    let symbol = token.map_or_else(String::new, |token| phrase::name(token.symbol()));
    match (change, record) {
        (Some((change, at)), _) => {
            let resource = change.resource.map_or("", Resource::as_str);
            format!("{} for {symbol}, {resource} {} seen {}", rule.name, change.summary, phrase::instant(*at))
        }
        (None, Some(tracked)) => {
            let when = tracked.record.interval().as_ref().map_or_else(|| tracked.key.to_string(), phrase::when);
            let is_end = tracked.record.unlock().is_some_and(|event| event.is_linear_end());
            let what = if is_end { "end of linear unlocks" } else { tracked.record.resource().as_str() };
            format!("{} for {symbol}, {what} {when}", rule.name)
        }
        (None, None) => match (token, totals, source) {
            (None, _, Some(source)) => format!("{} for {} since {}", rule.name, source.kind, phrase::instant(source.since)),
            (None, Some(totals), _) => format!("{} for {}", rule.name, pool_name(totals)),
            _ => format!("{} for {symbol}", rule.name),
        },
    }
}

/// Returns the name of a group, or "all watched tokens".
pub(super) fn pool_name(totals: &Totals) -> String {
    totals.group.as_ref().map_or_else(|| "all watched tokens".to_owned(), |group| format!("the group {}", phrase::name(group)))
}

impl Explainer<'_> {
    /// Adds the status of each notification. Returns how the last notification to each receiver ended, for the conclusion.
    pub(super) fn statuses(&mut self) -> Option<String> {
        let ExplainQuery { statuses, records, .. } = *self.query;
        let mut last: BTreeMap<Option<&ReceiverName>, (&'static str, String)> = BTreeMap::new();
        for status in statuses {
            let description = describe(status, &records, self.now());
            let mut step = ExplainStep::new(description.mark, description.text);
            step.parts.push(ExplainStep::new(
                Mark::Note,
                format!("{}, created {}: {}", status.kind, phrase::instant(status.at), phrase::one_line(&status.summary)),
            ));
            self.steps.push(step);
            last.insert(status.receiver.as_ref(), description.end);
        }
        let mut verbs: Vec<(&'static str, Vec<String>)> = Vec::new();
        for (verb, part) in last.into_values() {
            match verbs.iter_mut().find(|(known, _)| *known == verb) {
                Some((_, parts)) => parts.push(part),
                None => verbs.push((verb, vec![part])),
            }
        }
        let phrases = verbs.into_iter().map(|(verb, mut parts)| {
            parts.dedup();
            format!("{verb} {}", parts.join(", "))
        });
        let phrases: Vec<String> = phrases.collect();
        (!phrases.is_empty()).then(|| phrases.join("; "))
    }
}

/// Returns the explanation if no change that the rule subscribes to was ever seen.
pub fn unsubscribed(rule: &Rule, token: &Token, resource: Resource, kind: Option<ChangeKind>) -> Explanation {
    let what = match kind {
        None => format!("change of {resource} records"),
        Some(kind) => format!("change `{resource}.{kind}`"),
    };
    nothing(rule, &phrase::name(token.symbol()), &format!("no {what} was ever seen for {}", token.id))
}

/// Returns the explanation if there are changes that the rule subscribes to, but none of them is about the target. `latest` is when the latest
/// of `count` changes was seen.
pub fn other_changes(rule: &Rule, token: &Token, count: usize, latest: Timestamp) -> Explanation {
    let because = format!(
        "none of the latest {} of {} is about it; the latest was seen on {}",
        phrase::count(count, "change"),
        token.id,
        phrase::day(latest)
    );
    nothing(rule, &phrase::name(token.symbol()), &because)
}

/// Returns the explanation if the rule has no subject.
pub fn nothing(rule: &Rule, about: &str, because: &str) -> Explanation {
    Explanation {
        about: format!("{} for {about}", rule.name),
        steps: vec![ExplainStep::new(Mark::No, because)],
        fired: false,
        so: format!("not fired, because {because}"),
    }
}

/// Returns the explanation of an incident. If the rule matches but the alert has another rule's name, that rule sent it.
pub fn of_incident(explanation: Explanation, rule: &Rule, alert: &Alert) -> Explanation {
    if alert.name == rule.name || explanation.so.starts_with("not fired, because") {
        return explanation;
    }
    let so = format!("it was sent as {}: an earlier rule matched first, or this rule did not exist yet", alert.name);
    Explanation { so, ..explanation }
}
