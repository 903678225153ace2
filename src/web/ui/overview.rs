//! The overview: the next unlocks by date, totals of coming supply, supply per week, corrections, firing alerts, and the health of the
//! daemon in one line.

mod changes;
mod credit;
mod firing;
mod health;
pub(in crate::ui) mod next;
mod notices;
mod source;
pub(in crate::ui) mod supply;

use chrono::TimeDelta;
use serde::Serialize;

use super::page::{PageFrame, Section, render};
pub(super) use changes::severity;
use changes::{ChangeLine, change_lines};
use chart::recipient;
use credit::CreditGauge;
use daemon::view::{AlertView, StatusView, UnlockView};
use firing::FiringCard;
use health::HealthCard;
use model::{
    Ahead, ChangeRow, CreditState, FiringAlerts, PastPolls, Record, SumWindow, SupplyTotals, Timestamp, Token, UpcomingRow,
    phrase,
};
use next::NextCard;
use notices::Notice;
use source::SourceCard;
use supply::SupplyCard;
pub use supply::windows as supply_windows;

/// The length of the list of next unlocks, in days.
pub const AHEAD_DAYS: i64 = 90;
/// The number of days from which the largest unlocks are.
pub const LARGEST_DAYS: i64 = 30;
/// The maximum number of dates in the list of next unlocks.
pub const NEXT_ROWS: u32 = 24;
/// The maximum number of alerts read from the store.
pub const ALERT_ROWS: u32 = 40;
/// The maximum number of changes read from the store.
pub const CHANGE_ROWS: u32 = 60;
/// The maximum number of tokens with held responses that are named.
pub const HELD_ROWS: u32 = 8;
const MAX_CHANGE_LINES: usize = 10;

/// The data of an overview.
#[derive(Debug)]
pub struct OverviewParts<'a> {
    pub now: Timestamp,
    pub status: StatusView,
    /// The coming supply in the windows of [`supply_windows`].
    pub supply: &'a SupplyTotals,
    /// The age from which a price is stale.
    pub stale_price: TimeDelta,
    /// The next unlocks, and the largest of the next [`LARGEST_DAYS`].
    pub ahead: &'a Ahead,
    pub firing: &'a FiringAlerts,
    /// The views of the alerts of `firing`.
    pub alerts: Vec<AlertView>,
    pub changes: &'a [ChangeRow],
    pub credit: &'a CreditState,
    /// Tokens with a held response.
    pub held: &'a [Token],
    /// Recent polls of each endpoint.
    pub polls: &'a [PastPolls],
    /// `[budget] monthly_credits`.
    pub cap: Option<u64>,
}

#[derive(Debug, Serialize)]
struct OverviewPage {
    status: StatusView,
    /// The number of known tokens that the config watches.
    watched: u64,
    days: i64,
    largest_days: i64,
    notices: Vec<Notice>,
    next: NextCard,
    supply: SupplyCard,
    /// The largest unlock by value, and the one by share of market cap.
    largest: Option<AheadRow>,
    largest_share: Option<AheadRow>,
    changes: Vec<ChangeLine>,
    firing: FiringCard,
    health: HealthCard,
}

/// An upcoming unlock in a list.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AheadRow {
    /// The CSS class of the largest recipient.
    class: &'static str,
    recipients: String,
    /// The date without the time of day.
    day: String,
    /// The value, or the tokens if the value is unknown.
    size: String,
    unlock: UnlockView,
}

impl AheadRow {
    pub(super) fn of(row: &UpcomingRow, now: Timestamp) -> Option<Self> {
        let Record::Unlock(event) = &row.tracked.record else { return None };
        let (shares, interval) = (recipient::shares(event), event.interval()?);
        // Only the JSON API needs the record.
        let unlock = UnlockView { record: serde_json::Value::Null, ..UnlockView::of(row, now)? };
        Some(Self {
            class: recipient::largest(&shares).class(),
            recipients: recipient::label(&shares),
            day: if interval.is_unconfirmed(now) { phrase::when_at(&interval, now) } else { phrase::when_day(&interval) },
            size: phrase::size(unlock.cliff_value, unlock.cliff_amount, Some(&unlock.symbol)),
            unlock,
        })
    }
}

/// Returns the period of the list of next unlocks, and the one of the largest unlocks.
pub fn ahead_windows(now: Timestamp) -> (SumWindow, SumWindow) {
    (SumWindow::of(now, TimeDelta::days(AHEAD_DAYS)), SumWindow::of(now, TimeDelta::days(LARGEST_DAYS)))
}

pub fn page(parts: OverviewParts<'_>, frame: PageFrame) -> String {
    let dead: u64 = parts.status.outbox.iter().map(|receiver| receiver.dead).sum();
    let frame = PageFrame { refreshes: true, ..frame }.with_count(Section::Deliveries, dead);
    let notices = notices::of(&parts.status, parts.held);
    let credits = CreditGauge::of(parts.credit, parts.cap, parts.now);
    let source = SourceCard::of(&parts.status.endpoints, parts.polls);
    let row = |rows: &[UpcomingRow]| rows.first().and_then(|row| AheadRow::of(row, parts.now));
    let page = OverviewPage {
        watched: parts.supply.coverage.tokens,
        days: AHEAD_DAYS,
        largest_days: LARGEST_DAYS,
        next: NextCard::of(parts.ahead, parts.now),
        supply: SupplyCard::of(parts.supply, parts.now, parts.stale_price),
        largest: row(&parts.ahead.largest),
        largest_share: row(&parts.ahead.largest_share),
        changes: change_lines(parts.changes, MAX_CHANGE_LINES),
        firing: FiringCard::of(parts.firing, parts.alerts),
        health: HealthCard::of(&parts.status, &notices, credits, source),
        notices,
        status: parts.status,
    };
    render("overview.html", &frame, &page)
}

#[cfg(test)]
mod tests;
