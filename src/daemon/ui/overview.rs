//! The overview: what unlocks next and how big it is, what fires, what changed, whether the watcher itself is well and its credits last.
//! Pure: views and a `now` in, the page's value out.

mod changes;
mod credit;
mod notices;
mod source;

use std::collections::{BTreeSet, HashMap};

use minijinja::Value;
use serde::Serialize;

use super::chart::recipient::{Recipient, shares};
use super::chart::timeline::{self, Measure, TimelineEvent};
use super::chart::{self, Chart};
use super::page::{Choice, PageFrame, Section, href, render};
use super::template::{grouped, token_href};
use super::view::{AlertView, StatusView, UnlockView};
pub use changes::{ChangeLine, told};
pub(super) use changes::{text, tone};
pub use credit::CreditGauge;
use model::{
    Ahead, AheadSum, AheadSums, ChangeRow, CreditState, FiringAlerts, PastPolls, Record, Timestamp, Token, TokenId, UpcomingRow,
    WeeksAhead, format,
};
use notices::Notice;
use source::SourceCard;

/// How far the timeline reaches, days.
pub const AHEAD_DAYS: i64 = 90;
/// Unlocks that are asked for the timeline, and those of them that stand beside it.
pub const AHEAD_ROWS: u32 = 160;
const LISTED: usize = 12;
/// Of so many of the largest the weeks of their tokens are shown: equal ones of a token stand together in the list.
pub const WEEKS_OF: usize = 40;
/// Rows behind the chart.
const MAX_TABLE: usize = 60;
/// Alerts that are read, and the lines that they make at most.
pub const ALERT_ROWS: u32 = 40;
const ALERT_LINES: usize = 10;
/// Changes that are read.
pub const CHANGE_ROWS: u32 = 60;
/// Held tokens that are named.
pub const HELD_ROWS: u32 = 8;
/// Lines of changes.
const CHANGE_LINES: usize = 10;

/// What an overview is made from.
#[derive(Debug)]
pub struct OverviewParts<'a> {
    pub now: Timestamp,
    pub status: StatusView,
    /// The largest unlocks ahead, by `measure`.
    pub ahead: &'a Ahead,
    pub until: Timestamp,
    pub measure: Measure,
    /// What unlocks of the tokens of the largest in the coming weeks.
    pub weeks: &'a HashMap<TokenId, WeeksAhead>,
    pub firing: &'a FiringAlerts,
    /// The views of the alerts of `firing`.
    pub alerts: Vec<AlertView>,
    pub changes: &'a [ChangeRow],
    pub credit: &'a CreditState,
    /// Tokens with an answer that is held.
    pub held: &'a [Token],
    /// What each endpoint answered of late.
    pub polls: &'a [PastPolls],
    /// `[budget] monthly_credits`.
    pub cap: Option<u64>,
}

#[derive(Debug, Serialize)]
struct OverviewPage {
    status: StatusView,
    notices: Vec<Notice>,
    timeline: TimelineCard,
    firing: FiringCard,
    changes: Vec<ChangeLine>,
    credits: CreditGauge,
    source: SourceCard,
    /// Messages that wait, in a delivery or for their group, and those that are given up.
    waiting: u64,
    dead: u64,
    dead_words: String,
}

/// The chart of what is ahead, with the list beside it and the table behind it.
#[derive(Debug, Serialize)]
struct TimelineCard {
    chart: Option<Chart>,
    /// By value or by share.
    choices: Vec<Choice>,
    /// The word of the measure.
    by: &'static str,
    legend: Vec<LegendItem>,
    /// The largest first.
    largest: Vec<AheadRow>,
    /// What is drawn, by time.
    table: Vec<AheadRow>,
    /// How many there are, and what they come to.
    counted: String,
    /// What may come within the time too, in no sum with the others; empty where there is none.
    possible: String,
    /// The first number of `counted` and the last, for a tile.
    count: String,
    value: String,
    days: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct LegendItem {
    class: &'static str,
    name: &'static str,
}

/// An unlock ahead in a list.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AheadRow {
    /// Colour of whoever receives most.
    class: &'static str,
    /// Who receives, the largest first.
    recipients: String,
    /// How many others of its token are as large, where they stand for themselves no more.
    alike: usize,
    /// When, no finer than the day.
    day: String,
    unlock: UnlockView,
    /// What unlocks of its token in the coming weeks.
    weeks: Option<Value>,
}

