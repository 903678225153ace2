//! Many explanations at once, a line for each.

use serde::Serialize;

use super::{ExplainCase, Explanation};
use model::{Timestamp, format};
use rules::{On, Rule};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainLine {
    /// The rule's name.
    pub rule: String,
    /// What it is about, without the rule; none where that could not be found out.
    pub about: Option<String>,
    /// Whether it was told.
    pub fired: bool,
    /// The sentence at the end, without the `so: `.
    pub so: String,
}

impl ExplainLine {
    pub fn of(rule: &Rule, explanation: &Explanation) -> Self {
        let Explanation { about, fired, so, .. } = explanation;
        let about = about.split_once(" for ").map_or(about.as_str(), |(_, about)| about).to_owned();
        Self { rule: rule.name.clone(), about: Some(about), fired: *fired, so: so.clone() }
    }

    /// The line where there is no explanation.
    pub fn failed(rule: &Rule, why: String) -> Self {
        Self { rule: rule.name.clone(), about: None, fired: false, so: why }
    }
}

/// What a rule looks at now, over all tokens.
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

    /// How much was looked at and told, in words; `last` is when the rule last held for anything.
    pub fn head(&self, rule: &Rule, last: Option<Timestamp>) -> String {
        let looked = self.lines.len();
        let looked = match rule.on {
            On::Change(..) => format!("the latest {} of this kind", format::count(looked, "change")),
            On::Token => format!("{} looked at", format::count(looked, "token")),
            _ => format!("{} looked at, the nearest of each token", format::count(looked, "record")),
        };
        let fired = self.lines.iter().filter(|(_, line)| line.fired).count();
        let last =
            last.map_or_else(|| "it never held for anything".to_owned(), |at| format!("it last held {}", format::instant(at)));
        format!("{}: {looked}; {fired} told; {last}", rule.name)
    }

    /// What fires first, then what is nearest in time; at most `most`.
    #[must_use]
    pub fn lines(mut self, now: Timestamp, most: usize) -> Vec<ExplainLine> {
        self.lines.sort_by_key(|(at, line)| (!line.fired, at.map(|at| (at - now).abs())));
        self.lines.into_iter().take(most).map(|(_, line)| line).collect()
    }
}
