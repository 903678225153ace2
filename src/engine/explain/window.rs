//! Whether a record is in the time range of a rule.

use super::{ExplainQuery, ExplainStep, Explainer, Mark, is_once};
use crate::evaluate::NominalReminder;
use model::{Interval, Resource, Timestamp, phrase};
use rules::{Lead, On};

impl<'a> Explainer<'a> {
    /// Adds whether the record is in the time range of the rule. Returns the lead time that applies.
    pub(super) fn window(&mut self) -> Option<&'a Lead> {
        let ExplainQuery { rule, case, .. } = *self.query;
        let now = self.now();
        let tracked = case.record.as_deref()?;
        let On::Record(resource) = rule.on else { return None };
        if resource == Resource::Allocation {
            return None;
        }
        let Some(interval) = tracked.record.interval() else {
            self.no("it has no date yet, or its date is to be determined", "it has no date yet");
            return None;
        };
        let when = phrase::when_at(&interval, now);
        if is_once(rule.on) {
            let age = now - interval.start;
            let text = format!("it happened {when}, {} ago; `since` is {}", phrase::duration(age), phrase::duration(rule.since));
            // An alert that fired within `since` stays valid after `since` has passed.
            if age > rule.since && case.alerts.is_empty() {
                self.no(text, format!("it is older than `since` ({})", phrase::duration(rule.since)));
            } else {
                self.yes(text);
            }
            return None;
        }
        let end = if resource == Resource::Emission { interval.end + rule.since } else { interval.end };
        if now >= end {
            self.no(format!("it has passed: {when}"), format!("it passed at {}", phrase::instant(end)));
            return None;
        }
        if rule.within.is_empty() || resource != Resource::Unlock {
            self.yes(format!("it is ahead: {when}"));
            return None;
        }
        self.leads(interval)
    }

    /// Adds the lead times of a rule. Returns the smallest that applies.
    fn leads(&mut self, interval: Interval) -> Option<&'a Lead> {
        let (rule, now) = (self.query.rule, self.now());
        let when = phrase::when_at(&interval, now);
        let lead = rule.within.iter().filter(|lead| interval.is_within(now, lead.span)).min_by_key(|lead| lead.span);
        let mut step = match lead {
            Some(lead) => ExplainStep::new(
                Mark::Yes,
                format!(
                    "it is due {when}, {}: within {}",
                    phrase::time_until(interval.days_until(now), interval.precision).unwrap_or_default(),
                    lead.text
                ),
            ),
            None => {
                let opens = rule.within.iter().filter_map(|lead| interval.start.checked_sub_signed(lead.span)).min();
                let opens = opens.map_or_else(String::new, |at| format!(", which begins {}", phrase::instant(at)));
                self.because.get_or_insert_with(|| format!("it is due {when}, beyond the longest lead time{opens}"));
                ExplainStep::new(
                    Mark::No,
                    format!(
                        "it is due {when}, {}: beyond every lead time",
                        phrase::time_until(interval.days_until(now), interval.precision).unwrap_or_default()
                    ),
                )
            }
        };
        let mut part = |is_reached: bool, text: &str, at: Timestamp| {
            let (mark, word) = if is_reached { (Mark::Yes, "since") } else { (Mark::No, "from") };
            step.parts.push(ExplainStep::new(mark, format!("{text}: {word} {}", phrase::instant(at))));
        };
        for lead in &rule.within {
            if let Some(at) = interval.start.checked_sub_signed(lead.span) {
                part(now >= at, &lead.text, at);
            }
        }
        if let Some(reminder) = NominalReminder::of(&rule.within, interval) {
            part(now >= reminder.at, &format!("{}, once more before the nominal day", reminder.lead.text), reminder.at);
        }
        self.steps.push(step);
        lead
    }
}
