//! The title and headline of an alert: token, value, share of market cap, date, and days until the event.

use std::cmp::Ordering;

use chrono::TimeDelta;
use serde_json::Value;

use super::{MAX_SENTENCE_CHARS, MAX_SUMMARY_CHARS, ShareStyle, is_resolved};
use crate::text;
use model::{
    AlertBody, AllocationChange, AllocationSchedule, Change, ChangeKind, Fact, Notification, NotificationKind, Resolution,
    Resource, Timestamp, config, parse_timestamp, phrase, supply,
};

/// The maximum length of the outcome in a headline.
const MAX_OUTCOME_CHARS: usize = 120;

/// Returns the title of a message whose most urgent notification is `notice`. `several` counts the alerts, if there are several.
pub(super) fn title(notice: &Notification, several: &str, share: ShareStyle, now: Timestamp, max_chars: usize) -> String {
    let body = &notice.body;
    let prefix = match notice.kind {
        NotificationKind::Test => "[Test] ",
        _ if is_resolved(body) => "[Resolved] ",
        NotificationKind::Source => "[Source] ",
        _ if body.labels.get("severity").is_some_and(|severity| severity.eq_ignore_ascii_case("critical")) => "[Critical] ",
        _ => "",
    };
    // Only the headline is cut to length, so that the days until the event, or the reason of the end, always remain.
    let tail = if is_resolved(body) { ending(body) } else { nearness(notice, now).unwrap_or_default() };
    let tail = if tail.is_empty() { tail } else { format!(" · {tail}") };
    let taken = prefix.chars().count() + several.chars().count() + tail.chars().count();
    format!(
        "{prefix}{several}{}{tail}",
        cut_at_clause(&phrase::brief_when(&headline(body, share)), max_chars.saturating_sub(taken).max(20))
    )
}

/// Returns one line of at most `max_chars` characters, sanitized. A longer text is cut at the end of a clause, unless less than half of the
/// line would remain.
pub(super) fn cut_at_clause(text: &str, max_chars: usize) -> String {
    let cut = text::line(text, max_chars);
    let Some(kept) = cut.strip_suffix('…').filter(|_| text.chars().count() > max_chars) else { return cut };
    let ends = ["; ", ", ", " · "].into_iter().filter_map(|separator| kept.rfind(separator));
    match ends.max().and_then(|end| kept.get(..end)).filter(|clause| clause.chars().count() * 2 >= max_chars) {
        Some(clause) => format!("{clause} …"),
        None => cut,
    }
}

/// Returns the outcome of an alert: `moved to 26 Dec 2026, outside the lead time of 7 days`. Empty if the headline already says it.
pub(crate) fn ending(body: &AlertBody) -> String {
    let Some(why) = Resolution::parse(&body.reason) else { return text::line(&body.reason, 60) };
    if why == Resolution::Passed && body.resource == Some(Resource::Unlock) {
        return String::new();
    }
    if let Some(outcome) = body.annotations.get(model::OUTCOME) {
        return text::line(outcome, MAX_OUTCOME_CHARS);
    }
    // A message that an earlier version stored.
    match why {
        Resolution::Passed => "ended",
        Resolution::RescheduledOut => "moved beyond the lead time",
        Resolution::Cleared => "condition no longer true",
        Resolution::Removed => "removed from the schedule",
        Resolution::RuleGone => "rule removed",
        Resolution::Unwatched => "token no longer watched",
        Resolution::Renamed => "token renamed",
    }
    .to_owned()
}

/// Returns why the notification is sent: `due within 7 days`.
pub(super) fn reason_text(body: &AlertBody) -> String {
    let reason = body.reason.as_str();
    if is_resolved(body) {
        let ending = ending(body);
        return if ending.is_empty() { "the date has passed".to_owned() } else { ending };
    }
    match (reason, reason.strip_prefix("lead "), reason.strip_prefix("level ")) {
        ("firing", ..) => "the condition became true".to_owned(),
        (_, Some(lead), _) => match lead.split_once(" before ") {
            Some((lead, day)) => {
                let day = parse_timestamp(day).map_or_else(|| text::line(day, 20), phrase::day);
                format!("{} before {day}, the nominal date", lead_time(lead))
            }
            None => format!("due within {}", lead_time(lead)),
        },
        _ if body.change.as_ref().is_some_and(|change| change.kind.as_str() == reason) => match reason {
            "committed" => "claim announced".to_owned(),
            kind => phrase::words(kind),
        },
        (_, _, Some(level)) => format!("rose to level {}", text::line(level, 20)),
        _ => text::line(reason, 120),
    }
}

