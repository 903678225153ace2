//! What is watched, in figures: what fires, what lies ahead, what is the matter. Labels are the names of rules and groups, which the
//! config bounds, and words of our own.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{FloatGauge, MetricLabels, family, whole};
use engine::self_monitor;
use model::{Alert, AlertId, Commit, DomainGauges, RuleId, SumWindow, Timestamp, Tone, ValueAhead, Watch};

/// How far ahead is summed: the label `within`, and the time.
const WINDOWS: [(&str, TimeDelta); 2] = [("7d", TimeDelta::days(7)), ("30d", TimeDelta::days(30))];

/// The farthest that any sum looks ahead.
pub const FARTHEST: TimeDelta = WINDOWS[1].1;

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
            firing: family(r, "alerts_firing", "Alerts that fire, by rule and severity"),
            ahead: family(r, "value_ahead_usd", "What unlocks of the watched tokens, USD, whose day lies within this time"),
            group_ahead: family(
                r,
                "group_value_ahead_usd",
                "What unlocks of the tokens of a group, USD, whose day lies within this time",
            ),
            next_critical: family(
                r,
                "next_critical_unlock_seconds",
                "Time until the next unlock of which a critical alert fires, by rule",
            ),
            incidents: family(r, "incidents", "Incidents that are open, by kind"),
        };
        for kind in self_monitor::incident_kinds() {
            // At zero from the start, so that whoever watches one kind sees it begin.
            let _ = metrics.incidents.get_or_create(&vec![("kind", kind.to_owned())]);
        }
        metrics
    }

    /// What fires and what lies ahead, as of `now`; rules and groups that are gone disappear.
    pub(super) fn set(&self, gauges: &DomainGauges, watch: &Watch, now: Timestamp) {
        self.firing.clear();
        for (rule, tone, count) in &gauges.firing {
            let labels = vec![("rule", rule.as_str().to_owned()), ("severity", severity(*tone).to_owned())];
            self.firing.get_or_create(&labels).set(whole(*count));
        }
        let sums = WindowSums::of(&gauges.ahead, watch, now);
        self.group_ahead.clear();
        for (at, (within, _)) in WINDOWS.iter().enumerate() {
            let label = ("within", (*within).to_owned());
            let value = |of: &[f64; WINDOWS.len()]| of.get(at).copied().unwrap_or_default();
            self.ahead.get_or_create(&vec![label.clone()]).set(value(&sums.watched));
            for (group, of) in &sums.groups {
                self.group_ahead.get_or_create(&vec![("group", group.clone()), label.clone()]).set(value(of));
            }
        }
        self.next_critical.clear();
        for (rule, at) in &gauges.next_critical {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
            let seconds = (*at - now).num_milliseconds().max(0) as f64 / 1000.0;
            self.next_critical.get_or_create(&vec![("rule", rule.as_str().to_owned())]).set(seconds);
        }
    }

    /// Which incidents are open.
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

/// One of the notifications of a step, as it is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldNotification {
    pub rule: RuleId,
    /// That of its alert, also where it tells of the end.
    pub tone: Tone,
    /// `firing`, `reminder`, `resolved`, `event`, `source`.
    pub kind: &'static str,
}

impl ToldNotification {
    /// Those that a step is going to write.
    #[must_use]
    pub fn of(commit: &Commit) -> Vec<Self> {
        let rules: HashMap<&AlertId, &RuleId> = commit.alerts.iter().map(|alert| (&alert.id, &alert.rule)).collect();
        let told = commit.notifications.iter().map(|notification| {
            let body = &notification.body;
            let kind = notification.kind.as_str();
            Self {
                rule: rules.get(&notification.alert).map_or_else(|| RuleId::from(body.rule.as_str()), |rule| (*rule).clone()),
                tone: Tone::of_severity(body.labels.get("severity").map(String::as_str)),
                kind: kind.strip_prefix("alert.").unwrap_or(kind),
            }
        });
        told.collect()
    }
}

/// The label `severity`: three words, whatever rules write.
pub(super) fn severity(tone: Tone) -> &'static str {
    match tone {
        Tone::Critical => "critical",
        Tone::Warning => "warning",
        Tone::Info | Tone::Good => "info",
    }
}

/// What lies ahead within each of [`WINDOWS`], USD.
#[derive(Debug, PartialEq)]
struct WindowSums {
    watched: [f64; WINDOWS.len()],
    /// Each group of the config, also one of which nothing lies ahead.
    groups: BTreeMap<String, [f64; WINDOWS.len()]>,
}

impl WindowSums {
    fn of(ahead: &[ValueAhead], watch: &Watch, now: Timestamp) -> Self {
        let groups = watch.groups().map(|name| (name.to_owned(), <[f64; WINDOWS.len()]>::default())).collect();
        let mut sums = Self { watched: Default::default(), groups };
        for entry in ahead.iter().filter(|entry| watch.covers(&entry.token)) {
            let groups = watch.groups_of(&entry.token);
            for (at, (_, span)) in WINDOWS.iter().enumerate() {
                if !SumWindow::of(now, *span).counts(entry.begins.timestamp_millis(), entry.ends.timestamp_millis()) {
                    continue;
                }
                for group in groups.iter() {
                    if let Some(sum) = sums.groups.get_mut(group).and_then(|of| of.get_mut(at)) {
                        *sum += entry.value;
                    }
                }
                if let Some(sum) = sums.watched.get_mut(at) {
                    *sum += entry.value;
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests;
