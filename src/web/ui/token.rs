//! The page of a token: its schedule, upcoming unlocks, corrections, alerts, and provenance.

mod correction;
mod flows;
pub(super) mod former;
mod linear;
mod provenance;
pub mod supply;

use chrono::TimeDelta;
use serde::Serialize;

use super::overview::next::PositionCell;
use super::page::{Choice, PageFrame, href, render};
use super::schedule_table::ScheduleChart;
use super::template::segment;
use chart::curve::{Curve, CurveBy, curves, curves_by, differs};
use chart::recipient;
use chart::schedule::{EventLane, NextCliff, ScheduleDrawing};
use correction::CorrectionItem;
pub use correction::PERIOD as CORRECTION_PERIOD;
use daemon::view::{AlertView, PositionView, UnlockView};
use flows::FlowCard;
use linear::TokenLinearRow;
use model::corrections::Corrections;
use model::{
    ChangeRow, Interval, Precision, Record, Resource, ShownDays, Timestamp, TokenSnapshot, TokenSupply, Tracked, UpcomingRow,
    VersionRow, phrase, wire::UnlockEvent,
};
use provenance::Provenance;
use supply::{SupplyBreakdown, TokenSupplyCard};

const MAX_UPCOMING: usize = 40;
/// The number of upcoming unlocks that are not collapsed.
const FIRST_UPCOMING: usize = 8;
/// The number of linear unlocks that are not collapsed.
const FIRST_LINEAR: usize = 8;
pub const CHANGE_ROWS: u32 = 20;
pub const ALERT_ROWS: u32 = 12;
/// The maximum length of a link, in characters.
const MAX_LINK: usize = 300;

/// The data of a token's page.
#[derive(Debug)]
pub struct TokenParts<'a> {
    pub now: Timestamp,
    pub snapshot: &'a TokenSnapshot,
    /// The coming supply in the windows of [`supply::windows`].
    pub supply: &'a TokenSupply,
    /// The age from which a price is stale.
    pub stale_price: TimeDelta,
    /// Latest first.
    pub changes: &'a [ChangeRow],
    pub changes_total: u64,
    /// The corrections of the last [`CORRECTION_PERIOD`].
    pub corrections: Corrections,
    /// All retained versions of its records if a correction is shown, else empty.
    pub versions: &'a [VersionRow],
    /// Most recently updated first.
    pub alerts: Vec<AlertView>,
    pub is_watched: bool,
    /// The config groups that contain the token.
    pub groups: Vec<String>,
    /// The areas of the chart.
    pub by: CurveBy,
}

#[derive(Debug, Serialize)]
struct TokenPage {
    id: String,
    /// The days that the source shows of the schedule. Empty if it shows all.
    shown_days: String,
    name: String,
    symbol: String,
    is_watched: bool,
    groups: Vec<String>,
    /// Reasons why the data may be incomplete or outdated.
    incidents: Vec<String>,
    /// The next cliff unlock whose nominal date is ahead.
    next: Option<UpcomingUnlock>,
    /// A cliff unlock that can still happen although its nominal date has passed.
    unconfirmed: Option<String>,
    /// The position, compared with the next cliff. `None` without one, and for readers who must not see it.
    position: Option<PositionCell>,
    unlocked: Unlocked,
    market_cap: Option<f64>,
    max_supply: Option<f64>,
    supply: TokenSupplyCard,
    facts: SupplyBreakdown,
    /// Running and coming linear unlocks.
    linear: Vec<TokenLinearRow>,
    later_linear: Vec<TokenLinearRow>,
    plot: Option<ScheduleChart>,
    /// Links to the areas of the chart.
    areas: Vec<Choice>,
    legend: Vec<AllocationRow>,
    /// The time of the correction that replaced the former schedule. `None` if the chart shows none.
    former_until: Option<Timestamp>,
    upcoming: Vec<UpcomingUnlock>,
    later: Vec<UpcomingUnlock>,
    upcoming_total: usize,
    burned: f64,
    burns: usize,
    bought_back: f64,
    buybacks: usize,
    /// `None` if nothing is released, burned, or bought back.
    flows: Option<FlowCard>,
    changes: Vec<CorrectionItem>,
    changes_total: u64,
    /// The corrections of the last year as text. `None` without one.
    corrections: Option<String>,
    alerts: Vec<AlertView>,
    provenance: Provenance,
}

#[derive(Debug, Serialize)]
struct Unlocked {
    amount: f64,
    total: f64,
    /// Percent of the schedule. `None` without a schedule.
    percent: Option<f64>,
}

