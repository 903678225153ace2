//! The calendar page: the unlocks of a month in a grid of days or as a list, linear unlocks as bands, and the subscription.

use chrono::{Datelike, Months, NaiveDate, NaiveTime, TimeDelta};
use serde::Serialize;

use super::overview::next::{NextRow, cliff_rows, have_positions, rate_rows};
use super::overview::supply::cell;
use super::page::{Choice, PageFrame, Pager, href, render};
use super::template::token_href;
use chart::Chart;
use chart::bands::{self, BandRow};
use chart::scale::short_usd;
use chart::svg::number;
use model::{LinearBand, MonthFilter, MonthUnlock, Precision, SumWindow, Timestamp, UnlockMonth, UnlockOrder, UnlockSum, phrase};

const PATH: &str = "/calendar";
/// The maximum number of unlocks in the cell of a day.
pub const PER_DAY: usize = 4;
/// The maximum number of tokens with a band.
pub const BANDS: usize = 16;
/// The maximum number of changes of linear unlocks in the list.
pub const RATES: usize = 40;
/// The number of months after the current one that can be shown.
const MAX_AHEAD: u32 = 60;
/// The radius of the largest and of the smallest unlock.
const MAX_RADIUS: f64 = 9.0;
const MIN_RADIUS: f64 = 2.5;

/// A month that can be shown: the current one or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownMonth {
    first: NaiveDate,
    current: NaiveDate,
}

impl ShownMonth {
    /// Parses `2026-03`. Any other text, a past month, and one that is too far ahead mean the current month.
    pub fn parse(text: &str, now: Timestamp) -> Self {
        let today = now.date_naive();
        let current = today.with_day(1).unwrap_or(today);
        let last = current.checked_add_months(Months::new(MAX_AHEAD)).unwrap_or(current);
        let requested = NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").ok();
        Self { first: requested.filter(|first| current <= *first && *first <= last).unwrap_or(current), current }
    }

    /// Returns the periods of the days, in UTC. An unlock at midnight belongs to the day that begins.
    pub fn days(self) -> Vec<SumWindow> {
        let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc() - TimeDelta::milliseconds(1);
        let days = self.first.iter_days().take_while(|day| day.month() == self.first.month());
        days.filter_map(|day| Some(SumWindow { at: midnight(day), until: midnight(day.succ_opt()?) })).collect()
    }

    /// The value of the query parameter. Empty for the current month.
    fn parameter(first: NaiveDate, current: NaiveDate) -> String {
        if first == current { String::new() } else { first.format("%Y-%m").to_string() }
    }

    /// Returns the parameters of the months before and after this one. `None` if they are not shown.
    fn neighbors(self) -> [Option<String>; 2] {
        let before = self.first.checked_sub_months(Months::new(1)).filter(|before| *before >= self.current);
        let last = self.current.checked_add_months(Months::new(MAX_AHEAD));
        let after = self.first.checked_add_months(Months::new(1)).filter(|after| Some(*after) <= last);
        [before, after].map(|month| Some(Self::parameter(month?, self.current)))
    }
}

/// The filters of the page, as they are in its form.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MonthForm {
    pub token: String,
    pub min_value: String,
    /// `cliff`, `linear`, or empty for both.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The address of the feed with the same filters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FeedSubscription {
    pub url: String,
    /// Whether the address works without a login.
    pub is_secret: bool,
    /// Whether the feed needs no login at all.
    pub is_open: bool,
}

/// The data of the page.
#[derive(Debug)]
pub struct MonthParts<'a> {
    pub now: Timestamp,
    pub shown: ShownMonth,
    pub filter: &'a MonthFilter,
    pub month: &'a UnlockMonth,
    pub is_list: bool,
    pub form: MonthForm,
    pub subscription: FeedSubscription,
    /// The parameters of the page, without the offset.
    pub parameters: Vec<(&'static str, String)>,
}

