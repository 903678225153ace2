//! What the database remembers of the alerts that a rule raised for something.

use chrono::TimeDelta;

use super::{ExplainStep, Explainer, Mark, words::ago};
use model::{Alert, AlertState, ReceiverName, Resolution, Timestamp, format};

impl Explainer<'_> {
    /// What the database remembers of it. Gives how it was told, if it was.
    pub(super) fn alerts(&mut self) -> Option<String> {
        let (rule, now) = (self.query.rule, self.now());
        let mut alerts = self.query.case.alerts.clone();
        alerts.sort_by_key(|alert| (alert.active_at, alert.episode));
        let Some(last) = alerts.last().copied() else {
            if rule.hold > TimeDelta::zero() && self.because.is_none() {
                self.note(format!("`for`: it must hold for {} first", ago(rule.hold)));
            }
            return None;
        };
        for alert in &alerts {
            let mut step = ExplainStep::new(Mark::Note, story(alert));
            if !alert.leads.is_empty() {
                step.parts.push(ExplainStep::new(
                    Mark::Note,
                    format!("lead times told: {}; each is told once", alert.leads.join(", ")),
                ));
            }
            if let Some(since) = alert.false_since {
                let until = since + rule.keep_firing_for;
                let text = format!(
                    "no longer holds since {}; `keep_firing_for` keeps it until {}",
                    format::instant(since),
                    format::instant(until)
                );
                step.parts.push(ExplainStep::new(Mark::Note, text));
            }
            self.steps.push(step);
        }
        match (last.state, last.starts_at) {
            (AlertState::Pending, _) => {
                let due = last.active_at + rule.hold;
                self.because.get_or_insert_with(|| {
                    format!(
                        "it holds since {} and `for` asks for {}: it fires {}",
                        format::instant(last.active_at),
                        ago(rule.hold),
                        when_due(due, now)
                    )
                });
                None
            }
            (AlertState::Event, Some(at)) => Some(format!("fired at {}", format::instant(at))),
            (AlertState::Firing, Some(at)) => Some(format!("fired at {} and is firing", format::instant(at))),
            (AlertState::Resolved, Some(at)) => {
                let why = last.resolution.map_or("", Resolution::as_str);
                let end = last.ends_at.map(|at| format!(" at {}", format::instant(at))).unwrap_or_default();
                Some(format!("fired at {} and ended{end} ({why})", format::instant(at)))
            }
            _ => None,
        }
    }
}

fn story(alert: &Alert) -> String {
    let state = match alert.state {
        AlertState::Pending => format!("pending since {}", format::instant(alert.active_at)),
        AlertState::Firing => format!("firing since {}", format::instant(alert.starts_at.unwrap_or(alert.active_at))),
        AlertState::Event => format!("told at {}", format::instant(alert.starts_at.unwrap_or(alert.active_at))),
        AlertState::Resolved => {
            let why = alert.resolution.map_or("", Resolution::as_str);
            format!("ended {} ({why})", format::instant(alert.ends_at.unwrap_or(alert.updated_at)))
        }
    };
    let told: Vec<&str> = alert.told.iter().map(ReceiverName::as_str).collect();
    let told = if told.is_empty() { "nobody was told".to_owned() } else { format!("told {}", told.join(", ")) };
    format!("alert {}, episode {}: {state}; {told}", alert.id, alert.episode)
}

fn when_due(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("at {}, if it still holds", format::instant(at)) } else { "at the next evaluation".to_owned() }
}
