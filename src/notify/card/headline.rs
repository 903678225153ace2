//! An alert in one line: token, size, share of the market cap and when, and how far away that is.

use chrono::TimeDelta;
use serde_json::Value;

use super::{ShareStyle, is_resolved};
use crate::text;
use model::{AlertBody, Notification, NotificationKind, Resource, Timestamp, format, supply};

/// The title of a message that tells `count` alerts, of which `notice` is the first.
pub(super) fn title(notice: &Notification, count: usize, share: ShareStyle, now: Timestamp, max_chars: usize) -> String {
    let body = &notice.body;
    let prefix = match notice.kind {
        NotificationKind::Test => "[TEST] ",
        _ if is_resolved(body) => "[RESOLVED] ",
        NotificationKind::Source => "[SOURCE] ",
        _ if body.labels.get("severity").is_some_and(|severity| severity.eq_ignore_ascii_case("critical")) => "[CRITICAL] ",
        _ => "",
    };
    let several = if count > 1 { format!("{count} alerts: ") } else { String::new() };
    // The end is what must not be cut: how near it is, or why it ended.
    let tail = match is_resolved(body) {
        true if body.reason.is_empty() => String::new(),
        true => format!(" · {}", text::line(&body.reason, 60)),
        false => nearness(notice, now).map(|near| format!(" · {near}")).unwrap_or_default(),
    };
    let taken = prefix.chars().count() + several.chars().count() + tail.chars().count();
    format!("{prefix}{several}{}{tail}", text::line(&headline(body, share), max_chars.saturating_sub(taken).max(20)))
}

/// What is told, in one line: token, size, share of the market cap and when; where it is about no record, the rule's summary.
pub(super) fn headline(body: &AlertBody, share: ShareStyle) -> String {
    let facts = facts_in_a_line(body, share);
    let summary = summary(body);
    match facts {
        Some(facts) => text::line(&format!("{}: {facts}", token_symbol(body)), text::MAX_LINE_CHARS),
        None if summary.is_empty() => text::line(&format!("{}: {}", token_symbol(body), body.rule), text::MAX_LINE_CHARS),
        None => summary,
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
        // The size first: a phone shows the beginning of a line.
        let size = if size.is_empty() { size } else { format!("{size} · ") };
        return Some(format!("{size}{}", format!("{of} {}", text::line(told, text::MAX_LINE_CHARS)).trim()));
    }
    let what = match body.resource {
        Some(Resource::Unlock) => "unlocks",
        Some(Resource::Burn) => "burned",
        Some(Resource::Buyback) => "bought back",
        Some(Resource::Emission) => "emitted",
        Some(Resource::Allocation) => "allocated",
        Some(Resource::Funding) => "raised",
        None => return None,
    };
    let when = body.when.as_deref().unwrap_or_default();
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
        return (of_it(value).map(format::usd), of_it(share).map(format::percent));
    }
    let size = value.map(format::usd).or_else(|| tokens.map(format::tokens));
    (size, share.map(format::percent))
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
    let days = days.max(0.0);
    let hours = days * 24.0;
    // A date that is no more exact than a day says no hours.
    let is_instant = body.when.as_deref().is_some_and(|when| when.contains(':'));
    Some(if days == 0.0 {
        "now".into()
    } else if hours < 1.0 && is_instant {
        "within the hour".into()
    } else if hours < 36.0 && is_instant {
        format!("in {hours:.0} h")
    } else if days < 1.0 {
        "in less than a day".into()
    } else {
        format!("in {days:.0} {}", if days.round() <= 1.0 { "day" } else { "days" })
    })
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
