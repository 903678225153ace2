//! What a message shows of one alert, whatever carries it: mail, a chat, a pager. Pure.
//!
//! The cast: a [`Brief`] is what one delivery tells; a [`Card`] is one alert of it, as plain texts that went through
//! [`super::text`], so that nothing in them breaks a line, hides or reorders. What else must be escaped depends on where a card goes
//! and is done there. The promise: the first line says token, size, share of the market cap and when, whatever the rule's own words
//! are; those come next.

use chrono::TimeDelta;
use serde::Serialize;
use serde_json::Value;

use super::{retry::describe, text};
use crate::{
    alert::{AlertBody, Notice, NoticeKind, SeriesPoint},
    change::{AllocationChange, Change, Fact, FieldChange, ScheduleBrief},
    format,
    store::model::DueDelivery,
    supply::{self, Interval, Precision, Resource, Timestamp},
};

/// Longest title, characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// Most rows of a table.
const MAX_ROWS: usize = 12;

/// Dates of the schedule that are told in words: before the one in question, and after it.
const SCHEDULE_BEFORE: usize = 2;
const SCHEDULE_AFTER: usize = 5;

/// How long after the decision a message counts as late.
const LATE: TimeDelta = TimeDelta::minutes(30);

/// What one delivery tells, where to, and when.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    /// The delivery: alerts, and what it only counts.
    pub delivery: &'a DueDelivery,
    /// Where our own pages are, for links.
    pub external_url: Option<&'a str>,
    /// The time of the attempt: a message that was held up says so, and counts the days from today.
    pub now: Timestamp,
}

impl<'a> Brief<'a> {
    /// What is told, in the order in which it was decided.
    #[must_use]
    pub fn notices(&self) -> &'a [Notice] {
        &self.delivery.notices
    }

    /// Alerts that it stands for, told or only counted.
    #[must_use]
    pub fn count(&self) -> usize {
        self.delivery.notices.len() + self.delivery.bundle.truncated as usize
    }

    /// Whether it tells one alert and nothing else: then there is room for all of it.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.count() == 1 && self.delivery.bundle.told_before == 0
    }

    /// A line to stand above the alerts; empty where there is none.
    #[must_use]
    pub fn note(&self) -> String {
        self.delivery.bundle.note.as_deref().map(|note| text::line(note, text::MAX_LINE_CHARS)).unwrap_or_default()
    }

    /// What is not shown where `shown` alerts are, and where it can be seen: a line to stand below them; empty where all is shown.
    #[must_use]
    pub fn rest(&self, shown: usize) -> String {
        let left_out = self.count().saturating_sub(shown);
        let told_before = self.delivery.bundle.told_before as usize;
        let mut parts = Vec::new();
        if left_out > 0 {
            parts.push(format!("{} not shown here", format::count(left_out, "more alert")));
        }
        if told_before > 0 {
            parts.push(format!("{} told before, still firing", format::count(told_before, "alert")));
        }
        if parts.is_empty() { String::new() } else { format!("{}: see `cliffwatch alerts`", parts.join("; ")) }
    }

    /// The first `max` alerts as cards.
    #[must_use]
    pub fn cards(&self, max: usize) -> Vec<Card> {
        self.notices().iter().take(max).map(|notice| card(notice, self.now)).collect()
    }

    /// What is told, in one line of at most `max_chars` characters: token, size, share, when, and how far away that is.
    #[must_use]
    pub fn title(&self, share: Share, max_chars: usize) -> String {
        let Some(first) = self.notices().first() else { return String::new() };
        title(first, self.count(), share, self.now, max_chars)
    }

    /// What one of its alerts tells, in one line, as [`title`](Self::title).
    #[must_use]
    pub fn line(&self, notice: &Notice, share: Share, max_chars: usize) -> String {
        title(notice, 1, share, self.now, max_chars)
    }

    /// Token, size, share of the market cap and when, for one of its alerts; nothing that changes as time passes.
    #[must_use]
    pub fn headline(&self, notice: &Notice) -> String {
        headline(&notice.body, Share::Long)
    }

    /// The address of our own pages, if it may be shown as a link.
    #[must_use]
    pub fn link(&self) -> Option<String> {
        self.external_url.and_then(web_address)
    }

    /// Whether all that it tells is over.
    #[must_use]
    pub fn is_resolved(&self) -> bool {
        !self.notices().is_empty() && self.notices().iter().all(|notice| is_resolved(&notice.body))
    }

    /// The gravest tone of its alerts.
    #[must_use]
    pub fn tone(&self) -> Tone {
        self.notices().iter().map(|notice| tone(&notice.body)).max().unwrap_or_default()
    }
}

