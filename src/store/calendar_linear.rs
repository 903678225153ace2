//! Starts, ends, and rate changes of linear unlocks for calendar feeds.

use super::calendar_rows::each_removed_event;
use super::codec::Millis;
use super::error::StoreFault;
use super::linear::{TokenLinear, each_linear, priced_token};
use super::schedule_reader::ScheduleReader;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::phrase::linear::{rate_change, rate_change_causes, vesting_begins, vesting_ends};
use model::{
    CalendarRow, FirstOf, LinearCalendarRow, LinearDate, LinearDateKind, LinearUnlock, ReferencePrice, SumWindow, Timestamp,
    Token, TokenSnapshot, UpcomingFilter, linear_dates, phrase,
};

impl Store {
    /// Returns the starts, ends, and rate changes of linear unlocks for which `select` returns `true`, next first, and those of events
    /// removed since `removed_since`. At most `filter.limit` dates, and those of at most `filter.limit` removed events. To save memory,
    /// the returned rows have no event. `select` gets the schedule of the token if `with_schedules` is set.
    pub async fn calendar_linear(
        &self,
        filter: UpcomingFilter,
        removed_since: Timestamp,
        with_schedules: bool,
        mut select: impl FnMut(&mut LinearCalendarRow, Option<&TokenSnapshot>) -> bool + Send + 'static,
    ) -> Result<Vec<LinearCalendarRow>, StoreError> {
        self.read("read the linear unlocks of a calendar", move |from| {
            let mut schedules = ScheduleReader::new(from, with_schedules);
            let mut select = |mut row: LinearCalendarRow| {
                let id = row.token.id.clone();
                let is_selected = select(&mut row, schedules.of(&id)?);
                row.event = None;
                Ok(is_selected.then_some(row))
            };
            let mut rows = calendar_linear(from, &filter, &mut select)?;
            each_removed_event(from, &filter, removed_since, |row| {
                for row in removed(&row, filter.window()) {
                    rows.extend(select(row)?);
                }
                Ok(())
            })?;
            Ok(rows)
        })
        .await
    }
}

fn calendar_linear(
    from: &Transaction<'_>,
    filter: &UpcomingFilter,
    select: &mut impl FnMut(LinearCalendarRow) -> Result<Option<LinearCalendarRow>, StoreFault>,
) -> Result<Vec<LinearCalendarRow>, StoreFault> {
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let window = filter.window();
    // The next starts and ends show which tokens to read.
    let mut edges = FirstOf::new(limit);
    let is_in = |at: &i64| window.at.timestamp_millis() < *at && *at <= window.until.timestamp_millis();
    each_linear(from, filter.tokens.as_deref(), window, |of| {
        let ends = of.pieces.iter().flat_map(|(_, piece)| [piece.starts_at, piece.ends_at]).filter(is_in);
        ends.for_each(|at| _ = edges.push((at, of.token_no)));
    })?;
    let mut tokens: Vec<i64> = edges.into_sorted().into_iter().map(|(_, token_no)| token_no).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let mut rows: Vec<LinearCalendarRow> = Vec::new();
    for token_no in tokens {
        for row in of_token(from, token_no, window)? {
            rows.extend(select(row)?);
        }
        // Rarely, because each time sorts all rows.
        if rows.len() / 2 > limit {
            keep_next(&mut rows, limit);
        }
    }
    keep_next(&mut rows, limit);
    Ok(rows)
}

/// Sorts rows by time, token, and key, and keeps the first ones.
fn keep_next(rows: &mut Vec<LinearCalendarRow>, limit: usize) {
    rows.sort_by(|a, b| (a.at, &a.token.id, &a.key).cmp(&(b.at, &b.token.id, &b.key)));
    rows.truncate(limit);
}

/// The last change of a token's schedule.
struct ScheduleChange {
    at: Timestamp,
    /// Whether the schedule is not as it was first read.
    was_modified: bool,
}

/// Returns the last change of a token's schedule. `None` if the token has no events.
fn last_change(from: &Transaction<'_>, token_no: i64) -> Result<Option<ScheduleChange>, StoreFault> {
    // The history of an unlock event has only its removal.
    let mut statement = from.prepare_cached(
        "SELECT max(at), min(first_seen) FROM (
             SELECT first_seen, version_at AS at FROM record WHERE token_no = ?1 AND resource = 'unlock'
             UNION ALL
             SELECT NULL, replaced_at FROM record_version WHERE token_no = ?1 AND resource = 'unlock' AND body IS NOT NULL) change",
    )?;
    let change = statement.query_optional([token_no], |row| {
        let (at, first): (Option<Millis>, Option<Millis>) = (row.get(0)?, row.get(1)?);
        Ok(at.zip(first).map(|(at, first)| ScheduleChange { at: at.0, was_modified: at.0 > first.0 }))
    })?;
    Ok(change.flatten())
}

