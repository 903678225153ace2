//! One token: its schedule as a picture, what comes, what was corrected and how, its alerts, and where all of that is from. Pure.

mod former;
mod provenance;

use chrono::TimeDelta;
use serde::Serialize;

use super::change::{ChangeItem, items};
use super::chart::Chart;
use super::chart::recipient::shares;
use super::chart::schedule::{EventLane, NextCliff, ScheduleDrawing, draw};
use super::overview::{AHEAD_DAYS, recipients};
use super::page::{PageFrame, render};
use super::schedule::{Curve, curves, differs};
use super::view::{AlertView, UnlockView, ahead};
use model::{
    AheadSums, ChangeRow, Interval, Precision, Record, Resource, SumWindow, Timestamp, TokenSnapshot, Tracked, UpcomingRow,
    VersionRow, format, wire::UnlockEvent,
};
use provenance::Provenance;

/// Coming events on the page.
const MAX_COMING: usize = 40;
/// Of these, those that stand without being asked for.
const FIRST_COMING: usize = 8;
/// Corrections and alerts on the page.
pub const CHANGE_ROWS: u32 = 20;
pub const ALERT_ROWS: u32 = 12;
/// Longest link that is shown as one.
const MAX_LINK: usize = 300;

/// What a token's page is made from.
#[derive(Debug)]
pub struct TokenParts<'a> {
    pub now: Timestamp,
    pub snapshot: &'a TokenSnapshot,
    /// Its last changes, the latest first, and how many there are.
    pub changes: &'a [ChangeRow],
    pub changes_total: u64,
    /// All that is kept of its records, where a correction is to be shown; else empty.
    pub versions: &'a [VersionRow],
    /// Those that moved last.
    pub alerts: Vec<AlertView>,
    /// Whether the config watches it.
    pub is_watched: bool,
    /// The groups of the config that hold it.
    pub groups: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TokenPage {
    id: String,
    name: String,
    symbol: String,
    is_watched: bool,
    groups: Vec<String>,
    /// Why the page shows less than all: held, failing, never read.
    troubles: Vec<String>,
    next: Option<ComingRow>,
    unlocked: Unlocked,
    market_cap: Option<f64>,
    max_supply: Option<f64>,
    /// What unlocks within the days ahead that are summed.
    ahead: AheadSums,
    chart: Option<Chart>,
    legend: Vec<AllocationRow>,
    /// When the schedule was that the ghost shows; none without one.
    former_until: Option<Timestamp>,
    coming: Vec<ComingRow>,
    later: Vec<ComingRow>,
    coming_total: usize,
    burned: f64,
    burns: usize,
    bought_back: f64,
    buybacks: usize,
    changes: Vec<ChangeItem>,
    changes_total: u64,
    alerts: Vec<AlertView>,
    provenance: Provenance,
}

/// How much has unlocked.
#[derive(Debug, Serialize)]
struct Unlocked {
    amount: f64,
    total: f64,
    /// Percent of the schedule; none where there is no schedule.
    percent: Option<f64>,
}

