//! The Prometheus metrics of the daemon, documented in `docs/operation.md`.
//!
//! All modules share one [`Metrics`]. Label values come from the config (receivers, rules) and from fixed lists (endpoints, outcomes,
//! kinds), never from the source, so that their number is bounded.

mod domain;
mod process;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Metric, Registry},
};

use domain::DomainMetrics;
pub use domain::{NotificationMetric, windows};
use engine::self_monitor::SourceState;
use model::{
    Alert, AlertState, ChangeKind, CreditState, DomainGauges, Endpoint, NotificationOverview, PollEntryOutcome, ReceiverName,
    RuleId, SilenceState, SuppressedCount, Timestamp,
};
use notify::Outcome;
use process::ProcessMetrics;

type MetricLabels = Vec<(&'static str, String)>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// The upper bounds of the latency buckets in seconds, from a healthy webhook to the last retry.
const LATENCY_BUCKETS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 21600.0, 86400.0, 259_200.0];

/// The prefixes of the families that a standby exports.
const STANDBY_FAMILIES: [&str; 7] = [
    "process_",
    "cliffwatch_active",
    "cliffwatch_build",
    "cliffwatch_config_last_reload_successful",
    "cliffwatch_database_up",
    "cliffwatch_ready",
    "cliffwatch_standby",
];

/// The state of one receiver's outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxLevel {
    pub receiver: ReceiverName,
    /// The number of pending deliveries, retries included.
    pub pending: u64,
    /// The age of the oldest pending delivery.
    pub oldest: Option<Duration>,
    /// The number of dead letters that were neither retried nor dropped.
    pub dead: u64,
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    last_success: Family<MetricLabels, FloatGauge>,
    polls: Family<MetricLabels, Counter>,
    parse_warnings: Family<MetricLabels, Counter>,
    source_up: Gauge,
    source_state: Family<MetricLabels, Gauge>,
    /// Whether a cycle has set `source_up`.
    has_polled: AtomicBool,
    credits_used: Gauge,
    credits_limit: Gauge,
    credits_left: Family<MetricLabels, Gauge>,
    credits_reset: FloatGauge,
    removals_held: Gauge,
    changes: Family<MetricLabels, Counter>,
    alerts: Family<MetricLabels, Gauge>,
    deliveries: Family<MetricLabels, Counter>,
    latency: Histogram,
    pending: Family<MetricLabels, Gauge>,
    oldest: Family<MetricLabels, FloatGauge>,
    dead: Family<MetricLabels, Gauge>,
    held: Family<MetricLabels, Gauge>,
    silences: Family<MetricLabels, Gauge>,
    acknowledged: Gauge,
    digest_slot: Family<MetricLabels, FloatGauge>,
    digest_stopped: Family<MetricLabels, Gauge>,
    reload: Gauge,
    active: Gauge,
    standby: Gauge,
    ready: Gauge,
    database_up: Gauge,
    rule_match: Family<MetricLabels, FloatGauge>,
    template_fallbacks: Counter,
    notifications: Family<MetricLabels, Counter>,
    domain: DomainMetrics,
    process: Arc<ProcessMetrics>,
    receivers: Mutex<BTreeSet<String>>,
}

fn family<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let family = M::default();
    registry.register(name, help, family.clone());
    family
}

