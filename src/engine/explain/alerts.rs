//! The stored alerts that a rule raised for a subject.

use chrono::TimeDelta;

use super::{ExplainStep, Explainer, Mark};
use model::{Alert, AlertState, ReceiverName, Resolution, Timestamp, phrase};

impl Explainer<'_> {
    /// Adds a step for each stored alert. Returns how the last one fired, or `None` if it did not.
    pub(super) fn alerts(&mut self) -> Option<String> {
        let (rule, now) = (self.query.rule, self.now());
        let mut alerts = self.query.case.alerts.clone();
        alerts.sort_by_key(|alert| (alert.active_at, alert.episode));
        let Some(last) = alerts.last().copied() else {
            if rule.pending_for > TimeDelta::zero() && self.because.is_none() {
                self.note(format!("`for`: it must match for {} before it fires", phrase::duration(rule.pending_for)));
            }
            return None;
        };
        for alert in &alerts {
            let mut step = ExplainStep::new(Mark::Note, alert_summary(alert));
            if !alert.leads.is_empty() {
                step.parts.push(ExplainStep::new(
                    Mark::Note,
                    format!("lead times sent: {}; each is sent once", alert.leads.join(", ")),
                ));
            }
            if let Some(since) = alert.false_since {
                let until = since + rule.keep_firing_for;
                let text = format!(
                    "no match since {}; `keep_firing_for` keeps it firing until {}",
                    phrase::instant(since),
                    phrase::instant(until)
                );
                step.parts.push(ExplainStep::new(Mark::Note, text));
            }
            self.steps.push(step);
        }
        match (last.state, last.starts_at) {
            (AlertState::Pending, _) => {
                let due = last.active_at + rule.pending_for;
                self.because.get_or_insert_with(|| {
                    format!(
                        "it matches since {} and `for` is {}: it fires {}",
                        phrase::instant(last.active_at),
                        phrase::duration(rule.pending_for),
                        when_due(due, now)
                    )
                });
                None
            }
            (AlertState::Event, Some(at)) => Some(format!("fired at {}", phrase::instant(at))),
            (AlertState::Firing, Some(at)) => Some(format!("fired at {} and is firing", phrase::instant(at))),
            (AlertState::Resolved, Some(at)) => {
                let why = last.resolution.map_or("", Resolution::as_str);
                let end = last.ends_at.map(|at| format!(" at {}", phrase::instant(at))).unwrap_or_default();
                Some(format!("fired at {} and resolved{end} ({why})", phrase::instant(at)))
            }
            _ => None,
        }
    }
}

fn alert_summary(alert: &Alert) -> String {
    let state = match alert.state {
        AlertState::Pending => format!("pending since {}", phrase::instant(alert.active_at)),
        AlertState::Firing => format!("firing since {}", phrase::instant(alert.starts_at.unwrap_or(alert.active_at))),
        AlertState::Event => format!("event at {}", phrase::instant(alert.starts_at.unwrap_or(alert.active_at))),
        AlertState::Resolved => {
            let why = alert.resolution.map_or("", Resolution::as_str);
            format!("resolved {} ({why})", phrase::instant(alert.ends_at.unwrap_or(alert.updated_at)))
        }
    };
    let notified: Vec<&str> = alert.notified.iter().map(ReceiverName::as_str).collect();
    let notified =
        if notified.is_empty() { "sent to no receiver".to_owned() } else { format!("sent to {}", notified.join(", ")) };
    format!("alert {}, episode {}: {state}; {notified}", alert.id, alert.episode)
}

fn when_due(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("at {}, if it still matches", phrase::instant(at)) } else { "at the next evaluation".to_owned() }
}
