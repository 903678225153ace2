//! The condition of a rule, clause by clause with the values that decided it.

use super::{ExplainStep, Explainer, Mark};
use model::phrase::linear::rate_step;
use model::{Resource, phrase};
use rules::{Clause, ClauseKind, On, Scope, Truth};

impl Explainer<'_> {
    /// Adds the condition, then the levels and `clear_when`.
    pub(super) fn condition(&mut self, scope: &Scope<'_>) {
        let rule = self.query.rule;
        self.end_of_linear_unlocks(scope);
        let Some(clause) = rule.clauses(scope) else {
            self.yes("the rule has no condition (`when`)");
            return;
        };
        let truth = rule.evaluate(scope);
        let mut step = step_of(&clause);
        step.text = format!("when: {}", step.text);
        if let (Truth::True, Truth::Missing(names)) = (&truth, &clause.truth) {
            step.mark = Mark::Yes;
            step.text.push_str(&format!(" ({} missing, and `missing = \"fire\"`)", names.join(", ")));
        }
        self.steps.push(step);
        match &truth {
            Truth::True => {}
            Truth::False => _ = self.because.get_or_insert_with(|| cause(&clause)),
            Truth::Missing(names) => {
                let are = if names.len() == 1 { "is" } else { "are" };
                self.because.get_or_insert_with(|| {
                    format!(
                        "{} {are} missing, so the condition is unknown (with `missing = \"fire\"` it would fire)",
                        quoted(names)
                    )
                });
            }
        }
        if let (On::Record(resource @ (Resource::Burn | Resource::Buyback)), Truth::Missing(_)) = (rule.on, &truth) {
            self.note(format!(
                "a new {resource} with a missing fact is evaluated when the fact arrives, up to `since` ({}) after the record was first seen",
                phrase::duration(rule.since)
            ));
        }
        self.levels(scope);
        if let Some(clause) = rule.clear_clauses(scope) {
            let mut step = step_of(&clause);
            step.text = format!("clear_when: {}", step.text);
            step.mark = Mark::Note;
            self.steps.push(step);
        }
    }

    /// Adds whether the end of linear unlocks is large enough for a rule without a condition on the change of the daily release.
    fn end_of_linear_unlocks(&mut self, scope: &Scope<'_>) {
        let (rule, record) = (self.query.rule, scope.record.and_then(|tracked| tracked.record.unlock()));
        let Some((truth, end)) = rule.follows_end(scope).zip(record) else { return };
        let text = rate_step(scope.schedule.rate_step_of(end), end.reference_price.copied(), false);
        match truth {
            Truth::True => self.yes(format!("{text}: a large change")),
            Truth::Missing(_) => self.no(format!("{text}: the daily release is not known"), "the daily release is not known"),
            Truth::False if rule.within.is_empty() => {
                let because = "it is an end of linear unlocks, which needs `within` or a condition on `rateChange`";
                self.no(text, because);
            }
            Truth::False => self.no(
                format!("{text}: by less than half, and the rule has no condition on `rateChange`"),
                "the daily release falls by less than half",
            ),
        }
    }

    fn levels(&mut self, scope: &Scope<'_>) {
        let rule = self.query.rule;
        let levels = rule.level_clauses(scope);
        if levels.is_empty() {
            return;
        }
        let highest = rule.level(scope).and_then(|level| usize::try_from(level).ok());
        let mut step = ExplainStep::new(
            Mark::Note,
            highest.map_or_else(|| "no level matches".to_owned(), |level| format!("level {} matches", level + 1)),
        );
        step.parts = levels
            .iter()
            .enumerate()
            .map(|(index, clause)| {
                let mut part = step_of(clause);
                part.text = format!("level {}: {}", index + 1, part.text);
                part
            })
            .collect();
        self.steps.push(step);
    }
}

fn step_of(clause: &Clause) -> ExplainStep {
    let mark = match clause.truth {
        Truth::True => Mark::Yes,
        Truth::False => Mark::No,
        Truth::Missing(_) => Mark::Unknown,
    };
    let word = match clause.kind {
        ClauseKind::All => "all of these must be true".to_owned(),
        ClauseKind::Any => "one of these must be true".to_owned(),
        ClauseKind::Not => "this must be false".to_owned(),
        ClauseKind::Plain => with_values(clause),
    };
    ExplainStep { mark, text: word, parts: clause.parts.iter().map(step_of).collect() }
}

fn with_values(clause: &Clause) -> String {
    let values: Vec<String> = clause
        .values
        .iter()
        .map(|(text, value)| {
            format!("{text} {}", value.as_ref().map_or_else(|| "is missing".to_owned(), |value| format!("= {value}")))
        })
        .collect();
    let missing = match &clause.truth {
        Truth::Missing(names) if values.iter().all(|text| !text.ends_with("is missing")) => {
            format!("  [missing: {}]", names.join(", "))
        }
        _ => String::new(),
    };
    if values.is_empty() {
        format!("{}{missing}", clause.text)
    } else {
        format!("{}  [{}]{missing}", clause.text, values.join("; "))
    }
}

/// Describes the clauses that made a condition false.
fn cause(clause: &Clause) -> String {
    fn deciding<'c>(clause: &'c Clause, parts: &mut Vec<&'c Clause>) {
        match clause.kind {
            // One false operand decides `&&`. For `||`, all are false.
            ClauseKind::All => {
                clause.parts.iter().filter(|part| part.truth == Truth::False).take(1).for_each(|part| deciding(part, parts))
            }
            ClauseKind::Any => clause.parts.iter().for_each(|part| deciding(part, parts)),
            ClauseKind::Not | ClauseKind::Plain => parts.push(clause),
        }
    }
    let mut parts = Vec::new();
    deciding(clause, &mut parts);
    let shown: Vec<String> = parts
        .iter()
        .take(4)
        .map(|part| match part.kind {
            ClauseKind::Not => format!("{} must be false", part.text),
            _ => with_values(part),
        })
        .collect();
    let more = if parts.len() > shown.len() { format!(", and {} more", parts.len() - shown.len()) } else { String::new() };
    match shown.as_slice() {
        [one] => format!("this is false: {one}"),
        all => format!("none of these is true: {}{more}", all.join(", ")),
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