impl Default for Metrics {
    /// Registers all families. The initial load of config and rules counts as a successful reload.
    fn default() -> Self {
        let (latency, process) = (Histogram::new(LATENCY_BUCKETS), Arc::new(ProcessMetrics::default()));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process.clone()));
        let r = registry.sub_registry_with_prefix("cliffwatch");
        let metrics = Self {
            last_success: family(r, "poll_last_success_timestamp_seconds", "Time of the last complete, valid response"),
            polls: family(r, "polls", "Polls of the source by outcome"),
            parse_warnings: family(
                r,
                "parse_warnings",
                "Harmless defects in responses: missing or unreadable parts, duplicate rows",
            ),
            source_up: family(r, "source_up", "Whether the source responded in the last cycle"),
            source_state: family(r, "source_state", "State of the source"),
            has_polled: AtomicBool::new(false),
            credits_used: family(r, "source_credits_used", "Credits used in the current period"),
            credits_limit: family(r, "source_credits_limit", "Credit limit of the current period"),
            credits_left: family(r, "source_credits_left", "Remaining credits of the current period"),
            credits_reset: family(r, "source_credits_reset_timestamp_seconds", "End of the current credit period"),
            removals_held: family(r, "removals_held", "Feeds with a held response, in which most records are missing"),
            changes: family(r, "changes", "Changes that were found"),
            alerts: family(r, "alerts", "Alerts by state"),
            deliveries: family(r, "deliveries", "Delivery attempts by outcome"),
            latency: {
                r.register(
                    "delivery_latency_seconds",
                    "Time from the commit of a notification to its acceptance by the receiver",
                    latency.clone(),
                );
                latency
            },
            pending: family(r, "outbox_pending", "Pending deliveries, retries included"),
            oldest: family(r, "outbox_oldest_seconds", "Age of the oldest pending delivery"),
            dead: family(r, "outbox_dead", "Dead letters that were neither retried nor dropped"),
            held: family(
                r,
                "notifications_undelivered",
                "Notifications that are in no delivery: waiting, silenced, or inhibited",
            ),
            silences: family(r, "silences", "Silences by state"),
            acknowledged: family(r, "alerts_acknowledged", "Acknowledged alerts"),
            digest_slot: family(r, "digest_last_timestamp_seconds", "Time of the last digest"),
            digest_stopped: family(r, "digest_recipients_stopped", "Mail recipients who opted out of the digest"),
            active: family(r, "active", "Whether this instance is the active one on its database"),
            standby: family(r, "standby", "Whether this instance waits to take over from another one"),
            ready: family(r, "ready", "Whether /-/ready responds with 200"),
            database_up: family(r, "database_up", "Whether the last use of the database succeeded"),
            reload: family(r, "config_last_reload_successful", "Whether the last reload of config and rules succeeded"),
            rule_match: family(r, "rule_last_match_timestamp_seconds", "Time of the last match of the rule"),
            template_fallbacks: family(r, "template_fallbacks", "Messages with the built-in text because a template failed"),
            notifications: family(r, "notifications", "Notifications by rule, severity, and kind"),
            domain: DomainMetrics::registered(r),
            process,
            receivers: Mutex::default(),
            registry: Registry::default(),
        };
        r.register("build", "Version of the program", Info::new(model::program::labels()));
        metrics.reload.set(1);
        metrics.active.set(1);
        metrics.database_up.set(1);
        for kind in ChangeKind::ALL {
            // Starts at zero, because a rate over the first change needs a point before it.
            let _ = metrics.changes.get_or_create(&vec![("kind", kind.as_str().to_owned())]);
        }
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts the parse warnings of a response.
    pub fn parse_warnings(&self, endpoint: Endpoint, count: u32) {
        self.parse_warnings.get_or_create(&vec![("endpoint", endpoint.as_str().to_owned())]).inc_by(u64::from(count));
    }

    /// Counts a poll. Fresh and unchanged responses set the time of the last success.
    pub fn poll(&self, endpoint: Endpoint, outcome: PollEntryOutcome, at: Timestamp) {
        let label = ("endpoint", endpoint.as_str().to_owned());
        self.polls.get_or_create(&vec![label.clone(), ("outcome", outcome.as_str().to_owned())]).inc();
        if !matches!(outcome, PollEntryOutcome::Failed(_)) {
            self.set_last_success(endpoint, at);
        }
    }

    /// Sets the time of the last success, which is read from the database at the start.
    pub fn set_last_success(&self, endpoint: Endpoint, at: Timestamp) {
        self.last_success.get_or_create(&vec![("endpoint", endpoint.as_str().to_owned())]).set(seconds(at));
    }

    /// Sets whether the source responded in the last cycle that polled it.
    pub fn set_source_up(&self, is_up: bool) {
        self.has_polled.store(true, Ordering::Relaxed);
        self.source_up.set(i64::from(is_up));
    }

    /// Sets the state of the source. Before the first cycle, also sets whether the source is up.
    pub fn set_source_state(&self, state: SourceState) {
        self.source_state.clear();
        self.source_state.get_or_create(&vec![("state", state.as_str().to_owned())]).set(1);
        if !self.has_polled.load(Ordering::Relaxed) {
            self.source_up.set(i64::from(state != SourceState::Unreachable));
        }
    }

    /// Sets the credits, as reported by the API, else as counted. `left` is `None` if neither the API nor the config sets a
    /// limit.
    pub fn set_credits(&self, credit: &CreditState, left: Option<u64>, ends_at: Timestamp) {
        self.credits_used.set(whole(credit.used.unwrap_or_default().max(credit.own())));
        self.credits_limit.set(whole(credit.limit.unwrap_or_default()));
        self.credits_left.clear();
        if let Some(left) = left {
            self.credits_left.get_or_create(&Vec::new()).set(whole(left));
        }
        self.credits_reset.set(seconds(ends_at));
    }

    pub fn set_removals_held(&self, count: u64) {
        self.removals_held.set(whole(count));
    }

    /// Counts the changes, notifications, and rule matches of a committed step.
    pub fn committed(
        &self,
        changes: impl IntoIterator<Item = ChangeKind>,
        notified: &[NotificationMetric],
        matches: &[(RuleId, Timestamp)],
    ) {
        for kind in changes {
            self.changes.get_or_create(&vec![("kind", kind.as_str().to_owned())]).inc();
        }
        for NotificationMetric { rule, severity, kind } in notified {
            let severity = domain::severity_label(*severity).to_owned();
            let labels = vec![("rule", rule.as_str().to_owned()), ("severity", severity), ("kind", (*kind).to_owned())];
            self.notifications.get_or_create(&labels).inc();
        }
        for (rule, at) in matches {
            self.rule_match.get_or_create(&vec![("rule", rule.as_str().to_owned())]).set(seconds(*at));
        }
    }

    /// Sets the gauges of firing alerts and upcoming unlocks as of `now`.
    pub fn set_domain(&self, gauges: &DomainGauges, now: Timestamp) {
        self.domain.set(gauges, now);
    }

    /// Sets the number of open incidents by kind.
    pub fn set_incidents(&self, open: &[Alert]) {
        self.domain.set_incidents(open);
    }

    /// Counts an incident that has just begun.
    pub fn add_incident(&self, alert: &Alert) {
        self.domain.add_incident(alert);
    }

    /// Sets the start time of the process, given the current time.
    pub fn set_started(&self, now: Timestamp) {
        self.process.set_now(now);
    }

    pub fn set_alerts(&self, state: AlertState, count: u64) {
        self.alerts.get_or_create(&vec![("state", state.as_str().to_owned())]).set(whole(count));
    }

    /// Counts a delivery attempt. `latency` is the time since the delivery was created. Only accepted messages are observed.
    pub fn attempt(&self, receiver: &ReceiverName, outcome: &Outcome, latency: Duration) {
        let labels = vec![("receiver", receiver.as_str().to_owned()), ("outcome", outcome.word().as_str().to_owned())];
        self.deliveries.get_or_create(&labels).inc();
        if outcome.is_accepted() {
            self.latency.observe(latency.as_secs_f64());
        }
    }

    /// Sets the outbox gauges of all receivers. Receivers without an entry are removed.
    pub fn set_outbox(&self, levels: &[OutboxLevel]) {
        let mut known = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        let now: BTreeSet<String> = levels.iter().map(|level| level.receiver.as_str().to_owned()).collect();
        for removed in known.difference(&now) {
            let labels = vec![("receiver", removed.clone())];
            self.pending.remove(&labels);
            self.oldest.remove(&labels);
            self.dead.remove(&labels);
        }
        *known = now;
        for level in levels {
            let labels = vec![("receiver", level.receiver.as_str().to_owned())];
            self.pending.get_or_create(&labels).set(whole(level.pending));
            self.oldest.get_or_create(&labels).set(level.oldest.unwrap_or_default().as_secs_f64());
            self.dead.get_or_create(&labels).set(whole(level.dead));
        }
    }

    /// Sets the gauges of suppressed notifications, silences, acknowledgements, and digests.
    pub fn set_notifications(&self, notifications: &NotificationOverview, now: Timestamp) {
        self.held.clear();
        for SuppressedCount { receiver, waiting, silenced, inhibited, .. } in &notifications.held {
            for (state, count) in [("waiting", waiting), ("silenced", silenced), ("inhibited", inhibited)] {
                let labels = vec![("receiver", receiver.as_str().to_owned()), ("state", state.to_owned())];
                self.held.get_or_create(&labels).set(whole(*count));
            }
        }
        for state in [SilenceState::Active, SilenceState::Pending] {
            let count = notifications.silences.iter().filter(|silence| silence.state(now) == state).count();
            self.silences.get_or_create(&vec![("state", state.as_str().to_owned())]).set(whole(count as u64));
        }
        self.acknowledged.set(whole(notifications.acks.len() as u64));
        for (job, at) in &notifications.digests {
            let receiver = job.trim_start_matches(model::digest::JOB_PREFIX).to_owned();
            self.digest_slot.get_or_create(&vec![("receiver", receiver)]).set(seconds(*at));
        }
        self.digest_stopped.clear();
        for opt_out in &notifications.opt_outs {
            self.digest_stopped.get_or_create(&vec![("receiver", opt_out.receiver.as_str().to_owned())]).inc();
        }
    }

    pub fn set_active(&self, is_active: bool) {
        self.active.set(i64::from(is_active));
        self.standby.set(i64::from(!is_active));
    }

    /// Sets whether the daemon is ready.
    pub fn set_ready(&self, is_ready: bool) {
        self.ready.set(i64::from(is_ready));
    }

    /// Sets whether the last use of the database succeeded.
    pub fn set_database_up(&self, is_up: bool) {
        self.database_up.set(i64::from(is_up));
    }

    /// Sets whether the last reload succeeded.
    pub fn set_reload(&self, has_succeeded: bool) {
        self.reload.set(i64::from(has_succeeded));
    }

    /// Counts a message with the built-in text because a template failed.
    pub fn template_fallback(&self) {
        self.template_fallbacks.inc();
    }

    /// Returns all metrics as OpenMetrics; see `service::exposition`. A standby leaves out what it does not do: it would export zeros, and
    /// raise false alerts.
    pub fn encode(&self) -> String {
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut page, &self.registry);
        if self.active.get() == 0 {
            page = page.lines().filter(|line| is_exported_by_standby(line)).map(|line| format!("{line}\n")).collect();
        }
        page
    }
}

/// Returns whether a line of a metrics page belongs to a family that a standby exports.
fn is_exported_by_standby(line: &str) -> bool {
    let name = ["# HELP ", "# TYPE ", "# UNIT "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
    line == "# EOF" || STANDBY_FAMILIES.iter().any(|family| name.starts_with(family))
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
fn seconds(at: Timestamp) -> f64 {
    at.timestamp_millis() as f64 / 1000.0
}

#[cfg(test)]
mod tests;