/// One allocation: its colour, and the table behind the chart.
#[derive(Debug, Serialize)]
struct AllocationRow {
    class: String,
    name: String,
    recipient: &'static str,
    unlocked: f64,
    total: f64,
    begin: Option<String>,
    end: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct ComingRow {
    recipients: String,
    class: &'static str,
    unlock: UnlockView,
    /// How far away it is, no finer than its date is exact; empty where that says nothing more.
    near: String,
    /// Its allocations in words: `Team 92.65M, Investors 30.00M`.
    parts: String,
}

/// The page as HTML.
pub fn page(parts: TokenParts<'_>, frame: PageFrame) -> String {
    render("token.html", &PageFrame { refreshes: true, ..frame }, &TokenPage::of(parts))
}

impl TokenPage {
    fn of(parts: TokenParts<'_>) -> Self {
        let TokenParts { now, snapshot, changes, changes_total, versions, alerts, is_watched, groups } = parts;
        let token = &snapshot.token;
        let events: Vec<&UnlockEvent> =
            snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock()).collect();
        let curves = curves(events.iter().copied());
        let former = former::schedule(versions, changes);
        let former_curves = former.as_ref().map(|former| self::curves(former.events.iter())).unwrap_or_default();
        let has_ghost = differs(&curves, &former_curves);
        let burns = sizes(snapshot, Resource::Burn);
        let buybacks = sizes(snapshot, Resource::Buyback);
        let mut coming = coming(snapshot, now);
        let coming_total = coming.len();
        let cliffs: Vec<Interval> = events
            .iter()
            .filter(|event| event.cliff_amount().is_some_and(|amount| amount > 0.0))
            .filter_map(|event| event.interval())
            .collect();
        let next = coming.first().cloned();
        let drawing = ScheduleDrawing {
            curves: &curves,
            former: has_ghost.then_some(former_curves.as_slice()),
            cliffs: &cliffs,
            next: next_cliff(snapshot, now),
            lanes: [
                EventLane {
                    name: "Burned",
                    class: "burn",
                    sizes: &burns,
                    words: |size| format!("{} tokens", format::amount(size)),
                },
                EventLane { name: "Bought back", class: "buyback", sizes: &buybacks, words: format::usd },
            ],
            max_supply: token.item.max_supply.copied(),
            now,
        };
        let total: f64 = curves.iter().map(Curve::total).sum();
        let amount: f64 = curves.iter().map(|curve| curve.at(now)).sum();
        Self {
            id: token.id.as_str().to_owned(),
            name: token.name().to_owned(),
            symbol: token.symbol().to_owned(),
            is_watched,
            groups,
            troubles: provenance::troubles(snapshot, now),
            next,
            unlocked: Unlocked { amount, total, percent: (total > 0.0).then(|| amount / total * 100.0) },
            market_cap: token.market_cap(),
            max_supply: token.item.max_supply.copied(),
            ahead: sums_ahead(snapshot, SumWindow::of(now, TimeDelta::days(AHEAD_DAYS))),
            chart: draw(&drawing),
            legend: curves.iter().enumerate().map(|(place, curve)| AllocationRow::of(place, curve, now)).collect(),
            former_until: former.map(|former| former.until).filter(|_| has_ghost),
            burned: burns.iter().map(|(_, size)| size).sum(),
            burns: burns.len(),
            bought_back: buybacks.iter().map(|(_, size)| size).sum(),
            buybacks: buybacks.len(),
            later: {
                coming.truncate(MAX_COMING);
                coming.split_off(FIRST_COMING.min(coming.len()))
            },
            coming,
            coming_total,
            changes: items(changes),
            changes_total,
            alerts,
            provenance: Provenance::of(snapshot, &events),
        }
    }
}

impl AllocationRow {
    fn of(place: usize, curve: &Curve, now: Timestamp) -> Self {
        Self {
            class: format!("c{}", place.min(11)),
            name: if curve.name.is_empty() { "not named".to_owned() } else { curve.name.clone() },
            recipient: curve.recipient.name(),
            unlocked: curve.at(now),
            total: curve.total(),
            begin: curve.begin().map(format::day),
            end: curve.end().map(format::day),
        }
    }
}

/// What has not passed, the next first.
fn coming(snapshot: &TokenSnapshot, now: Timestamp) -> Vec<ComingRow> {
    let read_at = snapshot.feed(model::Endpoint::UnlockEvents).and_then(|feed| feed.read_at);
    let is_ahead = |tracked: &&Tracked| tracked.record.interval().is_some_and(|interval| !interval.has_passed(now));
    let row = |tracked: &Tracked| {
        let row = UpcomingRow { token: snapshot.token.clone(), tracked: tracked.clone(), read_at };
        let unlock = UnlockView { record: serde_json::Value::Null, ..UnlockView::of(&row, now)? };
        let event = tracked.record.unlock()?;
        let shares = shares(event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()));
        let class = shares.first().map_or("k-other", |(recipient, _)| recipient.class());
        let near = near(&unlock);
        Some(ComingRow { recipients: recipients(&shares), class, unlock, near, parts: part_words(event) })
    };
    snapshot.records_of(Resource::Unlock).filter(is_ahead).filter_map(row).collect()
}

