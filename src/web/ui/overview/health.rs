//! The health of the daemon in one line: the source, the credits, and the messages. The line opens to the details.

use serde::Serialize;

use super::credit::CreditGauge;
use super::notices::Notice;
use super::source::SourceCard;
use daemon::view::StatusView;
use engine::self_monitor::SourceState;
use model::phrase;

#[derive(Debug, Serialize)]
pub(super) struct HealthCard {
    /// `good`, `warn`, or `bad`.
    pub(super) severity: &'static str,
    /// One word for the severity.
    pub(super) state: &'static str,
    /// The facts of the line.
    pub(super) facts: Vec<String>,
    pub(super) credits: CreditGauge,
    pub(super) source: SourceCard,
}

impl HealthCard {
    pub(super) fn of(status: &StatusView, notices: &[Notice], credits: CreditGauge, source: SourceCard) -> Self {
        let is_bad = notices.iter().any(|notice| notice.severity == "bad");
        let (severity, state) = match (is_bad, status.source_up) {
            (false, None) => ("warn", "Starting"),
            (false, Some(true)) if status.source == SourceState::Up => ("good", "Healthy"),
            _ => ("bad", "Needs attention"),
        };
        let waiting: u64 = status.outbox.iter().map(|receiver| receiver.pending + receiver.waiting).sum();
        let dead: u64 = status.outbox.iter().map(|receiver| receiver.dead).sum();
        let last = status.endpoints.iter().filter_map(|endpoint| endpoint.last_success).max();
        let mut source_state = match status.source_up {
            None => "source not polled yet".to_owned(),
            Some(is_up) => format!("source {}", if is_up { "up" } else { "down" }),
        };
        if status.source_up == Some(true) && status.source != SourceState::Up {
            source_state = format!("source {}", phrase::words(status.source.as_str()));
        }
        let mut facts = vec![source_state];
        facts.extend(last.map(|last| format!("last success {}", phrase::ago(last, status.at))));
        facts.push(format!("credits: {}", credits.usage));
        facts.push(phrase::grouped_count(waiting, "pending message"));
        facts.push(phrase::grouped_count(dead, "dead letter"));
        Self { severity, state, facts, credits, source }
    }
}
