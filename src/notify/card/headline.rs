//! An alert in one line: token, size, share of the market cap and when, and how far away that is.

use chrono::TimeDelta;
use serde_json::Value;

use super::{ShareStyle, is_resolved};
use crate::text;
use model::{
    AlertBody, Change, ChangeKind, Fact, Notification, NotificationKind, Resolution, Resource, Timestamp, config, format, supply,
};

/// The title of a message of which `notice` is the first; `several` says how many others there are.
pub(super) fn title(notice: &Notification, several: &str, share: ShareStyle, now: Timestamp, max_chars: usize) -> String {
    let body = &notice.body;
    let prefix = match notice.kind {
        NotificationKind::Test => "[Test] ",
        _ if is_resolved(body) => "[Resolved] ",
        NotificationKind::Source => "[Source] ",
        _ if body.labels.get("severity").is_some_and(|severity| severity.eq_ignore_ascii_case("critical")) => "[Critical] ",
        _ => "",
    };
    // The end is what must not be cut: how near it is, or why it ended.
    let tail = if is_resolved(body) { ending(body) } else { nearness(notice, now).unwrap_or_default() };
    let tail = if tail.is_empty() { tail } else { format!(" · {tail}") };
    let taken = prefix.chars().count() + several.chars().count() + tail.chars().count();
    format!("{prefix}{several}{}{tail}", text::line(&headline(body, share), max_chars.saturating_sub(taken).max(20)))
}

/// Why an alert is over, in words: `moved to 26 Dec 2026, outside your 7 days`. Empty where the headline says it.
pub(crate) fn ending(body: &AlertBody) -> String {
    let Some(why) = Resolution::parse(&body.reason) else { return text::line(&body.reason, 60) };
    match why {
        Resolution::Passed if body.resource == Some(Resource::Unlock) => String::new(),
        Resolution::Passed => "over".to_owned(),
        Resolution::RescheduledOut => {
            let Some(when) = &body.when else { return "has no date any more".to_owned() };
            let when = text::line(when, 60);
            let when = when.strip_prefix("on ").or_else(|| when.strip_prefix("in ")).unwrap_or(&when);
            let outside = body.lead.as_deref().map(|lead| format!(", outside your {}", span_words(lead))).unwrap_or_default();
            format!("moved to {when}{outside}")
        }
        Resolution::Cleared => "no longer holds".to_owned(),
        Resolution::Removed => "taken out of the schedule".to_owned(),
        Resolution::RuleGone => "no rule looks at it any more".to_owned(),
        Resolution::Unwatched => "not watched any more".to_owned(),
        Resolution::Renamed => "goes on under another slug".to_owned(),
    }
}

/// Why it is told, in words: `it is within 7 days`.
pub(super) fn reason_words(body: &AlertBody) -> String {
    let reason = body.reason.as_str();
    if is_resolved(body) {
        let ending = ending(body);
        return if ending.is_empty() { "its date has passed".to_owned() } else { ending };
    }
    match (reason, reason.strip_prefix("lead "), reason.strip_prefix("level ")) {
        ("firing", ..) => "its condition holds".to_owned(),
        (_, Some(lead), _) => format!("it is within {}", span_words(lead)),
        (_, _, Some(level)) => format!("it rose to level {}", text::line(level, 20)),
        _ => text::line(reason, 120),
    }
}

/// A length of time of a rule, in words: `7 days` for `7d` and `1w`.
fn span_words(span: &str) -> String {
    let days = span.parse::<config::Span>().map(|span| supply::days(span.delta())).ok().filter(|days| days.fract() == 0.0);
    match days {
        Some(1.0) => "1 day".to_owned(),
        Some(days) => format!("{days} days"),
        None => text::line(span, 20),
    }
}

/// What is told, in one line: token, size, share of the market cap and when; where it is about no record, the rule's summary.
pub(super) fn headline(body: &AlertBody, share: ShareStyle) -> String {
    let facts = facts_in_a_line(body, share);
    let summary = summary(body);
    match facts {
        Some(facts) => {
            let verb = verb(body).map(|verb| format!(" {verb}")).unwrap_or_default();
            text::line(&format!("{}{verb}: {facts}", token_symbol(body)), text::MAX_LINE_CHARS)
        }
        None if summary.is_empty() => text::line(&format!("{}: {}", token_symbol(body), body.rule), text::MAX_LINE_CHARS),
        None => summary,
    }
}

