//! What a message shows of one alert, whatever carries it: mail, a chat, a pager. Pure.
//!
//! The cast: a [`Brief`] is what one delivery tells; a [`Card`] is one alert of it, as plain texts that went through
//! [`super::text`], so that nothing in them breaks a line, hides or reorders. What else must be escaped depends on where a card goes
//! and is done there. The promise: the first line says token, size, share of the market cap and when, whatever the rule's own words
//! are; those come next.

mod changes;
mod facts;
mod headline;
mod origin;
mod schedule;

use serde::Serialize;
use serde_json::Value;

use super::{message, text};
pub use changes::change_rows;
use facts::{facts, shares};
use headline::{headline, says_more, summary, title, token_symbol};
pub use model::Tone;
use model::{AlertBody, AlertStatus, DueDelivery, Notification, NotificationKind, Timestamp, format};
use origin::origin;
use schedule::schedule;

pub(super) use headline::nearness;
pub(super) use schedule::{date_of, own_date};

/// Longest title, characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// Most rows of a table.
const MAX_ROWS: usize = 12;

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
    /// What is told, the most urgent first.
    pub fn notifications(&self) -> &'a [Notification] {
        &self.delivery.notifications
    }

    /// Alerts that it stands for, told or only counted.
    pub fn count(&self) -> usize {
        self.delivery.notifications.len() + self.delivery.bundle.truncated as usize
    }

    /// Whether it tells one alert and nothing else: then there is room for all of it.
    pub fn is_single(&self) -> bool {
        self.count() == 1 && self.delivery.bundle.told_before == 0
    }

    /// A line to stand above the alerts; empty where there is none.
    pub fn note(&self) -> String {
        self.delivery.bundle.note.as_deref().map(|note| text::line(note, text::MAX_LINE_CHARS)).unwrap_or_default()
    }

    /// What is not shown where `shown` alerts are, and where it can be seen: a line to stand below them; empty where all is shown.
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
        if parts.is_empty() {
            return String::new();
        }
        let where_to =
            if left_out > 0 { message::whole(self.delivery, self.external_url) } else { "`cliffwatch alerts`".to_owned() };
        format!("{}: see {where_to}", parts.join("; "))
    }

    /// The first `max` alerts as cards.
    pub fn cards(&self, max: usize) -> Vec<Card> {
        self.notifications().iter().take(max).map(|notice| card(notice, self.now)).collect()
    }

    /// What is told, in one line of at most `max_chars` characters: token, size, share, when, and how far away that is.
    pub fn title(&self, share: ShareStyle, max_chars: usize) -> String {
        let Some(strongest) = message::strongest(self.notifications()) else { return String::new() };
        title(strongest, self.count(), share, self.now, max_chars)
    }

    /// What one of its alerts tells, in one line, as [`title`](Self::title).
    pub fn line(&self, notice: &Notification, share: ShareStyle, max_chars: usize) -> String {
        title(notice, 1, share, self.now, max_chars)
    }

    /// Token, size, share of the market cap and when, for one of its alerts; nothing that changes as time passes.
    pub fn headline(&self, notice: &Notification) -> String {
        headline(&notice.body, ShareStyle::Long)
    }

    /// The address of our own pages, if it may be shown as a link.
    pub fn link(&self) -> Option<String> {
        self.external_url.and_then(web_address)
    }

    /// The gravest tone of its alerts.
    pub fn tone(&self) -> Tone {
        self.notifications().iter().map(|notice| notice.body.tone()).max().unwrap_or_default()
    }
}

/// How the share of the market cap is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareStyle {
    /// `(2.77%)`, where room is scarce.
    Short,
    /// `(2.77% of market cap)`.
    Long,
}

/// The colour that stands for a tone, as `0xRRGGBB`: readable as white on it, and on white.
pub fn color(tone: Tone) -> u32 {
    match tone {
        Tone::Good => 0x06_76_47,
        Tone::Info => 0x17_5c_d3,
        Tone::Warning => 0xb5_47_08,
        Tone::Critical => 0xb4_23_18,
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
    pub fn words(&self) -> Vec<String> {
        let summary = Some(&self.summary).filter(|summary| !summary.is_empty()).cloned();
        summary.into_iter().chain(self.description.lines().map(str::to_owned)).collect()
    }

    /// Everything of it as plain lines, for services that show text alone: the rule's words, rows, footer.
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

fn is_resolved(body: &AlertBody) -> bool {
    body.status == AlertStatus::Resolved
}

/// What a message shows of one notice.
fn card(notice: &Notification, now: Timestamp) -> Card {
    let body = &notice.body;
    let severity = body.labels.get("severity").map(|severity| text::line(severity, 40)).unwrap_or_default();
    let reason = text::line(&body.reason, 80);
    let badge = match notice.kind {
        _ if is_resolved(body) && reason.is_empty() => "Resolved".to_owned(),
        _ if is_resolved(body) => format!("Resolved: {reason}"),
        NotificationKind::Test => "Test".into(),
        NotificationKind::Reminder => "Reminder".into(),
        NotificationKind::Digest => "Digest".into(),
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
    let headline = headline(body, ShareStyle::Short);
    let summary = summary(body);
    Card {
        badge,
        tone: body.tone(),
        token: match &body.token {
            Some(token) if token.name.is_empty() || token.name == token.symbol => token_symbol(body),
            Some(token) => format!("{} · {}", text::line(&token.name, 80), token_symbol(body)),
            None => "Cliffwatch".into(),
        },
        summary: if says_more(&summary, &headline) { summary } else { String::new() },
        headline,
        first_line: title(notice, 1, ShareStyle::Long, now, MAX_TITLE_CHARS),
        description: match notice.kind {
            NotificationKind::Digest => text::paragraph(annotation("description"), text::MAX_DIGEST_CHARS),
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
