//! From notices to a mail: subject, a text part that is complete on its own, and HTML for those who like it. Pure.
//!
//! Every text of the source goes through [`super::text`] before it is placed, and through the template's escaping on its way into
//! HTML. What the mail says is decided once, in [`Card`]; text and HTML are two renderings of the same cards.

use std::sync::LazyLock;

use chrono::TimeDelta;
use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::{retry::describe, text};
use crate::{
    alert::{AlertBody, Notice, NoticeKind},
    change::{AllocationChange, Change, Fact, FieldChange, ScheduleBrief},
    format,
    supply::{self, Resource, Timestamp},
};

/// Longest subject, characters.
pub const MAX_SUBJECT_CHARS: usize = 200;

/// Most alerts shown in full in one mail; the rest is counted.
const MAX_CARDS: usize = 20;

/// Most rows of a table.
const MAX_ROWS: usize = 12;

/// How long after the decision a mail counts as late.
const LATE: TimeDelta = TimeDelta::minutes(30);

/// Steps that a template may take.
const TEMPLATE_FUEL: u64 = 500_000;

/// A mail without its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// One line, at most [`MAX_SUBJECT_CHARS`] characters.
    pub subject: String,
    /// Complete on its own.
    pub text: String,
    /// None where the template failed: then the text stands alone.
    pub html: Option<String>,
}

/// One alert as a mail shows it. All texts are plain and harmless but for the escaping of the place they go to.
#[derive(Debug, Serialize)]
struct Card {
    /// `Critical`, `Resolved: passed`, `Reminder`, …
    badge: String,
    /// Colour of the badge: `critical`, `warning`, `info`, `good`.
    tone: &'static str,
    /// The token, or `Cliffwatch` for its own affairs.
    token: String,
    /// What is told, in one line.
    headline: String,
    /// The annotation `description`.
    description: String,
    /// Facts: name and value.
    facts: Vec<(&'static str, String)>,
    /// What changed: what, before, after.
    changes: Vec<(String, String, String)>,
    /// Who gets how much: name, amount, value.
    shares: Vec<(String, String, String)>,
    /// Rows of `changes` and `shares` that found no room.
    more: usize,
    /// The annotation `runbook_url`, if it is an address of the web.
    runbook: Option<String>,
    /// Where it comes from and why it is told.
    origin: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct Page<'a> {
    subject: &'a str,
    preview: &'a str,
    cards: &'a [Card],
    left_out: usize,
    external_url: Option<String>,
    receiver: String,
}

/// Writes the mail that tells `notices` to `receiver` at `now`: one that was held up says so, and counts the days from today. None
/// where there is nothing to tell.
#[must_use]
pub fn compose(notices: &[Notice], receiver: &str, external_url: Option<&str>, now: Timestamp) -> Option<Mail> {
    let first = notices.first()?;
    let cards: Vec<Card> = notices.iter().take(MAX_CARDS).map(|notice| card(notice, now)).collect();
    let left_out = notices.len() - cards.len();
    let subject = subject(first, notices.len(), now);
    let external_url = external_url.and_then(web_address);
    let text = plain(&cards, left_out, external_url.as_deref(), receiver);
    let page = Page {
        subject: &subject,
        preview: cards.first().map_or("", |card| &card.headline),
        cards: &cards,
        left_out,
        external_url,
        receiver: text::line(receiver, text::MAX_LINE_CHARS),
    };
    let html = render(&page);
    Some(Mail { subject, text, html })
}

/// The HTML part.
fn render(page: &Page<'_>) -> Option<String> {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_fuel(Some(TEMPLATE_FUEL));
        environment
    });
    match TEMPLATES.render_named_str("mail.html", include_str!("mail.html"), Serde(page)) {
        Ok(html) => Some(html),
        Err(error) => {
            tracing::error!(error = %error, "the HTML of a mail could not be made; its text goes out alone");
            None
        }
    }
}