#[derive(Debug, Serialize)]
struct FiringCard {
    total: u64,
    critical: u64,
    /// How many of each gravity, in words.
    summary: String,
    shown: usize,
    groups: Vec<SeverityGroup>,
}

/// Alerts of one gravity, with how many there are.
#[derive(Debug, Serialize)]
struct SeverityGroup {
    name: &'static str,
    class: &'static str,
    count: u64,
    /// How many of these the lines stand for.
    told: u64,
    alerts: Vec<FiringEvent>,
}

/// An alert, with the other rules that say something of the same.
#[derive(Debug, Serialize)]
struct FiringEvent {
    view: AlertView,
    also: Vec<String>,
}

impl AheadRow {
    pub(super) fn of(row: &UpcomingRow, now: Timestamp) -> Option<Self> {
        let Record::Unlock(event) = &row.tracked.record else { return None };
        let parts = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let shares = shares(parts);
        // The record is in the JSON of the API; a page shows what is made of it.
        let unlock = UnlockView { record: serde_json::Value::Null, ..UnlockView::of(row, now)? };
        Some(Self {
            class: shares.first().map_or(Recipient::Other, |(recipient, _)| *recipient).class(),
            recipients: recipients(&shares),
            alike: 0,
            weeks: None,
            day: unlock.when.split(", ").next().unwrap_or_default().to_owned(),
            unlock,
        })
    }

    fn is_alike(&self, other: &Self) -> bool {
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 0.02 * a.abs().max(b.abs()),
            (a, b) => a == b,
        };
        self.unlock.token_id == other.unlock.token_id && close(self.unlock.cliff_value, other.unlock.cliff_value)
    }
}

/// The largest, each token's equal ones as one: the nearest, with how many others are like it.
fn folded(rows: &[AheadRow]) -> Vec<AheadRow> {
    let mut found: Vec<AheadRow> = Vec::new();
    for row in rows {
        match found.iter_mut().find(|known| known.is_alike(row)) {
            Some(known) => {
                let alike = known.alike + 1;
                if row.unlock.days_until.unwrap_or(f64::MAX) < known.unlock.days_until.unwrap_or(f64::MAX) {
                    *known = row.clone();
                }
                known.alike = alike;
            }
            None => found.push(row.clone()),
        }
    }
    found.truncate(LISTED);
    found
}

