//! The content of a message, independent of its format. Pure.
//!
//! A [`Brief`] is one delivery. A [`Card`] is one of its alerts as plain text, sanitized by [`super::text`]. Each format escapes
//! the text for its own markup. The first line of a card always gives token, value, share of market cap, and date; the rule's
//! annotations follow.

mod changes;
mod facts;
mod headline;
mod origin;
mod schedule;

use serde::Serialize;
use serde_json::Value;

use super::{message, text};
pub use changes::change_rows;
use changes::rows_of;
use facts::{facts, facts_of, members, shares};
use headline::{adds_words, cut_at_clause, headline, summary, title, token_symbol};
pub use model::Severity;
use model::{
    AlertBody, AlertStatus, DueDelivery, MessageEntry, Notification, NotificationKind, Timestamp, message_entries, phrase,
};
use origin::origin;
use schedule::schedule;

pub(super) use headline::{ending, nearness};
pub(super) use schedule::{date_of, own_date};

/// The length limit of a title, in characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// The maximum number of entries listed in a welcome message.
const MAX_WELCOME_LINES: usize = 10;

const MAX_ROWS: usize = 12;

/// The length limit of a sentence in the body of a message, in characters. Every sentence about a change fits; only texts from outside can be
/// longer.
pub(super) const MAX_SENTENCE_CHARS: usize = 1_500;

/// The length limit of a summary, and of the complete sentence below a title, in characters. It leaves room for the rows in services with
/// little of it.
pub(super) const MAX_SUMMARY_CHARS: usize = 700;

/// The length limit of a line in a list of alerts, in characters, where the complete lines of all alerts do not fit.
const MAX_LIST_CHARS: usize = 200;

/// One delivery with what its text depends on.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    pub delivery: &'a DueDelivery,
    /// The base URL of the web interface, for links.
    pub external_url: Option<&'a str>,
    /// The time of the attempt. The days until the event are counted from this time, and a late message shows it.
    pub now: Timestamp,
}

