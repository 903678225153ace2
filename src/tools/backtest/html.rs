//! The report of a backtest: one HTML file without anything from elsewhere, with a timeline of every message.
//!
//! What the page says is gathered here and in `timeline`; how it looks stands in `report.html`, `report.css` and `report.js`. Texts are
//! escaped by the template engine, and characters that hide or turn text are shown as what they are not.

mod entry;
mod timeline;

use chrono::NaiveDate;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;

use super::{
    BacktestComparison, BacktestMessage, BacktestNotification, BacktestRun, BacktestSummary, TallyRow, difference,
    joint_messages, seconds,
};
use entry::{EntryRow, ReportEntry};
use model::{Timestamp, format, text::is_hostile};
use timeline::Timeline;

/// Rows of each list of a comparison.
const MAX_COMPARED: usize = 300;
/// Alerts that are listed of one message.
const MAX_ALERTS: usize = 100;
/// Shares of a row that are named.
const MAX_SHARES: usize = 3;

/// What the page says.
#[derive(Serialize)]
struct Report {
    style: &'static str,
    script: &'static str,
    span: String,
    tokens: String,
    rule_count: String,
    changes: String,
    cards: [(String, String); 5],
    notes: Vec<String>,
    timeline: Option<Timeline>,
    rules: Vec<ReportRow>,
    receivers: Vec<ReportRow>,
    noisiest: String,
    comparison: Option<ComparisonSection>,
    entries: Vec<EntryRow>,
    entry_count: usize,
}

/// A self-contained page.
pub fn page(
    run: &BacktestRun,
    summary: &BacktestSummary,
    comparison: Option<&BacktestComparison>,
) -> Result<String, minijinja::Error> {
    let entries = ReportEntry::all(run);
    let noisiest = summary.noisiest.iter().take(5).map(|(rule, token, count)| format!("{rule} for {token} ({count})"));
    let report = Report {
        style: include_str!("html/report.css"),
        script: include_str!("html/report.js"),
        span: format!("{} – {}", format::day(run.from), format::day(run.to)),
        tokens: format::count(run.tokens, "token"),
        rule_count: format::count(run.rules.len(), "rule"),
        changes: format::count(usize::try_from(run.changes).unwrap_or(usize::MAX), "change"),
        cards: cards(run, summary),
        notes: notes(run, summary),
        timeline: Timeline::of(run, summary, &entries),
        rules: summary.rules.iter().map(|row| ReportRow::of(row, summary)).collect(),
        receivers: summary.receivers.iter().map(|row| ReportRow::of(row, summary)).collect(),
        noisiest: noisiest.collect::<Vec<_>>().join(", "),
        comparison: comparison.map(ComparisonSection::of),
        entries: EntryRow::all(&entries),
        entry_count: entries.len(),
    };
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() && text.chars().any(is_unfit) => {
            let fit: String = text.chars().map(|c| if is_unfit(c) { '\u{fffd}' } else { c }).collect();
            minijinja::escape_formatter(out, state, &Value::from(fit))
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.render_named_str("report.html", include_str!("html/report.html"), Value::from(Serde(&report)))
}

/// Whether a character cannot be seen or turns the direction of text. Lines may end.
fn is_unfit(c: char) -> bool {
    c != '\n' && is_hostile(c)
}

/// What a run comes to in five numbers.
fn cards(run: &BacktestRun, summary: &BacktestSummary) -> [(String, String); 5] {
    let weeks = seconds(run.to - run.from) / (7.0 * 86_400.0);
    let per_week = if weeks > 0.0 { f64::from(summary.messages) / weeks } else { 0.0 };
    let silent = summary.rules.iter().filter(|row| row.messages == 0).count();
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    let joined = if summary.joined > 0 { format!(", {} of them about several", summary.joined) } else { String::new() };
    [
        (summary.alerts.to_string(), format!("alert{}", plural(summary.alerts))),
        (summary.messages.to_string(), format!("message{}{joined}", plural(summary.messages))),
        (format!("{per_week:.1}"), "a week on average".to_owned()),
        busiest_week(summary).map_or_else(
            || ("0".to_owned(), "in the busiest week".to_owned()),
            |(week, count)| (count.to_string(), format!("in the busiest week, of {}", week.format("%-d %b %Y"))),
        ),
        (silent.to_string(), format!("rule{} that sent nothing", if silent == 1 { "" } else { "s" })),
    ]
}

fn busiest_week(summary: &BacktestSummary) -> Option<(NaiveDate, u32)> {
    let totals = summary
        .weeks
        .iter()
        .enumerate()
        .map(|(index, week)| (*week, summary.rules.iter().filter_map(|row| row.by_week.get(index)).sum::<u32>()));
    totals.rev().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)
}

