//! The tables of a digest in a mail, and the sentences below them.

use serde::Serialize;

use crate::text;
use model::{
    Digest, Notification, Severity,
    digest::{AheadLine, LinearLine, PositionLine},
    phrase,
};

/// The maximum number of rows per table.
const MAX_ROWS: usize = 100;

#[derive(Serialize)]
pub(super) struct DigestTables {
    parts: Vec<DigestPart>,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct DigestPart {
    title: String,
    sum: String,
    rows: Vec<DigestRow>,
    /// The number of rows that are not shown.
    more: u32,
}

#[derive(Serialize)]
struct DigestRow {
    name: String,
    value: String,
    note: String,
    severity: Option<Severity>,
    /// The path of a page of the web interface.
    path: Option<String>,
}

/// Returns the tables of a digest, or `None` for other notifications and if the record cannot be parsed. The mail then shows the text.
pub(super) fn tables(notice: &Notification) -> Option<DigestTables> {
    if !notice.is_digest() {
        return None;
    }
    let digest: Digest = serde_json::from_value(notice.body.record.clone()?).ok()?;
    let mut parts = vec![
        part(phrase::digest::title(phrase::digest::AHEAD, &digest), digest.ahead.iter().map(unlock_row), digest.ahead_left_out)
            .with_sum(digest.ahead_value),
        part(phrase::digest::VESTING, digest.linear.iter().map(vesting_row), digest.linear_left_out)
            .with_sum(digest.linear_value),
        part(phrase::digest::POSSIBLE, digest.possible.iter().map(unlock_row), digest.possible_left_out)
            .with_sum(digest.possible_value),
        part(phrase::digest::GROUPS, digest.groups.iter().map(|group| row(&group.name, &phrase::digest::group(group), "")), 0),
        part(phrase::digest::POSITIONS, digest.positions.iter().map(position_row), digest.positions_left_out),
        part(phrase::digest::CHANGES, change_rows(&digest), digest.changes_left_out),
        part(phrase::digest::FIRING, alert_rows(&digest), digest.fires_left_out),
        part(phrase::digest::SUPPRESSED, suppressed_rows(&digest), digest.held_back_left_out),
        part(phrase::digest::SILENCES, silence_rows(&digest), digest.silences_left_out),
    ];
    parts.retain(|part| !part.rows.is_empty());
    Some(DigestTables { parts, sentences: sentences(&digest) })
}

fn sentences(digest: &Digest) -> Vec<String> {
    let mut sentences: Vec<String> =
        [phrase::digest::total(digest), phrase::digest::gaps(digest), phrase::digest::stale_prices(digest)]
            .into_iter()
            .flatten()
            .collect();
    if digest.ahead.is_empty() {
        sentences.push(phrase::digest::no_unlocks(digest));
    }
    if digest.changes.is_empty() {
        sentences.push(phrase::digest::no_changes(digest.since));
    }
    if digest.fires.is_empty() {
        sentences.push(phrase::digest::firing_count(digest.firing));
    }
    if digest.incident_summaries.is_empty() {
        sentences.push(phrase::digest::NO_INCIDENTS.to_owned());
    }
    sentences.extend(digest.incident_summaries.iter().take(MAX_ROWS).map(|sentence| line(sentence)));
    sentences
}

fn unlock_row(ahead: &AheadLine) -> DigestRow {
    let size = match (ahead.value, ahead.amount) {
        (Some(value), _) => phrase::usd(value),
        (None, Some(amount)) => format!("{} ({})", phrase::tokens(amount, Some(&ahead.symbol)), phrase::VALUE_UNKNOWN),
        (None, None) => phrase::VALUE_UNKNOWN.to_owned(),
    };
    let share = ahead.share.map(|share| phrase::share(share, phrase::MARKET_CAP));
    let size: Vec<String> = std::iter::once(size).chain(share).collect();
    let path = slug(&ahead.token).map(|slug| format!("tokens/{slug}"));
    DigestRow { path, ..row(&ahead.symbol, &size.join(", "), &ahead.when) }
}

fn vesting_row(of: &LinearLine) -> DigestRow {
    let path = slug(&of.token).map(|slug| format!("tokens/{slug}"));
    let (size, changes) = phrase::digest::vesting_texts(of);
    DigestRow { path, ..row(&of.symbol, &size, &changes) }
}

fn position_row(line: &PositionLine) -> DigestRow {
    let path = slug(&line.token).map(|slug| format!("tokens/{slug}"));
    DigestRow { path, ..row(&line.symbol, &phrase::digest::position(line), "") }
}

fn change_rows(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.changes.iter().map(|changed| DigestRow {
        path: slug(&changed.token).map(|slug| format!("tokens/{slug}")),
        ..row(&changed.symbol, &changed.text, &format!("detected {}", phrase::instant(changed.at)))
    })
}

fn alert_rows(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.fires.iter().map(|alert| DigestRow {
        severity: Some(alert.severity),
        path: slug(&alert.alert).map(|id| format!("alerts/{id}")),
        ..row(alert.severity.as_str(), &phrase::digest::firing(alert), &phrase::digest::rules(alert))
    })
}

fn suppressed_rows(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.held_back.iter().map(|held| row(held.state.as_str(), &held.summary, &held.rule))
}

fn silence_rows(digest: &Digest) -> impl Iterator<Item = DigestRow> {
    digest.silences.iter().map(|silence| {
        let until = format!("until {}, by {}", phrase::instant(silence.until), silence.author);
        row(&silence.matchers, &silence.comment, &until)
    })
}

/// Returns the word if it needs no escaping in a URL path.
fn slug(word: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!word.is_empty() && word.len() <= 200 && word.chars().all(is_plain)).then_some(word)
}

fn line(line: &str) -> String {
    text::line(line, model::phrase::MAX_LINE_CHARS)
}

fn row(name: &str, value: &str, note: &str) -> DigestRow {
    DigestRow { name: line(name), value: line(value), note: line(note), severity: None, path: None }
}

fn part(title: impl Into<String>, rows: impl Iterator<Item = DigestRow>, left_out: u32) -> DigestPart {
    let mut rows: Vec<DigestRow> = rows.collect();
    let cut = u32::try_from(rows.len().saturating_sub(MAX_ROWS)).unwrap_or(u32::MAX);
    rows.truncate(MAX_ROWS);
    DigestPart { title: title.into(), sum: String::new(), rows, more: left_out.saturating_add(cut) }
}

impl DigestPart {
    fn with_sum(self, value: Option<f64>) -> Self {
        Self { sum: value.map(phrase::usd).unwrap_or_default(), ..self }
    }
}
