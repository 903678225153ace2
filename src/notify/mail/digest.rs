//! A digest as tables for mail, with the sentences that stand below them.

use serde::Serialize;

use crate::text;
use model::{Digest, Notification, POSSIBLE, Tone, digest::AheadLine, format};

/// Most rows of each table.
const MAX_ROWS: usize = 100;

/// A digest as tables, where its facts are known, with sentences below.
#[derive(Serialize)]
pub(super) struct DigestTables {
    parts: Vec<DigestPart>,
    sentences: Vec<String>,
}

/// A table: its title, what it adds up to, its rows, and how many more there are.
#[derive(Serialize)]
struct DigestPart {
    title: &'static str,
    sum: String,
    rows: Vec<DigestRow>,
    more: u32,
}

#[derive(Serialize)]
struct DigestRow {
    name: String,
    value: String,
    note: String,
    tone: Option<Tone>,
    /// The path of one of our pages.
    path: Option<String>,
}

/// The tables of a digest. None where the notice is none, or its facts cannot be read: then its text is shown.
pub(super) fn tables(notice: &Notification) -> Option<DigestTables> {
    if !notice.is_digest() {
        return None;
    }
    let digest: Digest = serde_json::from_value(notice.body.record.clone()?).ok()?;
    let mut parts = vec![
        part("Ahead", digest.ahead.iter().map(ahead), digest.ahead_left_out).worth(digest.ahead_value),
        part(POSSIBLE, digest.possible.iter().map(ahead), digest.possible_left_out).worth(digest.possible_value),
        part("Ahead by group", digest.groups.iter().map(|group| row(&group.name, &group.words(), "")), 0),
        part("Changed", changes(&digest), digest.changes_left_out),
        part("Fires now", fires(&digest), digest.fires_left_out),
        part("Held back", held(&digest), digest.held_back_left_out),
        part("Silenced now", silenced(&digest), digest.silences_left_out),
    ];
    parts.retain(|part| !part.rows.is_empty());
    Some(DigestTables { parts, sentences: sentences(&digest) })
}

fn sentences(digest: &Digest) -> Vec<String> {
    let mut sentences = Vec::new();
    if digest.ahead.is_empty() {
        sentences.push(format!("No unlock is known until {}.", format::day(digest.until)));
    }
    if digest.changes.is_empty() {
        sentences.push(format!("Nothing changed since {}.", format::instant(digest.since)));
    }
    if digest.fires.is_empty() {
        sentences.push(match digest.firing {
            0 => "No alert fires.".to_owned(),
            1 => "1 alert fires.".to_owned(),
            many => format!("{many} alerts fire."),
        });
    }
    if digest.trouble.is_empty() {
        sentences.push("The source answers, and every receiver takes its messages.".to_owned());
    }
    sentences.extend(digest.trouble.iter().take(MAX_ROWS).map(|sentence| line(sentence)));
    sentences
}

fn ahead(ahead: &AheadLine) -> DigestRow {
    let amount = || ahead.amount.map(|amount| format!("{} tokens", format::amount(amount)));
    let size = ahead.value.map(format::usd).or_else(amount);
    let share = ahead.share.map(|share| format!("{} of market cap", format::percent(share)));
    let size: Vec<String> = [size, share].into_iter().flatten().collect();
    let path = slug(&ahead.token).map(|slug| format!("tokens/{slug}"));
    match size.is_empty() {
        true => DigestRow { path, ..row(&ahead.symbol, &ahead.when, "") },
        false => DigestRow { path, ..row(&ahead.symbol, &size.join(", "), &ahead.when) },
    }
}

fn changes(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.changes.iter().map(|changed| DigestRow {
        path: slug(&changed.token).map(|slug| format!("tokens/{slug}")),
        ..row(&changed.symbol, &changed.text, &format!("seen {}", format::instant(changed.at)))
    })
}

fn fires(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.fires.iter().map(|alert| DigestRow {
        tone: Some(alert.tone),
        path: slug(&alert.alert).map(|id| format!("alerts/{id}")),
        ..row(alert.tone.as_str(), &alert.summary, &alert.rules())
    })
}

fn held(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.held_back.iter().map(|held| row(held.state.as_str(), &held.summary, &held.rule))
}

fn silenced(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.silences.iter().map(|silence| {
        let until = format!("until {}, by {}", format::instant(silence.until), silence.author);
        row(&silence.matchers, &silence.comment, &until)
    })
}

/// A word that may stand in the path of a page as it is.
fn slug(word: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!word.is_empty() && word.len() <= 200 && word.chars().all(is_plain)).then_some(word)
}

fn line(line: &str) -> String {
    text::line(line, text::MAX_LINE_CHARS)
}

fn row(name: &str, value: &str, note: &str) -> DigestRow {
    DigestRow { name: line(name), value: line(value), note: line(note), tone: None, path: None }
}

fn part(title: &'static str, rows: impl Iterator<Item = DigestRow>, left_out: u32) -> DigestPart {
    let mut rows: Vec<DigestRow> = rows.collect();
    let cut = u32::try_from(rows.len().saturating_sub(MAX_ROWS)).unwrap_or(u32::MAX);
    rows.truncate(MAX_ROWS);
    DigestPart { title, sum: String::new(), rows, more: left_out.saturating_add(cut) }
}

impl DigestPart {
    fn worth(self, value: Option<f64>) -> Self {
        Self { sum: value.map(format::usd).unwrap_or_default(), ..self }
    }
}
