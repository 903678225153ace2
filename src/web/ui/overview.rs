//! The overview: coming supply, what comes next, upcoming cliff unlocks, firing alerts, latest changes, credits, and the state of the
//! source and the receivers.

mod changes;
mod credit;
mod next;
mod notices;
mod source;
pub(in crate::ui) mod supply;

use std::collections::{BTreeSet, HashMap};

use chrono::TimeDelta;
use minijinja::Value;
use serde::Serialize;

use super::page::{Choice, PageFrame, Section, href, render};
use super::template::token_href;
pub(super) use changes::severity;
use changes::{ChangeLine, change_lines};
use chart::Chart;
use chart::recipient::{self, Recipient};
use chart::timeline::{self, Measure, RateMark, TimelineEvent};
use credit::CreditGauge;
use daemon::view::{AlertView, StatusView, UnlockView};
use model::phrase::linear::rate_step;
use model::{
    Ahead, ChangeRow, CreditState, FiringAlerts, Interval, PastPolls, RateRow, Record, SupplyTotals, Timestamp, Token, TokenId,
    TokenSupply, UpcomingRow, phrase,
};
use next::NextCard;
use notices::Notice;
use source::SourceCard;
use supply::SupplyCard;
pub use supply::windows as supply_windows;

/// The length of the timeline in days.
pub const AHEAD_DAYS: i64 = 90;
/// The maximum number of unlocks on the timeline.
pub const AHEAD_ROWS: u32 = 160;
/// The maximum number of dates in the list of what comes next.
pub const NEXT_ROWS: u32 = 24;
/// The maximum length of the list of largest unlocks.
const MAX_LARGEST: usize = 12;
/// The number of largest unlocks whose tokens get a weekly chart. Similar unlocks of one token share a row.
pub const WEEKS_OF: usize = 40;
/// The maximum number of rows in the table below the timeline.
const MAX_TABLE: usize = 60;
/// The maximum number of alerts read from the store.
pub const ALERT_ROWS: u32 = 40;
const MAX_ALERT_LINES: usize = 10;
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
    /// The largest upcoming cliff unlocks by `measure`, and the next ones.
    pub ahead: &'a Ahead,
    pub until: Timestamp,
    pub measure: Measure,
    /// The weekly supply of the tokens with the largest unlocks.
    pub weeks: &'a HashMap<TokenId, TokenSupply>,
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
    notices: Vec<Notice>,
    supply: SupplyCard,
    next: NextCard,
    timeline: TimelineCard,
    firing: FiringCard,
    changes: Vec<ChangeLine>,
    credits: CreditGauge,
    source: SourceCard,
    /// Pending deliveries, and notifications that wait for their group.
    waiting: u64,
    dead: u64,
    /// The count of dead letters as text.
    dead_letters: String,
}

/// The timeline of upcoming cliff unlocks, with a list and a table.
#[derive(Debug, Serialize)]
struct TimelineCard {
    chart: Option<Chart>,
    choices: Vec<Choice>,
    by: &'static str,
    legend: Vec<LegendItem>,
    /// Largest first.
    largest: Vec<AheadRow>,
    /// Sorted by date.
    table: Vec<AheadRow>,
    days: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct LegendItem {
    class: &'static str,
    name: &'static str,
}

/// An upcoming unlock in a list.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AheadRow {
    /// The CSS class of the largest recipient.
    class: &'static str,
    recipients: String,
    /// The number of similar unlocks of the same token that this row includes.
    similar: usize,
    /// The date without the time of day.
    day: String,
    /// The value, or the tokens if the value is unknown.
    size: String,
    unlock: UnlockView,
    /// The weekly chart of its token.
    weeks: Option<Value>,
}

#[derive(Debug, Serialize)]
struct FiringCard {
    total: u64,
    critical: u64,
    /// The count of each severity as text.
    summary: String,
    shown: usize,
    groups: Vec<SeverityGroup>,
}

/// Firing alerts of one severity.
#[derive(Debug, Serialize)]
struct SeverityGroup {
    name: &'static str,
    class: &'static str,
    count: u64,
    /// The number of alerts that the lines include.
    listed: u64,
    alerts: Vec<FiringEvent>,
}