/// An allocation in the legend and the table.
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
struct UpcomingUnlock {
    recipients: String,
    class: &'static str,
    unlock: UnlockView,
    /// Whether it has a cliff unlock. Others only begin linear unlocks.
    is_cliff: bool,
    /// The amount of the cliff unlock in percent of the circulating supply. `None` if either is unknown.
    percent_of_circulating: Option<f64>,
    /// Set if the nominal date has passed.
    unconfirmed: Option<String>,
    /// The time until the unlock, no more exact than its date. Empty for dates with month precision.
    time_until: String,
    /// The allocation shares as text.
    allocations: String,
    /// The size as a multiple of the position. `None` without a position, and for readers who must not see it.
    multiple: Option<String>,
}

pub fn page(parts: TokenParts<'_>, frame: PageFrame) -> String {
    render("token.html", &PageFrame { refreshes: true, ..frame }, &TokenPage::of(parts))
}

impl TokenPage {
    fn of(parts: TokenParts<'_>) -> Self {
        let TokenParts {
            now,
            snapshot,
            supply,
            stale_price,
            changes,
            changes_total,
            versions,
            alerts,
            is_watched,
            groups,
            corrections,
            by,
        } = parts;
        let token = &snapshot.token;
        let shown = snapshot.schedule_header().and_then(ShownDays::of_header);
        let events: Vec<&UnlockEvent> =
            snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock()).collect();
        let curves = curves(events.iter().copied());
        let areas = curves_by(by, events.iter().copied());
        let former = former::schedule(versions, changes);
        let former_curves = former.as_ref().map(|former| curves_by(by, former.events.iter())).unwrap_or_default();
        let has_ghost = differs(&areas, &former_curves);
        let burns = sizes(snapshot, Resource::Burn);
        let buybacks = sizes(snapshot, Resource::Buyback);
        let facts = SupplyBreakdown::of(snapshot, supply);
        let mut upcoming = upcoming(snapshot, facts.circulating, now);
        let upcoming_total = upcoming.len();
        let cliffs = cliff_dates(&events);
        let cliff = |has_passed: bool| {
            upcoming.iter().filter(move |row: &&UpcomingUnlock| row.is_cliff && row.unconfirmed.is_some() == has_passed)
        };
        let next = cliff(false).min_by_key(|row| row.unlock.unlock_date).cloned();
        let unconfirmed = cliff(true).max_by_key(|row| row.unlock.unlock_date).and_then(|row| row.unconfirmed.clone());
        let price = supply.price.map(|price| price.usd);
        let position = PositionView::of(token, price, next.as_ref().and_then(|next| next.unlock.cliff_amount));
        let mut linear = linear::rows(snapshot, &events, supply, now);
        let drawing = ScheduleDrawing {
            by,
            curves: &areas,
            former: has_ghost.then_some(former_curves.as_slice()),
            cliffs: &cliffs,
            next: next_cliff(snapshot, now),
            lanes: event_lanes(&burns, &buybacks),
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
            incidents: provenance::incidents(snapshot, now),
            position: position.map(|position| PositionCell::of(&position, token.symbol())),
            next,
            unconfirmed,
            unlocked: Unlocked { amount, total, percent: (total > 0.0).then(|| amount / total * 100.0) },
            market_cap: token.market_cap(),
            max_supply: token.item.max_supply.copied(),
            supply: TokenSupplyCard::of(snapshot, supply, stale_price, now),
            facts,
            later_linear: linear.split_off(FIRST_LINEAR.min(linear.len())),
            linear,
            plot: ScheduleChart::of(&drawing, token.symbol()),
            areas: [CurveBy::Allocation, CurveBy::Recipient].map(|of| area_choice(token.id.as_str(), of, by)).to_vec(),
            legend: curves.iter().enumerate().map(|(index, curve)| AllocationRow::of(index, curve, now)).collect(),
            former_until: former.map(|former| former.until).filter(|_| has_ghost),
            burned: burns.iter().map(|(_, size)| size).sum(),
            burns: burns.len(),
            bought_back: buybacks.iter().map(|(_, size)| size).sum(),
            buybacks: buybacks.len(),
            later: {
                upcoming.truncate(MAX_UPCOMING);
                upcoming.split_off(FIRST_UPCOMING.min(upcoming.len()))
            },
            upcoming,
            upcoming_total,
            flows: FlowCard::of(snapshot, &curves, now),
            changes: correction::corrections(changes, versions),
            corrections: correction::summary(&corrections),
            changes_total,
            shown_days: shown.map(|shown| phrase::shown_days(&shown)).unwrap_or_default(),
            alerts,
            provenance: Provenance::of(snapshot, &events),
        }
    }
}

/// The value of `by` in the address of a page whose areas are recipients.
pub const BY_RECIPIENT: &str = "recipient";

