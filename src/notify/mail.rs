//! Writes a mail: subject, plain text, and HTML with pictures. Pure.
//!
//! Text and HTML are two renderings of the same [`Card`]s, whose texts are already sanitized. The template escapes them for HTML.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

mod digest;

use super::card::{self, Brief, Card, MAX_TITLE_CHARS, Severity, ShareStyle};
use super::picture::{self, Picture};
use super::{message, text};
use model::Notification;

/// Up to this number, all alerts are shown in full. More alerts are listed in one line each, followed by the first
/// [`DETAILED_CARDS`] in full.
const MAX_FULL_CARDS: usize = 3;
const DETAILED_CARDS: usize = 5;

const MAX_LINES: usize = 100;
const MAX_PICTURES: usize = 5;

/// The maximum number of steps to render the template.
const TEMPLATE_FUEL: u64 = 500_000;

/// The content of a mail, without sender and recipients.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// One line of at most `MAX_TITLE_CHARS` characters.
    pub subject: String,
    pub text: String,
    /// `None` if the template failed. The mail then has only the text.
    pub html: Option<String>,
    /// PNG files, referenced in the HTML as `cid:schedule-1`, `cid:schedule-2`, ….
    pub pictures: Vec<Vec<u8>>,
}

#[derive(Serialize)]
struct MailPage<'a> {
    subject: &'a str,
    preview: &'a str,
    list: Vec<ListedAlert<'a>>,
    cards: Vec<ShownCard<'a>>,
    note: &'a str,
    rest: Option<&'a str>,
    /// The day of the stale prices that all entries share.
    prices: Option<&'a str>,
    command: String,
    external_url: Option<&'a str>,
    /// `external_url` without a trailing slash.
    base: Option<&'a str>,
    receiver: &'a str,
    unsubscribe: Option<&'a str>,
}

#[derive(Serialize)]
struct ListedAlert<'a> {
    severity: Severity,
    headline: &'a str,
    /// The time until the event, or why the alert ended.
    aside: String,
    page: Option<&'a str>,
    also: String,
    /// The day of the prices, if they are stale and not those of all entries.
    prices: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownCard<'a> {
    #[serde(flatten)]
    card: &'a Card,
    price_line: Option<String>,
    picture: Option<&'a Picture>,
    digest: Option<digest::DigestTables>,
}

/// Writes the mail for a delivery. `unsubscribe` is the personal link of the recipient of a digest. Returns `None` if the delivery
/// has no notifications.
pub fn compose(brief: &Brief<'_>, unsubscribe: Option<&str>) -> Option<Mail> {
    if brief.notifications().is_empty() {
        return None;
    }
    let cards = brief.cards(MAX_LINES);
    let rest = brief.rest(cards.len());
    let rest_count = brief.rest_count(brief.count().saturating_sub(cards.len()));
    let shared_prices = brief.shared_prices();
    let listed = if brief.count() > MAX_FULL_CARDS { cards.as_slice() } else { &[] };
    // A welcome message is only an overview.
    let detailed = if brief.delivery.batch.is_welcome { 0 } else { DETAILED_CARDS };
    let cards = cards.get(..detailed).filter(|_| !listed.is_empty()).unwrap_or(&cards);
    let entries = brief.entries();
    let subject = brief.title(ShareStyle::Short, MAX_TITLE_CHARS);
    let external_url = brief.link();
    let note = brief.note().unwrap_or_default();
    let receiver = text::line(brief.delivery.receiver.as_str(), model::phrase::MAX_LINE_CHARS);
    let text = plain(&PlainPart {
        listed,
        cards,
        note: &note,
        rest: rest.as_deref(),
        external_url: external_url.as_deref(),
        receiver: &receiver,
        unsubscribe,
    });
    let mut pictures: Vec<Picture> = Vec::new();
    let mut at: Vec<Option<usize>> = Vec::new();
    for (entry, card) in entries.iter().zip(cards) {
        let body = &entry.strongest.body;
        let drawn = if pictures.len() < MAX_PICTURES { picture::draw(body, card.severity, brief.now) } else { None };
        at.push(drawn.is_some().then_some(pictures.len()));
        pictures.extend(drawn.map(|picture| Picture { cid: format!("schedule-{}", pictures.len() + 1), ..picture }));
    }
    let page = MailPage {
        subject: &subject,
        list: listed.iter().zip(&entries).map(|(card, entry)| line_of(card, entry.strongest, brief)).collect(),
        preview: cards.first().map_or(note.as_str(), |card| if card.summary.is_empty() { &card.token } else { &card.summary }),
        cards: cards
            .iter()
            .zip(&at)
            .zip(&entries)
            .map(|((card, at), entry)| ShownCard {
                card,
                price_line: card.price_line(),
                picture: at.and_then(|at| pictures.get(at)),
                digest: digest::tables(entry.strongest),
            })
            .collect(),
        note: &note,
        rest: rest_count.as_deref(),
        prices: shared_prices.as_deref(),
        command: message::command(brief.delivery).replace('`', ""),
        external_url: external_url.as_deref(),
        base: external_url.as_deref().map(|url| url.trim_end_matches('/')),
        receiver: &receiver,
        unsubscribe,
    };
    let html = render(&page);
    let pictures = if html.is_some() { pictures.into_iter().map(|picture| picture.png).collect() } else { Vec::new() };
    Some(Mail { subject, text, html, pictures })
}

