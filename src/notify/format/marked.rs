//! A message as a title and one text, for services whose messages are just that. What differs between them (what is escaped, what is
//! bold, how a link is written) each says by its [`Marks`].

use super::fit::{fit, fit_counted};
use crate::card::{Brief, ShareStyle, Tone};

/// Most alerts of a group that are listed.
const MAX_LINES: usize = 40;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 6;

/// Room for the line that says what is not shown and where it can be seen.
const REST_ROOM: usize = 400;

/// How a service's text is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Text from outside as the service shows it unchanged: it marks nothing, links nowhere and mentions nobody.
    pub(super) escape: fn(&str) -> String,
    /// What is escaped already, made to stand out.
    pub(super) strong: fn(&str) -> String,
    /// An address and what it is called; none where the service shows links by itself.
    pub(super) link: Option<fn(&str, &str) -> String>,
}

impl Marks {
    /// Plain text with addresses behind their names.
    pub(super) const PLAIN: Self = Self { escape: str::to_owned, strong: str::to_owned, link: Some(plain_link) };

    /// Plain text for a service that shows links by itself.
    pub(super) const PLAIN_WITHOUT_LINKS: Self = Self { link: None, ..Self::PLAIN };
}

fn plain_link(url: &str, words: &str) -> String {
    format!("{words}: {url}")
}

/// What a service takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Characters of the title, before it is escaped.
    pub(super) title_chars: usize,
    /// Of the text, by `size`.
    pub(super) text: usize,
    /// How the service counts.
    pub(super) size: fn(&str) -> usize,
}

/// A message with the marks of a service.
#[derive(Debug)]
pub(super) struct MarkedText {
    /// What is told, escaped.
    pub(super) title: String,
    /// Everything else. Never empty.
    pub(super) text: String,
}

/// The message that tells `brief`.
pub(super) fn marked(brief: &Brief<'_>, marks: &Marks, room: &Room) -> MarkedText {
    let Marks { escape, strong, link } = *marks;
    let cards = brief.cards(MAX_LINES);
    let links: Vec<String> = match (link, cards.as_slice()) {
        (None, _) => Vec::new(),
        (Some(link), [card]) if brief.is_single() => card.links().iter().map(|(words, url)| link(url, words)).collect(),
        (Some(link), _) => brief.page_of_all().iter().map(|url| link(url, "All alerts")).collect(),
    };
    // Addresses of a rule may be of any length; one that takes all the room is left out rather than cut.
    let links = Some(links.join("\n")).filter(|links| (room.size)(links) <= room.text / 2).unwrap_or_default();
    let space = room.text.saturating_sub((room.size)(&links) + REST_ROOM.min(room.text / 4));

    let note = brief.note();
    let mut lines: Vec<String> = if note.is_empty() { Vec::new() } else { vec![strong(&escape(&note))] };
    let above = lines.len();
    let (text, shown) = match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.words().iter().map(|line| escape(line)));
            let rows = card.rows(MAX_SHARES);
            if !lines.is_empty() && !rows.is_empty() {
                lines.push(String::new());
            }
            lines.extend(rows.iter().map(|(name, value)| format!("{}: {}", escape(name), strong(&escape(value)))));
            lines.extend([String::new(), escape(&card.footer())]);
            (fit_counted(&lines, space, room.size), cards.len())
        }
        cards => {
            lines.extend(cards.iter().map(|card| format!("• {}", escape(&card.list_line()))));
            let (text, count) = fit(&lines, space, room.size);
            (text, count.saturating_sub(above))
        }
    };
    let rest = Some(escape(&brief.rest(shown))).filter(|rest| (room.size)(rest) <= REST_ROOM.min(room.text / 4));
    let parts = [text, rest.unwrap_or_else(|| escape(&brief.rest_words(brief.count().saturating_sub(shown)))), links];
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    MarkedText { title: escape(&brief.title(ShareStyle::Long, room.title_chars)), text }
}

/// What HTML shows as it is.
pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// For services that mark text and have no escapes that hold everywhere: each character that marks, links or mentions gives way to
/// one that looks like it.
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

/// The colour of a tone, for a bar beside the message.
pub(super) fn color(tone: Tone) -> &'static str {
    match tone {
        Tone::Critical => "#C62828",
        Tone::Warning => "#EF6C00",
        Tone::Info => "#1565C0",
        Tone::Good => "#2E7D32",
    }
}

/// Characters as people count them.
pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}