/// How the share of the market cap is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// `(2.77%)`, where room is scarce.
    Short,
    /// `(2.77% of market cap)`.
    Long,
}

/// How grave it is, for colours and priorities; the gravest is the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// It is over.
    Good,
    /// To know.
    #[default]
    Info,
    /// To look at.
    Warning,
    /// To act on.
    Critical,
}

impl Tone {
    /// The colour that stands for it, as `0xRRGGBB`: readable as white on it, and on white.
    #[must_use]
    pub fn color(self) -> u32 {
        match self {
            Tone::Good => 0x06_76_47,
            Tone::Info => 0x17_5c_d3,
            Tone::Warning => 0xb5_47_08,
            Tone::Critical => 0xb4_23_18,
        }
    }
}

/// One alert as a message shows it. All texts are plain and harmless but for the escaping of the place they go to.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// `Critical`, `Resolved: passed`, `Reminder`, …
    pub badge: String,
    /// How grave it is.
    pub tone: Tone,
    /// The token, or `Cliffwatch` for its own affairs.
    pub token: String,
    /// What is told, in one line: token, size, share, when.
    pub headline: String,
    /// The same with how far away it is, and marked where it is over, critical or a test.
    pub first_line: String,
    /// The annotation `summary`, where it says something else than the headline.
    pub summary: String,
    /// The annotation `description`.
    pub description: String,
    /// Facts: name and value.
    pub facts: Vec<(&'static str, String)>,
    /// What changed: what, before, after.
    pub changes: Vec<(String, String, String)>,
    /// Who gets how much: name, amount, value.
    pub shares: Vec<(String, String, String)>,
    /// Rows of `changes` and `shares` that found no room.
    pub more: usize,
    /// The dates around it: date, tokens, whether it is the one in question.
    pub schedule: Vec<(String, String, bool)>,
    /// The annotation `runbook_url`, if it is an address of the web.
    pub runbook: Option<String>,
    /// Where it comes from and why it is told.
    pub origin: Vec<(&'static str, String)>,
}

impl Card {
    /// What matters most, as name and value: what changed, the facts, and the `max_shares` largest shares.
    #[must_use]
    pub fn rows(&self, max_shares: usize) -> Vec<(String, String)> {
        let changes = self.changes.iter().map(|(what, from, to)| (what.clone(), format!("{from} → {to}")));
        let facts = self.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let shares = self.shares.iter().take(max_shares).map(|(name, amount, value)| match (amount.as_str(), value.as_str()) {
            (amount, "") => (name.clone(), amount.to_owned()),
            ("", value) => (name.clone(), value.to_owned()),
            (amount, value) => (name.clone(), format!("{amount} ({value})")),
        });
        let mut rows: Vec<_> = changes.chain(facts).chain(shares).collect();
        let hidden = self.shares.len().saturating_sub(max_shares) + self.more;
        if hidden > 0 {
            rows.push(("And".to_owned(), format!("{hidden} more")));
        }
        rows
    }

    /// Why it is told and how old the facts are, in a line: `BigCliffAhead · lead 7d · polled 9 Mar 2026, 12:10 UTC`.
    #[must_use]
    pub fn footer(&self) -> String {
        let of = |name: &str| self.origin.iter().find(|(label, _)| *label == name).map(|(_, value)| value.as_str());
        let parts = [
            of("Rule").map(str::to_owned),
            of("Told because").map(str::to_owned),
            of("Polled").map(|at| format!("polled {at}")),
            of("Rule").is_none().then(|| of("Decided")).flatten().map(str::to_owned),
            of("Sent").map(|at| format!("sent {at}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// The rule's own words: summary and description, line by line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let summary = Some(&self.summary).filter(|summary| !summary.is_empty()).cloned();
        summary.into_iter().chain(self.description.lines().map(str::to_owned)).collect()
    }

    /// Everything of it as plain lines, for services that show text alone: the rule's words, rows, footer.
    #[must_use]
    pub fn lines(&self, max_shares: usize) -> Vec<String> {
        let mut lines = self.words();
        let rows = self.rows(max_shares);
        if !lines.is_empty() && !rows.is_empty() {
            lines.push(String::new());
        }
        lines.extend(rows.into_iter().map(|(name, value)| format!("{name}: {value}")));
        if let Some(runbook) = &self.runbook {
            lines.push(format!("Runbook: {runbook}"));
        }
        lines.extend([String::new(), self.footer()]);
        lines
    }
}

/// The title of a message that tells `count` alerts, of which `notice` is the first.
fn title(notice: &Notice, count: usize, share: Share, now: Timestamp, max_chars: usize) -> String {
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
    let taken = prefix.chars().count() + several.chars().count() + tail.chars().count();
    format!("{prefix}{several}{}{tail}", text::line(&headline(body, share), max_chars.saturating_sub(taken).max(20)))
}

/// What is told, in one line: token, size, share of the market cap and when; where it is about no record, the rule's summary.
fn headline(body: &AlertBody, share: Share) -> String {
    let facts = facts_in_a_line(body, share);
    let summary = summary(body);
    match facts {
        Some(facts) => text::line(&format!("{}: {facts}", token_symbol(body)), text::MAX_LINE_CHARS),
        None if summary.is_empty() => text::line(&format!("{}: {}", token_symbol(body), body.rule), text::MAX_LINE_CHARS),
        None => summary,
    }
}

fn summary(body: &AlertBody) -> String {
    body.annotations.get("summary").map(|summary| text::line(summary, text::MAX_LINE_CHARS)).unwrap_or_default()
}

/// `$33.15M (2.77%) unlocks on 16 Mar 2026`; None where there is neither a change nor a size nor a date.
fn facts_in_a_line(body: &AlertBody, share: Share) -> Option<String> {
    let record = body.record.as_ref().unwrap_or(&Value::Null);
    let (size, percent) = size_of(body.resource, record);
    let percent = percent.map(|percent| match share {
        Share::Short => percent,
        Share::Long => format!("{percent} of market cap"),
    });
    let size = match (size, percent) {
        (Some(size), Some(percent)) => format!("{size} ({percent})"),
        (Some(size), None) => size,
        (None, Some(percent)) => percent,
        (None, None) => String::new(),
    };
    if let Some(change) = &body.change {
        let told = if change.summary.is_empty() { change.kind.as_str() } else { &change.summary };
        let of = change.resource.or(body.resource).map_or("", Resource::as_str);
        let size = if size.is_empty() { size } else { format!(" · {size}") };
        return Some(format!("{of} {}{size}", text::line(told, text::MAX_LINE_CHARS)).trim().to_owned());
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
pub(super) fn nearness(notice: &Notice, now: Timestamp) -> Option<String> {
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

fn tone(body: &AlertBody) -> Tone {
    if is_resolved(body) {
        return Tone::Good;
    }
    match body.labels.get("severity").map(|severity| severity.to_ascii_lowercase()).as_deref() {
        Some("critical" | "page" | "error") => Tone::Critical,
        Some("warning") => Tone::Warning,
        _ => Tone::Info,
    }
}

/// What a message shows of one notice.
fn card(notice: &Notice, now: Timestamp) -> Card {
    let body = &notice.body;
    let severity = body.labels.get("severity").map(|severity| text::line(severity, 40)).unwrap_or_default();
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
    let mut facts = facts(notice, record, now);
    if changes.iter().any(|(what, ..)| what == "Date") {
        facts.retain(|(name, _)| *name != "Date");
    }
    let annotation = |name: &str| body.annotations.get(name).map(String::as_str).unwrap_or_default();
    let headline = headline(body, Share::Short);
    let summary = summary(body);
    Card {
        badge,
        tone: tone(body),
        token: match &body.token {
            Some(token) if token.name.is_empty() || token.name == token.symbol => token_symbol(body),
            Some(token) => format!("{} · {}", text::line(&token.name, 80), token_symbol(body)),
            None => "Cliffwatch".into(),
        },
        summary: if says_more(&summary, &headline) { summary } else { String::new() },
        headline,
        first_line: title(notice, 1, Share::Long, now, MAX_TITLE_CHARS),
        description: match notice.kind {
            NoticeKind::Digest => text::paragraph(annotation("description"), text::MAX_DIGEST_CHARS),
            _ => text::paragraph(annotation("description"), text::MAX_PARAGRAPH_CHARS),
        },
        facts,
        changes,
        shares,
        more,
        schedule: schedule(body),
        runbook: web_address(annotation("runbook_url")),
        origin: origin(notice, now),
    }
}

/// Whether a rule's summary says anything that the headline does not: another wording of the same facts is not worth a second line.
fn says_more(summary: &str, headline: &str) -> bool {
    const FILLERS: [&str; 8] = ["to", "unlock", "unlocks", "of", "market", "cap", "on", "in"];
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split_whitespace().map(|word| word.trim_matches([':', ',', '.', ';', '(', ')'])).filter(|word| !word.is_empty())
    }
    let known: Vec<&str> = words(headline).chain(FILLERS).collect();
    words(summary).any(|word| !known.contains(&word))
}

/// The date of the record itself, which its schedule holds.
pub(super) fn own_date(body: &AlertBody) -> Option<Timestamp> {
    let date = body.record.as_ref()?.get("unlockDate")?.as_str()?;
    crate::wire::parse_timestamp(date).filter(|date| body.series.iter().any(|point| point.at == *date))
}

/// A date of the schedule in words, no more exact than it is: `16 Mar 2026`, `March 2026`.
pub(super) fn date_of(point: &SeriesPoint) -> String {
    match Interval::of(point.at, point.precision.max(Precision::Day)) {
        Some(interval) => capitalized(format::when(&interval).trim_start_matches("on ").trim_start_matches("in ")),
        None => String::new(),
    }
}

/// The dates around the one in question, in words.
fn schedule(body: &AlertBody) -> Vec<(String, String, bool)> {
    let Some(own) = own_date(body) else { return Vec::new() };
    let at = body.series.iter().position(|point| point.at == own).unwrap_or_default();
    let row = |point: &SeriesPoint| (date_of(point), format::amount(point.amount), point.at == own);
    let shown = SCHEDULE_BEFORE.min(at) + 1 + SCHEDULE_AFTER;
    let rows: Vec<_> = body.series.iter().skip(at.saturating_sub(SCHEDULE_BEFORE)).take(shown).map(row).collect();
    // Alone, it says nothing that the facts do not.
    if rows.len() > 1 { rows } else { Vec::new() }
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
    let late = now - notice.at;
    let sent = || ("Sent", format!("{}, {} late", format::instant(now), describe(late)));
    // A digest is no alert: only its time says something.
    if notice.kind == NoticeKind::Digest {
        let rows = [Some(("Decided", format::instant(notice.at))), (late >= LATE).then(sent)];
        return rows.into_iter().flatten().collect();
    }
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
    if late >= LATE {
        rows.push(sent());
    }
    rows.push(("Alert", text::line(notice.alert.as_str(), 80)));
    rows
}

/// A link that may be shown: an address of the web, written plainly.
pub(super) fn web_address(text: &str) -> Option<String> {
    let url = url::Url::parse(text.trim()).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    (is_plain && url.as_str().len() <= 2_000).then(|| url.to_string())
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_shown_where_it_says_more_than_the_headline() {
        let headline = "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC";
        for same in ["", headline, "ARB: $33.15M to unlock on 16 Mar 2026", "ARB: $33.15M (2.77% of market cap) unlocks"] {
            assert!(!says_more(same, headline), "{same}");
        }
        for more in ["Hedge ARB: $33.15M unlocks", "ARB: $33.15M unlocks on 17 Mar 2026", "ARB: $33.16M unlocks"] {
            assert!(says_more(more, headline), "{more}");
        }
    }
}