/// Formats a lead time as the rule writes it: `7 days` for `7d` and `1w`.
fn lead_time(span: &str) -> String {
    span.parse::<config::Span>().map_or_else(|_| text::line(span, 20), |span| phrase::duration(span.delta()))
}

/// Returns token, value, share of market cap, and date in one line, or the rule's summary if the alert has no record.
pub(super) fn headline(body: &AlertBody, share: ShareStyle) -> String {
    let facts = facts_line(body, share);
    let summary = summary(body);
    match facts {
        Some(facts) => {
            let verb = verb(body).map(|verb| format!(" {verb}")).unwrap_or_default();
            text::line(&format!("{}{verb}: {facts}", token_symbol(body)), MAX_SENTENCE_CHARS)
        }
        None if summary.is_empty() => {
            text::line(&format!("{}: {}", token_symbol(body), body.rule), model::phrase::MAX_LINE_CHARS)
        }
        None => summary,
    }
}

/// Returns what happened to an unlock, in one word, which comes first because phones cut long lines.
fn verb(body: &AlertBody) -> Option<&'static str> {
    let change = body.change.as_ref().filter(|change| change.resource.or(body.resource) == Some(Resource::Unlock))?;
    match change.kind {
        ChangeKind::Rescheduled | ChangeKind::SeriesShifted => move_verb(change),
        ChangeKind::Resized if new_cliff(change).is_some() => Some(ChangeKind::Restructured.as_str()),
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

/// Returns what happened to dates: `prolonged` if only the ends of linear unlocks moved. `None` if they were withdrawn, which the text says.
fn move_verb(change: &Change) -> Option<&'static str> {
    change.to.as_ref()?;
    let linear = |schedule: &Option<AllocationSchedule>| -> Option<(Timestamp, Timestamp)> {
        let schedule = schedule.as_ref().filter(|schedule| schedule.linear.is_some() && schedule.count == Some(0))?;
        schedule.begin.zip(schedule.end)
    };
    let verb_of = |allocation: &AllocationChange| -> Option<&'static str> {
        let ((begin, end), (new_begin, new_end)) = linear(&allocation.before).zip(linear(&allocation.after))?;
        Some(match (new_begin.cmp(&begin), new_end.cmp(&end)) {
            (Ordering::Equal, Ordering::Greater) => "prolonged",
            (Ordering::Equal, Ordering::Less) => "ends earlier",
            (Ordering::Greater, Ordering::Equal) => "starts later",
            (Ordering::Less, Ordering::Equal) => "starts earlier",
            _ => "moved",
        })
    };
    let mut verbs = change.allocations.iter().map(|allocation| verb_of(allocation).unwrap_or("moved"));
    let first = verbs.next().unwrap_or("moved");
    Some(if verbs.all(|other| other == first) { first } else { "moved" })
}

/// Returns the tokens of a single cliff that replaces the linear unlocks of an allocation. The difference of the totals says little about it.
fn new_cliff(change: &Change) -> Option<f64> {
    let [AllocationChange { before: Some(before), after: Some(after), .. }] = change.allocations.as_slice() else { return None };
    let is_replaced = before.linear.is_some() && before.count == Some(0) && after.linear.is_none() && after.count == Some(1);
    after.total.filter(|_| is_replaced && change.kind == ChangeKind::Resized)
}

pub(super) fn summary(body: &AlertBody) -> String {
    body.annotations.get("summary").map(|summary| text::line(summary, MAX_SUMMARY_CHARS)).unwrap_or_default()
}

/// Returns `$33.15M (2.77%) unlocks on 16 Mar 2026`, or `None` without a change, a value, and a date.
fn facts_line(body: &AlertBody, share: ShareStyle) -> Option<String> {
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
        let summary = if change.summary.is_empty() { change.kind.as_str() } else { &change.summary };
        // "moved" and "resized" already imply an unlock.
        let of = change.resource.or(body.resource).filter(|of| *of != Resource::Unlock).map_or("", Resource::as_str);
        let of = if summary.contains(of) { "" } else { of };
        // The value goes before the dates, since phones cut long lines.
        if let Some((whose, dates)) =
            summary.split_once(" moved ").filter(|(_, dates)| verb(body) == Some("moved") && dates.starts_with("from "))
        {
            let first = if size.is_empty() { dates.to_owned() } else { format!("{size} {dates}") };
            return Some(format!("{} · {}", text::line(&first, MAX_SENTENCE_CHARS), text::line(whose, MAX_SENTENCE_CHARS)));
        }
        // A change of allocations states its own amounts, and the record may be only one of them.
        // A text that starts with a word like the verb would repeat it.
        let summary = verb(body).and_then(|verb| summary.strip_prefix(verb)?.strip_prefix(": ")).unwrap_or(summary);
        let has_size = !size.is_empty()
            && change.resource.or(body.resource) != Some(Resource::Allocation)
            && states_size(change, change.resource.or(body.resource))
            && !summary.starts_with(&size);
        let size = if has_size { format!("{size} · ") } else { String::new() };
        return Some(format!("{size}{}", format!("{of} {}", text::line(summary, MAX_SENTENCE_CHARS)).trim()));
    }
    let over = Resolution::parse(&body.reason).filter(|_| is_resolved(body));
    // The title ends with the new date of a rescheduled event.
    let when = body.when.as_deref().filter(|_| over != Some(Resolution::RescheduledOut)).unwrap_or_default();
    if let Some(rates) = &body.rate_change {
        let what = phrase::linear::rate_step(rates.step(), rates.price, over == Some(Resolution::Passed));
        return Some(format!("{what} {when}").trim_end().to_owned());
    }
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
    let parts: Vec<&str> = [size.as_str(), what, when].into_iter().filter(|part| !part.is_empty()).collect();
    (parts.len() > 1).then(|| parts.join(" "))
}

