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
use facts::{facts, members, shares};
use headline::{headline, says_more, summary, title, token_symbol};
pub use model::Tone;
use model::{
    AlertBody, AlertStatus, DueDelivery, MessageEntry, Notification, NotificationKind, Timestamp, format, message_entries,
};
use origin::origin;
use schedule::schedule;

pub(super) use headline::{ending, nearness};
pub(super) use schedule::{date_of, own_date};

/// Longest title, characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// Entries of a welcome that people are shown.
const WELCOME_LINES: usize = 10;

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

    /// The same as people are told it: each event once.
    pub fn entries(&self) -> Vec<MessageEntry<'a>> {
        message_entries(self.notifications())
    }

    /// Entries that it stands for, told or only counted.
    pub fn count(&self) -> usize {
        self.entries().len() + self.delivery.bundle.truncated as usize
    }

    /// Alerts that it stands for, told or only counted.
    pub fn alert_count(&self) -> usize {
        self.notifications().len() + self.delivery.bundle.truncated as usize
    }

    /// Whether it tells one event and nothing else: then there is room for all of it.
    pub fn is_single(&self) -> bool {
        self.count() == 1
    }

    /// A line to stand above the alerts; empty where there is none.
    pub fn note(&self) -> String {
        if self.delivery.bundle.is_welcome {
            return self.welcome_note();
        }
        self.delivery.bundle.note.as_deref().map(|note| text::line(note, text::MAX_LINE_CHARS)).unwrap_or_default()
    }

    /// What a welcome says above its alerts: how many there are, and how many of them are grave.
    fn welcome_note(&self) -> String {
        let critical = self.entries().iter().filter(|entry| entry.strongest.body.tone() == Tone::Critical).count();
        let critical = if critical > 0 { format!(", {critical} of them critical") } else { String::new() };
        let alerts = format::count(self.count(), "alert");
        format!("This is the first that Cliffwatch tells you: {alerts}{critical}. These come first:")
    }

    /// What is not shown where `shown` entries are, and where it can be seen: a line to stand below them; empty where all is shown.
    pub fn rest(&self, shown: usize) -> String {
        self.rest_of(self.count().saturating_sub(shown))
    }

    /// What is not shown where so many are left out; empty where all is shown.
    pub fn rest_words(&self, left_out: usize) -> String {
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
        parts.join("; ")
    }

    /// The same with where it can be seen.
    pub fn rest_of(&self, left_out: usize) -> String {
        let words = self.rest_words(left_out);
        if words.is_empty() {
            return words;
        }
        let how = if left_out > 0 { message::command(self.delivery) } else { "`cliffwatch alerts`".to_owned() };
        match self.link_to("alerts") {
            Some(link) => format!("{words}: see {link} or {how}"),
            None => format!("{words}: see {how}"),
        }
    }

    /// The first `max` entries as cards; of a welcome, the beginning alone.
    pub fn cards(&self, max: usize) -> Vec<Card> {
        let max = if self.delivery.bundle.is_welcome { max.min(WELCOME_LINES) } else { max };
        self.entries().iter().take(max).map(|entry| self.card(entry)).collect()
    }

    /// One entry as a card.
    pub fn card(&self, entry: &MessageEntry<'_>) -> Card {
        card(entry, self)
    }

    /// What is told, in one line of at most `max_chars` characters: token, size, share, when, and how far away that is.
    pub fn title(&self, share: ShareStyle, max_chars: usize) -> String {
        let Some(strongest) = message::strongest(self.notifications()) else { return String::new() };
        let several = match self.count() {
            ..=1 => String::new(),
            count if self.delivery.bundle.is_welcome => format!("{count} alerts to begin with: "),
            count => format!("{count} alerts: "),
        };
        title(strongest, &several, share, self.now, max_chars)
    }

    /// What one of its alerts tells, in one line, as [`title`](Self::title).
    pub fn line(&self, notice: &Notification, share: ShareStyle, max_chars: usize) -> String {
        title(notice, "", share, self.now, max_chars)
    }

    /// Token, size, share of the market cap and when, for one of its alerts; nothing that changes as time passes.
    pub fn headline(&self, notice: &Notification) -> String {
        headline(&notice.body, ShareStyle::Long)
    }

    /// The address of our own pages, if it may be shown as a link.
    pub fn link(&self) -> Option<String> {
        self.external_url.and_then(web_address)
    }

    /// The address of one of our own pages, if it may be shown as a link.
    fn link_to(&self, path: &str) -> Option<String> {
        self.link().map(|url| format!("{}/{path}", url.trim_end_matches('/')))
    }

    /// The page of an alert, where one reads why it was told, acknowledges it and silences it.
    pub fn page(&self, notice: &Notification) -> Option<String> {
        let id: String = notice.alert.as_str().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
        self.link_to(&format!("alerts/{id}")).filter(|_| !id.is_empty() && has_page(notice))
    }

    /// The page of what it tells: that of its one alert, else that of all alerts.
    pub fn page_of_all(&self) -> Option<String> {
        match self.entries().as_slice() {
            [entry] if self.is_single() => self.page(entry.strongest).or_else(|| self.link()),
            _ => self.link_to("alerts"),
        }
    }

    /// What the link to [`page_of_all`](Self::page_of_all) is called.
    pub fn words_of_page(&self) -> &'static str {
        match self.entries().as_slice() {
            [entry] if self.is_single() => page_words(entry.strongest),
            _ => "All alerts",
        }
    }

    /// The gravest tone of its alerts.
    pub fn tone(&self) -> Tone {
        self.notifications().iter().map(|notice| notice.body.tone()).max().unwrap_or_default()
    }
}

