//! The iCalendar feed of upcoming unlocks (RFC 5545): cliff unlocks, and starts, ends, and rate changes of linear unlocks.
//!
//! An event keeps its UID when its unlock changes, and its SEQUENCE rises, so that subscribers update it. A removed unlock is shown as
//! cancelled for some time. Events are as exact as the source: an unlock at midnight has no hour, and one with month precision is
//! tentative. The text depends only on the schedule, not on the time of the request, the last poll, or prices. Therefore amounts are in
//! tokens, and each event links to a page with their value.

use chrono::{NaiveDate, TimeDelta};
use icalendar::{Alarm, Calendar, Component, Event, EventLike, EventStatus, Property, Trigger};

use daemon::view::UnlockView;
use model::{Interval, LinearCalendarRow, Precision, Timestamp, phrase};

/// The refresh interval suggested to subscribers. The source changes a few times a day.
const REFRESH: &str = "PT1H";

/// 2020-01-01T00:00:00Z in Unix milliseconds. SEQUENCE counts from then on.
const SEQUENCE_EPOCH: i64 = 1_577_836_800_000;

/// The milliseconds that SEQUENCE counts as one. It reaches its maximum in 2037.
const SEQUENCE_STEP: i64 = 250;

/// The options of a calendar.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalendarStyle<'a> {
    /// The base URL of the pages.
    pub external_url: Option<&'a str>,
    pub spans: MonthSpan,
    /// The time of a reminder before each event.
    pub alarm: Option<TimeDelta>,
}

/// The length of an event whose date has month or week precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonthSpan {
    /// One day, the nominal date.
    #[default]
    Day,
    /// The whole month or week.
    Month,
}

/// An unlock with its permanent key.
#[derive(Clone, Debug)]
pub struct CalendarEntry {
    /// The record key, unique within the token.
    pub key: String,
    pub interval: Interval,
    pub view: UnlockView,
    /// The time of the last change of its schedule.
    pub modified_at: Timestamp,
    /// Whether its schedule ever changed.
    pub was_modified: bool,
    pub is_removed: bool,
}

/// Renders cliff unlocks, and starts, ends, and rate changes of linear ones.
pub fn render(entries: &[CalendarEntry], linear: &[LinearCalendarRow], style: &CalendarStyle<'_>) -> String {
    let cliffs = entries.iter().map(|entry| cliff_text(entry, style));
    let texts: Vec<String> = cliffs.chain(linear.iter().filter_map(|row| linear_text(row, style))).collect();
    with_header(&texts)
}

/// Renders a cliff unlock.
pub fn cliff_text(entry: &CalendarEntry, style: &CalendarStyle<'_>) -> String {
    event(&cliff_event(entry, style), style).to_string()
}

/// Renders a start, end, or rate change of a linear unlock. `None` if the date has no interval.
pub fn linear_text(row: &LinearCalendarRow, style: &CalendarStyle<'_>) -> Option<String> {
    Some(event(&linear_event(row, style)?, style).to_string())
}

/// Returns the calendar with these rendered events.
pub fn with_header(events: &[String]) -> String {
    // `Calendar::new` would write the name of the library as PRODID.
    let mut calendar = Calendar::empty();
    for (name, value) in [
        ("VERSION", "2.0"),
        ("PRODID", concat!("-//Cliffwatch//Cliffwatch ", env!("CARGO_PKG_VERSION"), "//EN")),
        ("CALSCALE", "GREGORIAN"),
        ("METHOD", "PUBLISH"),
        ("X-PUBLISHED-TTL", REFRESH),
    ] {
        calendar.append_property((name, value));
    }
    calendar.append_property(Property::new("REFRESH-INTERVAL", REFRESH).add_parameter("VALUE", "DURATION"));
    calendar.name("Token unlocks");
    // The library would need all events as objects, which are several times larger than their text.
    let empty = calendar.to_string();
    let header = empty.strip_suffix(END).unwrap_or(&empty);
    let mut text = String::with_capacity(empty.len() + events.iter().map(String::len).sum::<usize>());
    text.push_str(header);
    events.iter().for_each(|event| text.push_str(event));
    text.push_str(END);
    text
}

/// The last line of a calendar.
const END: &str = "END:VCALENDAR\r\n";

/// The content of an event.
struct EventText<'a> {
    uid: String,
    summary: String,
    description: String,
    symbol: &'a str,
    page: Option<String>,
    interval: Interval,
    modified_at: Timestamp,
    was_modified: bool,
    is_removed: bool,
}

fn cliff_event<'a>(entry: &'a CalendarEntry, style: &CalendarStyle<'_>) -> EventText<'a> {
    let CalendarEntry { key, interval, view, modified_at, was_modified, is_removed } = entry;
    let page = page(&view.token_id, style);
    EventText {
        uid: one_line(&format!("unlock/{}/{key}@cliffwatch", view.token_id)),
        summary: summary(entry),
        description: description(view, page.as_deref()),
        symbol: &view.symbol,
        page,
        interval: *interval,
        modified_at: *modified_at,
        was_modified: *was_modified,
        is_removed: *is_removed,
    }
}