/// An alert, with the other rules that fire for the same event.
#[derive(Debug, Serialize)]
struct FiringEvent {
    view: AlertView,
    also: Vec<String>,
}

impl AheadRow {
    pub(super) fn of(row: &UpcomingRow, now: Timestamp) -> Option<Self> {
        let Record::Unlock(event) = &row.tracked.record else { return None };
        let shares = recipient::shares(event);
        // Only the JSON API needs the record.
        let unlock = UnlockView { record: serde_json::Value::Null, ..UnlockView::of(row, now)? };
        Some(Self {
            class: recipient::largest(&shares).class(),
            recipients: recipient::label(&shares),
            similar: 0,
            weeks: None,
            day: phrase::when_day(&event.interval()?),
            size: phrase::size(unlock.cliff_value, unlock.cliff_amount, Some(&unlock.symbol)),
            unlock,
        })
    }

    fn is_similar(&self, other: &Self) -> bool {
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 0.02 * a.abs().max(b.abs()),
            (a, b) => a == b,
        };
        self.unlock.token_id == other.unlock.token_id && close(self.unlock.cliff_value, other.unlock.cliff_value)
    }
}

/// Combines similar unlocks of one token into the nearest one, with a count. Returns the first `MAX_LARGEST`. `rows` must be sorted
/// by size, largest first.
fn combine_similar(rows: &[AheadRow]) -> Vec<AheadRow> {
    let mut found: Vec<AheadRow> = Vec::new();
    for row in rows {
        match found.iter_mut().find(|known| known.is_similar(row)) {
            Some(known) => {
                let similar = known.similar + 1;
                if row.unlock.days_until.unwrap_or(f64::MAX) < known.unlock.days_until.unwrap_or(f64::MAX) {
                    *known = row.clone();
                }
                known.similar = similar;
            }
            None => found.push(row.clone()),
        }
    }
    found.truncate(MAX_LARGEST);
    found
}

pub fn page(parts: OverviewParts<'_>, frame: PageFrame) -> String {
    let dead: u64 = parts.status.outbox.iter().map(|receiver| receiver.dead).sum();
    let frame = PageFrame { refreshes: true, ..frame }.with_count(Section::Deliveries, dead);
    let page = OverviewPage {
        notices: notices::of(&parts.status, parts.held),
        watched: parts.supply.coverage.tokens,
        supply: SupplyCard::of(parts.supply, parts.now, parts.stale_price),
        next: NextCard::of(parts.ahead, parts.now),
        timeline: TimelineCard::of(&parts),
        firing: FiringCard::of(parts.firing, parts.alerts),
        changes: change_lines(parts.changes, MAX_CHANGE_LINES),
        credits: CreditGauge::of(parts.credit, parts.cap, parts.now),
        source: SourceCard::of(&parts.status.endpoints, parts.polls),
        waiting: parts.status.outbox.iter().map(|receiver| receiver.pending + receiver.waiting).sum(),
        dead_letters: phrase::grouped_count(dead, "dead letter"),
        dead,
        status: parts.status,
    };
    render("overview.html", &frame, &page)
}

impl TimelineCard {
    fn of(parts: &OverviewParts<'_>) -> Self {
        let OverviewParts { now, ahead, until, measure, .. } = *parts;
        let rows: Vec<AheadRow> = ahead.rows.iter().filter_map(|row| AheadRow::of(row, now)).collect();
        let events: Vec<TimelineEvent> = ahead.rows.iter().filter_map(|row| timeline_event(row, measure)).collect();
        let rates: Vec<RateMark> = ahead.rates.iter().filter_map(rate_mark).collect();
        let drawn: BTreeSet<Recipient> = events.iter().flat_map(|event| &event.shares).map(|(recipient, _)| *recipient).collect();
        let mut table: Vec<AheadRow> = rows.iter().take(MAX_TABLE).cloned().collect();
        table.sort_by(|a, b| a.unlock.days_until.unwrap_or(0.0).total_cmp(&b.unlock.days_until.unwrap_or(0.0)));
        let choice = |other: Measure, name: &str| {
            let by = if other == Measure::default() { "" } else { other.as_str() };
            Choice::new(name, href("/", &[("by", by)]), other == measure)
        };
        Self {
            chart: timeline::draw(&events, &rates, measure, now, until),
            choices: vec![choice(Measure::Value, "USD"), choice(Measure::Share, "% of market cap")],
            by: measure.as_str(),
            legend: drawn.into_iter().map(|recipient| LegendItem { class: recipient.class(), name: recipient.name() }).collect(),
            largest: with_weeks(combine_similar(&rows), parts.weeks, now),
            table,
            days: AHEAD_DAYS,
        }
    }
}