fn of_token(from: &Transaction<'_>, token_no: i64, window: SumWindow) -> Result<Vec<LinearCalendarRow>, StoreFault> {
    let Some((token, read, price)) = priced_token(from, token_no)? else { return Ok(Vec::new()) };
    let linear = TokenLinear::read(from, token_no, token.id.as_str())?;
    let changed = last_change(from, token_no)?;
    let unlocks = linear.unlocks();
    let row = |date: LinearDate<'_>| {
        // The key of a date without an event contains its text, so such an entry never changes.
        let (modified_at, was_modified) = match changed.as_ref().filter(|_| !date.keys.is_empty()) {
            Some(changed) => (changed.at, changed.was_modified),
            None => (read.first.unwrap_or(date.at), false),
        };
        let event = |key: &&str| linear.events.iter().find(|tracked| tracked.key.as_str() == *key).cloned();
        let value = match &date.kind {
            LinearDateKind::Start(of) | LinearDateKind::End(of) => value_in(std::slice::from_ref(of), price, window),
            LinearDateKind::Rate(_) => value_in(&unlocks, price, window),
        };
        let text = DateText::of(&date, &token);
        LinearCalendarRow {
            token: token.clone(),
            key: text.key,
            at: date.at,
            precision: date.precision,
            summary: text.summary,
            allocations: text.allocations,
            event: date.keys.first().and_then(event),
            value,
            modified_at,
            was_modified,
            is_removed: false,
        }
    };
    Ok(linear_dates(&unlocks, window).into_iter().map(row).collect())
}

struct DateText {
    key: String,
    summary: String,
    allocations: Option<String>,
}

impl DateText {
    fn of(date: &LinearDate<'_>, token: &Token) -> Self {
        let symbol = token.symbol();
        let (allocation, kind, summary, allocations) = match &date.kind {
            LinearDateKind::Start(of) => {
                let begins = of.span().map(|span| vesting_begins(&span, of.allocation, of.piece.per_day(), symbol));
                (of.allocation, "start", begins.unwrap_or_default(), named(of))
            }
            LinearDateKind::End(of) => (of.allocation, "end", vesting_ends(of.allocation, symbol), named(of)),
            LinearDateKind::Rate(change) => ("", "rate", rate_change(change, symbol), rate_change_causes(change)),
        };
        let of = match date.keys.first() {
            Some(key) => (*key).to_owned(),
            None => format!("{}/{summary}", date.at.date_naive()),
        };
        Self { key: format!("{of}/{allocation}/{kind}"), summary, allocations }
    }
}

fn named(of: &LinearUnlock<'_>) -> Option<String> {
    Some(phrase::name(of.allocation)).filter(|_| !of.allocation.trim().is_empty())
}

/// Returns the value in USD of linear unlocks in a window. `None` if no amount or no price is known.
fn value_in(of: &[LinearUnlock<'_>], price: Option<ReferencePrice>, window: SumWindow) -> Option<f64> {
    let amounts = of.iter().filter_map(|of| Some(of.piece.amount? * of.piece.share_in(window)?));
    Some(amounts.reduce(|sum, amount| sum + amount)? * price?.usd)
}

/// Returns the dates of the linear unlocks of a removed event, as cancelled rows.
fn removed(row: &CalendarRow, window: SumWindow) -> Vec<LinearCalendarRow> {
    let Some(event) = row.row.tracked.record.unlock() else { return Vec::new() };
    let unlocks = LinearUnlock::of_schedule([(row.row.tracked.key.as_str(), event)]);
    // The value of all, so that no minimum value hides the cancellation of an entry that it showed.
    let value = value_in(&unlocks, ReferencePrice::latest([event]), window);
    let cancelled = |date: LinearDate<'_>| {
        let text = DateText::of(&date, &row.row.token);
        LinearCalendarRow {
            token: row.row.token.clone(),
            key: text.key,
            at: date.at,
            precision: date.precision,
            summary: text.summary,
            allocations: text.allocations,
            event: Some(row.row.tracked.clone()),
            value,
            modified_at: row.modified_at,
            was_modified: true,
            is_removed: true,
        }
    };
    linear_dates(&unlocks, window).into_iter().map(cancelled).collect()
}
