//! The firing alerts, one row per event: other rules that fire for the same event are named in its row.

use serde::Serialize;

use daemon::view::AlertView;
use model::{FiringAlerts, phrase};

use crate::ui::page::{Choice, href};

/// The maximum number of rows.
const MAX_ROWS: usize = 10;

#[derive(Debug, Serialize)]
pub(super) struct FiringCard {
    pub(super) total: u64,
    pub(super) critical: u64,
    /// The number of alerts that the rows include.
    pub(super) shown: usize,
    /// The number of firing alerts of each severity, with links to them.
    pub(super) severities: Vec<Choice>,
    /// Most severe first.
    pub(super) rows: Vec<FiringEvent>,
}

/// An event with the most severe of its alerts.
#[derive(Debug, Serialize)]
pub(super) struct FiringEvent {
    pub(super) view: AlertView,
    /// `critical`, `warning`, or the severity as the rule names it. `None` without one.
    pub(super) severity: Option<String>,
    /// The other rules that fire for the event.
    pub(super) also: Vec<String>,
}

impl FiringCard {
    /// `alerts` are the views of the alerts of `firing`, most severe first.
    pub(super) fn of(firing: &FiringAlerts, alerts: Vec<AlertView>) -> Self {
        let (mut rows, mut shown): (Vec<FiringEvent>, usize) = (Vec::new(), 0);
        for alert in alerts {
            let is_same = |row: &&mut FiringEvent| row.view.token_id.is_some() && row.view.subject == alert.subject;
            if let Some(row) = rows.iter_mut().find(is_same) {
                row.also.push(alert.rule);
                shown += 1;
            } else if rows.len() < MAX_ROWS {
                let severity = alert.labels.get("severity").cloned();
                rows.push(FiringEvent { view: alert, severity, also: Vec::new() });
                shown += 1;
            }
        }
        let link = |severity: &str| href("/alerts", &[("state", "firing"), ("severity", severity)]);
        let counts =
            [(firing.critical, "critical", "critical"), (firing.warning, "warning", "warning"), (firing.other, "other", "")];
        let severities = counts.into_iter().filter(|(count, ..)| *count > 0).map(|(count, name, severity)| Choice {
            count: Some(count),
            ..Choice::new(phrase::capitalized(name), link(severity), false)
        });
        Self {
            total: firing.critical + firing.warning + firing.other,
            critical: firing.critical,
            shown,
            severities: severities.collect(),
            rows,
        }
    }
}

#[cfg(test)]
mod tests;