/// What the link to the page of an alert is called: by what can be done there.
fn page_words(notice: &Notification) -> &'static str {
    match notice.kind {
        _ if is_resolved(&notice.body) => "Why, and who was told",
        NotificationKind::Event => "Why, silence",
        _ => "Why, acknowledge, silence",
    }
}

/// Digests and tests are no alerts that are kept.
fn has_page(notice: &Notification) -> bool {
    !matches!(notice.kind, NotificationKind::Digest | NotificationKind::Test)
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
    /// `Critical`, `Resolved`, `Reminder`, …
    pub badge: String,
    /// How grave it is.
    pub tone: Tone,
    /// The token, or `Cliffwatch` for its own affairs.
    pub token: String,
    /// What is told, in one line: token, size, share, when.
    pub headline: String,
    /// The same with how far away it is, and marked where it is over, critical or a test.
    pub first_line: String,
    /// What other rules say of the same: `InsiderUnlockAhead (info)`, with their own words where they say more.
    pub also: Vec<String>,
    /// The annotation `summary`, where it says something else than the headline.
    pub summary: String,
    /// The annotation `description`.
    pub description: String,
    /// Facts: name and value.
    pub facts: Vec<(&'static str, String)>,
    /// What changed: what, before, after.
    pub changes: Vec<(String, String, String)>,
    /// Who gets how much, or what each token of a group does: name, amount, value.
    pub shares: Vec<(String, String, String)>,
    /// What `shares` are.
    pub shares_title: &'static str,
    /// Rows of `changes` and `shares` that found no room.
    pub more: usize,
    /// The dates around it: date, tokens, whether it is the one in question.
    pub schedule: Vec<(String, String, bool)>,
    /// What the link to its page is called.
    pub page_words: &'static str,
    /// The annotation `runbook_url`, if it is an address of the web.
    pub runbook: Option<String>,
    /// Where the schedule is from: each place, and its address where that is one of the web.
    pub data_sources: Vec<(String, Option<String>)>,
    /// Our own page of it.
    pub page: Option<String>,
    /// Where it comes from and why it is told.
    pub origin: Vec<(&'static str, String)>,
}

impl Card {
    /// Links that belong to it, with what they are called: its page, the runbook, where the schedule is from.
    pub fn links(&self) -> Vec<(&'static str, &str)> {
        let source = self.data_sources.iter().find_map(|(_, url)| url.as_deref());
        let links = [(self.page_words, self.page.as_deref()), ("Runbook", self.runbook.as_deref()), ("Data source", source)];
        links.into_iter().filter_map(|(words, url)| Some((words, url?))).collect()
    }

    /// Which other rules say the same, without their words: `InsiderUnlockAhead (info), CommittedClaimDiffers (warning)`.
    pub fn also_rules(&self) -> String {
        self.also.iter().map(|also| also.split(':').next().unwrap_or_default()).collect::<Vec<_>>().join(", ")
    }

    /// The line of it in a list: what is told, and which rules say the same.
    pub fn list_line(&self) -> String {
        let also = self.also_rules();
        if also.is_empty() { self.first_line.clone() } else { format!("{} · also {also}", self.first_line) }
    }

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

    /// The rule's own words, summary and description, and those of other rules, line by line.
    pub fn words(&self) -> Vec<String> {
        let summary = Some(&self.summary).filter(|summary| !summary.is_empty()).cloned();
        let also = self.also.iter().map(|also| format!("Also: {also}"));
        summary.into_iter().chain(also).chain(self.description.lines().map(str::to_owned)).collect()
    }

    /// Everything of it as plain lines, for services that show text alone: the rule's words, rows, footer, links.
    pub fn lines(&self, max_shares: usize) -> Vec<String> {
        let mut lines = self.lines_without_links(max_shares);
        lines.extend(self.links().iter().map(|(words, url)| format!("{words}: {url}")));
        lines
    }

    /// The same for a service that shows links by itself.
    pub fn lines_without_links(&self, max_shares: usize) -> Vec<String> {
        let mut lines = self.words();
        let rows = self.rows(max_shares);
        if !lines.is_empty() && !rows.is_empty() {
            lines.push(String::new());
        }
        lines.extend(rows.into_iter().map(|(name, value)| format!("{name}: {value}")));
        lines.extend([String::new(), self.footer()]);
        lines
    }
}

fn is_resolved(body: &AlertBody) -> bool {
    body.status == AlertStatus::Resolved
}

/// What a message shows of one entry.
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
        _ => capitalized(&severity),
    };
    let record = body.record.as_ref().unwrap_or(&Value::Null);
    let is_group = !body.members.is_empty();
    let (mut shares, total_shares) = if is_group { members(body) } else { shares(record) };
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
        also: also(entry, &headline),
        summary: if says_more(&summary, &headline) { summary } else { String::new() },
        headline,
        first_line: title(notice, "", ShareStyle::Long, now, MAX_TITLE_CHARS),
        description: match notice.is_digest() {
            true => text::paragraph(annotation("description"), text::MAX_DIGEST_CHARS),
            false => text::paragraph(annotation("description"), text::MAX_PARAGRAPH_CHARS),
        },
        facts,
        changes,
        shares,
        shares_title: if is_group { "Its tokens" } else { "Who gets it" },
        more,
        schedule: schedule(body),
        page_words: page_words(notice),
        runbook: web_address(annotation("runbook_url")),
        data_sources: data_sources(body.source.data_source.as_deref().unwrap_or_default()),
        page: brief.page(notice),
        origin: origin(notice, now),
    }
}

/// What other rules say of the same event.
fn also(entry: &MessageEntry<'_>, headline: &str) -> Vec<String> {
    let words = |notice: &&Notification| {
        let body = &notice.body;
        let severity = body.labels.get("severity").map(|severity| format!(" ({})", text::line(severity, 40))).unwrap_or_default();
        let said = summary(body);
        let said = if says_more(&said, headline) { format!(": {said}") } else { String::new() };
        format!("{}{severity}{said}", text::line(&body.rule, 120))
    };
    entry.also.iter().take(MAX_ROWS).map(words).collect()
}

/// The places that a source names, each with its address.
fn data_sources(text: &str) -> Vec<(String, Option<String>)> {
    // A title may hold blanks and commas, addresses do not.
    let is_list = text.split([',', ';', ' ', '\n']).any(|word| web_address(word).is_some());
    let parts: Vec<&str> = if is_list { text.split([',', ';', '\n']).collect() } else { vec![text] };
    let part = |part: &str| {
        let words = text::line(part, 120);
        (!words.is_empty()).then(|| (words, web_address(part).filter(|_| !part.trim().contains(char::is_whitespace))))
    };
    parts.into_iter().filter_map(part).take(MAX_ROWS).collect()
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