/// The subject: what is told first, then how far away it is.
fn subject(notice: &Notice, count: usize, now: Timestamp) -> String {
    let body = &notice.body;
    let prefix = match notice.kind {
        NoticeKind::Test => "[TEST] ",
        _ if is_resolved(body) => "[RESOLVED] ",
        NoticeKind::Source => "[SOURCE] ",
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
    let room = MAX_SUBJECT_CHARS - prefix.chars().count() - several.chars().count() - tail.chars().count();
    format!("{prefix}{several}{}{tail}", text::line(&headline(body), room))
}

/// What is told, in one line: the rule's own summary, else the facts.
fn headline(body: &AlertBody) -> String {
    let summary = body.annotations.get("summary").map(|summary| text::line(summary, text::MAX_LINE_CHARS)).unwrap_or_default();
    if !summary.is_empty() {
        return summary;
    }
    let token = token_symbol(body);
    if let Some(change) = &body.change {
        let told = if change.summary.is_empty() { change.kind.as_str() } else { &change.summary };
        let of = change.resource.or(body.resource).map_or("", Resource::as_str);
        return text::line(&format!("{token}: {of} {told}"), text::MAX_LINE_CHARS);
    }
    let record = body.record.as_ref().unwrap_or(&Value::Null);
    let (size, share) = size_of(body.resource, record);
    let size = match (size, share) {
        (Some(size), Some(share)) => format!("{size} ({share})"),
        (Some(size), None) => size,
        (None, Some(share)) => share,
        (None, None) => String::new(),
    };
    let what = match body.resource {
        Some(Resource::Unlock) => "unlocks",
        Some(Resource::Burn) => "burned",
        Some(Resource::Buyback) => "bought back",
        Some(Resource::Emission) => "emitted",
        Some(Resource::Allocation) => "allocated",
        Some(Resource::Funding) => "raised",
        None => "",
    };
    let facts: Vec<&str> =
        [size.as_str(), what, body.when.as_deref().unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    let facts = if facts.is_empty() { body.rule.clone() } else { facts.join(" ") };
    text::line(&format!("{token}: {facts}"), text::MAX_LINE_CHARS)
}

fn token_symbol(body: &AlertBody) -> String {
    let symbol = body.token.as_ref().map(|token| if token.symbol.is_empty() { &token.id } else { &token.symbol });
    symbol.map_or_else(|| "Cliffwatch".into(), |symbol| text::line(symbol, 40))
}

/// Value (else amount) and share of the market cap, as far as the record has them.
fn size_of(resource: Option<Resource>, record: &Value) -> (Option<String>, Option<String>) {
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
    let size =
        number(value).map(format::usd).or_else(|| number(tokens).map(|tokens| format!("{} tokens", format::amount(tokens))));
    (size, number(&["/cliffUnlocks/valueToMarketCap"]).map(format::percent))
}

/// How far away it is from `now`: `in 7 days`, `now`; nothing for what happened, has passed meanwhile, or has no date.
fn nearness(notice: &Notice, now: Timestamp) -> Option<String> {
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

fn is_resolved(body: &AlertBody) -> bool {
    body.status == "resolved"
}

/// What a mail shows of one notice.
fn card(notice: &Notice, now: Timestamp) -> Card {
    let body = &notice.body;
    let severity = body.labels.get("severity").map(|severity| text::line(severity, 40)).unwrap_or_default();
    let tone = match severity.to_ascii_lowercase().as_str() {
        _ if is_resolved(body) => "good",
        "critical" | "page" | "error" => "critical",
        "warning" => "warning",
        _ => "info",
    };
    let reason = text::line(&body.reason, 80);
    let badge = match notice.kind {
        _ if is_resolved(body) && reason.is_empty() => "Resolved".to_owned(),
        _ if is_resolved(body) => format!("Resolved: {reason}"),
        NoticeKind::Test => "Test".into(),
        NoticeKind::Reminder => "Reminder".into(),
        NoticeKind::Digest => "Digest".into(),
        _ if severity.is_empty() => "Alert".into(),
        _ => capitalized(&severity),
    };
    let record = body.record.as_ref().unwrap_or(&Value::Null);
    let (mut shares, total_shares) = shares(record);
    let mut changes = body.change.as_ref().map(change_rows).unwrap_or_default();
    let more = total_shares - shares.len() + changes.len().saturating_sub(MAX_ROWS);
    changes.truncate(MAX_ROWS);
    shares.truncate(MAX_ROWS);
    let annotation = |name: &str| body.annotations.get(name).map(String::as_str).unwrap_or_default();
    Card {
        badge,
        tone,
        token: match &body.token {
            Some(token) if token.name.is_empty() || token.name == token.symbol => token_symbol(body),
            Some(token) => format!("{} · {}", text::line(&token.name, 80), token_symbol(body)),
            None => "Cliffwatch".into(),
        },
        headline: headline(body),
        description: text::paragraph(annotation("description")),
        facts: facts(notice, record, now),
        changes,
        shares,
        more,
        runbook: web_address(annotation("runbook_url")),
        origin: origin(notice, now),
    }
}

/// The facts of the record, most telling first.
fn facts(notice: &Notice, record: &Value, now: Timestamp) -> Vec<(&'static str, String)> {
    let body = &notice.body;
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    if let Some(when) = &body.when {
        let near = if is_resolved(body) { None } else { nearness(notice, now) };
        let when = text::line(when, 80);
        let when = when.strip_prefix("on ").map_or(when.clone(), str::to_owned);
        let when = capitalized(&when);
        facts.push(("Date", near.map_or(when.clone(), |near| format!("{when} ({near})"))));
    }
    for (label, pointers, unit) in FACTS {
        let found = pointers.iter().find_map(|pointer| unit.show(record.pointer(pointer)?));
        if let Some(value) = found {
            facts.push((label, value));
        }
    }
    facts
}

/// How a field of a record is shown.
#[derive(Clone, Copy)]
enum Unit {
    Usd,
    Tokens,
    Percent,
    Text,
    Texts,
}

impl Unit {
    fn show(self, value: &Value) -> Option<String> {
        let shown = match self {
            Unit::Usd => format::usd(finite(value)?),
            Unit::Tokens => format!("{} tokens", format::amount(finite(value)?)),
            Unit::Percent => format::percent(finite(value)?),
            Unit::Text => text::line(value.as_str()?, text::MAX_LINE_CHARS),
            Unit::Texts => {
                let texts: Vec<String> =
                    value.as_array()?.iter().filter_map(Value::as_str).take(5).map(|each| text::line(each, 80)).collect();
                texts.join(", ")
            }
        };
        (!shown.is_empty()).then_some(shown)
    }
}

fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// What is shown of a record: label, where it is (the first that is there), unit. Each resource has some of them.
const FACTS: &[(&str, &[&str], Unit)] = &[
    (
        "Amount",
        &[
            "/cliffUnlocks/cliffAmount",
            "/cliffUnlocks/totalCliffAmount",
            "/tokenAmount",
            "/unlockAmount",
            "/allocationAmount",
            "/amount",
        ],
        Unit::Tokens,
    ),
    ("Value", &["/cliffUnlocks/cliffValue", "/cliffUnlocks/totalCliffValue", "/unlockValue", "/value"], Unit::Usd),
    ("Of market cap", &["/cliffUnlocks/valueToMarketCap"], Unit::Percent),
    ("Begins to unlock", &["/linearUnlocks/linearAmount"], Unit::Tokens),
    ("Worth", &["/linearUnlocks/linearValue"], Unit::Usd),
    ("A day", &["/linearUnlocks/dailyAmount"], Unit::Tokens),
    ("Raised", &["/totalAmountRaisedinThatRound", "/amountRaised"], Unit::Usd),
    ("Valuation", &["/valuation"], Unit::Usd),
    (
        "Price of a token",
        &[
            "/cliffUnlocks/allocationBreakdown/0/referencePrice",
            "/cliffUnlocks/referencePrice",
            "/linearUnlocks/allocationBreakdown/0/referencePrice",
            "/referencePrice",
            "/pricePerToken",
        ],
        Unit::Usd,
    ),
    ("Round", &["/roundName"], Unit::Text),
    ("Investor", &["/investorName"], Unit::Text),
    ("Event", &["/burnEventLabel", "/buybackEventLabel"], Unit::Text),
    ("Type", &["/burnType", "/buybackType", "/allocationType"], Unit::Text),
    ("Burned by", &["/metadata/burners"], Unit::Texts),
    ("Reason", &["/metadata/burnReasons"], Unit::Texts),
    ("Spent in", &["/spentUnit"], Unit::Text),
    ("Buyer", &["/buyerAddress"], Unit::Text),
    ("Target", &["/targetAddress"], Unit::Text),
    ("Allocation", &["/allocationName"], Unit::Text),
    ("Category", &["/standardAllocationName"], Unit::Text),
    ("Unlocked", &["/allocationUnlockedAmount"], Unit::Tokens),
    ("Locked", &["/allocationLockedAmount"], Unit::Tokens),
    ("Share of supply", &["/trackedAllocationPercentage"], Unit::Percent),
];

/// Who gets how much, the largest first, and how many there are.
fn shares(record: &Value) -> (Vec<(String, String, String)>, usize) {
    let lists = [
        ("/cliffUnlocks/allocationBreakdown", "cliffAmount", "cliffValue", ""),
        ("/linearUnlocks/allocationBreakdown", "linearAmount", "linearValue", " (linear)"),
        ("/allocations", "unlockAmount", "unlockValue", ""),
    ];
    let mut all = Vec::new();
    for (list, amount, value, suffix) in lists {
        for item in record.pointer(list).and_then(Value::as_array).into_iter().flatten() {
            let number = |field: &str| item.get(field).and_then(finite);
            let name = item.get("allocationName").or_else(|| item.get("standardAllocationName")).and_then(Value::as_str);
            all.push((number(amount).unwrap_or_default(), name.unwrap_or("unnamed"), number(amount), number(value), suffix));
        }
    }
    let total = all.len();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let row = |(_, name, amount, value, suffix): (f64, &str, Option<f64>, Option<f64>, &str)| {
        let name = format!("{}{suffix}", text::line(name, 80));
        (name, amount.map(format::amount).unwrap_or_default(), value.map(format::usd).unwrap_or_default())
    };
    (all.into_iter().take(MAX_ROWS).map(row).collect(), total)
}

/// Before and after, as rows.
fn change_rows(change: &Change) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    if change.from.is_some() || change.to.is_some() {
        let what = match (&change.from, &change.to) {
            (Some(Fact::Time(_)), _) | (_, Some(Fact::Time(_))) => "Date",
            (Some(Fact::Amount(_)), _) | (_, Some(Fact::Amount(_))) => "Amount",
            _ => "Name",
        };
        let by = match (change.shift_days_min.zip(change.shift_days_max), change.shift_days, change.ratio) {
            (Some((least, most)), ..) => format!(" ({})", format::shifts(least, most)),
            (None, Some(days), _) => format!(" ({})", format::shift(days)),
            (None, None, Some(ratio)) if ratio.is_finite() => format!(" ({})", format::ratio(ratio)),
            _ => String::new(),
        };
        rows.push((what.to_owned(), fact(change.from.as_ref()), format!("{}{by}", fact(change.to.as_ref()))));
    }
    for AllocationChange { name, from, to, shift_days, .. } in &change.allocations {
        let by = shift_days.map(|days| format!(" ({})", format::shift(days))).unwrap_or_default();
        rows.push((text::line(name, 80), fact(from.as_ref()), format!("{}{by}", fact(to.as_ref()))));
    }
    for FieldChange { field, from, to } in &change.fields {
        rows.push((text::line(field, 80), json(from), json(to)));
    }
    if let (Some(before), Some(after)) = (&change.before, &change.after) {
        let mut row = |what: &str, show: fn(&ScheduleBrief) -> String| rows.push((what.to_owned(), show(before), show(after)));
        row("Total", |brief| format::amount(brief.total));
        row("Events", |brief| brief.events.to_string());
        row("Next", |brief| {
            brief.next.first().map_or("none".into(), |(at, amount)| format!("{}, {}", format::day(*at), format::amount(*amount)))
        });
        row("End", |brief| brief.end.map_or("none".into(), format::day));
    }
    rows
}

fn fact(fact: Option<&Fact>) -> String {
    match fact {
        None => "–".into(),
        Some(Fact::Amount(amount)) => format::amount(*amount),
        Some(Fact::Time(at)) => moment(*at),
        Some(Fact::Text(name)) => text::line(name, 80),
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        Value::String(value) => text::line(value, 120),
        other => text::line(&other.to_string(), 120),
    }
}

/// An instant; its hour is said where it has one.
fn moment(at: Timestamp) -> String {
    if at.timestamp().rem_euclid(86_400) == 0 { format::day(at) } else { format::instant(at) }
}

/// Where it comes from and why it is told.
fn origin(notice: &Notice, now: Timestamp) -> Vec<(&'static str, String)> {
    let body = &notice.body;
    let source = &body.source;
    let mut rows = vec![("Rule", text::line(&body.rule, 120))];
    if !body.reason.is_empty() {
        rows.push(("Told because", text::line(&body.reason, 120)));
    }
    let labels: Vec<String> = body
        .labels
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "alertname" | "token"))
        .take(10)
        .map(|(name, value)| format!("{}={}", text::line(name, 40), text::line(value, 80)))
        .collect();
    if !labels.is_empty() {
        rows.push(("Labels", labels.join(", ")));
    }
    rows.push(("Since", format::instant(body.starts_at)));
    if let Some(end) = body.ends_at {
        rows.push(("Ended", format::instant(end)));
    }
    if let Some(origin) = &source.data_source {
        rows.push(("Data source", text::line(origin, 120)));
    }
    if let Some(method) = &source.listed_method {
        rows.push(("Listed as", text::line(method, 40)));
    }
    if let Some(at) = source.latest_update_date {
        rows.push(("Source updated", format::instant(at)));
    }
    if let Some(at) = source.polled_at {
        rows.push(("Polled", format::instant(at)));
    }
    rows.push(("Decided", format::instant(notice.at)));
    let late = now - notice.at;
    if late >= LATE {
        rows.push(("Sent", format!("{}, {} late", format::instant(now), describe(late))));
    }
    rows.push(("Alert", text::line(notice.alert.as_str(), 80)));
    rows
}

