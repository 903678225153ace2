//! The results of a trial in the playground: diagnostics, current matches, and a backtest.

use chrono::NaiveDate;
use minijinja::Value;
use serde::Serialize;

use chart::{bars::bars, svg::Svg};
use daemon::playground::{Trial, TrialOutcome};
use model::{Diagnostic, DiagnosticLevel, LineIndex, Timestamp, phrase};
use tools::backtest::{BacktestMessage, BacktestNotification, joint_messages};

/// The maximum number of matches and of messages listed.
const MAX_LISTED: usize = 15;
/// The maximum number of lines shown.
const MAX_LINES: usize = 2_000;

/// A line of a source text with its diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// One-based. `None` for diagnostics without a location.
    pub number: Option<usize>,
    pub text: String,
    pub problems: Vec<CodeProblem>,
    /// Whether lines before this one are omitted.
    pub is_after_gap: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeProblem {
    pub is_error: bool,
    /// The start of the text at the location.
    pub excerpt: String,
    pub message: String,
    pub label: Option<String>,
    pub help: Option<String>,
}

/// Returns the lines of a text with their diagnostics. With `context`, omits lines that are further from any diagnostic.
pub fn code_lines(text: &str, diagnostics: &[Diagnostic], context: Option<usize>) -> Vec<CodeLine> {
    let index = LineIndex::of(text);
    let mut lines: Vec<CodeLine> = text
        .lines()
        .take(MAX_LINES)
        .enumerate()
        .map(|(at, line)| CodeLine { number: Some(at + 1), text: line.to_owned(), problems: Vec::new(), is_after_gap: false })
        .collect();
    let mut whole = CodeLine { number: None, text: String::new(), problems: Vec::new(), is_after_gap: false };
    for found in diagnostics {
        let excerpt = found.span.as_ref().and_then(|span| text.get(span.start..span.end)).unwrap_or_default();
        let problem = CodeProblem {
            is_error: found.severity == DiagnosticLevel::Error,
            excerpt: excerpt.lines().next().unwrap_or_default().chars().take(80).collect(),
            message: found.message.clone(),
            label: found.label.clone(),
            help: found.help.clone(),
        };
        let line = found.span.as_ref().and_then(|span| lines.get_mut(index.position(span).line.saturating_sub(1)));
        line.unwrap_or(&mut whole).problems.push(problem);
    }
    if let Some(context) = context {
        let bad: Vec<usize> = lines.iter().filter(|line| !line.problems.is_empty()).filter_map(|line| line.number).collect();
        lines.retain(|line| line.number.is_some_and(|number| bad.iter().any(|bad| bad.abs_diff(number) <= context)));
        let mut next = 1;
        for line in &mut lines {
            let number = line.number.unwrap_or_default();
            line.is_after_gap = number != next;
            next = number + 1;
        }
    }
    if !whole.problems.is_empty() {
        lines.insert(0, whole);
    }
    lines
}

