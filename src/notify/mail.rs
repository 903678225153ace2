//! From notifications to a mail: subject, a text part that is complete on its own, and HTML with pictures for those who like it. Pure.
//!
//! What the mail says is decided once, in [`Card`]; text and HTML are two renderings of the same cards. Texts of the source come
//! harmless from there, and go through the template's escaping on their way into HTML.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

mod digest;

use super::card::{self, Brief, Card, MAX_TITLE_CHARS, ShareStyle, Tone};
use super::picture::{self, Picture};
use super::{message, text};
use model::Notification;

/// Alerts up to which all are shown in full. Of more, each is a line of a list, and the first are shown in full below it.
const FEW: usize = 3;
const DETAILED: usize = 5;

/// Most lines of that list; the rest is counted.
const MAX_LINES: usize = 100;

/// Most pictures in one mail.
const MAX_PICTURES: usize = 5;

/// Steps that a template may take.
const TEMPLATE_FUEL: u64 = 500_000;

/// A mail without its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// One line, at most `MAX_TITLE_CHARS` characters.
    pub subject: String,
    /// Complete on its own.
    pub text: String,
    /// None where the template failed: then the text stands alone.
    pub html: Option<String>,
    /// What the HTML shows by `cid:schedule-1`, `cid:schedule-2`, …: PNG files, in that order.
    pub pictures: Vec<Vec<u8>>,
}

#[derive(Serialize)]
struct MailPage<'a> {
    subject: &'a str,
    preview: &'a str,
    list: Vec<ListedAlert<'a>>,
    cards: Vec<ShownCard<'a>>,
    note: &'a str,
    rest: &'a str,
    /// The command that shows all of it.
    command: String,
    external_url: Option<&'a str>,
    /// The same without a slash at its end, for the paths of pages.
    base: Option<&'a str>,
    receiver: &'a str,
    unsubscribe: Option<&'a str>,
}

#[derive(Serialize)]
struct ListedAlert<'a> {
    tone: Tone,
    headline: &'a str,
    /// How near it is, or why it is over.
    aside: String,
    page: Option<&'a str>,
    also: String,
}

#[derive(Serialize)]
struct ShownCard<'a> {
    #[serde(flatten)]
    card: &'a Card,
    picture: Option<&'a Picture>,
    digest: Option<digest::DigestTables>,
}

/// Writes the mail that tells `brief`; `unsubscribe` is where its recipient stops such mails. None where there is nothing to tell.
pub fn compose(brief: &Brief<'_>, unsubscribe: Option<&str>) -> Option<Mail> {
    if brief.notifications().is_empty() {
        return None;
    }
    let cards = brief.cards(MAX_LINES);
    let rest = brief.rest(cards.len());
    let rest_words = brief.rest_words(brief.count().saturating_sub(cards.len()));
    let listed = if brief.count() > FEW { cards.as_slice() } else { &[] };
    // A welcome is an overview: what is in it can be looked at one by one.
    let detailed = if brief.delivery.bundle.is_welcome { 0 } else { DETAILED };
    let cards = cards.get(..detailed).filter(|_| !listed.is_empty()).unwrap_or(&cards);
    let entries = brief.entries();
    let subject = brief.title(ShareStyle::Short, MAX_TITLE_CHARS);
    let external_url = brief.link();
    let note = brief.note();
    let receiver = text::line(brief.delivery.receiver.as_str(), text::MAX_LINE_CHARS);
    let text = plain(&PlainPart {
        listed,
        cards,
        note: &note,
        rest: &rest,
        external_url: external_url.as_deref(),
        receiver: &receiver,
        unsubscribe,
    });
    let mut pictures: Vec<Picture> = Vec::new();
    let mut at: Vec<Option<usize>> = Vec::new();
    for (entry, card) in entries.iter().zip(cards) {
        let body = &entry.strongest.body;
        let drawn = if pictures.len() < MAX_PICTURES { picture::draw(body, card.tone, brief.now) } else { None };
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
                picture: at.and_then(|at| pictures.get(at)),
                digest: digest::tables(entry.strongest),
            })
            .collect(),
        note: &note,
        rest: &rest_words,
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
    let aside = match card.tone {
        Tone::Good => Some(card::ending(&notice.body)).filter(|why| !why.is_empty()).unwrap_or_else(|| "resolved".to_owned()),
        _ => card::nearness(notice, brief.now).unwrap_or_default(),
    };
    ListedAlert { tone: card.tone, headline: &card.headline, aside, page: card.page.as_deref(), also: card.also_rules() }
}

/// The HTML part.
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
            tracing::error!(error = %error, "the HTML of a mail could not be made; its text goes out alone");
            None
        }
    }
}

/// What the text part shows.
struct PlainPart<'a> {
    listed: &'a [Card],
    cards: &'a [Card],
    note: &'a str,
    rest: &'a str,
    external_url: Option<&'a str>,
    receiver: &'a str,
    unsubscribe: Option<&'a str>,
}

fn plain(shown: &PlainPart<'_>) -> String {
    const RULE: &str = "----------------------------------------";
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
        lines.extend([String::new(), format!("The first {} in full:", cards.len()), RULE.into(), String::new()]);
    }
    for (at, card) in cards.iter().enumerate() {
        if at > 0 {
            lines.extend([String::new(), RULE.into(), String::new()]);
        }
        lines.push(card.first_line.clone());
        lines.push(format!("{}, {}", card.badge, card.token));
        if !card.summary.is_empty() {
            lines.extend([String::new(), format!("  {}", card.summary)]);
        }
        if !card.description.is_empty() {
            // Set in, so that no text from outside passes for a heading or a signature of ours.
            lines.push(String::new());
            lines.extend(card.description.lines().map(|line| format!("  {line}").trim_end().to_owned()));
        }
        section(&mut lines, "What changed", card.changes.iter().map(|(what, from, to)| format!("{what}: {from} -> {to}")));
        section(&mut lines, "", card.facts.iter().map(|(name, value)| format!("{name}: {value}")));
        section(&mut lines, "The same event by other rules", card.also.iter().cloned());
        section(&mut lines, card.shares_title, card.shares.iter().map(|(name, amount, value)| share_line(name, amount, value)));
        if card.more > 0 {
            lines.push(format!("  and {} more", card.more));
        }
        let date = |(date, amount, is_own): &(String, String, bool)| {
            format!("{} {date}: {amount} tokens", if *is_own { '>' } else { ' ' })
        };
        section(&mut lines, "Schedule", card.schedule.iter().map(date));
        let links = [(card.page_words, &card.page), ("Runbook", &card.runbook)];
        section(&mut lines, "", links.iter().filter_map(|(words, url)| Some(format!("{words}: {}", url.as_deref()?))));
        section(&mut lines, "Where this comes from", card.origin.iter().map(|(name, value)| format!("{name}: {value}")));
    }
    if !rest.is_empty() {
        lines.extend([String::new(), format!("{rest}.")]);
    }
    lines.push(String::new());
    lines.push("-- ".into());
    lines.push(format!("Sent by Cliffwatch to the receiver \"{receiver}\"."));
    lines.extend(external_url.map(str::to_owned));
    lines.extend(unsubscribe.map(|link| format!("To stop these digests: {link}")));
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