/// Returns whether the record has the size of the change: not if only names, sources, or claims changed.
fn states_size(change: &Change, resource: Option<Resource>) -> bool {
    match change.kind {
        ChangeKind::Renamed | ChangeKind::Committed => change.amount.is_some(),
        ChangeKind::Revised => resource != Some(Resource::Unlock) || matches!(change.to, Some(Fact::Time(_))),
        _ => true,
    }
}

pub(super) fn token_symbol(body: &AlertBody) -> String {
    let symbol = body.token.as_ref().map(|token| if token.symbol.is_empty() { &token.id } else { &token.symbol });
    symbol.map_or_else(|| "Cliffwatch".into(), |symbol| text::line(symbol, 40))
}

/// Returns the value (else the amount) and the share of market cap, each `None` if unknown. For a change, both describe the
/// changed amount at the prices of the record.
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
    if let Some(amount) = body.change.as_ref().and_then(|change| new_cliff(change).or(change.amount)) {
        // The summary of the change states the amount in tokens.
        let factor = tokens.filter(|tokens| *tokens > 0.0).map(|tokens| amount / tokens);
        let scaled = |whole: Option<f64>| whole.zip(factor).map(|(whole, factor)| whole * factor).filter(|part| part.is_finite());
        let sign = body.change.as_ref().map_or("", direction);
        let signed = |size: String| format!("{sign}{size}");
        return (scaled(value).map(phrase::usd).map(signed), scaled(share).map(phrase::percent).map(signed));
    }
    let size = value
        .map(phrase::usd)
        .or_else(|| tokens.map(|amount| phrase::tokens(amount, body.token.as_ref().map(|token| token.symbol.as_str()))));
    (size, share.map(phrase::percent))
}

/// Returns the sign of a changed amount, or an empty string if the change does not resize anything.
fn direction(change: &Change) -> &'static str {
    if !matches!(change.kind, ChangeKind::Resized | ChangeKind::SeriesRescaled) || new_cliff(change).is_some() {
        return "";
    }
    let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount);
    let is_less = match change.ratio {
        Some(ratio) => ratio < 1.0,
        None => amount(&change.from).zip(amount(&change.to)).is_some_and(|(from, to)| to < from),
    };
    if is_less { "−" } else { "+" }
}

/// Returns the time from `now` until the event: `in 7 days`, `now`. `None` if it has passed or has no date.
pub(crate) fn nearness(notice: &Notification, now: Timestamp) -> Option<String> {
    let body = &notice.body;
    let then = body.days_until.filter(|days| days.is_finite() && *days >= 0.0)?;
    if body.change.is_some() {
        return None;
    }
    let days = then - supply::days((now - notice.at).max(TimeDelta::zero()));
    if then > 0.0 && days <= 0.0 {
        // The event has passed, or its month has begun; the notification does not say which.
        return None;
    }
    phrase::time_until(days.max(0.0), phrase::stated_precision(body.when.as_deref().unwrap_or_default())?)
}

/// Returns whether a rule's summary has any word that the headline lacks. A summary that only rewords the headline is not shown.
pub(super) fn adds_words(summary: &str, headline: &str) -> bool {
    const FILLERS: [&str; 8] = ["to", "unlock", "unlocks", "of", "market", "cap", "on", "in"];
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split_whitespace().map(|word| word.trim_matches([':', ',', '.', ';', '(', ')'])).filter(|word| !word.is_empty())
    }
    let known: Vec<&str> = words(headline).chain(FILLERS).collect();
    words(summary).any(|word| !known.contains(&word))
}

#[cfg(test)]
mod tests;