/// Who receives, in words: `Team 60%, Reserve 40%`.
pub(super) fn recipients(shares: &[(Recipient, f64)]) -> String {
    match shares {
        [(only, _)] => only.name().to_owned(),
        several => {
            let part = |(recipient, share): &(Recipient, f64)| format!("{} {:.0}%", recipient.name(), share * 100.0);
            several.iter().map(part).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The overview as HTML.
pub fn page(parts: OverviewParts<'_>, frame: PageFrame) -> String {
    let dead: u64 = parts.status.outbox.iter().map(|receiver| receiver.dead).sum();
    let frame = PageFrame { refreshes: true, ..frame }.counting(Section::Deliveries, dead);
    let page = OverviewPage {
        notices: notices::of(&parts.status, parts.held),
        timeline: TimelineCard::of(&parts),
        firing: FiringCard::of(parts.firing, parts.alerts),
        changes: told(parts.changes, CHANGE_LINES),
        credits: CreditGauge::of(parts.credit, parts.cap, parts.now),
        source: SourceCard::of(&parts.status.endpoints, parts.polls),
        waiting: parts.status.outbox.iter().map(|receiver| receiver.pending + receiver.waiting).sum(),
        dead_words: if dead == 0 {
            "no dead letter".to_owned()
        } else {
            format::count(usize::try_from(dead).unwrap_or(usize::MAX), "dead letter")
        },
        dead,
        status: parts.status,
    };
    render("overview.html", &frame, &page)
}

impl TimelineCard {
    fn of(parts: &OverviewParts<'_>) -> Self {
        let OverviewParts { now, ahead, until, measure, .. } = *parts;
        let AheadSums { counted, possible } = ahead.sums;
        let rows: Vec<AheadRow> = ahead.rows.iter().filter_map(|row| AheadRow::of(row, now)).collect();
        let events: Vec<TimelineEvent> = ahead.rows.iter().filter_map(|row| timeline_event(row, measure)).collect();
        let drawn: BTreeSet<Recipient> = events.iter().flat_map(|event| &event.shares).map(|(recipient, _)| *recipient).collect();
        let mut table: Vec<AheadRow> = rows.iter().take(MAX_TABLE).cloned().collect();
        table.sort_by(|a, b| a.unlock.days_until.unwrap_or(0.0).total_cmp(&b.unlock.days_until.unwrap_or(0.0)));
        let choice = |of: Measure, name: &str| {
            let by = if of == Measure::default() { "" } else { of.as_str() };
            Choice::new(name, href("/", &[("by", by)]), of == measure)
        };
        Self {
            chart: timeline::draw(&events, measure, now, until),
            choices: vec![choice(Measure::Value, "USD"), choice(Measure::Share, "% of market cap")],
            by: measure.as_str(),
            legend: drawn.into_iter().map(|of| LegendItem { class: of.class(), name: of.name() }).collect(),
            largest: with_weeks(folded(&rows), parts.weeks, now),
            table,
            counted: sum_words(counted),
            possible: if possible.count == 0 { String::new() } else { sum_words(possible) },
            count: format::count(usize::try_from(counted.count).unwrap_or(usize::MAX), "unlock"),
            value: format::usd(counted.value),
            days: AHEAD_DAYS,
        }
    }
}

/// Each with the weeks of its token, the first of a token alone.
fn with_weeks(mut rows: Vec<AheadRow>, weeks: &HashMap<TokenId, WeeksAhead>, now: Timestamp) -> Vec<AheadRow> {
    let mut told = BTreeSet::new();
    for row in &mut rows {
        let of = weeks.get(&TokenId::from(row.unlock.token_id.as_str())).filter(|_| told.insert(row.unlock.token_id.clone()));
        row.weeks = of.map(|weeks| Value::from_safe_string(chart::weeks::draw(weeks, now)));
    }
    rows
}

fn sum_words(sum: AheadSum) -> String {
    let count = usize::try_from(sum.count).unwrap_or(usize::MAX);
    format!("{} worth {}", format::count(count, "unlock"), format::usd(sum.value))
}

fn timeline_event(row: &UpcomingRow, measure: Measure) -> Option<TimelineEvent> {
    let Record::Unlock(event) = &row.tracked.record else { return None };
    let parts = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let size = match measure {
        Measure::Value => event.cliff_value(),
        Measure::Share => event.value_to_market_cap(),
    };
    let shares = shares(parts);
    let symbol = format::name(row.token.symbol());
    let to = if shares.is_empty() { String::new() } else { format!(" to {}", recipients(&shares)) };
    Some(TimelineEvent {
        title: format!("{symbol}{to}"),
        symbol,
        href: token_href(row.token.id.as_str()),
        interval: event.interval()?,
        size: size?,
        shares,
    })
}

/// The place of an alert's group among those of the card.
fn group_of(alert: &AlertView) -> usize {
    let severity = alert.labels.get("severity").map(|severity| severity.to_ascii_lowercase());
    match severity.as_deref() {
        Some("critical" | "page" | "error") => 0,
        Some("warning") => 1,
        _ => 2,
    }
}

impl FiringCard {
    fn of(firing: &FiringAlerts, alerts: Vec<AlertView>) -> Self {
        let group = |name, class, count| SeverityGroup { name, class, count, told: 0, alerts: Vec::new() };
        let mut groups = [
            group("Critical", "critical", firing.critical),
            group("Warning", "warning", firing.warning),
            group("Other", "info", firing.other),
        ];
        let (mut shown, mut lines) = (0, 0);
        for alert in alerts {
            let of = group_of(&alert);
            // Several rules may fire for one event: the gravest tells it, the others stand beside it.
            let is_same = |line: &&mut FiringEvent| line.view.token_id.is_some() && line.view.subject == alert.subject;
            let is_told = match groups.iter_mut().flat_map(|group| &mut group.alerts).find(is_same) {
                Some(line) => {
                    line.also.push(alert.rule.clone());
                    true
                }
                None if lines < ALERT_LINES => {
                    lines += 1;
                    groups.get_mut(of).is_some_and(|group| {
                        group.alerts.push(FiringEvent { view: alert, also: Vec::new() });
                        true
                    })
                }
                None => false,
            };
            if let Some(group) = groups.get_mut(of).filter(|_| is_told) {
                (shown, group.told) = (shown + 1, group.told + 1);
            }
        }
        let total = firing.critical + firing.warning + firing.other;
        let counts = [(firing.critical, "critical"), (firing.warning, "warning"), (firing.other, "other")];
        let words = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{} {word}", grouped(*count)));
        let summary = words.collect::<Vec<_>>().join(", ");
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
