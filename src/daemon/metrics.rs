//! What Prometheus scrapes: every number that the daemon counts, under the names that the README lists.
//!
//! [`Metrics`] is shared by all rooms; each calls the method named for what happened. MetricLabels come from the config (receivers, rules) and
//! from our own words (endpoints, outcomes, kinds), never from the source, so that their number is bounded.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

use model::{
    alert::AlertState,
    change::ChangeKind,
    rows::{CreditState, NotificationOverview, PollEntryOutcome, SuppressedCount},
    silence::SilenceState,
    supply::{Endpoint, ReceiverName, RuleId, Timestamp},
};
use notify::Outcome;

type MetricLabels = Vec<(&'static str, String)>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// Upper bounds of the latency buckets, seconds: from a healthy webhook to the last retry.
const LATENCY_BUCKETS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 21600.0, 86400.0, 259_200.0];

/// How full the outbox of one receiver is.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxLevel {
    /// Which receiver.
    pub receiver: ReceiverName,
    /// Deliveries that wait, retries included.
    pub pending: u64,
    /// Age of the oldest of them.
    pub oldest: Option<Duration>,
    /// Dead letters that nobody re-sent or dropped.
    pub dead: u64,
}

/// All families.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    last_success: Family<MetricLabels, FloatGauge>,
    polls: Family<MetricLabels, Counter>,
    oddities: Family<MetricLabels, Counter>,
    source_up: Gauge,
    credits_used: Gauge,
    credits_limit: Gauge,
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
    rule_match: Family<MetricLabels, FloatGauge>,
    template_fallbacks: Counter,
    receivers: Mutex<BTreeSet<String>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All families, registered, at zero; the reload of the start counts as successful.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("cliffwatch");
        let metrics = Self {
            last_success: Family::default(),
            polls: Family::default(),
            oddities: Family::default(),
            source_up: Gauge::default(),
            credits_used: Gauge::default(),
            credits_limit: Gauge::default(),
            removals_held: Gauge::default(),
            changes: Family::default(),
            alerts: Family::default(),
            deliveries: Family::default(),
            latency: Histogram::new(LATENCY_BUCKETS),
            pending: Family::default(),
            oldest: Family::default(),
            dead: Family::default(),
            held: Family::default(),
            silences: Family::default(),
            acknowledged: Gauge::default(),
            digest_slot: Family::default(),
            digest_stopped: Family::default(),
            reload: Gauge::default(),
            rule_match: Family::default(),
            template_fallbacks: Counter::default(),
            receivers: Mutex::default(),
            registry: Registry::default(),
        };
        let m = &metrics;
        let r = &mut registry;
        r.register(
            "poll_last_success_timestamp_seconds",
            "When the endpoint last gave a complete, valid answer",
            m.last_success.clone(),
        );
        r.register("polls", "Requests to the source by what came of them", m.polls.clone());
        r.register(
            "oddities",
            "What was odd in answers and harmless: missing or unreadable parts, rows twice",
            m.oddities.clone(),
        );
        r.register("source_up", "Whether the source answered when last asked", m.source_up.clone());
        r.register("source_credits_used", "Credits used in the current period", m.credits_used.clone());
        r.register("source_credits_limit", "Credits of the current period", m.credits_limit.clone());
        r.register("removals_held", "Feeds whose answer is held because most records vanished at once", m.removals_held.clone());
        r.register("changes", "Changes found", m.changes.clone());
        r.register("alerts", "Alerts by state", m.alerts.clone());
        r.register("deliveries", "Attempts by what came of them", m.deliveries.clone());
        r.register("delivery_latency_seconds", "From the commit that queued a message to its acceptance", m.latency.clone());
        r.register("outbox_pending", "Deliveries that wait, retries included", m.pending.clone());
        r.register("outbox_oldest_seconds", "Age of the oldest delivery that waits", m.oldest.clone());
        r.register("outbox_dead", "Dead letters that nobody re-sent or dropped", m.dead.clone());
        r.register("messages_held", "Messages in no delivery: waiting for their group, silenced, inhibited", m.held.clone());
        r.register("silences", "Silences by state", m.silences.clone());
        r.register("alerts_acknowledged", "Alerts that somebody acknowledged", m.acknowledged.clone());
        r.register("digest_last_timestamp_seconds", "The time of the last digest", m.digest_slot.clone());
        r.register("digest_recipients_stopped", "Mail recipients who stopped the digest", m.digest_stopped.clone());
        r.register("config_last_reload_successful", "Whether the rules at work are those of the files", m.reload.clone());
        r.register("rule_last_match_timestamp_seconds", "When the rule last held for something", m.rule_match.clone());
        r.register("template_fallbacks", "Messages that fell back to the built-in text", m.template_fallbacks.clone());
        r.register("build", "What runs", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        metrics.reload.set(1);
        for kind in ChangeKind::ALL {
            // At zero from the start: a rate needs two points, and the first change is the one that counts.
            let _ = metrics.changes.get_or_create(&vec![("kind", kind.as_str().to_owned())]);
        }
        Self { registry, ..metrics }
    }

    /// So much was odd in an answer: what was missing or unreadable, came twice or out of order.
    pub fn oddities(&self, endpoint: Endpoint, count: u32) {
        self.oddities.get_or_create(&vec![("endpoint", endpoint.as_str().to_owned())]).inc_by(u64::from(count));
    }

    /// A request to the source ended with `outcome`: `fresh`, `unchanged`, or the word of a failure. Only an answer `is_success`.
    pub fn poll(&self, endpoint: Endpoint, outcome: PollEntryOutcome, at: Timestamp) {
        let label = ("endpoint", endpoint.as_str().to_owned());
        self.polls.get_or_create(&vec![label.clone(), ("outcome", outcome.as_str().to_owned())]).inc();
        if !matches!(outcome, PollEntryOutcome::Failed(_)) {
            self.set_last_success(endpoint, at);
        }
    }

    /// When an endpoint last answered: also set at start, from the database.
    pub fn set_last_success(&self, endpoint: Endpoint, at: Timestamp) {
        self.last_success.get_or_create(&vec![("endpoint", endpoint.as_str().to_owned())]).set(seconds(at));
    }

    /// Whether the source answers.
    pub fn set_source_up(&self, is_up: bool) {
        self.source_up.set(i64::from(is_up));
    }

    /// The quota as the database has it: as reported, else as counted.
    pub fn set_credits(&self, credit: &CreditState) {
        self.credits_used.set(whole(credit.used.unwrap_or(credit.spent).max(credit.spent)));
        self.credits_limit.set(whole(credit.limit.unwrap_or_default()));
    }

    /// Feeds whose answer is held.
    pub fn set_removals_held(&self, count: u64) {
        self.removals_held.set(whole(count));
    }

    /// A change was found and committed.
    pub fn change(&self, kind: ChangeKind) {
        self.changes.get_or_create(&vec![("kind", kind.as_str().to_owned())]).inc();
    }

    /// Alerts in a state.
    pub fn set_alerts(&self, state: AlertState, count: u64) {
        self.alerts.get_or_create(&vec![("state", state.as_str().to_owned())]).set(whole(count));
    }

    /// An attempt ended. `latency` is the time since the delivery was queued; it counts where the message was accepted.
    pub fn attempt(&self, receiver: &ReceiverName, outcome: &Outcome, latency: Duration) {
        let labels = vec![("receiver", receiver.as_str().to_owned()), ("outcome", outcome.word().as_str().to_owned())];
        self.deliveries.get_or_create(&labels).inc();
        if *outcome == Outcome::Accepted {
            self.latency.observe(latency.as_secs_f64());
        }
    }

    /// How full the outbox is, of all receivers: those no longer named disappear.
    pub fn set_outbox(&self, levels: &[OutboxLevel]) {
        let mut known = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        let now: BTreeSet<String> = levels.iter().map(|level| level.receiver.as_str().to_owned()).collect();
        for gone in known.difference(&now) {
            let labels = vec![("receiver", gone.clone())];
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

    /// What holds messages back, and how many; what is no longer there disappears.
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
        for wish in &notifications.opt_outs {
            self.digest_stopped.get_or_create(&vec![("receiver", wish.receiver.as_str().to_owned())]).inc();
        }
    }

    /// Whether the last reload took.
    pub fn set_reload(&self, is_good: bool) {
        self.reload.set(i64::from(is_good));
    }

    /// When a rule last held for something.
    pub fn rule_match(&self, rule: &RuleId, at: Timestamp) {
        self.rule_match.get_or_create(&vec![("rule", rule.as_str().to_owned())]).set(seconds(at));
    }

    /// A template failed, and the built-in text went out.
    pub fn template_fallback(&self) {
        self.template_fallbacks.inc();
    }

    /// All of it as OpenMetrics; see `service::exposition`.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut page = String::new();
        // Writing to a text does not fail.
        let _ = text::encode(&mut page, &self.registry);
        page
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
fn seconds(at: Timestamp) -> f64 {
    at.timestamp_millis() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::poll::FailureKind;

    fn at() -> Timestamp {
        chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap()
    }

    #[test]
    fn every_family_has_the_name_that_dashboards_use() {
        let metrics = Metrics::new();
        metrics.poll(Endpoint::Burn, PollEntryOutcome::Fresh, at());
        metrics.oddities(Endpoint::Burn, 2);
        metrics.poll(Endpoint::Burn, PollEntryOutcome::Failed(FailureKind::Timeout), at());
        metrics.set_source_up(true);
        metrics.set_credits(&CreditState { used: Some(7), limit: Some(1000), ..CreditState::default() });
        metrics.set_removals_held(2);
        metrics.change(ChangeKind::SeriesShifted);
        metrics.set_alerts(AlertState::Firing, 3);
        metrics.attempt(&ReceiverName::from("ops"), &Outcome::Accepted, Duration::from_millis(20));
        metrics.set_outbox(&[OutboxLevel { receiver: "ops".into(), pending: 4, oldest: Some(Duration::from_secs(9)), dead: 1 }]);
        metrics.set_reload(false);
        metrics.rule_match(&RuleId::from("Big"), at());
        metrics.template_fallback();
        insta::with_settings!({filters => vec![(r#"version="[^"]+""#, r#"version="…""#)]}, {
            // A family tells its labels in the order of a hash map.
            let page = metrics.encode();
            let mut lines: Vec<&str> = page.lines().collect();
            lines.sort_unstable();
            insta::assert_snapshot!(lines.join("\n"));
        });
    }

    #[test]
    fn the_older_format_names_each_family_as_its_samples() {
        let metrics = Metrics::new();
        metrics.poll(Endpoint::Burn, PollEntryOutcome::Fresh, at());
        let (_, page) = service::exposition::negotiated(["text/html"], metrics.encode());
        for line in [
            "# TYPE cliffwatch_polls_total counter",
            "# HELP cliffwatch_polls_total Requests to the source by what came of them.",
            "cliffwatch_polls_total{endpoint=\"burn\",outcome=\"fresh\"} 1",
            "# TYPE cliffwatch_build_info gauge",
            "# TYPE cliffwatch_source_up gauge",
            "# TYPE cliffwatch_delivery_latency_seconds histogram",
        ] {
            assert!(page.lines().any(|known| known == line), "{line} is missing in\n{page}");
        }
        assert!(!page.contains("# EOF") && !page.contains(" info\n"), "{page}");
    }

    #[test]
    fn a_receiver_that_left_the_config_leaves_the_metrics() {
        let metrics = Metrics::new();
        let level = |name: &str| OutboxLevel { receiver: name.into(), pending: 1, oldest: None, dead: 0 };
        metrics.set_outbox(&[level("old"), level("ops")]);
        metrics.set_outbox(&[level("ops")]);
        let page = metrics.encode();
        assert!(page.contains("receiver=\"ops\"") && !page.contains("receiver=\"old\""), "{page}");
    }

    #[test]
    fn only_an_answer_counts_as_success() {
        let metrics = Metrics::new();
        metrics.poll(Endpoint::Burn, PollEntryOutcome::Failed(FailureKind::Timeout), at());
        assert!(!metrics.encode().contains("last_success_timestamp_seconds{"));
    }
}
