//! Gauges of firing alerts, upcoming unlocks, and open incidents. Label values are names of rules and groups, and words of fixed
//! lists.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{FloatGauge, MetricLabels, family, whole};
use engine::self_monitor;
use model::{Alert, AlertId, Commit, DomainGauges, RuleId, Severity, SumWindow, SupplyTotals, Timestamp};

/// The time windows of sums, with the label `within`.
const WINDOWS: [(&str, TimeDelta); 2] = [("7d", TimeDelta::days(7)), ("30d", TimeDelta::days(30))];

/// Returns the time windows of sums from `now`.
#[must_use]
pub fn windows(now: Timestamp) -> Vec<SumWindow> {
    WINDOWS.iter().map(|(_, span)| SumWindow::of(now, *span)).collect()
}

#[derive(Debug)]
pub(super) struct DomainMetrics {
    firing: Family<MetricLabels, Gauge>,
    ahead: Family<MetricLabels, FloatGauge>,
    group_ahead: Family<MetricLabels, FloatGauge>,
    next_critical: Family<MetricLabels, FloatGauge>,
    incidents: Family<MetricLabels, Gauge>,
}

impl DomainMetrics {
    pub(super) fn registered(r: &mut Registry) -> Self {
        let metrics = Self {
            firing: family(r, "alerts_firing", "Firing alerts by rule and severity"),
            ahead: family(r, "value_ahead_usd", "Value of cliff and linear unlocks of watched tokens within this time"),
            group_ahead: family(
                r,
                "group_value_ahead_usd",
                "Value of cliff and linear unlocks of a group's tokens within this time",
            ),
            next_critical: family(
                r,
                "next_critical_unlock_seconds",
                "Time until the next unlock with a firing critical alert, by rule",
            ),
            incidents: family(r, "incidents", "Open incidents by kind"),
        };
        for kind in self_monitor::incident_kinds() {
            // Starts at zero, so that an alert on one kind sees the increase.
            let _ = metrics.incidents.get_or_create(&vec![("kind", kind.to_owned())]);
        }
        metrics
    }

    /// Sets all gauges as of `now`. Removed rules and groups disappear.
    pub(super) fn set(&self, gauges: &DomainGauges, now: Timestamp) {
        self.firing.clear();
        for (rule, severity, count) in &gauges.firing {
            let labels = vec![("rule", rule.as_str().to_owned()), ("severity", severity_label(*severity).to_owned())];
            self.firing.get_or_create(&labels).set(whole(*count));
        }
        set_ahead(&self.ahead, &gauges.watched, None);
        self.group_ahead.clear();
        for (group, totals) in &gauges.groups {
            set_ahead(&self.group_ahead, totals, Some(group));
        }
        self.next_critical.clear();
        for (rule, at) in &gauges.next_critical {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
            let seconds = (*at - now).num_milliseconds().max(0) as f64 / 1000.0;
            self.next_critical.get_or_create(&vec![("rule", rule.as_str().to_owned())]).set(seconds);
        }
    }

    /// Counts an incident until [`Self::set_incidents`].
    pub(super) fn add_incident(&self, alert: &Alert) {
        self.incidents.get_or_create(&vec![("kind", self_monitor::incident_kind(alert).to_owned())]).inc();
    }

    /// Sets the number of open incidents by kind.
    pub(super) fn set_incidents(&self, open: &[Alert]) {
        let mut counts: BTreeMap<&str, u64> = self_monitor::incident_kinds().map(|kind| (kind, 0)).collect();
        for alert in open {
            *counts.entry(self_monitor::incident_kind(alert)).or_default() += 1;
        }
        for (kind, count) in counts {
            self.incidents.get_or_create(&vec![("kind", kind.to_owned())]).set(whole(count));
        }
    }
}

/// The metric labels of a notification.
#[derive(Clone, Debug, PartialEq)]
pub struct NotificationMetric {
    pub rule: RuleId,
    /// The severity of the alert, also for a resolved message.
    pub severity: Severity,
    /// `firing`, `reminder`, `resolved`, `event`, `source`.
    pub kind: &'static str,
}

impl NotificationMetric {
    /// Returns the labels of all notifications of a commit.
    #[must_use]
    pub fn of(commit: &Commit) -> Vec<Self> {
        let rules: HashMap<&AlertId, &RuleId> = commit.alerts.iter().map(|alert| (&alert.id, &alert.rule)).collect();
        let notified = commit.notifications.iter().map(|notification| {
            let body = &notification.body;
            let kind = notification.kind.as_str();
            Self {
                rule: rules.get(&notification.alert).map_or_else(|| RuleId::from(body.rule.as_str()), |rule| (*rule).clone()),
                severity: Severity::from_label(body.labels.get("severity").map(String::as_str)),
                kind: kind.strip_prefix("alert.").unwrap_or(kind),
            }
        });
        notified.collect()
    }
}

/// Returns the label `severity`, one of three words.
pub(super) fn severity_label(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Info | Severity::Good => "info",
    }
}

/// Sets the value of the coming cliff and linear unlocks in each of [`WINDOWS`].
fn set_ahead(to: &Family<MetricLabels, FloatGauge>, totals: &SupplyTotals, group: Option<&str>) {
    for ((within, _), sum) in WINDOWS.iter().zip(&totals.windows) {
        for (kind, value) in [("cliff", sum.cliff.value), ("linear", sum.linear.value)] {
            let mut labels: MetricLabels = group.map(|group| ("group", group.to_owned())).into_iter().collect();
            labels.extend([("kind", kind.to_owned()), ("within", (*within).to_owned())]);
            to.get_or_create(&labels).set(value);
        }
    }
}

#[cfg(test)]
mod tests;