/// Returns the link to the chart with these areas.
fn area_choice(id: &str, of: CurveBy, current: CurveBy) -> Choice {
    let (name, value) = match of {
        CurveBy::Allocation => ("Allocations", ""),
        CurveBy::Recipient => ("Recipients", BY_RECIPIENT),
    };
    let path = href(&format!("/tokens/{}", segment(id)), &[("by", value)]);
    Choice::new(name, format!("{path}#schedule"), of == current)
}

impl AllocationRow {
    fn of(index: usize, curve: &Curve, now: Timestamp) -> Self {
        Self {
            class: format!("c{}", index.min(11)),
            name: if curve.name.is_empty() { "unnamed".to_owned() } else { curve.name.clone() },
            recipient: curve.recipient.name(),
            unlocked: curve.at(now),
            total: curve.total(),
            begin: curve.begin().map(phrase::day),
            end: curve.end().map(phrase::day),
        }
    }
}

/// Returns the upcoming unlocks, soonest first. `circulating` is the circulating supply, in tokens.
fn upcoming(snapshot: &TokenSnapshot, circulating: Option<f64>, now: Timestamp) -> Vec<UpcomingUnlock> {
    let read_at = snapshot.feed(model::Endpoint::UnlockEvents).and_then(|feed| feed.read_at);
    let is_ahead = |tracked: &&Tracked| tracked.record.interval().is_some_and(|interval| !interval.has_passed(now));
    let row = |tracked: &Tracked| {
        let row = UpcomingRow { token: snapshot.token.clone(), tracked: tracked.clone(), read_at };
        let unlock = UnlockView { record: serde_json::Value::Null, ..UnlockView::of(&row, now)? };
        let event = tracked.record.unlock()?;
        let shares = recipient::shares(event);
        let class = recipient::largest(&shares).class();
        let (time_until, allocations) = (time_until(&unlock), phrase::allocation_shares(event));
        let nominal = unlock.unlock_date.filter(|nominal| *nominal <= now && unlock.days_until.is_some());
        let percent = unlock.cliff_amount.zip(circulating).map(|(amount, circulating)| amount / circulating * 100.0);
        Some(UpcomingUnlock {
            recipients: recipient::label(&shares),
            class,
            is_cliff: event.has_cliff(),
            percent_of_circulating: percent.filter(|percent| percent.is_finite()),
            unconfirmed: nominal.map(|nominal| phrase::expected(nominal, now)),
            multiple: unlock.position.as_ref().and_then(PositionView::multiple),
            unlock,
            time_until,
            allocations,
        })
    };
    snapshot.records_of(Resource::Unlock).filter(is_ahead).filter_map(row).collect()
}

/// Returns the time until an unlock. Empty for dates with month precision.
fn time_until(unlock: &UnlockView) -> String {
    match (unlock.precision, unlock.days_until) {
        (Precision::Month | Precision::ToBeDetermined, _) | (_, None) => String::new(),
        (precision, Some(days)) => phrase::time_until(days.max(0.0), precision).unwrap_or_default(),
    }
}

fn cliff_dates(events: &[&UnlockEvent]) -> Vec<Interval> {
    let has_amount = |event: &&&UnlockEvent| event.cliff_amount().is_some_and(|amount| amount > 0.0);
    events.iter().filter(has_amount).filter_map(|event| event.interval()).collect()
}

fn next_cliff(snapshot: &TokenSnapshot, now: Timestamp) -> Option<NextCliff> {
    let cliffs = snapshot.records_of(Resource::Unlock).filter_map(|tracked| {
        let event = tracked.record.unlock()?;
        let nominal = event.unlock_date.copied().filter(|nominal| *nominal > now)?;
        let amount = event.cliff_amount().filter(|amount| *amount > 0.0)?;
        Some((nominal, event.interval()?, amount, event.cliff_value()))
    });
    let (_, interval, amount, value) = cliffs.min_by_key(|(nominal, ..)| *nominal)?;
    let (label, short) = (phrase::next_cliff(amount, value, &interval), phrase::next_cliff_short(amount, &interval));
    Some(NextCliff { interval, label, short })
}

fn event_lanes<'a>(burns: &'a [(Timestamp, f64)], buybacks: &'a [(Timestamp, f64)]) -> Vec<EventLane<'a>> {
    vec![
        EventLane { name: "Burned", class: "burn", sizes: burns, format: |size| phrase::tokens(size, None) },
        EventLane { name: "Bought back", class: "buyback", sizes: buybacks, format: phrase::usd },
    ]
}

/// Returns the sizes of burns in tokens or of buybacks in USD, the units that the source usually gives.
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