#[derive(Clone, Debug, Serialize)]
pub struct TrialView {
    pub errors: usize,
    pub warnings: usize,
    /// The text with its diagnostics. Empty without diagnostics.
    pub lines: Vec<CodeLine>,
    /// The name of each rule, and its effect in one sentence.
    pub sentences: Vec<(String, String)>,
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
    /// Receivers with their message counts.
    pub receivers: Vec<(String, u32)>,
    /// The weeks with messages, and the number of messages.
    pub weeks: Vec<(NaiveDate, u32)>,
    pub week_chart: Option<Value>,
    pub busiest: u32,
    pub latest: Vec<TrialMessage>,
    pub latest_total: usize,
    pub notes: Vec<String>,
    /// Rules with a failed template, and the error.
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

#[derive(Clone, Debug, Serialize)]
pub struct TrialMessage {
    pub at: Timestamp,
    pub receivers: String,
    pub title: String,
    pub texts: Vec<String>,
}

impl TrialView {
    pub fn of(trial: &Trial) -> Self {
        let is_error = |found: &&Diagnostic| found.severity == DiagnosticLevel::Error;
        let errors = trial.diagnostics.iter().filter(is_error).count();
        Self {
            errors,
            warnings: trial.diagnostics.len() - errors,
            lines: match trial.diagnostics.is_empty() {
                true => Vec::new(),
                false => code_lines(&trial.source.text, &trial.diagnostics, None),
            },
            sentences: trial.sentences.clone(),
            outcome: trial.outcome.as_ref().map(OutcomeView::of),
        }
    }
}

impl OutcomeView {
    fn of(outcome: &TrialOutcome) -> Self {
        let TrialOutcome { matches, run, summary, .. } = outcome;
        let joint: Vec<(&BacktestMessage, Vec<&str>)> = joint_messages(&run.messages).collect();
        let in_week = |week: usize| summary.receivers.iter().filter_map(|row| row.by_week.get(week)).sum::<u32>();
        let weeks: Vec<(NaiveDate, u32)> = summary.weeks.iter().enumerate().map(|(at, week)| (*week, in_week(at))).collect();
        Self {
            matches: matches.iter().take(MAX_LISTED).map(|notification| alert(notification)).collect(),
            matches_total: matches.len(),
            is_once: outcome.is_once,
            span: format!("{} – {}", phrase::day(run.from), phrase::day(run.to)),
            alerts: summary.alerts,
            messages: summary.messages,
            receivers: summary.receivers.iter().map(|row| (row.name.clone(), row.messages)).collect(),
            busiest: weeks.iter().map(|(_, count)| *count).max().unwrap_or(0),
            week_chart: week_chart(&weeks),
            weeks: weeks.into_iter().filter(|(_, count)| *count > 0).collect(),
            latest: joint.iter().rev().take(MAX_LISTED).map(|(one, receivers)| message(one, receivers)).collect(),
            latest_total: joint.len(),
            notes: notes(outcome),
            template_errors: run.template_errors.clone(),
        }
    }
}

/// Draws the messages per week. `None` without messages.
fn week_chart(weeks: &[(NaiveDate, u32)]) -> Option<Value> {
    const HEIGHT: f64 = 100.0;
    let counts: Vec<f64> = weeks.iter().map(|(_, count)| f64::from(*count)).collect();
    let mut svg = Svg::new(1000.0, HEIGHT + 4.0, "weeks", "Messages per week");
    svg.line("axis", (0.0, HEIGHT + 1.0), (1000.0, HEIGHT + 1.0));
    for (bar, (week, count)) in bars(&counts, 1000.0, HEIGHT, 3.0).into_iter().zip(weeks).filter(|(bar, _)| bar.height > 0.0) {
        let height = bar.height.max(3.0);
        svg.marked_group(None, &format!("{week}: {count}"), |svg| svg.rect("c0", bar.x, HEIGHT - height, bar.width, height, 0.0));
    }
    weeks.iter().any(|(_, count)| *count > 0).then(|| Value::from_safe_string(svg.finish()))
}

fn alert(notification: &BacktestNotification) -> TrialAlert {
    TrialAlert {
        at: notification.at,
        token: notification.token.clone(),
        symbol: notification.symbol.clone(),
        severity: notification.labels.get("severity").cloned(),
        summary: notification.summary.clone(),
        receivers: notification.receivers.join(", "),
    }
}

fn message(message: &BacktestMessage, receivers: &[&str]) -> TrialMessage {
    TrialMessage {
        at: message.at,
        receivers: receivers.join(", "),
        title: message.title(),
        texts: message.notified.iter().take(10).map(|notification| notification.summary.clone()).collect(),
    }
}

fn notes(outcome: &TrialOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(since) = outcome.recorded_since {
        notes.push(format!(
            "The database contains the history of these tokens since {}. Before that, the simulation uses the first known unlocks and \
             allocations, and no burns, buybacks, or funding rounds.",
            phrase::day(since)
        ));
    }
    if outcome.run.to < outcome.until {
        notes.push(format!("The time limit was reached: the simulation ends on {}.", phrase::day(outcome.run.to)));
    }
    let (left_out, of) = outcome.left_out;
    if left_out > 0 {
        notes.push(format!("{left_out} of {} could not be read in time and are not simulated.", phrase::count(of, "token")));
    }
    notes.extend(outcome.summary.notes(&outcome.run));
    notes
}

#[cfg(test)]
mod tests;
