//! The unlock that an alert is about: its size, its recipients, and its place in the schedule.

use serde::Serialize;

use chart::curve::{CurveBy, curves_by, differs};
use chart::recipient::Recipient;
use chart::schedule::{NextCliff, ScheduleDrawing};
use model::wire::UnlockEvent;
use model::{ChangeRow, Interval, Resource, Timestamp, TokenSnapshot, VersionRow, phrase};

use super::schedule_table::ScheduleChart;
use super::token::former;

/// The maximum number of recipients.
const MAX_RECIPIENTS: usize = 12;

#[derive(Debug, Serialize)]
pub struct AlertedUnlock {
    /// The date as text.
    when: String,
    /// The time until the unlock, no more exact than its date, or "passed". Empty without a date.
    time_until: String,
    amount: Option<f64>,
    value: Option<f64>,
    /// Percent of market cap.
    share: Option<f64>,
    /// Largest first.
    recipients: Vec<RecipientRow>,
    /// The number of recipients without a row.
    more: usize,
    /// The schedule of the token, with this unlock marked. `None` if the schedule is not known.
    plot: Option<ScheduleChart>,
    /// Whether the chart also has the schedule before the change of the alert.
    has_former: bool,
}

/// An allocation that gets a part of the unlock.
#[derive(Debug, PartialEq, Serialize)]
struct RecipientRow {
    name: String,
    class: &'static str,
    recipient: &'static str,
    amount: Option<f64>,
    value: Option<f64>,
    /// Percent of the tokens of the unlock.
    percent: Option<f64>,
}

impl AlertedUnlock {
    /// `snapshot` has the schedule of the token. `versions` are its records before the `change` of the alert. `None` without a cliff
    /// unlock.
    pub fn of(
        event: &UnlockEvent,
        snapshot: Option<&TokenSnapshot>,
        change: Option<&ChangeRow>,
        versions: &[VersionRow],
        now: Timestamp,
    ) -> Option<Self> {
        if !event.has_cliff() {
            return None;
        }
        let interval = event.interval();
        let mut recipients = recipients(event);
        let more = recipients.len().saturating_sub(MAX_RECIPIENTS);
        recipients.truncate(MAX_RECIPIENTS);
        let drawn = snapshot.zip(interval).map(|(snapshot, interval)| drawn(event, interval, snapshot, change, versions, now));
        let (plot, has_former) = drawn.unwrap_or_default();
        Some(Self {
            when: phrase::date(interval.as_ref(), now),
            time_until: interval.map(|interval| time_until(&interval, now)).unwrap_or_default(),
            amount: event.cliff_amount(),
            value: event.cliff_value(),
            share: event.value_to_market_cap(),
            recipients,
            more,
            plot,
            has_former,
        })
    }
}

fn time_until(interval: &Interval, now: Timestamp) -> String {
    if interval.has_passed(now) {
        return "passed".to_owned();
    }
    phrase::time_until(interval.days_until(now), interval.precision).unwrap_or_default()
}

fn recipients(event: &UnlockEvent) -> Vec<RecipientRow> {
    let parts = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let total = event.cliff_amount().filter(|total| *total > 0.0);
    let row = |part: &model::wire::CliffAllocation| {
        let recipient = Recipient::parse(part.standard_allocation_name.as_str());
        let amount = part.cliff_amount.copied().filter(|amount| amount.is_finite());
        RecipientRow {
            name: phrase::name(part.allocation_name.as_str().unwrap_or_default()),
            class: recipient.class(),
            recipient: recipient.name(),
            amount,
            value: part.cliff_value.copied().filter(|value| value.is_finite()),
            percent: amount.zip(total).map(|(amount, total)| amount / total * 100.0),
        }
    };
    let mut rows: Vec<RecipientRow> = parts.iter().map(row).collect();
    let size = |row: &RecipientRow| row.amount.unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    rows
}

/// Draws the schedule of the token with this unlock marked, and the schedule before the change if they differ.
fn drawn(
    event: &UnlockEvent,
    interval: Interval,
    snapshot: &TokenSnapshot,
    change: Option<&ChangeRow>,
    versions: &[VersionRow],
    now: Timestamp,
) -> (Option<ScheduleChart>, bool) {
    let events = || snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock());
    // In the colors of the recipients above it.
    let by = CurveBy::Recipient;
    let is = curves_by(by, events());
    let former = change.and_then(|change| former::schedule(versions, std::slice::from_ref(change)));
    let was = former.map(|former| curves_by(by, former.events.iter())).unwrap_or_default();
    let has_former = differs(&is, &was);
    let cliffs: Vec<Interval> = events().filter(|event| event.has_cliff()).filter_map(UnlockEvent::interval).collect();
    let size = phrase::size(event.cliff_value(), event.cliff_amount(), Some(snapshot.token.symbol()));
    let mark = NextCliff {
        interval,
        label: format!("this unlock: {size}, {}", phrase::when_day(&interval)),
        short: format!("{size}, {}", phrase::when_day(&interval)),
    };
    let drawing = ScheduleDrawing {
        by,
        curves: &is,
        former: has_former.then_some(was.as_slice()),
        cliffs: &cliffs,
        next: Some(mark),
        lanes: Vec::new(),
        max_supply: snapshot.token.item.max_supply.copied(),
        now,
    };
    (ScheduleChart::of(&drawing, snapshot.token.symbol()), has_former)
}

#[cfg(test)]
mod tests;