/// What a reader must know of a run: what was not told, what is not shown, what failed.
fn notes(run: &BacktestRun, summary: &BacktestSummary) -> Vec<String> {
    let mut notes = Vec::new();
    let undelivered = |state: &str| summary.undelivered.get(state).copied().unwrap_or(0);
    let suppressed: Vec<String> = ["silenced", "inhibited", "acknowledged"]
        .into_iter()
        .filter(|state| undelivered(state) > 0)
        .map(|state| format!("{} {state}", undelivered(state)))
        .collect();
    if !suppressed.is_empty() {
        notes.push(format!("Held back and never told: {}.", suppressed.join(", ")));
    }
    if undelivered("nobody") > 0 {
        let count = undelivered("nobody");
        let them = if count == 1 { "it" } else { "them" };
        notes.push(format!("{} would have reached nobody: no route takes {them}.", format::count(count as usize, "alert")));
    }
    if undelivered("waiting") > 0 {
        notes.push(format!(
            "{} still waited for a group, a mute time or room in the hour at the end.",
            format::count(undelivered("waiting") as usize, "alert")
        ));
    }
    if run.uncounted > 0 {
        let more = match run.uncounted {
            1 => "1 more message is".to_owned(),
            many => format!("{many} more messages are"),
        };
        notes.push(format!("{more} not shown: that is too much for anyone."));
    }
    for (rule, error) in &run.template_errors {
        notes.push(format!("A template of {rule} fails, and the built-in text stands in its place: {error}"));
    }
    notes
}

/// A rule or a receiver.
#[derive(Serialize)]
struct ReportRow {
    name: String,
    alerts: u32,
    messages: u32,
    undelivered: u32,
    tokens: u32,
    shares: Vec<ShareCell>,
    more_shares: usize,
    spark: Vec<SparkBar>,
    busiest: Option<BusiestCell>,
}

#[derive(Serialize)]
struct ShareCell {
    name: String,
    count: u32,
}

#[derive(Serialize)]
struct SparkBar {
    x: String,
    y: String,
    width: String,
    height: String,
}

#[derive(Serialize)]
struct BusiestCell {
    count: u32,
    day: String,
    month: String,
    year: String,
}

impl ReportRow {
    fn of(row: &TallyRow, summary: &BacktestSummary) -> Self {
        let mut shares: Vec<(&String, &u32)> = row.shares.iter().collect();
        shares.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let named = shares.iter().take(MAX_SHARES).map(|(name, count)| ShareCell { name: (*name).clone(), count: **count });
        let busiest = row.busiest().and_then(|(week, count)| {
            let monday = summary.weeks.get(week)?;
            let part = |format: &str| monday.format(format).to_string();
            Some(BusiestCell { count, day: part("%-d"), month: part("%b"), year: part("%Y") })
        });
        Self {
            name: row.name.clone(),
            alerts: row.alerts,
            messages: row.messages,
            undelivered: row.undelivered,
            tokens: row.tokens,
            shares: named.collect(),
            more_shares: shares.len().saturating_sub(MAX_SHARES),
            spark: spark(&row.by_week),
            busiest,
        }
    }
}

