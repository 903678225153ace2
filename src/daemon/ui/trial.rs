//! What a trial of a rule shows: the text with what is wrong in its place, what it matches now, and what it would have sent. Pure.

use chrono::NaiveDate;
use serde::Serialize;

use crate::playground::{Trial, TrialOutcome};
use model::{Diagnostic, LineIndex, Severity, Timestamp, format};
use tools::backtest::{BacktestMessage, BacktestNotification, joint_messages};

/// What matches now and is listed, and messages that are; more are counted.
const MAX_LISTED: usize = 15;
/// Lines of a text.
const MAX_LINES: usize = 2_000;

/// A line of a text, with what is wrong in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// From 1; zero for what concerns the text as a whole.
    pub number: usize,
    pub text: String,
    pub problems: Vec<CodeProblem>,
    /// Whether lines before it are left out.
    pub is_after_gap: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeProblem {
    pub is_error: bool,
    /// Column at which it begins, from 1; zero for none.
    pub column: usize,
    /// What stands at it.
    pub what: String,
    pub message: String,
    pub label: Option<String>,
    pub help: Option<String>,
}

/// A text with its problems below the lines that they are about. With `around`, only so many lines beside each are kept.
pub fn code_lines(text: &str, diagnostics: &[Diagnostic], around: Option<usize>) -> Vec<CodeLine> {
    let index = LineIndex::of(text);
    let mut lines: Vec<CodeLine> = text
        .lines()
        .take(MAX_LINES)
        .enumerate()
        .map(|(at, line)| CodeLine { number: at + 1, text: line.to_owned(), problems: Vec::new(), is_after_gap: false })
        .collect();
    let mut whole = CodeLine { number: 0, text: String::new(), problems: Vec::new(), is_after_gap: false };
    for found in diagnostics {
        let place = found.span.as_ref().map(|span| (index.position(span), span));
        let what = place.as_ref().and_then(|(_, span)| text.get(span.start..span.end)).unwrap_or_default();
        let problem = CodeProblem {
            is_error: found.severity == Severity::Error,
            column: place.as_ref().map_or(0, |(place, _)| place.column),
            what: what.lines().next().unwrap_or_default().chars().take(80).collect(),
            message: found.message.clone(),
            label: found.label.clone(),
            help: found.help.clone(),
        };
        let line = place.and_then(|(place, _)| lines.get_mut(place.line.saturating_sub(1)));
        line.unwrap_or(&mut whole).problems.push(problem);
    }
    if let Some(around) = around {
        let bad: Vec<usize> = lines.iter().filter(|line| !line.problems.is_empty()).map(|line| line.number).collect();
        lines.retain(|line| bad.iter().any(|bad| bad.abs_diff(line.number) <= around));
        let mut before = 0;
        for line in &mut lines {
            line.is_after_gap = line.number != before + 1;
            before = line.number;
        }
    }
    if !whole.problems.is_empty() {
        lines.insert(0, whole);
    }
    lines
}