#[derive(Debug, Serialize)]
struct MonthPage {
    title: String,
    month: String,
    previous: Option<String>,
    next: Option<String>,
    current: Option<String>,
    views: Vec<Choice>,
    is_list: bool,
    orders: Vec<Choice>,
    form: MonthForm,
    has_filters: bool,
    clear: String,
    min_values: [(&'static str, &'static str); 4],
    has_cliffs: bool,
    has_linear: bool,
    /// Whether the days before now are left out of the linear unlocks.
    is_from_now: bool,
    cliffs: Figure,
    linear: Figure,
    /// The unlocks that may also happen in this month.
    inexact_text: Option<String>,
    inexact: Vec<Chip>,
    weeks: Vec<Vec<DayCell>>,
    bands: Option<Chart>,
    bands_shown: usize,
    bands_total: u64,
    rows: Vec<NextRow>,
    pager: Pager,
    rates: Vec<NextRow>,
    rates_total: u64,
    /// Whether the lists have the column of positions.
    has_positions: bool,
    subscription: FeedSubscription,
}

#[derive(Debug, Serialize)]
struct Figure {
    value: String,
    count: u64,
}

/// A day in the grid, or an empty cell before the first or after the last day.
#[derive(Debug, Default, Serialize)]
struct DayCell {
    day: Option<u32>,
    /// The day as text, for screen readers.
    name: String,
    is_today: bool,
    is_past: bool,
    /// The value of all unlocks of the day, in a few characters. `None` without any.
    total: Option<String>,
    /// Whether the day has one unlock, whose size is next to its dot.
    is_single: bool,
    chips: Vec<Chip>,
    /// The number of unlocks without a chip.
    more: u64,
}

/// An unlock in a cell.
#[derive(Debug, Serialize)]
struct Chip {
    symbol: String,
    href: String,
    size: String,
    /// The radius of its dot. The area shows the value.
    radius: String,
    is_inexact: bool,
    title: String,
}

pub fn page(parts: MonthParts<'_>, frame: PageFrame) -> String {
    let MonthParts { now, shown, filter, month, is_list, .. } = parts;
    let kept: Vec<(&str, &str)> = parts.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let link = |changed: &[(&str, &str)]| {
        let is_kept = |(name, _): &&(&str, &str)| changed.iter().all(|(other, _)| name != other);
        href(PATH, &kept.iter().filter(is_kept).chain(changed).copied().collect::<Vec<_>>())
    };
    let [previous, next] = shown.neighbors().map(|month| month.map(|month| link(&[("month", &month)])));
    let has_filters = [&parts.form.token, &parts.form.min_value, &parts.form.kind].iter().any(|text| !text.is_empty());
    let largest = month.days.iter().flat_map(|day| &day.largest).chain(&month.inexact).filter_map(|unlock| unlock.value);
    let largest = largest.fold(0.0, f64::max);
    let view = |name: &str, word: &str| Choice::new(name, link(&[("view", word)]), is_list == (word == "list"));
    let order = |order: UnlockOrder| {
        let word = if order == UnlockOrder::default() { "" } else { order.as_str() };
        let name = match order {
            UnlockOrder::Date => "Date",
            UnlockOrder::Value => "Value",
            UnlockOrder::Share => "% of market cap",
        };
        Choice::new(name, link(&[("sort", word)]), filter.order == order)
    };
    let (rows, rates) = (cliff_rows(&month.rows, now), rate_rows(&month.rates, now));
    let page = MonthPage {
        title: shown.first.format("%B %Y").to_string(),
        month: ShownMonth::parameter(shown.first, shown.current),
        previous,
        next,
        current: (shown.first != shown.current).then(|| link(&[("month", "")])),
        views: vec![view("Month", ""), view("List", "list")],
        is_list,
        orders: UnlockOrder::ALL.map(order).into(),
        has_filters,
        clear: link(&[("token", ""), ("min_value", ""), ("type", "")]),
        min_values: [("", "any"), ("1000000", "$1M"), ("10000000", "$10M"), ("100000000", "$100M")],
        has_cliffs: parts.form.kind != "linear",
        has_linear: parts.form.kind != "cliff",
        is_from_now: filter.linear_window() != filter.window(),
        cliffs: Figure { value: cell(&month.sum.cliff), count: month.sum.cliff.count },
        linear: Figure { value: cell(&month.sum.linear), count: month.band_total },
        inexact_text: phrase::inexact_unlocks(&month.sum.inexact),
        inexact: month.inexact.iter().map(|unlock| Chip::of(unlock, largest)).collect(),
        weeks: weeks(shown, month, largest, now),
        bands: bands::draw(&month.bands.iter().map(band_row).collect::<Vec<_>>(), &filter.days, now),
        bands_shown: month.bands.len(),
        bands_total: month.band_total,
        has_positions: have_positions(&rows) || have_positions(&rates),
        rows,
        pager: Pager::new(
            PATH,
            &kept,
            u64::try_from(filter.offset).unwrap_or(0),
            u64::try_from(filter.rows).unwrap_or(0),
            month.rows.len(),
            month.sum.cliff.count,
        ),
        rates,
        rates_total: month.rates_total,
        form: parts.form,
        subscription: parts.subscription,
    };
    render("calendar.html", &PageFrame { refreshes: true, ..frame }, &page)
}