/// The text part.
fn plain(cards: &[Card], left_out: usize, external_url: Option<&str>, receiver: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (at, card) in cards.iter().enumerate() {
        if at > 0 {
            lines.extend([String::new(), "----------------------------------------".into(), String::new()]);
        }
        lines.push(format!("[{}] {}", card.badge, card.headline));
        lines.push(card.token.clone());
        if !card.description.is_empty() {
            // Set in, so that no text from outside passes for a heading or a signature of ours.
            lines.push(String::new());
            lines.extend(card.description.lines().map(|line| format!("  {line}")));
        }
        section(&mut lines, "What changed", card.changes.iter().map(|(what, from, to)| format!("{what}: {from} -> {to}")));
        section(&mut lines, "", card.facts.iter().map(|(name, value)| format!("{name}: {value}")));
        section(&mut lines, "Who gets it", card.shares.iter().map(|(name, amount, value)| share_line(name, amount, value)));
        if card.more > 0 {
            lines.push(format!("  and {} more", card.more));
        }
        if let Some(runbook) = &card.runbook {
            lines.extend([String::new(), format!("Runbook: {runbook}")]);
        }
        section(&mut lines, "Where this comes from", card.origin.iter().map(|(name, value)| format!("{name}: {value}")));
    }
    if left_out > 0 {
        lines.extend([String::new(), format!("{left_out} more alerts are not shown here; `cliffwatch alerts` lists them.")]);
    }
    lines.push(String::new());
    lines.push("-- ".into());
    lines.push(format!("Sent by Cliffwatch to the receiver \"{}\".", text::line(receiver, 120)));
    lines.extend(external_url.map(str::to_owned));
    lines.push(String::new());
    lines.join("\n")
}

fn share_line(name: &str, amount: &str, value: &str) -> String {
    match (amount, value) {
        ("", "") => name.to_owned(),
        (amount, "") => format!("{name}: {amount}"),
        ("", value) => format!("{name}: {value}"),
        (amount, value) => format!("{name}: {amount} ({value})"),
    }
}

fn section(lines: &mut Vec<String>, title: &str, rows: impl Iterator<Item = String>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    lines.push(String::new());
    if !title.is_empty() {
        lines.push(format!("{title}:"));
    }
    lines.extend(rows.map(|row| format!("  {row}")));
}

/// A link that may be shown: an address of the web, written plainly.
fn web_address(text: &str) -> Option<String> {
    let url = url::Url::parse(text.trim()).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    (is_plain && url.as_str().len() <= 2_000).then(|| url.to_string())
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;