fn line_of<'a>(card: &'a Card, notice: &Notification, brief: &Brief<'_>) -> ListedAlert<'a> {
    let aside = match card.severity {
        Severity::Good => Some(card::ending(&notice.body)).filter(|why| !why.is_empty()).unwrap_or_else(|| "resolved".to_owned()),
        _ => card::nearness(notice, brief.now).unwrap_or_default(),
    };
    ListedAlert {
        severity: card.severity,
        headline: &card.headline,
        aside,
        page: card.page.as_deref(),
        also: card.also_rules(),
        prices: card.prices.as_deref(),
    }
}

fn render(page: &MailPage<'_>) -> Option<String> {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_fuel(Some(TEMPLATE_FUEL));
        environment
    });
    match TEMPLATES.render_named_str("mail.html", include_str!("mail.html"), Serde(page)) {
        Ok(html) => Some(html),
        Err(error) => {
            tracing::error!(error = %error, "cannot render the HTML of a mail, sending only the text");
            None
        }
    }
}

struct PlainPart<'a> {
    listed: &'a [Card],
    cards: &'a [Card],
    note: &'a str,
    rest: Option<&'a str>,
    external_url: Option<&'a str>,
    receiver: &'a str,
    unsubscribe: Option<&'a str>,
}

fn plain(shown: &PlainPart<'_>) -> String {
    const SEPARATOR: &str = "----------------------------------------";
    let PlainPart { listed, cards, note, rest, external_url, receiver, unsubscribe } = *shown;
    let mut lines: Vec<String> = Vec::new();
    if !note.is_empty() {
        lines.extend([note.to_owned(), String::new()]);
    }
    for card in listed {
        lines.push(format!("- {}", card.list_line()));
        lines.extend(card.page.iter().map(|page| format!("  {page}")));
    }
    if !listed.is_empty() && !cards.is_empty() {
        lines.extend([String::new(), format!("Details of the first {}:", cards.len()), SEPARATOR.into(), String::new()]);
    }
    for (at, card) in cards.iter().enumerate() {
        if at > 0 {
            lines.extend([String::new(), SEPARATOR.into(), String::new()]);
        }
        lines.push(card.first_line.clone());
        lines.push(format!("{}, {}", card.badge, card.token));
        if !card.summary.is_empty() {
            lines.extend([String::new(), format!("  {}", card.summary)]);
        }
        lines.extend(card.price_line().map(|prices| format!("  {prices}")));
        if !card.description.is_empty() {
            // The indent keeps text from outside from looking like a heading or the signature.
            lines.push(String::new());
            lines.extend(card.description.lines().map(|line| format!("  {line}").trim_end().to_owned()));
        }
        section(&mut lines, "Changes", card.changes.iter().map(|(what, from, to)| format!("{what}: {from} -> {to}")));
        section(&mut lines, &card.facts_heading(), card.facts.iter().map(|(name, value)| format!("{name}: {value}")));
        section(&mut lines, "Also matched by", card.also.iter().cloned());
        section(&mut lines, card.shares_title, card.shares.iter().map(|(name, amount, value)| share_line(name, amount, value)));
        if card.more > 0 {
            lines.push(format!("  and {} more", card.more));
        }
        let date =
            |(date, amount, is_own): &(String, String, bool)| format!("{} {date}: {amount}", if *is_own { '>' } else { ' ' });
        section(&mut lines, "Schedule", card.schedule.iter().map(date));
        let links = [(card.page_label, &card.page), ("Runbook", &card.runbook)];
        section(&mut lines, "", links.iter().filter_map(|(words, url)| Some(format!("{words}: {}", url.as_deref()?))));
        section(&mut lines, "Details", card.origin.iter().map(|(name, value)| format!("{name}: {value}")));
    }
    if let Some(rest) = rest {
        lines.extend([String::new(), format!("{rest}.")]);
    }
    lines.push(String::new());
    lines.push("-- ".into());
    lines.push(format!("Sent by Cliffwatch to the receiver \"{receiver}\"."));
    lines.extend(external_url.map(str::to_owned));
    lines.extend(unsubscribe.map(|link| format!("Unsubscribe from these digests: {link}")));
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

#[cfg(test)]
mod tests;
