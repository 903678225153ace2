//! Unlocks ahead as a calendar that other programs subscribe to (iCalendar, RFC 5545). Pure: views in, text out.
//!
//! An event keeps its UID while its unlock moves or grows, and its SEQUENCE rises each time, so that a subscriber sees it move; one that
//! is taken out of the schedule is shown as cancelled for a while. It claims no more than the source knows: one of midnight has no hour,
//! and one of a month is tentative, on the day that the source names or over the whole month, as is asked. Nothing in it depends on the
//! time of the request or of the last poll, nor on prices, which move with every poll: sizes are in tokens, and what they are worth
//! is on the page that each event links to. The text is the same until the schedule is another.

use chrono::{NaiveDate, TimeDelta};
use icalendar::{Alarm, Calendar, Component, Event, EventLike, EventStatus, Property, Trigger};

use super::view::UnlockView;
use model::{Interval, Precision, Timestamp, format};

/// How often subscribers should ask again; the source changes a few times a day.
const REFRESH: &str = "PT1H";

/// 2020-01-01T00:00:00Z, from which changes are numbered, seconds.
const SEQUENCE_EPOCH: i64 = 1_577_836_800;

/// How the events of a calendar are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalendarStyle<'a> {
    /// Where our pages are.
    pub external_url: Option<&'a str>,
    pub spans: MonthSpan,
    /// How long before an event to remind of it.
    pub alarm: Option<TimeDelta>,
}

/// How long the event of an unlock is whose date is exact to a month or a week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonthSpan {
    /// One day, that which the source names.
    #[default]
    Day,
    /// All of the month or week.
    Month,
}

/// An unlock with the key that it keeps while it moves.
#[derive(Clone, Debug)]
pub struct CalendarEntry {
    /// Its key among the unlocks of its token.
    pub key: String,
    /// The time that it stands for.
    pub interval: Interval,
    /// What is shown of it.
    pub view: UnlockView,
    /// When its schedule facts were last another.
    pub modified_at: Timestamp,
    /// Whether they ever were.
    pub was_modified: bool,
    /// Whether it was taken out of the schedule.
    pub is_removed: bool,
}

/// The calendar.
pub fn render(entries: &[CalendarEntry], style: &CalendarStyle<'_>) -> String {
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
        calendar.push(event(entry, style));
    }
    calendar.to_string()
}

fn event(entry: &CalendarEntry, style: &CalendarStyle<'_>) -> Event {
    let CalendarEntry { key, interval, view, modified_at, is_removed, .. } = entry;
    let summary = summary(entry);
    let uid = one_line(&format!("unlock/{}/{key}@cliffwatch", view.token_id));
    let page = |url: &str| one_line(&format!("{}/tokens/{}", url.trim_end_matches('/'), path_segment(&view.token_id)));
    let page = style.external_url.map(page);
    let mut event = Event::new();
    event
        .uid(&uid)
        .timestamp(*modified_at)
        .last_modified(*modified_at)
        .sequence(sequence(entry))
        .summary(&summary)
        .description(&description(view, page.as_deref()))
        .categories([format::name(&view.symbol)])
        // Nobody is busy because a token unlocks.
        .add_property("TRANSP", "TRANSPARENT");
    if let Some(page) = &page {
        event.url(page);
    }
    let is_exact = !matches!(interval.precision, Precision::Week | Precision::Month);
    place(&mut event, interval, view.unlock_date, style.spans);
    event.status(match (is_removed, is_exact) {
        (true, _) => EventStatus::Cancelled,
        (false, true) => EventStatus::Confirmed,
        (false, false) => EventStatus::Tentative,
    });
    if let Some(before) = style.alarm.filter(|_| !is_removed) {
        // Of its own accord the library would give it another id each time.
        event.alarm(Alarm::display(&summary, Trigger::before_start(before)).uid(&format!("alarm/{uid}")).done());
    }
    event.done()
}

/// When it is, as exactly as is known.
fn place(event: &mut Event, interval: &Interval, nominal: Option<Timestamp>, spans: MonthSpan) {
    let (start, end) = (interval.start, interval.end);
    let mut days = |first: NaiveDate, after: NaiveDate| _ = event.starts(first).ends(after); // an all-day event ends before its DTEND
    match interval.precision {
        Precision::Week | Precision::Month if spans == MonthSpan::Day => {
            let day = interval.nominal(nominal);
            days(day.start.date_naive(), day.end.date_naive());
        }
        Precision::Day | Precision::Week | Precision::Month => days(start.date_naive(), end.date_naive()),
        Precision::Second if start.time() != chrono::NaiveTime::MIN => _ = event.starts(start),
        Precision::Hour => _ = event.starts(start).ends(end),
        Precision::Second | Precision::ToBeDetermined => _ = event.starts(start.date_naive()),
    }
}

/// Greater each time that its schedule facts change; zero until they do. It follows from the time of the change, so that it never falls,
/// however much of the history is forgotten.
fn sequence(entry: &CalendarEntry) -> u32 {
    if !entry.was_modified {
        return 0;
    }
    let minutes = entry.modified_at.timestamp().saturating_sub(SEQUENCE_EPOCH) / 60;
    u32::try_from(minutes.clamp(1, i64::from(i32::MAX))).unwrap_or(1)
}

/// `ARB unlock: 92.65M tokens to Team, Investors`; the date stands beside it anyway, but a month does not.
fn summary(entry: &CalendarEntry) -> String {
    let view = &entry.view;
    let symbol = format::name(&view.symbol);
    let to = match recipients(view) {
        Some(names) => format!(" to {names}"),
        None => String::new(),
    };
    let what = match view.cliff_amount {
        Some(amount) => format!("{symbol} unlock: {}{to}", format::tokens(amount)),
        None => format!("{symbol}: a linear unlock begins"),
    };
    let when = match entry.interval.precision {
        Precision::Week | Precision::Month => format!(", some time {}", view.when),
        _ => String::new(),
    };
    if entry.is_removed { format!("Cancelled: {what}{when}") } else { format!("{what}{when}") }
}

/// Who receives, the largest first; none where nobody is named.
fn recipients(view: &UnlockView) -> Option<String> {
    (!view.allocations.is_empty()).then(|| format::names(view.allocations.iter().map(String::as_str)))
}

fn description(view: &UnlockView, page: Option<&str>) -> String {
    let mut lines =
        vec![format!("{} ({})", format::name(&view.name), format::name(&view.token_id)), format!("When: {}", view.when)];
    lines.extend(view.cliff_amount.map(|amount| format!("Amount: {}", format::tokens(amount))));
    lines.extend(recipients(view).map(|names| format!("To: {names}")));
    lines.extend(page.map(|page| format!("What it is worth: {page}")));
    lines.join("\n")
}

/// Without what would begin a line of its own: the library writes addresses as they are.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !model::text::is_hostile(*c)).collect()
}

/// A slug as a segment of a path.
pub(super) fn path_segment(slug: &str) -> String {
    url::form_urlencoded::byte_serialize(slug.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests;