/// What a trial shows.
#[derive(Clone, Debug, Serialize)]
pub struct TrialView {
    pub errors: usize,
    pub warnings: usize,
    /// The text with its problems; empty where there are none.
    pub lines: Vec<CodeLine>,
    pub outcome: Option<OutcomeView>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OutcomeView {
    pub matches: Vec<TrialAlert>,
    pub matches_total: usize,
    pub is_once: bool,
    /// `21 Sep 2025 – 21 Sep 2026`.
    pub span: String,
    pub alerts: u32,
    pub messages: u32,
    /// Messages for each receiver: name, count.
    pub receivers: Vec<(String, u32)>,
    pub weeks: Vec<TrialWeek>,
    pub busiest: u32,
    /// The latest messages, each with its receivers.
    pub latest: Vec<TrialMessage>,
    pub latest_total: usize,
    /// What a reader must know of it.
    pub notes: Vec<String>,
    /// Rules with a template that failed.
    pub template_errors: Vec<(String, String)>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TrialAlert {
    pub at: Timestamp,
    pub token: Option<String>,
    pub symbol: Option<String>,
    pub severity: Option<String>,
    pub summary: String,
    pub receivers: String,
}

/// A message as it would have been sent.
#[derive(Clone, Debug, Serialize)]
pub struct TrialMessage {
    pub at: Timestamp,
    pub receivers: String,
    pub title: String,
    pub texts: Vec<String>,
}

/// The messages of one week, and where their bar stands in a picture of 1000 by 100.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialWeek {
    pub week: NaiveDate,
    pub count: u32,
    pub x: usize,
    pub width: usize,
    pub y: u32,
    pub height: u32,
}

impl TrialView {
    pub fn of(trial: &Trial) -> Self {
        let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
        let errors = trial.diagnostics.iter().filter(is_error).count();
        Self {
            errors,
            warnings: trial.diagnostics.len() - errors,
            lines: match trial.diagnostics.is_empty() {
                true => Vec::new(),
                false => code_lines(&trial.source.text, &trial.diagnostics, None),
            },
            outcome: trial.outcome.as_ref().map(OutcomeView::of),
        }
    }
}

impl OutcomeView {
    fn of(outcome: &TrialOutcome) -> Self {
        let TrialOutcome { matches, run, summary, .. } = outcome;
        let joint: Vec<(&BacktestMessage, Vec<&str>)> = joint_messages(&run.messages).collect();
        let counts: Vec<u32> =
            (0..summary.weeks.len()).map(|week| summary.receivers.iter().filter_map(|row| row.by_week.get(week)).sum()).collect();
        Self {
            matches: matches.iter().take(MAX_LISTED).map(|told| alert(told)).collect(),
            matches_total: matches.len(),
            is_once: outcome.is_once,
            span: format!("{} – {}", format::day(run.from), format::day(run.to)),
            alerts: summary.alerts,
            messages: summary.messages,
            receivers: summary.receivers.iter().map(|row| (row.name.clone(), row.messages)).collect(),
            busiest: counts.iter().copied().max().unwrap_or(0),
            weeks: bars(&summary.weeks, &counts),
            latest: joint.iter().rev().take(MAX_LISTED).map(|(of, receivers)| message(of, receivers)).collect(),
            latest_total: joint.len(),
            notes: notes(outcome),
            template_errors: run.template_errors.clone(),
        }
    }
}

fn bars(weeks: &[NaiveDate], counts: &[u32]) -> Vec<TrialWeek> {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let step = 1000 / weeks.len().max(1);
    let bar = |(at, (week, count)): (usize, (&NaiveDate, &u32))| {
        let height = if *count == 0 { 0 } else { (count * 100 / most).max(3) };
        TrialWeek { week: *week, count: *count, x: at * step, width: step.saturating_sub(3).max(1), y: 100 - height, height }
    };
    weeks.iter().zip(counts).enumerate().map(bar).collect()
}

fn alert(told: &BacktestNotification) -> TrialAlert {
    TrialAlert {
        at: told.at,
        token: told.token.clone(),
        symbol: told.symbol.clone(),
        severity: told.labels.get("severity").cloned(),
        summary: told.summary.clone(),
        receivers: told.receivers.join(", "),
    }
}

fn message(message: &BacktestMessage, receivers: &[&str]) -> TrialMessage {
    TrialMessage {
        at: message.at,
        receivers: receivers.join(", "),
        title: message.title(),
        texts: message.told.iter().take(10).map(|told| told.summary.clone()).collect(),
    }
}

fn notes(outcome: &TrialOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(since) = outcome.recorded_since {
        notes.push(format!(
            "The database knows these tokens since {}. Before that, unlocks and allocations are played as they were first seen; burns, \
             buybacks and rounds only from then on.",
            format::day(since)
        ));
    }
    if outcome.run.to < outcome.until {
        notes.push(format!("It took too long: it was played up to {} and no further.", format::day(outcome.run.to)));
    }
    let (left_out, of) = outcome.left_out;
    if left_out > 0 {
        notes.push(format!("{left_out} of {} could not be read in time and are left out.", format::count(of, "token")));
    }
    if outcome.run.uncounted > 0 {
        notes.push(format!("{} more were not kept: the rule tells too much.", outcome.run.uncounted));
    }
    let undelivered = |state: &str| outcome.summary.undelivered.get(state).copied().unwrap_or(0);
    let nobody = undelivered("nobody");
    if nobody > 0 {
        notes.push(format!("{} would have reached nobody: no route takes it.", format::count(nobody as usize, "alert")));
    }
    let limited = undelivered("limited");
    if limited > 0 {
        notes.push(format!("{} would have been left out by the rule's limit.", format::count(limited as usize, "alert")));
    }
    let held: u32 = ["silenced", "inhibited", "acknowledged"].into_iter().map(undelivered).sum();
    if held > 0 {
        notes.push(format!(
            "{} would have been held back by silences, other alerts or acknowledgements.",
            format::count(held as usize, "message")
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