/// Returns `None` if the date has no interval.
fn linear_event<'a>(row: &'a LinearCalendarRow, style: &CalendarStyle<'_>) -> Option<EventText<'a>> {
    let interval = Interval::of(row.at, row.precision)?;
    let (id, page) = (row.token.id.as_str(), page(row.token.id.as_str(), style));
    let when = phrase::when(&interval);
    let what = with_inexact_date(&row.summary, &interval);
    let mut lines = vec![format!("{} ({})", phrase::name(row.token.name()), phrase::name(id)), format!("When: {when}")];
    lines.extend(row.allocations.as_ref().map(|names| format!("To: {names}")));
    lines.extend(page.as_ref().map(|page| format!("Value: {page}")));
    Some(EventText {
        uid: one_line(&format!("vesting/{id}/{}@cliffwatch", row.key)),
        summary: if row.is_removed { format!("Cancelled: {what}") } else { what },
        description: lines.join("\n"),
        symbol: row.token.symbol(),
        page,
        interval,
        modified_at: row.modified_at,
        was_modified: row.was_modified,
        is_removed: row.is_removed,
    })
}

fn page(token_id: &str, style: &CalendarStyle<'_>) -> Option<String> {
    style.external_url.map(|url| one_line(&format!("{}/tokens/{}", url.trim_end_matches('/'), path_segment(token_id))))
}

fn event(text: &EventText<'_>, style: &CalendarStyle<'_>) -> Event {
    let EventText { uid, summary, description, symbol, page, interval, is_removed, .. } = text;
    let mut event = Event::new();
    event
        .uid(uid)
        .timestamp(text.modified_at)
        .last_modified(text.modified_at)
        .sequence(sequence(text))
        .summary(summary)
        .description(description)
        .categories([phrase::name(symbol)])
        // An unlock does not make the subscriber busy.
        .add_property("TRANSP", "TRANSPARENT");
    if let Some(page) = page {
        event.url(page);
    }
    let is_exact = !matches!(interval.precision, Precision::Week | Precision::Month);
    set_dates(&mut event, interval, style.spans);
    event.status(match (is_removed, is_exact) {
        (true, _) => EventStatus::Cancelled,
        (false, true) => EventStatus::Confirmed,
        (false, false) => EventStatus::Tentative,
    });
    if let Some(before) = style.alarm.filter(|_| !is_removed) {
        // By default, the library generates a new UID each time.
        event.alarm(Alarm::display(summary, Trigger::before_start(before)).uid(&format!("alarm/{uid}")).done());
    }
    event.done()
}

/// Sets the start and end of an event.
fn set_dates(event: &mut Event, interval: &Interval, spans: MonthSpan) {
    let (start, end) = (interval.start, interval.end);
    let mut days = |first: NaiveDate, after: NaiveDate| _ = event.starts(first).ends(after); // an all-day event ends before its DTEND
    match interval.precision {
        Precision::Week | Precision::Month if spans == MonthSpan::Day => {
            let day = interval.nominal_day().unwrap_or(*interval);
            days(day.start.date_naive(), day.end.date_naive());
        }
        Precision::Day | Precision::Week | Precision::Month => days(start.date_naive(), end.date_naive()),
        Precision::Second if start.time() != chrono::NaiveTime::MIN => _ = event.starts(start),
        Precision::Hour => _ = event.starts(start).ends(end),
        Precision::Second | Precision::ToBeDetermined => _ = event.starts(start.date_naive()),
    }
}

/// Returns a number that rises with each change of the schedule. It is derived from the time of the change, because the number of changes
/// falls when old history is deleted, and numbers of a database start again with a new one, while subscribers keep their entries.
fn sequence(text: &EventText<'_>) -> u32 {
    if !text.was_modified {
        return 0;
    }
    let steps = text.modified_at.timestamp_millis().saturating_sub(SEQUENCE_EPOCH) / SEQUENCE_STEP;
    u32::try_from(steps.clamp(1, i64::from(i32::MAX))).unwrap_or(1)
}

/// Returns a title: `ARB unlock: 92.65M ARB to Team and Investors`. Includes inexact dates, which a calendar cannot show.
fn summary(entry: &CalendarEntry) -> String {
    let view = &entry.view;
    let symbol = phrase::name(&view.symbol);
    let to = match recipients(view) {
        Some(names) => format!(" to {names}"),
        None => String::new(),
    };
    let what = match view.cliff_amount {
        Some(amount) => format!("{symbol} unlock: {}{to}", phrase::tokens(amount, Some(&view.symbol))),
        None => format!("{symbol} unlock: {}{to}", phrase::UNKNOWN_AMOUNT),
    };
    let what = with_inexact_date(&what, &entry.interval);
    if entry.is_removed { format!("Cancelled: {what}") } else { what }
}

/// Returns a title with its date, if that is too inexact for a calendar. The event itself is on the nominal day.
fn with_inexact_date(what: &str, interval: &Interval) -> String {
    match interval.precision {
        Precision::Week | Precision::Month => {
            format!("{what}, some time {}", phrase::when(&Interval { nominal: None, ..*interval }))
        }
        _ => what.to_owned(),
    }
}

/// Returns the names of the allocations, largest first. `None` if no allocation is named.
fn recipients(view: &UnlockView) -> Option<String> {
    (!view.allocations.is_empty()).then(|| phrase::names(view.allocations.iter().map(String::as_str)))
}

fn description(view: &UnlockView, page: Option<&str>) -> String {
    let mut lines =
        vec![format!("{} ({})", phrase::name(&view.name), phrase::name(&view.token_id)), format!("When: {}", view.when)];
    lines.extend(view.cliff_amount.map(|amount| format!("Amount: {}", phrase::tokens(amount, Some(&view.symbol)))));
    lines.extend(recipients(view).map(|names| format!("To: {names}")));
    lines.extend(page.map(|page| format!("Value: {page}")));
    lines.join("\n")
}

/// Removes line breaks and other hostile characters. The library does not escape URLs.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !model::text::is_hostile(*c)).collect()
}

/// Encodes a slug as a path segment.
pub(super) fn path_segment(slug: &str) -> String {
    url::form_urlencoded::byte_serialize(slug.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests;
