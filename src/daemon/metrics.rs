//! What Prometheus scrapes: every number that the daemon counts, under the names that the README lists.
//!
//! [`Metrics`] is shared by all rooms; each calls the method named for what happened. Labels come from the config (receivers, rules) and
//! from our own words (endpoints, outcomes, kinds), never from the source, so that their number is bounded.

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
pub use domain::{FARTHEST, ToldNotification};
use engine::self_monitor::SourceState;
use model::{
    Alert, AlertState, ChangeKind, CreditState, DomainGauges, Endpoint, NotificationOverview, PollEntryOutcome, ReceiverName,
    RuleId, SilenceState, SuppressedCount, Timestamp, Watch,
};
use notify::Outcome;
use process::ProcessMetrics;

type MetricLabels = Vec<(&'static str, String)>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// Upper bounds of the latency buckets, seconds: from a healthy webhook to the last retry.
const LATENCY_BUCKETS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 21600.0, 86400.0, 259_200.0];

/// How full the outbox of one receiver is.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxLevel {
    pub receiver: ReceiverName,
    /// Deliveries that wait, retries included.
    pub pending: u64,
    /// Age of the oldest of them.
    pub oldest: Option<Duration>,
    /// Dead letters that nobody re-sent or dropped.
    pub dead: u64,
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    last_success: Family<MetricLabels, FloatGauge>,
    polls: Family<MetricLabels, Counter>,
    oddities: Family<MetricLabels, Counter>,
    source_up: Gauge,
    source_state: Family<MetricLabels, Gauge>,
    /// A cycle has said whether the source answers.
    has_asked: AtomicBool,
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
    /// All families, registered, at zero; the reload of the start counts as successful.
    fn default() -> Self {
        let (latency, process) = (Histogram::new(LATENCY_BUCKETS), Arc::new(ProcessMetrics::default()));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process.clone()));
        let r = registry.sub_registry_with_prefix("cliffwatch");
        let metrics = Self {
            last_success: family(
                r,
                "poll_last_success_timestamp_seconds",
                "When the endpoint last gave a complete, valid answer",
            ),
            polls: family(r, "polls", "Requests to the source by what came of them"),
            oddities: family(r, "oddities", "What was odd in answers and harmless: missing or unreadable parts, rows twice"),
            source_up: family(r, "source_up", "Whether the source answered when last asked"),
            source_state: family(r, "source_state", "How the source stands, in a word"),
            has_asked: AtomicBool::new(false),
            credits_used: family(r, "source_credits_used", "Credits used in the current period"),
            credits_limit: family(r, "source_credits_limit", "Credits of the current period"),
            credits_left: family(r, "source_credits_left", "Credits that may still be spent in the current period"),
            credits_reset: family(r, "source_credits_reset_timestamp_seconds", "When the current period of credits ends"),
            removals_held: family(r, "removals_held", "Feeds whose answer is held because most records vanished at once"),
            changes: family(r, "changes", "Changes found"),
            alerts: family(r, "alerts", "Alerts by state"),
            deliveries: family(r, "deliveries", "Attempts by what came of them"),
            latency: {
                r.register(
                    "delivery_latency_seconds",
                    "From the commit that queued a message to its acceptance",
                    latency.clone(),
                );
                latency
            },
            pending: family(r, "outbox_pending", "Deliveries that wait, retries included"),
            oldest: family(r, "outbox_oldest_seconds", "Age of the oldest delivery that waits"),
            dead: family(r, "outbox_dead", "Dead letters that nobody re-sent or dropped"),
            held: family(r, "messages_held", "Messages in no delivery: waiting for their group, silenced, inhibited"),
            silences: family(r, "silences", "Silences by state"),
            acknowledged: family(r, "alerts_acknowledged", "Alerts that somebody acknowledged"),
            digest_slot: family(r, "digest_last_timestamp_seconds", "The time of the last digest"),
            digest_stopped: family(r, "digest_recipients_stopped", "Mail recipients who stopped the digest"),
            active: family(r, "active", "Whether this instance is the active one of those on its database"),
            reload: family(r, "config_last_reload_successful", "Whether the rules at work are those of the files"),
            rule_match: family(r, "rule_last_match_timestamp_seconds", "When the rule last held for something"),
            template_fallbacks: family(r, "template_fallbacks", "Messages that fell back to the built-in text"),
            notifications: family(r, "notifications", "What there was to tell, by rule, severity and kind"),
            domain: DomainMetrics::registered(r),
            process,
            receivers: Mutex::default(),
            registry: Registry::default(),
        };
        r.register("build", "What runs", Info::new(model::program::labels()));
        metrics.reload.set(1);
        metrics.active.set(1);
        for kind in ChangeKind::ALL {
            // At zero from the start: a rate needs two points, and the first change is the one that counts.
            let _ = metrics.changes.get_or_create(&vec![("kind", kind.as_str().to_owned())]);
        }
        Self { registry, ..metrics }
    }
}

impl Metrics {
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

    /// Whether the source answered in the last cycle that asked it.
    pub fn set_source_up(&self, is_up: bool) {
        self.has_asked.store(true, Ordering::Relaxed);
        self.source_up.set(i64::from(is_up));
    }

    /// How the source stands by the alerts about it: before the first cycle, also whether it is up.
    pub fn set_source_state(&self, state: SourceState, is_down: bool) {
        self.source_state.clear();
        self.source_state.get_or_create(&vec![("state", state.as_str().to_owned())]).set(1);
        if !self.has_asked.load(Ordering::Relaxed) {
            self.source_up.set(i64::from(!is_down));
        }
    }

    /// The quota as the database has it: as reported, else as counted; `left` is what may still be spent, by the API and by the config,
    /// none where neither bounds it, until the period `ends_at`.
    pub fn set_credits(&self, credit: &CreditState, left: Option<u64>, ends_at: Timestamp) {
        self.credits_used.set(whole(credit.used.unwrap_or_default().max(credit.own())));
        self.credits_limit.set(whole(credit.limit.unwrap_or_default()));
        self.credits_left.clear();
        if let Some(left) = left {
            self.credits_left.get_or_create(&Vec::new()).set(whole(left));
        }
        self.credits_reset.set(seconds(ends_at));
    }

    /// Feeds whose answer is held.
    pub fn set_removals_held(&self, count: u64) {
        self.removals_held.set(whole(count));
    }

    /// A change was found and committed.
    pub fn change(&self, kind: ChangeKind) {
        self.changes.get_or_create(&vec![("kind", kind.as_str().to_owned())]).inc();
    }

    /// A step that tells these was committed.
    pub fn told(&self, told: &[ToldNotification]) {
        for ToldNotification { rule, tone, kind } in told {
            let severity = domain::severity(*tone).to_owned();
            let labels = vec![("rule", rule.as_str().to_owned()), ("severity", severity), ("kind", (*kind).to_owned())];
            self.notifications.get_or_create(&labels).inc();
        }
    }

    /// What fires and what lies ahead, as of `now`.
    pub fn set_domain(&self, gauges: &DomainGauges, watch: &Watch, now: Timestamp) {
        self.domain.set(gauges, watch, now);
    }

    /// Which incidents are open.
    pub fn set_incidents(&self, open: &[Alert]) {
        self.domain.set_incidents(open);
    }

    /// The program has begun, and it is `now`.
    pub fn set_started(&self, now: Timestamp) {
        self.process.set_now(now);
    }

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

    /// Whether this instance is the active one.
    pub fn set_active(&self, is_active: bool) {
        self.active.set(i64::from(is_active));
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
mod tests;