impl<'a> Brief<'a> {
    /// Returns the notifications, most urgent first.
    pub fn notifications(&self) -> &'a [Notification] {
        &self.delivery.notifications
    }

    /// Returns the notifications grouped by event, with one entry for each event.
    pub fn entries(&self) -> Vec<MessageEntry<'a>> {
        message_entries(self.notifications())
    }

    /// Returns the number of entries, including entries that the delivery only counts.
    pub fn count(&self) -> usize {
        self.entries().len() + self.delivery.batch.truncated as usize
    }

    /// Returns the number of alerts, including alerts that the delivery only counts.
    pub fn alert_count(&self) -> usize {
        self.notifications().len() + self.delivery.batch.truncated as usize
    }

    /// Returns whether the delivery is about one event only, which leaves room for all its details.
    pub fn is_single(&self) -> bool {
        self.count() == 1
    }

    /// Returns the line above the alerts.
    pub fn note(&self) -> Option<String> {
        if self.delivery.batch.is_welcome {
            return Some(self.welcome_note());
        }
        let note = text::line(self.delivery.batch.note.as_deref()?, model::phrase::MAX_LINE_CHARS);
        Some(note).filter(|note| !note.is_empty())
    }

    fn welcome_note(&self) -> String {
        let critical = self.entries().iter().filter(|entry| entry.strongest.body.severity() == Severity::Critical).count();
        let critical = if critical > 0 { format!(", {critical} of them critical") } else { String::new() };
        let alerts = phrase::count(self.count(), "alert");
        format!("Welcome to Cliffwatch. Firing now: {alerts}{critical}. Most urgent first:")
    }

    /// Returns the line below `shown` entries, which counts the others, says where to see them, and names the day of stale prices if the
    /// entries share it. `None` if there is nothing to say.
    pub fn rest(&self, shown: usize) -> Option<String> {
        let parts = [self.rest_of(self.count().saturating_sub(shown)), self.shared_prices()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(". "))
    }

    /// Returns the day of the stale prices that all entries of a message share, as a sentence: `At prices of 3 Nov 2025`. `None` for a
    /// single entry, whose card says it.
    pub fn shared_prices(&self) -> Option<String> {
        let entries = self.entries();
        let mut prices = entries.iter().map(|entry| phrase::stale_prices_of(&entry.strongest.body));
        let first = prices.next()??;
        let is_shared = !self.is_single() && prices.all(|other| other.as_ref() == Some(&first));
        is_shared.then(|| phrase::capitalized(&first))
    }

    /// Returns the count of the entries that are not shown.
    pub fn rest_count(&self, left_out: usize) -> Option<String> {
        let notified_before = self.delivery.batch.notified_before as usize;
        let mut parts = Vec::new();
        if left_out > 0 {
            parts.push(format!("{} not shown", phrase::count(left_out, "more alert")));
        }
        if notified_before > 0 {
            parts.push(format!("{} still firing", phrase::count(notified_before, "earlier alert")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Like [`rest_count`](Self::rest_count), and says where to see them.
    pub fn rest_of(&self, left_out: usize) -> Option<String> {
        let words = self.rest_count(left_out)?;
        let how = if left_out > 0 { message::command(self.delivery) } else { "`cliffwatch alerts`".to_owned() };
        Some(match self.link_to("alerts") {
            Some(link) => format!("{words}: see {link} or {how}"),
            None => format!("{words}: see {how}"),
        })
    }

    /// Returns the first `max` entries as cards, or fewer in a welcome message.
    pub fn cards(&self, max: usize) -> Vec<Card> {
        let max = if self.delivery.batch.is_welcome { max.min(MAX_WELCOME_LINES) } else { max };
        self.listed_cards(self.entries().iter().take(max))
    }

    /// Returns the cards of entries without what [`rest`](Self::rest) says about all of them.
    pub fn listed_cards<'e>(&self, entries: impl Iterator<Item = &'e MessageEntry<'e>>) -> Vec<Card> {
        let has_shared_prices = self.shared_prices().is_some();
        let mut cards: Vec<Card> = entries.map(|entry| self.card(entry)).collect();
        if has_shared_prices {
            cards.iter_mut().for_each(|card| card.prices = None);
        }
        cards
    }

    pub fn card(&self, entry: &MessageEntry<'_>) -> Card {
        card(entry, self)
    }

    /// Returns a title of at most `max_chars` characters: token, value, share, date, and the days until then. A longer one is cut at the end of
    /// a clause, if possible.
    pub fn title(&self, share: ShareStyle, max_chars: usize) -> String {
        let Some(strongest) = message::strongest(self.notifications()) else { return String::new() };
        let several = match self.count() {
            ..=1 => String::new(),
            count if self.delivery.batch.is_welcome => format!("Welcome · {count} alerts: "),
            count => format!("{count} alerts: "),
        };
        title(strongest, &several, share, self.now, max_chars)
    }

    /// Like [`title`](Self::title), for one of the alerts.
    pub fn line(&self, notice: &Notification, share: ShareStyle, max_chars: usize) -> String {
        title(notice, "", share, self.now, max_chars)
    }

    /// Returns token, value, share of market cap, and date of one alert, in a line that does not change as time passes.
    pub fn headline(&self, notice: &Notification) -> String {
        headline(&notice.body, ShareStyle::Long)
    }

    /// Returns the base URL of the web interface, or `None` if it is not a plain HTTP URL.
    pub fn link(&self) -> Option<String> {
        self.external_url.and_then(web_address)
    }

    fn link_to(&self, path: &str) -> Option<String> {
        self.link().map(|url| format!("{}/{path}", url.trim_end_matches('/')))
    }

    /// Returns the URL of the page of an alert.
    pub fn page(&self, notice: &Notification) -> Option<String> {
        let id: String = notice.alert.as_str().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
        self.link_to(&format!("alerts/{id}")).filter(|_| !id.is_empty() && has_page(notice))
    }

    /// Returns the URL of the page of the only alert, else of the list of alerts.
    pub fn page_of_all(&self) -> Option<String> {
        match self.entries().as_slice() {
            [entry] if self.is_single() => self.page(entry.strongest).or_else(|| self.link()),
            _ => self.link_to("alerts"),
        }
    }

    /// Returns text and URL of the links below the message: the links of the only card, else the list of alerts.
    pub fn links(&self, cards: &[Card]) -> Vec<(&'static str, String)> {
        match cards {
            [card] if self.is_single() => card.links().into_iter().map(|(words, url)| (words, url.to_owned())).collect(),
            _ => self.page_of_all().map(|url| ("All alerts", url)).into_iter().collect(),
        }
    }

    /// Returns the text of the link to [`page_of_all`](Self::page_of_all).
    pub fn page_label(&self) -> &'static str {
        match self.entries().as_slice() {
            [entry] if self.is_single() => page_label(entry.strongest),
            _ => "All alerts",
        }
    }

    /// Returns the highest severity of the alerts.
    pub fn severity(&self) -> Severity {
        self.notifications().iter().map(|notice| notice.body.severity()).max().unwrap_or_default()
    }
}

/// Returns the text of the link to the page of an alert, which names the actions available there.
fn page_label(notice: &Notification) -> &'static str {
    match notice.kind {
        _ if is_resolved(&notice.body) => "Details and notifications",
        NotificationKind::Event => "Details, silence",
        _ => "Details, acknowledge, silence",
    }
}