/// A row over time: a bar for each week, in a box of 200 by 22.
fn spark(by_week: &[u32]) -> Vec<SparkBar> {
    let most = f64::from(by_week.iter().copied().max().unwrap_or(0).max(1));
    let width = 200.0 / f64::from(u32::try_from(by_week.len().max(1)).unwrap_or(u32::MAX));
    let busy = by_week.iter().enumerate().filter(|(_, count)| **count > 0);
    busy.map(|(week, count)| {
        let height = (f64::from(*count) / most * 20.0).max(1.5);
        let x = f64::from(u32::try_from(week).unwrap_or(u32::MAX)) * width;
        SparkBar {
            x: format!("{x:.1}"),
            y: format!("{:.1}", 22.0 - height),
            width: format!("{:.1}", (width - 0.4).max(0.5)),
            height: format!("{height:.1}"),
        }
    })
    .collect()
}

/// What other rules would change.
#[derive(Serialize)]
struct ComparisonSection {
    gained: usize,
    lost: usize,
    changed: usize,
    same: u32,
    sides: Vec<SideRow>,
    changes: Vec<ChangedMessageRow>,
}

/// A message that only one side sends.
#[derive(Serialize)]
struct SideRow {
    class: &'static str,
    sign: &'static str,
    at: String,
    rules: String,
    title: String,
    receivers: String,
}

/// A message that both send otherwise.
#[derive(Serialize)]
struct ChangedMessageRow {
    was: String,
    is: String,
    gone: Vec<String>,
    new: Vec<String>,
    title: String,
    receiver: String,
}

impl ComparisonSection {
    fn of(comparison: &BacktestComparison) -> Self {
        let BacktestComparison { gained, lost, changed, same } = comparison;
        let side = |messages| joint_messages(messages).take(MAX_COMPARED);
        let mut sides: Vec<(&BacktestMessage, SideRow)> = Vec::new();
        sides.extend(side(gained).map(|(message, receivers)| (message, SideRow::of("gain", "+", message, &receivers))));
        sides.extend(side(lost).map(|(message, receivers)| (message, SideRow::of("loss", "−", message, &receivers))));
        sides.sort_by_key(|(message, _)| message.at);
        Self {
            gained: gained.len(),
            lost: lost.len(),
            changed: changed.len(),
            same: *same,
            sides: sides.into_iter().map(|(_, row)| row).collect(),
            changes: changed.iter().take(MAX_COMPARED).map(|(was, is)| ChangedMessageRow::of(was, is)).collect(),
        }
    }
}

impl SideRow {
    fn of(class: &'static str, sign: &'static str, message: &BacktestMessage, receivers: &[&str]) -> Self {
        let mut rules: Vec<&str> = message.told.iter().map(|notification| notification.rule.as_str()).collect();
        rules.dedup();
        let (rules, receivers) = (rules.join(", "), receivers.join(", "));
        Self { class, sign, at: minute(message.at), rules, title: message.title(), receivers }
    }
}

impl ChangedMessageRow {
    fn of(was: &BacktestMessage, is: &BacktestMessage) -> Self {
        let (gone, new) = difference(was, is);
        let lines = |notifications: Vec<&BacktestNotification>| {
            let line = |notification: &BacktestNotification| {
                let severity = notification.labels.get("severity").map(|text| format!(" [{text}]")).unwrap_or_default();
                format!("{}: {}{severity}", notification.rule, notification.summary)
            };
            notifications.into_iter().take(MAX_ALERTS).map(line).collect()
        };
        let (gone, new) = (lines(gone), lines(new));
        Self { was: minute(was.at), is: minute(is.at), gone, new, title: is.title(), receiver: is.receiver.clone() }
    }
}

/// An instant to the minute.
fn minute(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}