/// What unlocks within a time, as the list of tokens sums it.
fn sums_ahead(snapshot: &TokenSnapshot, window: SumWindow) -> AheadSums {
    let mut sums = AheadSums::default();
    for event in snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock()) {
        let Some(interval) = event.interval().filter(|interval| !interval.has_passed(window.at)) else { continue };
        if let Some(is_counted) = window.place(&interval, event.unlock_date.copied()) {
            sums.add(is_counted, event.cliff_value());
        }
    }
    sums
}

/// How far ahead: hours only of an instant, and nothing of a month, whose name says enough.
fn near(unlock: &UnlockView) -> String {
    match (unlock.precision, unlock.days_until) {
        (Precision::Month | Precision::ToBeDetermined, _) | (_, None) => String::new(),
        (Precision::Day | Precision::Week, Some(days)) if days > 0.0 && days < 1.0 => "within a day".to_owned(),
        (_, Some(days)) => ahead(days, &unlock.when),
    }
}

/// The allocations of an event, the largest first: `Team 92.65M, Investors 30.00M`; what begins to unlock bit by bit says so.
fn part_words(event: &UnlockEvent) -> String {
    const NAMED: usize = 4;
    let cliffs = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let linears = event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items());
    let mut parts: Vec<(f64, String)> = Vec::new();
    for part in cliffs {
        let amount = part.cliff_amount.copied().unwrap_or_default();
        parts.push((
            amount,
            format!("{} {}", format::name(part.allocation_name.as_str().unwrap_or_default()), format::amount(amount)),
        ));
    }
    for part in linears {
        let amount = part.linear_amount.copied().unwrap_or_default();
        let until = part.end_date.copied().map(|end| format!(" bit by bit until {}", format::day(end))).unwrap_or_default();
        parts.push((
            amount,
            format!("{} {}{until}", format::name(part.allocation_name.as_str().unwrap_or_default()), format::amount(amount)),
        ));
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = parts.len().saturating_sub(NAMED);
    let mut words: Vec<String> = parts.into_iter().take(NAMED).map(|(_, text)| text).collect();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

/// The next cliff, as the chart says it.
fn next_cliff(snapshot: &TokenSnapshot, now: Timestamp) -> Option<NextCliff> {
    let next = snapshot.records_of(Resource::Unlock).find_map(|tracked| {
        let event = tracked.record.unlock()?;
        let interval = event.interval().filter(|interval| !interval.has_passed(now))?;
        event.cliff_amount().filter(|amount| *amount > 0.0).map(|amount| (interval, amount, event.cliff_value()))
    });
    let (interval, amount, value) = next?;
    let value = value.map(|value| format!(", {}", format::usd(value))).unwrap_or_default();
    let (amount, when) = (format::amount(amount), format::when(&interval));
    // A phone has room for the day, not for the hour.
    let day = when.split(", ").next().unwrap_or(&when).to_owned();
    Some(NextCliff { interval, words: format!("next: {amount}{value}, {when}"), brief: format!("next: {amount}, {day}") })
}

/// Burns in tokens, buybacks in USD: what the source mostly knows of each.
fn sizes(snapshot: &TokenSnapshot, resource: Resource) -> Vec<(Timestamp, f64)> {
    let size = |tracked: &Tracked| match &tracked.record {
        Record::Burn(burn) => burn.burn_date.copied().zip(burn.amount.copied()),
        Record::Buyback(buyback) => buyback.buyback_date.copied().zip(buyback.value.copied()),
        _ => None,
    };
    let is_size = |(_, size): &(Timestamp, f64)| size.is_finite() && *size > 0.0;
    snapshot.records_of(resource).filter_map(size).filter(is_size).collect()
}

#[cfg(test)]
mod tests;