/// Returns whether the notification is about a stored alert. Digests and tests are not.
fn has_page(notice: &Notification) -> bool {
    !matches!(notice.kind, NotificationKind::Digest | NotificationKind::Test)
}

/// The notation of a share of market cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareStyle {
    /// `(2.77%)`, for short lines.
    Short,
    /// `(2.77% of market cap)`.
    Long,
}

/// Returns the color of a severity as `0xRRGGBB`. White text is readable on it, and it is readable on white.
pub fn color(severity: Severity) -> u32 {
    match severity {
        Severity::Good => 0x06_76_47,
        Severity::Info => 0x17_5c_d3,
        Severity::Warning => 0xb5_47_08,
        Severity::Critical => 0xb4_23_18,
    }
}

/// One entry of a message. All texts are plain and sanitized, but not escaped for any markup.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// `Critical`, `Resolved`, `Reminder`, …
    pub badge: String,
    pub severity: Severity,
    /// The token, or `Cliffwatch` for a self-alert.
    pub token: String,
    /// Token, value, share, and date in one line.
    pub headline: String,
    /// The outcome of an alert that ended: `removed from the schedule`. Empty if the headline says it, and for an alert that fires.
    pub outcome: String,
    /// The headline with a prefix such as `[Critical]` and the days until the event. Never cut to the length of a title.
    pub first_line: String,
    /// The day of the prices, if they are stale: `at prices of 3 Nov 2025`.
    pub prices: Option<String>,
    /// Other rules that match the same event: `InsiderUnlockAhead (info)`, with their summary if it adds anything.
    pub also: Vec<String>,
    /// The annotation `summary`, or empty if it repeats the headline.
    pub summary: String,
    /// The annotation `description`.
    pub description: String,
    pub facts: Vec<(&'static str, String)>,
    /// The subject of the facts of a changed unlock: `Whole unlock` and `on 24 Apr 2026, all recipients`. `None` for other alerts, whose
    /// headline says it.
    pub facts_of: Option<(&'static str, String)>,
    /// The changed property, its value before, and its value after.
    pub changes: Vec<(String, String, String)>,
    /// Name, amount, and value of each allocation, or of each token of a group.
    pub shares: Vec<(String, String, String)>,
    pub shares_title: &'static str,
    /// The number of rows cut from `changes` and `shares`.
    pub more: usize,
    /// Neighboring unlocks in the schedule: date, `1.00M tokens`, and whether it is the unlock of this alert.
    pub schedule: Vec<(String, String, bool)>,
    pub page_label: &'static str,
    /// The annotation `runbook_url`, if it is a plain HTTP URL.
    pub runbook: Option<String>,
    /// The origins of the schedule, each with its URL if it has one.
    pub data_sources: Vec<(String, Option<String>)>,
    pub page: Option<String>,
    /// Label and value of the rule, the reason, and the times of the alert.
    pub origin: Vec<(&'static str, String)>,
}

impl Card {
    /// Returns text and URL of each link: the alert's page, the runbook, and the data source.
    pub fn links(&self) -> Vec<(&'static str, &str)> {
        let source = self.data_sources.iter().find_map(|(_, url)| url.as_deref());
        let links = [(self.page_label, self.page.as_deref()), ("Runbook", self.runbook.as_deref()), ("Data source", source)];
        links.into_iter().filter_map(|(words, url)| Some((words, url?))).collect()
    }

    /// Returns the other rules without their summaries: `InsiderUnlockAhead (info), CommittedClaimDiffers (warning)`.
    pub fn also_rules(&self) -> String {
        self.also.iter().map(|also| also.split(':').next().unwrap_or_default()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the day of stale prices as a line.
    pub fn price_line(&self) -> Option<String> {
        self.prices.as_deref().map(phrase::capitalized)
    }

    /// Returns the complete line of the alert in a list.
    pub fn list_line(&self) -> String {
        self.list_line_of(&self.first_line)
    }

    fn list_line_of(&self, first_line: &str) -> String {
        let also = self.also_rules();
        let also = if also.is_empty() { String::new() } else { format!(" · also {also}") };
        let prices = self.prices.as_ref().map(|prices| format!(" · {prices}")).unwrap_or_default();
        format!("{first_line}{also}{prices}")
    }

    /// Returns label and value of all changes and facts and of the first `max_shares` shares, which are sorted by size. A last row
    /// `Not shown` counts the other shares.
    pub fn rows(&self, max_shares: usize) -> Vec<(String, String)> {
        let changes = self.changes.iter().map(|(what, from, to)| (what.clone(), format!("{from} → {to}")));
        let facts = self.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let facts_of = self.facts_of.iter().filter(|_| !self.facts.is_empty());
        let facts_of = facts_of.map(|(name, value)| ((*name).to_owned(), value.clone()));
        let shares = self.shares.iter().take(max_shares).map(|(name, amount, value)| match (amount.as_str(), value.as_str()) {
            (amount, "") => (name.clone(), amount.to_owned()),
            ("", value) => (name.clone(), value.to_owned()),
            (amount, value) => (name.clone(), format!("{amount} ({value})")),
        });
        let mut rows: Vec<_> = changes.chain(facts_of).chain(facts).chain(shares).collect();
        let hidden = self.shares.len().saturating_sub(max_shares) + self.more;
        if hidden > 0 {
            rows.push(("Not shown".to_owned(), format!("{hidden} more")));
        }
        rows
    }

    /// Returns the heading of the facts. Empty if they need none.
    pub fn facts_heading(&self) -> String {
        self.facts_of.as_ref().map(|(name, value)| format!("{name} {value}")).unwrap_or_default()
    }

    /// Returns rule, reason, and times in one line: `BigCliffAhead · due within 7 days · polled 9 Mar 2026, 12:10 UTC`. Omits unknown
    /// ones. The time of the evaluation is only shown if there is no rule.
    pub fn footer(&self) -> String {
        let of = |name: &str| self.origin.iter().find(|(label, _)| *label == name).map(|(_, value)| value.as_str());
        let parts = [
            of("Rule").map(str::to_owned),
            of("Reason").map(str::to_owned),
            of("Polled").map(|at| format!("polled {at}")),
            of("Rule").is_none().then(|| of("Evaluated")).flatten().map(str::to_owned),
            of("Sent").map(|at| format!("sent {at}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// Like [`words`](Self::words), after the complete first line if the title above it was cut.
    pub fn words_below(&self, title: &str) -> Vec<String> {
        let uncut = Some(&self.first_line).filter(|line| line.as_str() != title);
        uncut.map(|line| cut_at_clause(line, MAX_SUMMARY_CHARS)).into_iter().chain(self.words()).collect()
    }

    /// Returns the lines of the summary, of the other rules, of the day of the prices, and of the description.
    pub fn words(&self) -> Vec<String> {
        let summary = Some(&self.summary).filter(|summary| !summary.is_empty()).cloned();
        let also = self.also.iter().map(|also| format!("Also: {also}"));
        summary.into_iter().chain(also).chain(self.price_line()).chain(self.description.lines().map(str::to_owned)).collect()
    }

    /// Returns all content as plain lines, for services that show only text.
    pub fn lines(&self, max_shares: usize) -> Vec<String> {
        let mut lines = self.lines_without_links(max_shares);
        lines.extend(self.links().iter().map(|(words, url)| format!("{words}: {url}")));
        lines
    }

    /// Like [`lines`](Self::lines), for a service that shows links separately.
    pub fn lines_without_links(&self, max_shares: usize) -> Vec<String> {
        self.lines_below(&self.first_line, max_shares)
    }

    /// Like [`lines_without_links`](Self::lines_without_links), after the complete first line if the title above it was cut.
    pub fn lines_below(&self, title: &str, max_shares: usize) -> Vec<String> {
        let mut lines = self.words_below(title);
        let rows = self.rows(max_shares);
        if !lines.is_empty() && !rows.is_empty() {
            lines.push(String::new());
        }
        lines.extend(rows.into_iter().map(|(name, value)| format!("{name}: {value}")));
        lines.extend([String::new(), self.footer()]);
        lines
    }
}

/// Returns the lines of alerts in a list. They are complete if all of them take at most half of `room`, which leaves space for escapes.
pub fn list_lines(cards: &[Card], room: usize) -> Vec<String> {
    let lines: Vec<String> = cards.iter().map(Card::list_line).collect();
    if lines.iter().map(|line| line.chars().count()).sum::<usize>() <= room / 2 {
        return lines;
    }
    cards.iter().map(|card| card.list_line_of(&cut_at_clause(&card.first_line, MAX_LIST_CHARS))).collect()
}

fn is_resolved(body: &AlertBody) -> bool {
    body.status == AlertStatus::Resolved
}

fn card(entry: &MessageEntry<'_>, brief: &Brief<'_>) -> Card {
    let (notice, now) = (entry.strongest, brief.now);
    let body = &notice.body;
    let severity = body.labels.get("severity").map(|severity| text::line(severity, 40)).unwrap_or_default();
    let badge = match notice.kind {
        _ if is_resolved(body) => "Resolved".to_owned(),
        NotificationKind::Test => "Test".into(),
        NotificationKind::Reminder => "Reminder".into(),
        NotificationKind::Digest => "Digest".into(),
        _ if severity.is_empty() => "Alert".into(),
        _ => phrase::capitalized(&severity),
    };
    let record = body.record.as_ref().unwrap_or(&Value::Null);
    let is_group = !body.members.is_empty();
    let (mut shares, total_shares) = if is_group { members(body) } else { shares(record) };
    let mut changes = body.change.as_ref().map(|change| rows_of(change, body.record.as_ref())).unwrap_or_default();
    let more = total_shares - shares.len() + changes.len().saturating_sub(MAX_ROWS);
    changes.truncate(MAX_ROWS);
    shares.truncate(MAX_ROWS);
    let mut facts = facts(notice, record, now);
    let facts_of = facts_of(body, now);
    if facts_of.is_some() || changes.iter().any(|(what, ..)| what == "Date") {
        facts.retain(|(name, _)| *name != "Date");
    }
    let annotation = |name: &str| body.annotations.get(name).map(String::as_str).unwrap_or_default();
    let headline = headline(body, ShareStyle::Short);
    let summary = summary(body);
    Card {
        badge,
        severity: body.severity(),
        token: match &body.token {
            Some(token) if token.name.is_empty() || token.name == token.symbol => token_symbol(body),
            Some(token) => format!("{} · {}", text::line(&token.name, 80), token_symbol(body)),
            None => "Cliffwatch".into(),
        },
        also: also(entry, &headline),
        prices: phrase::stale_prices_of(body),
        summary: if adds_words(&summary, &headline) { summary } else { String::new() },
        headline,
        outcome: if is_resolved(body) { ending(body) } else { String::new() },
        first_line: title(notice, "", ShareStyle::Long, now, MAX_SENTENCE_CHARS),
        description: match notice.is_digest() {
            true => text::paragraph(annotation("description"), text::MAX_DIGEST_CHARS),
            false => text::paragraph(annotation("description"), text::MAX_PARAGRAPH_CHARS),
        },
        facts,
        facts_of,
        changes,
        shares,
        shares_title: if is_group { "Tokens" } else { "Allocations" },
        more,
        schedule: schedule(body),
        page_label: page_label(notice),
        runbook: web_address(annotation("runbook_url")),
        data_sources: data_sources(body.source.data_source.as_deref().unwrap_or_default()),
        page: brief.page(notice),
        origin: origin(notice, now),
    }
}

fn also(entry: &MessageEntry<'_>, headline: &str) -> Vec<String> {
    let words = |notice: &&Notification| {
        let body = &notice.body;
        let severity = body.labels.get("severity").map(|severity| format!(" ({})", text::line(severity, 40))).unwrap_or_default();
        let summary_text = summary(body);
        let summary_text = if adds_words(&summary_text, headline) { format!(": {summary_text}") } else { String::new() };
        format!("{}{severity}{summary_text}", text::line(&body.rule, 120))
    };
    entry.also.iter().take(MAX_ROWS).map(words).collect()
}

/// Splits the source's list of data sources, and returns each with its URL, if it is one. Commas, semicolons, and line breaks
/// separate entries only if the text contains a URL; otherwise, the whole text is one title. Returns at most `MAX_ROWS`.
fn data_sources(text: &str) -> Vec<(String, Option<String>)> {
    // A title can contain spaces and commas; a URL cannot.
    let is_list = text.split([',', ';', ' ', '\n']).any(|word| web_address(word).is_some());
    let parts: Vec<&str> = if is_list { text.split([',', ';', '\n']).collect() } else { vec![text] };
    let part = |part: &str| {
        let words = text::line(part, 120);
        (!words.is_empty()).then(|| (words, web_address(part).filter(|_| !part.trim().contains(char::is_whitespace))))
    };
    parts.into_iter().filter_map(part).take(MAX_ROWS).collect()
}

/// Returns the normalized URL, or `None` if it is not a plain HTTP URL without a login.
pub(super) fn web_address(text: &str) -> Option<String> {
    let url = url::Url::parse(text.trim()).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    (is_plain && url.as_str().len() <= 2_000).then(|| url.to_string())
}