/// What happened to an unlock, in a word that a phone shows before it cuts the line.
fn verb(body: &AlertBody) -> Option<&'static str> {
    let change = body.change.as_ref().filter(|change| change.resource.or(body.resource) == Some(Resource::Unlock))?;
    match change.kind {
        ChangeKind::Rescheduled | ChangeKind::SeriesShifted => Some("moved"),
        ChangeKind::Resized | ChangeKind::SeriesRescaled => Some("resized"),
        ChangeKind::Added
        | ChangeKind::Removed
        | ChangeKind::Split
        | ChangeKind::Merged
        | ChangeKind::Reallocated
        | ChangeKind::Restructured
        | ChangeKind::Rewritten => Some(change.kind.as_str()),
        ChangeKind::Renamed | ChangeKind::Committed | ChangeKind::Revised | ChangeKind::SupplyChanged => None,
    }
}

pub(super) fn summary(body: &AlertBody) -> String {
    body.annotations.get("summary").map(|summary| text::line(summary, text::MAX_LINE_CHARS)).unwrap_or_default()
}

/// `$33.15M (2.77%) unlocks on 16 Mar 2026`; None where there is neither a change nor a size nor a date.
fn facts_in_a_line(body: &AlertBody, share: ShareStyle) -> Option<String> {
    let record = body.record.as_ref().unwrap_or(&Value::Null);
    let (size, percent) = size_of(body, record);
    let percent = percent.map(|percent| match share {
        ShareStyle::Short => percent,
        ShareStyle::Long => format!("{percent} of market cap"),
    });
    let size = match (size, percent) {
        (Some(size), Some(percent)) => format!("{size} ({percent})"),
        (Some(size), None) => size,
        (None, Some(percent)) => percent,
        (None, None) => String::new(),
    };
    if let Some(change) = &body.change {
        let told = if change.summary.is_empty() { change.kind.as_str() } else { &change.summary };
        // What moved or was resized is an unlock anyway: the sentence says whose.
        let of = change.resource.or(body.resource).filter(|of| *of != Resource::Unlock).map_or("", Resource::as_str);
        let of = if told.contains(of) { "" } else { of };
        // The size first, then the dates: a phone shows the beginning of a line, and `moved` stands before both.
        if let Some((whose, dates)) =
            told.split_once(" moved ").filter(|(_, dates)| verb(body) == Some("moved") && dates.starts_with("from "))
        {
            let first = if size.is_empty() { dates.to_owned() } else { format!("{size} {dates}") };
            return Some(format!("{} · {}", text::line(&first, text::MAX_LINE_CHARS), text::line(whose, text::MAX_LINE_CHARS)));
        }
        // Of allocations the sentence says how much; the record may be but one of them.
        let has_size = !size.is_empty() && change.resource.or(body.resource) != Some(Resource::Allocation);
        let size = if has_size { format!("{size} · ") } else { String::new() };
        return Some(format!("{size}{}", format!("{of} {}", text::line(told, text::MAX_LINE_CHARS)).trim()));
    }
    let over = Resolution::parse(&body.reason).filter(|_| is_resolved(body));
    let what = match body.resource {
        Some(Resource::Unlock) => match over {
            Some(Resolution::Passed) => "unlocked",
            Some(Resolution::RescheduledOut) => "unlock",
            _ => "unlocks",
        },
        Some(Resource::Burn) => "burned",
        Some(Resource::Buyback) => "bought back",
        Some(Resource::Emission) => "emitted",
        Some(Resource::Allocation) => "allocated",
        Some(Resource::Funding) => "raised",
        None => return None,
    };
    // Where it went, if it moved, stands behind.
    let when = body.when.as_deref().filter(|_| over != Some(Resolution::RescheduledOut)).unwrap_or_default();
    let parts: Vec<&str> = [size.as_str(), what, when].into_iter().filter(|part| !part.is_empty()).collect();
    (parts.len() > 1).then(|| parts.join(" "))
}

