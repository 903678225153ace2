//! A message as a title and one text, for services without a richer structure. The [`Marks`] of a service define its escapes, bold
//! text, and links.

use super::fit::{fit, fit_counted};
use crate::card::{Brief, Severity, ShareStyle, list_lines};

const MAX_LINES: usize = 40;
const MAX_SHARES: usize = 6;

/// The room for the line about the alerts that are not shown.
const REST_ROOM: usize = 400;

/// The markup of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Escapes text so that the service shows it unchanged, without markup, links, or mentions.
    pub(super) escape: fn(&str) -> String,
    /// Makes escaped text bold.
    pub(super) strong: fn(&str) -> String,
    /// Writes a link from its URL and its text. `None` if the service shows links separately.
    pub(super) link: Option<fn(&str, &str) -> String>,
}

impl Marks {
    /// Plain text, with links as `text: URL`.
    pub(super) const PLAIN: Self = Self { escape: str::to_owned, strong: str::to_owned, link: Some(plain_link) };

    pub(super) const PLAIN_WITHOUT_LINKS: Self = Self { link: None, ..Self::PLAIN };
}

fn plain_link(url: &str, words: &str) -> String {
    format!("{words}: {url}")
}

/// The size limits of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The length limit of the title in characters, before escaping.
    pub(super) title_chars: usize,
    /// The limit of the text, measured by `size`.
    pub(super) text: usize,
    pub(super) size: fn(&str) -> usize,
}

/// A message in the markup of a service.
#[derive(Debug)]
pub(super) struct MarkedText {
    pub(super) title: String,
    /// Everything but the title. Never empty.
    pub(super) text: String,
}

pub(super) fn marked(brief: &Brief<'_>, marks: &Marks, room: &Room) -> MarkedText {
    let Marks { escape, strong, link } = *marks;
    let cards = brief.cards(MAX_LINES);
    let links: Vec<String> =
        link.map(|link| brief.links(&cards).iter().map(|(words, url)| link(url, words)).collect()).unwrap_or_default();
    // A URL of a rule can have any length. Links that take most of the room are omitted, because a cut link is useless.
    let links = Some(links.join("\n")).filter(|links| !links.is_empty() && (room.size)(links) <= room.text / 2);
    let rest_room = REST_ROOM.min(room.text / 4);
    let space = room.text.saturating_sub(links.as_deref().map_or(0, room.size) + rest_room);

    let title = brief.title(ShareStyle::Long, room.title_chars);
    let mut lines: Vec<String> = brief.note().iter().map(|note| strong(&escape(note))).collect();
    let above = lines.len();
    let (text, shown) = match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.words_below(&title).iter().map(|line| escape(line)));
            let rows = card.rows(MAX_SHARES);
            if !lines.is_empty() && !rows.is_empty() {
                lines.push(String::new());
            }
            lines.extend(rows.iter().map(|(name, value)| format!("{}: {}", escape(name), strong(&escape(value)))));
            lines.extend([String::new(), escape(&card.footer())]);
            (fit_counted(&lines, space, room.size), cards.len())
        }
        cards => {
            lines.extend(list_lines(cards, room.text).iter().map(|line| format!("• {}", escape(line))));
            let (text, count) = fit(&lines, space, room.size);
            (text, count.saturating_sub(above))
        }
    };
    let rest = brief.rest(shown).map(|rest| escape(&rest)).filter(|rest| (room.size)(rest) <= rest_room);
    let short_rest = || brief.rest_count(brief.count().saturating_sub(shown)).map(|rest| escape(&rest));
    let parts = [Some(text).filter(|text| !text.is_empty()), rest.or_else(short_rest), links];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    MarkedText { title: escape(&title), text }
}

/// Escapes text for HTML, except within attributes.
pub(super) fn html_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes text for HTML.
pub(super) fn html(text: &str) -> String {
    html_text(text).replace('"', "&quot;")
}

/// Replaces each character of markup, links, and mentions by one that looks like it, for services without reliable escapes.
pub(super) fn lookalikes(text: &str) -> String {
    let alike = |c: char| match c {
        '*' => '∗',
        '_' => '＿',
        '~' => '∼',
        '`' => 'ˋ',
        '[' => '［',
        ']' => '］',
        '<' => '‹',
        '>' => '›',
        '@' => '＠',
        '#' => '＃',
        '|' => '¦',
        '\\' => '＼',
        other => other,
    };
    text.chars().map(alike).collect()
}

/// Returns the color of a severity, for a bar next to the message.
pub(super) fn color(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "#C62828",
        Severity::Warning => "#EF6C00",
        Severity::Info => "#1565C0",
        Severity::Good => "#2E7D32",
    }
}

pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}
