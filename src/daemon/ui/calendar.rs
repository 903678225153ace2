//! Unlocks ahead as a calendar that other programs subscribe to (iCalendar, RFC 5545). Pure: views in, text out.
//!
//! An event keeps its UID while its unlock moves or grows, so that a subscriber sees it move. It claims no more than the source knows:
//! an unlock of a month is an all-day event over that month, one of midnight has no hour, as in messages. Nothing in it depends on the
//! time of the request, so that the text is the same until a source was read again.

use chrono::NaiveDate;
use icalendar::{Calendar, Component, Event, EventLike, EventStatus, Property};

use super::view::UnlockView;
use model::{Interval, Precision, Timestamp, format};

/// How often subscribers should ask again; the source changes a few times a day.
const REFRESH: &str = "PT1H";

/// An unlock with the key that it keeps while it moves.
#[derive(Clone, Debug)]
pub struct CalendarEntry {
    /// Its key among the unlocks of its token.
    pub key: String,
    /// The time that it stands for.
    pub interval: Interval,
    /// What is shown of it.
    pub view: UnlockView,
}

/// The calendar. `link` is where the status page is; `now` stands in for the time of the last read where that is not known.
pub fn render(entries: &[CalendarEntry], link: Option<&str>, now: Timestamp) -> String {
    // Made of our own words: the library's defaults name the library.
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
    for entry in entries {
        calendar.push(event(entry, link, now));
    }
    calendar.to_string()
}

fn event(entry: &CalendarEntry, link: Option<&str>, now: Timestamp) -> Event {
    let CalendarEntry { key, interval, view } = entry;
    let mut event = Event::new();
    event
        .uid(&one_line(&format!("unlock/{}/{key}@cliffwatch", view.token_id)))
        .timestamp(view.polled_at.unwrap_or(now))
        .summary(&summary(view))
        .description(&description(view))
        .categories([format::name(&view.symbol)])
        // Nobody is busy because a token unlocks.
        .add_property("TRANSP", "TRANSPARENT");
    if let Some(link) = link {
        event.url(&one_line(link));
    }
    let (start, end) = (interval.start, interval.end);
    match interval.precision {
        Precision::Second if start.time() != chrono::NaiveTime::MIN => _ = event.starts(start),
        Precision::Hour => _ = event.starts(start).ends(end),
        Precision::Second | Precision::ToBeDetermined => _ = event.starts(start.date_naive()),
        Precision::Day | Precision::Week | Precision::Month => {
            let (first, after): (NaiveDate, NaiveDate) = (start.date_naive(), end.date_naive());
            event.starts(first).ends(after); // an all-day event ends before its DTEND
        }
    }
    let is_exact = !matches!(interval.precision, Precision::Week | Precision::Month);
    event.status(if is_exact { EventStatus::Confirmed } else { EventStatus::Tentative });
    event.done()
}

/// `ARB unlock: $27.60M (1.90% of market cap)`; the date stands beside it anyway.
fn summary(view: &UnlockView) -> String {
    let symbol = format::name(&view.symbol);
    let size = match (view.cliff_value, view.cliff_amount) {
        (Some(value), _) => format::usd(value),
        (None, Some(amount)) => format::tokens(amount),
        (None, None) => return format!("{symbol}: a linear unlock begins"),
    };
    let share = view.value_to_market_cap.map(|share| format!(" ({} of market cap)", format::percent(share))).unwrap_or_default();
    format!("{symbol} unlock: {size}{share}")
}

fn description(view: &UnlockView) -> String {
    let mut lines =
        vec![format!("{} ({})", format::name(&view.name), format::name(&view.token_id)), format!("When: {}", view.when)];
    lines.extend(view.cliff_amount.map(|amount| format!("Amount: {}", format::tokens(amount))));
    lines.extend(view.cliff_value.map(|value| format!("Value: {}", format::usd(value))));
    lines.extend(view.value_to_market_cap.map(|share| format!("Of market cap: {}", format::percent(share))));
    if !view.allocations.is_empty() {
        lines.push(format!("To: {}", format::names(view.allocations.iter().map(String::as_str))));
    }
    lines.extend(view.polled_at.map(|at| format!("Source read: {}", format::instant(at))));
    lines.join("\n")
}

/// Without what would begin a line of its own: the library writes addresses as they are.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !model::text::is_hostile(*c)).collect()
}

#[cfg(test)]
mod tests;