pub(super) fn token_symbol(body: &AlertBody) -> String {
    let symbol = body.token.as_ref().map(|token| if token.symbol.is_empty() { &token.id } else { &token.symbol });
    symbol.map_or_else(|| "Cliffwatch".into(), |symbol| text::line(symbol, 40))
}

/// Value (else amount) and share of the market cap, as far as the record has them. For a change they are those of what changed, at the
/// prices of the record.
fn size_of(body: &AlertBody, record: &Value) -> (Option<String>, Option<String>) {
    let resource = body.resource;
    let number = |pointers: &[&str]| pointers.iter().find_map(|pointer| record.pointer(pointer)?.as_f64());
    let (value, tokens): (&[&str], &[&str]) = match resource {
        Some(Resource::Unlock) => (
            &["/cliffUnlocks/cliffValue", "/cliffUnlocks/totalCliffValue", "/linearUnlocks/linearValue"],
            &["/cliffUnlocks/cliffAmount", "/cliffUnlocks/totalCliffAmount", "/linearUnlocks/linearAmount"],
        ),
        Some(Resource::Burn) => (&["/value"], &["/amount"]),
        Some(Resource::Buyback) => (&["/value"], &["/tokenAmount"]),
        Some(Resource::Emission) => (&["/unlockValue", "/value"], &["/unlockAmount", "/amount"]),
        Some(Resource::Funding) => (&["/totalAmountRaisedinThatRound"], &[]),
        Some(Resource::Allocation) => (&[], &["/allocationAmount"]),
        None => (&[], &[]),
    };
    let (value, tokens, share) = (number(value), number(tokens), number(&["/cliffUnlocks/valueToMarketCap"]));
    if let Some(amount) = body.change.as_ref().and_then(|change| change.amount) {
        // The sentence has the amount in tokens.
        let factor = tokens.filter(|tokens| *tokens > 0.0).map(|tokens| amount / tokens);
        let of_it = |whole: Option<f64>| whole.zip(factor).map(|(whole, factor)| whole * factor).filter(|part| part.is_finite());
        let sign = body.change.as_ref().map_or("", direction);
        let signed = |size: String| format!("{sign}{size}");
        return (of_it(value).map(format::usd).map(signed), of_it(share).map(format::percent).map(signed));
    }
    let size = value.map(format::usd).or_else(|| tokens.map(format::tokens));
    (size, share.map(format::percent))
}

/// The sign of what was added or taken; of a change that is none of an amount it is empty: what is told is all that it concerns.
fn direction(change: &Change) -> &'static str {
    if !matches!(change.kind, ChangeKind::Resized | ChangeKind::SeriesRescaled) {
        return "";
    }
    let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount);
    let is_less = match change.ratio {
        Some(ratio) => ratio < 1.0,
        None => amount(&change.from).zip(amount(&change.to)).is_some_and(|(from, to)| to < from),
    };
    if is_less { "−" } else { "+" }
}

/// How far away it is from `now`: `in 7 days`, `now`; nothing for what happened, has passed meanwhile, or has no date.
pub(crate) fn nearness(notice: &Notification, now: Timestamp) -> Option<String> {
    let body = &notice.body;
    let then = body.days_until.filter(|days| days.is_finite() && *days >= 0.0)?;
    if body.change.is_some() {
        return None;
    }
    let days = then - supply::days((now - notice.at).max(TimeDelta::zero()));
    if then > 0.0 && days <= 0.0 {
        // Whether it is over or, as a month, just on, is not known here.
        return None;
    }
    format::nearness(days.max(0.0), format::precision_told(body.when.as_deref().unwrap_or_default()))
}

/// Whether a rule's summary says anything that the headline does not: another wording of the same facts is not worth a second line.
pub(super) fn says_more(summary: &str, headline: &str) -> bool {
    const FILLERS: [&str; 8] = ["to", "unlock", "unlocks", "of", "market", "cap", "on", "in"];
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split_whitespace().map(|word| word.trim_matches([':', ',', '.', ';', '(', ')'])).filter(|word| !word.is_empty())
    }
    let known: Vec<&str> = words(headline).chain(FILLERS).collect();
    words(summary).any(|word| !known.contains(&word))
}

#[cfg(test)]
mod tests;