/// Returns the weeks of the grid, from Monday.
fn weeks(shown: ShownMonth, month: &UnlockMonth, largest: f64, now: Timestamp) -> Vec<Vec<DayCell>> {
    let before = usize::try_from(shown.first.weekday().num_days_from_monday()).unwrap_or(0);
    let mut cells: Vec<DayCell> = Vec::new();
    cells.resize_with(before, DayCell::default);
    for (date, day) in shown.first.iter_days().zip(&month.days) {
        cells.push(DayCell {
            day: Some(date.day()),
            name: date.format("%-d %B").to_string(),
            is_today: date == now.date_naive(),
            is_past: date < now.date_naive(),
            total: (day.sum.count > 0).then(|| day_total(&day.sum)),
            is_single: day.sum.count == 1,
            chips: day.largest.iter().map(|unlock| Chip::of(unlock, largest)).collect(),
            more: day.sum.count.saturating_sub(u64::try_from(day.largest.len()).unwrap_or(0)),
        });
    }
    cells.resize_with(cells.len().next_multiple_of(7), DayCell::default);
    let mut weeks: Vec<Vec<DayCell>> = Vec::new();
    let mut cells = cells.into_iter().peekable();
    while cells.peek().is_some() {
        weeks.push(cells.by_ref().take(7).collect());
    }
    weeks
}

/// Returns the value of a day: `$105M`, `≥ $105M` if some values are unknown, and `?` if all are.
fn day_total(sum: &UnlockSum) -> String {
    match sum.known_value() {
        None => "?".to_owned(),
        Some(value) if sum.unvalued_count > 0 => format!("≥ {}", short_usd(value)),
        Some(value) => short_usd(value),
    }
}

impl Chip {
    fn of(unlock: &MonthUnlock, largest: f64) -> Self {
        let MonthUnlock { token, interval, amount, value, share } = unlock;
        let part = value.filter(|_| largest > 0.0).map_or(0.0, |value| (value / largest).clamp(0.0, 1.0));
        let size = phrase::size(*value, *amount, Some(token.symbol()));
        let share = share.map(|share| format!(" ({})", phrase::share(share, phrase::MARKET_CAP))).unwrap_or_default();
        Self {
            symbol: token.symbol().to_owned(),
            href: token_href(token.id.as_str()),
            title: format!("{}: {size}{share} {}", phrase::name(token.symbol()), phrase::when(interval)),
            size: value.map_or_else(|| "?".to_owned(), short_usd),
            radius: number((MAX_RADIUS - MIN_RADIUS).mul_add(part.sqrt(), MIN_RADIUS)),
            is_inexact: interval.precision > Precision::Day,
        }
    }
}

fn band_row(band: &LinearBand) -> BandRow {
    let LinearBand { token, window, sum, changes } = band;
    let symbol = phrase::name(token.symbol());
    let value = phrase::sum_value(sum);
    let per_day = window.days().zip(sum.known_value()).map(|(days, value)| format!(", {} per day", phrase::usd(value / days)));
    let days = format!("{} to {}", (window.at + TimeDelta::milliseconds(1)).format("%-d %b"), window.until.format("%-d %b"));
    let steps =
        changes.iter().map(|(at, is_rise)| format!("; {} on {}", if *is_rise { "rises" } else { "falls" }, at.format("%-d %b")));
    BandRow {
        title: format!("{symbol}: {value} from {days}{}{}", per_day.unwrap_or_default(), steps.collect::<String>()),
        symbol,
        href: token_href(token.id.as_str()),
        window: *window,
        size: sum.known_value().map_or_else(|| "?".to_owned(), short_usd),
        changes: changes.clone(),
    }
}

#[cfg(test)]
mod tests;
