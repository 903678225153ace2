//! A list with one line per explanation.

use serde::Serialize;

use super::{ExplainCase, Explanation};
use model::{Timestamp, phrase};
use rules::{On, Rule};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainLine {
    pub rule: String,
    /// The subject, without the rule. `None` if the explanation failed.
    pub about: Option<String>,
    /// Whether the alert fired.
    pub fired: bool,
    /// The conclusion, without the prefix `result: `.
    pub so: String,
}

impl ExplainLine {
    pub fn of(rule: &Rule, explanation: &Explanation) -> Self {
        let Explanation { about, fired, so, .. } = explanation;
        let about = about.split_once(" for ").map_or(about.as_str(), |(_, about)| about).to_owned();
        Self { rule: rule.name.clone(), about: Some(about), fired: *fired, so: so.clone() }
    }

    /// Returns the line for an explanation that failed.
    pub fn failed(rule: &Rule, why: String) -> Self {
        Self { rule: rule.name.clone(), about: None, fired: false, so: why }
    }
}

/// The subjects that a rule covers now, over all tokens.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    lines: Vec<(Option<Timestamp>, ExplainLine)>,
}

impl Overview {
    pub fn add(&mut self, rule: &Rule, case: &ExplainCase<'_>, explanation: &Explanation) {
        let of_record = || case.record.as_deref().and_then(|tracked| tracked.record.interval()).map(|interval| interval.start);
        let at = case.change.map(|(_, at)| at).or_else(of_record);
        self.lines.push((at, ExplainLine::of(rule, explanation)));
    }

    /// Summarizes the lines. `last` is the last time at which the rule matched any subject.
    pub fn head(&self, rule: &Rule, last: Option<Timestamp>) -> String {
        let checked = self.lines.len();
        let checked = match rule.on {
            On::Change(..) => format!("the latest {} of this kind", phrase::count(checked, "change")),
            On::Token => format!("{} checked", phrase::count(checked, "token")),
            _ => format!("{} checked, the nearest of each token", phrase::count(checked, "record")),
        };
        let fired = self.lines.iter().filter(|(_, line)| line.fired).count();
        let last = last.map_or_else(|| "it never matched".to_owned(), |at| format!("it last matched {}", phrase::instant(at)));
        format!("{}: {checked}; {fired} fired; {last}", rule.name)
    }

    /// Returns at most `limit` lines: firing ones first, then by distance in time.
    #[must_use]
    pub fn lines(mut self, now: Timestamp, limit: usize) -> Vec<ExplainLine> {
        self.lines.sort_by_key(|(at, line)| (!line.fired, at.map(|at| (at - now).abs())));
        self.lines.into_iter().take(limit).map(|(_, line)| line).collect()
    }
}