/// Adds the weekly chart to the first row of each token.
fn with_weeks(mut rows: Vec<AheadRow>, weeks: &HashMap<TokenId, TokenSupply>, now: Timestamp) -> Vec<AheadRow> {
    let mut seen = BTreeSet::new();
    for row in &mut rows {
        let id = TokenId::from(row.unlock.token_id.as_str());
        let weeks = weeks.get(&id).filter(|_| seen.insert(id));
        row.weeks = weeks.map(|supply| Value::from_safe_string(chart::weeks::draw(&supply.windows, supply.known, now)));
    }
    rows
}

fn timeline_event(row: &UpcomingRow, measure: Measure) -> Option<TimelineEvent> {
    let Record::Unlock(event) = &row.tracked.record else { return None };
    let size = match measure {
        Measure::Value => event.cliff_value(),
        Measure::Share => event.value_to_market_cap(),
    };
    let shares = recipient::shares(event);
    let symbol = phrase::name(row.token.symbol());
    let to = if shares.is_empty() { String::new() } else { format!(" to {}", recipient::label(&shares)) };
    Some(TimelineEvent {
        title: format!("{symbol}{to}"),
        symbol,
        href: token_href(row.token.id.as_str()),
        interval: event.interval()?,
        size: size?,
        shares,
    })
}

fn rate_mark(row: &RateRow) -> Option<RateMark> {
    let RateRow { token, at, precision, step, price, .. } = row;
    let when = phrase::when(&Interval::of(*at, *precision)?);
    Some(RateMark {
        at: *at,
        title: format!("{}: {} {when}", phrase::name(token.symbol()), rate_step(Some(*step), *price, false)),
        href: token_href(token.id.as_str()),
        rises: step.after > step.before,
    })
}

/// Returns the index of the severity group that an alert belongs to, the most severe first.
fn severity_group(alert: &AlertView) -> usize {
    let severity = alert.labels.get("severity").map(|severity| severity.to_ascii_lowercase());
    match severity.as_deref() {
        Some("critical" | "page" | "error") => 0,
        Some("warning") => 1,
        _ => 2,
    }
}

impl FiringCard {
    fn of(firing: &FiringAlerts, alerts: Vec<AlertView>) -> Self {
        let group = |name, class, count| SeverityGroup { name, class, count, listed: 0, alerts: Vec::new() };
        let mut groups = [
            group("Critical", "critical", firing.critical),
            group("Warning", "warning", firing.warning),
            group("Other", "info", firing.other),
        ];
        let (mut shown, mut lines) = (0, 0);
        for alert in alerts {
            let index = severity_group(&alert);
            // If several rules fire for one event, the first alert is the most severe.
            let is_same = |line: &&mut FiringEvent| line.view.token_id.is_some() && line.view.subject == alert.subject;
            let is_listed = match groups.iter_mut().flat_map(|group| &mut group.alerts).find(is_same) {
                Some(line) => {
                    line.also.push(alert.rule.clone());
                    true
                }
                None if lines < MAX_ALERT_LINES => {
                    lines += 1;
                    groups.get_mut(index).is_some_and(|group| {
                        group.alerts.push(FiringEvent { view: alert, also: Vec::new() });
                        true
                    })
                }
                None => false,
            };
            if let Some(group) = groups.get_mut(index).filter(|_| is_listed) {
                (shown, group.listed) = (shown + 1, group.listed + 1);
            }
        }
        let total = firing.critical + firing.warning + firing.other;
        let counts = [(firing.critical, "critical"), (firing.warning, "warning"), (firing.other, "other")];
        let counts = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, severity)| format!("{} {severity}", phrase::grouped(*count)));
        let summary = counts.collect::<Vec<_>>().join(", ");
        Self {
            total,
            critical: firing.critical,
            summary,
            shown,
            groups: groups.into_iter().filter(|group| group.count > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
