//! The report of a backtest: a self-contained HTML file with a timeline of all messages.
//!
//! This module prepares the data, and `timeline` draws the chart. `report.html`, `report.css`, and `report.js` define the page. The
//! template engine escapes text and replaces hostile characters.

mod entry;
mod timeline;

use chrono::NaiveDate;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;

use super::{
    BacktestComparison, BacktestMessage, BacktestNotification, BacktestRun, BacktestSummary, TallyRow, difference,
    joint_messages, seconds,
};
use chart::{bars::bars, svg::Svg};
use entry::{EntryRow, ReportEntry};
use model::{phrase, text::is_hostile};

/// The maximum number of rows in each list of a comparison.
const MAX_COMPARED: usize = 300;
/// The maximum number of alerts listed for a message.
const MAX_LISTED_ALERTS: usize = 100;
/// The maximum number of names in the shares of a row.
const MAX_SHARES: usize = 3;

/// The data of the page.
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
    timeline: Option<String>,
    rules: Vec<ReportRow>,
    receivers: Vec<ReportRow>,
    noisiest: String,
    comparison: Option<ComparisonSection>,
    entries: Vec<EntryRow>,
    entry_count: usize,
}

/// Renders the report as a self-contained page.
pub fn page(
    run: &BacktestRun,
    summary: &BacktestSummary,
    comparison: Option<&BacktestComparison>,
) -> Result<String, minijinja::Error> {
    let entries = ReportEntry::all(run);
    let noisiest = summary.noisiest.iter().take(5).map(|(rule, token, count)| format!("{rule} for {token} ({count})"));
    let template_errors = run
        .template_errors
        .iter()
        .map(|(rule, error)| format!("A template of {rule} failed, so the built-in text was used: {error}"));
    let notes = summary.notes(run).into_iter().chain(template_errors).collect();
    let report = Report {
        style: include_str!("html/report.css"),
        script: include_str!("html/report.js"),
        span: format!("{} – {}", phrase::day(run.from), phrase::day(run.to)),
        tokens: phrase::count(run.tokens, "token"),
        rule_count: phrase::count(run.rules.len(), "rule"),
        changes: phrase::count(run.changes, "change"),
        cards: cards(run, summary),
        notes,
        timeline: timeline::draw(run, summary, &entries),
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
        Some(text) if !value.is_safe() && text.chars().any(is_hostile_character) => {
            let fit: String = text.chars().map(|c| if is_hostile_character(c) { '\u{fffd}' } else { c }).collect();
            minijinja::escape_formatter(out, state, &Value::from(fit))
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.render_named_str("report.html", include_str!("html/report.html"), Value::from(Serde(&report)))
}

/// Returns `true` for hostile characters except line breaks.
fn is_hostile_character(c: char) -> bool {
    c != '\n' && is_hostile(c)
}

/// Returns the five key figures of a run.
fn cards(run: &BacktestRun, summary: &BacktestSummary) -> [(String, String); 5] {
    let weeks = seconds(run.to - run.from) / (7.0 * 86_400.0);
    let per_week = if weeks > 0.0 { f64::from(summary.messages) / weeks } else { 0.0 };
    let silent = summary.rules.iter().filter(|row| row.messages == 0).count();
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    let joined = if summary.joined > 0 { format!(", {} of them with several alerts", summary.joined) } else { String::new() };
    [
        (summary.alerts.to_string(), format!("alert{}", plural(summary.alerts))),
        (summary.messages.to_string(), format!("message{}{joined}", plural(summary.messages))),
        (format!("{per_week:.1}"), "per week on average".to_owned()),
        busiest_week(summary).map_or_else(
            || ("0".to_owned(), "in the busiest week".to_owned()),
            |(week, count)| (count.to_string(), format!("in the busiest week, starting {}", week.format("%-d %b %Y"))),
        ),
        (silent.to_string(), format!("rule{} without messages", if silent == 1 { "" } else { "s" })),
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

/// The row of a rule or receiver.
#[derive(Serialize)]
struct ReportRow {
    name: String,
    alerts: u32,
    messages: u32,
    undelivered: u32,
    tokens: u32,
    shares: Vec<ShareCell>,
    more_shares: usize,
    spark: String,
    busiest: Option<BusiestCell>,
}

#[derive(Serialize)]
struct ShareCell {
    name: String,
    count: u32,
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

/// Draws a bar for each week.
fn spark(by_week: &[u32]) -> String {
    const BAR_HEIGHT: f64 = 22.0;
    let counts: Vec<f64> = by_week.iter().copied().map(f64::from).collect();
    let mut svg = Svg::stretched(200.0, BAR_HEIGHT, "spark", "Messages per week");
    for bar in bars(&counts, 200.0, 20.0, 0.4).into_iter().filter(|bar| bar.height > 0.0) {
        let height = bar.height.max(1.5);
        svg.rect("bar", bar.x, BAR_HEIGHT - height, bar.width, height, 0.0);
    }
    svg.finish()
}

/// The comparison with other rules.
#[derive(Serialize)]
struct ComparisonSection {
    gained: usize,
    lost: usize,
    changed: usize,
    same: u32,
    sides: Vec<SideRow>,
    changes: Vec<ChangedMessageRow>,
}

/// A message that only one set of rules sends.
#[derive(Serialize)]
struct SideRow {
    class: &'static str,
    sign: &'static str,
    at: String,
    rules: String,
    title: String,
    receivers: String,
}

/// A message that both sets of rules send with a difference.
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
        let mut rules: Vec<&str> = message.notified.iter().map(|notification| notification.rule.as_str()).collect();
        rules.dedup();
        let (rules, receivers) = (rules.join(", "), receivers.join(", "));
        Self { class, sign, at: phrase::instant_iso(message.at), rules, title: message.title(), receivers }
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
            notifications.into_iter().take(MAX_LISTED_ALERTS).map(line).collect()
        };
        let (gone, new) = (lines(gone), lines(new));
        Self {
            was: phrase::instant_iso(was.at),
            is: phrase::instant_iso(is.at),
            gone,
            new,
            title: is.title(),
            receiver: is.receiver.clone(),
        }
    }
}
