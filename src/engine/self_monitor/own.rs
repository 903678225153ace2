//! Incidents without a feed: receivers, dead letters, reloads, the database, templates. Each function writes one alert.

use chrono::TimeDelta;

use super::writer::{IncidentFacts, IncidentWriter};
use crate::evaluate::{EvaluationContext, NotificationDraft, Transitions, blank, plain_body};
use model::{
    Alert, AlertState, AlertStatus, DeliveryId, Labels, Notification, NotificationKind, ReceiverName, Resolution, RuleId,
    SOURCE_TROUBLE, Timestamp, alert_id, notification_id,
    phrase::{self, IncidentText},
};

/// The subject of the alert about a failed reload.
pub const RELOAD_SUBJECT: &str = "reload";

/// The subject of the alert about a damaged database.
pub const DAMAGED_SUBJECT: &str = "store/damaged";

/// The subject of the alert about a full disk.
pub const FULL_SUBJECT: &str = "store/full";

/// The subject of the alert about a database server that cannot be reached.
pub const UNREACHABLE_SUBJECT: &str = "store/unreachable";

/// The subject of the alert about instances with different config or rules.
pub const INSTANCES_SUBJECT: &str = "instances";

/// The subject of the alert about a wrong clock.
pub const CLOCK_SUBJECT: &str = "clock";

/// The `kind` of an alert about a receiver.
pub(super) const RECEIVER: &str = "receiver";

/// The `kind` of an alert about a dead letter.
const DEAD_LETTER: &str = "dead_letter";

/// The `kind` of an alert about a recipient that a mail server rejects.
const RECIPIENT: &str = "recipient";

/// The kinds of incidents that last until [`recovered`].
pub(super) const LASTING_KINDS: [&str; 7] =
    [RECEIVER, "reload", "store_damaged", "store_full", "store_unreachable", "instances", "clock"];

/// Returns whether a notification is about deliveries themselves. It is sent at once, whatever the routes are, and its own failure is not
/// reported, which would never end.
pub fn is_about_delivery(kind: NotificationKind, labels: &Labels) -> bool {
    kind == NotificationKind::Source
        && labels.get("kind").is_some_and(|kind| [RECEIVER, DEAD_LETTER, RECIPIENT].contains(&kind.as_str()))
}

/// Reports that a receiver has accepted nothing since `since`, while `waiting` deliveries are pending. Sent to the fallback receiver.
/// The caller reads `latest_episode` of ([`SOURCE_TROUBLE`], [`receiver_subject`]) from the store.
pub fn receiver_dead(
    receiver: &ReceiverName,
    reason: &str,
    waiting: u32,
    since: Timestamp,
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: RECEIVER,
        receiver: Some(receiver),
        text: IncidentText::receiver_outage(receiver, waiting, reason, since, context.now),
        count: usize::try_from(waiting).unwrap_or(usize::MAX),
        since,
        ..IncidentFacts::default()
    };
    OwnIncident { unreachable: Some(receiver), ..OwnIncident::firing(receiver_subject(receiver), latest_episode, facts) }
        .raise(context)
}

/// The prefix of the subject of an alert about a receiver outage.
pub const RECEIVER_PREFIX: &str = "receiver/";

/// Returns the subject of the alert about an outage of `receiver`.
pub fn receiver_subject(receiver: &ReceiverName) -> String {
    format!("{RECEIVER_PREFIX}{receiver}")
}

/// Reports a dead letter to the fallback of its receiver. Returns `None` if all its notifications were about receivers or dead letters,
/// which would make a loop. A delivery that is retried and dies again returns the same notification.
pub fn dead_letter(
    delivery: DeliveryId,
    receiver: &ReceiverName,
    notifications: &[Notification],
    reason: &str,
    context: &EvaluationContext<'_>,
) -> Option<(Alert, Notification)> {
    let is_about = |notification: &Notification| is_about_delivery(notification.kind, &notification.body.labels);
    if !notifications.is_empty() && notifications.iter().all(is_about) {
        return None;
    }
    let lost: Vec<(&str, &str)> = notifications
        .iter()
        .map(|Notification { body, .. }| {
            let summary = body.annotations.get("summary").filter(|text| !text.is_empty()).unwrap_or(&body.rule);
            (body.reason.as_str(), summary.as_str())
        })
        .collect();
    let facts = IncidentFacts {
        kind: DEAD_LETTER,
        receiver: Some(receiver),
        text: IncidentText::dead_letter(delivery, receiver, &lost, reason),
        count: notifications.len(),
        since: context.now,
        ..IncidentFacts::default()
    };
    Some(OwnIncident { unreachable: Some(receiver), ..OwnIncident::event(format!("dead/{delivery}"), facts) }.raise(context))
}

/// Reports that a mail server rejects a recipient of `receiver`, while others get the mail: at most once a day for each recipient. It
/// may be sent to the same receiver, which reaches its other recipients.
pub fn recipient_rejected(
    receiver: &ReceiverName,
    address: &str,
    reply: &str,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: RECIPIENT,
        receiver: Some(receiver),
        text: IncidentText::recipient_rejected(receiver, address, reply),
        count: 1,
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::event(format!("recipient/{receiver}/{address}/{}", context.now.format("%Y-%m-%d")), facts).raise(context)
}

/// Reports that a changed config or rule file was rejected, so the previous one stays active. `problem` has a line for each location.
/// `owners` are the owners of the affected rules. The caller reads `latest_episode` of ([`SOURCE_TROUBLE`], [`RELOAD_SUBJECT`]) from the
/// store.
pub fn reload_failed(
    problems: u32,
    problem: &str,
    owners: &[String],
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: "reload",
        labels: if owners.is_empty() { Vec::new() } else { vec![("owner", owners.join(", "))] },
        text: IncidentText::reload_failed(problems, problem),
        count: 1,
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::firing(RELOAD_SUBJECT.to_owned(), latest_episode, facts).raise(context)
}

/// Reports a damaged database. `latest_episode` belongs to ([`SOURCE_TROUBLE`], [`DAMAGED_SUBJECT`]), or is zero if the store cannot be read.
pub fn store_damaged(error: &str, latest_episode: u32, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: "store_damaged",
        text: IncidentText::database_damaged(error),
        count: 1,
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::firing(DAMAGED_SUBJECT.to_owned(), latest_episode, facts).raise(context)
}

/// Reports a full disk: nothing can be stored, so this is the only alert that is sent, and polls repeat until there is space.
/// `latest_episode` belongs to ([`SOURCE_TROUBLE`], [`FULL_SUBJECT`]), or is zero if the store cannot be read.
pub fn store_full(error: &str, latest_episode: u32, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: "store_full",
        text: IncidentText::disk_full(error),
        count: 1,
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::firing(FULL_SUBJECT.to_owned(), latest_episode, facts).raise(context)
}

/// Reports that `instance` cannot reach the database server since `since`. The alert cannot be stored, so the caller sends it directly.
/// Its id is derived from `since`, because no episodes can be read.
pub fn store_unreachable(
    instance: &str,
    error: &str,
    since: Timestamp,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: "store_unreachable",
        text: IncidentText::database_unreachable(instance, error, since),
        count: 1,
        since,
        ..IncidentFacts::default()
    };
    let minute = u32::try_from(since.timestamp() / 60).unwrap_or_default();
    OwnIncident::firing(UNREACHABLE_SUBJECT.to_owned(), minute, facts).raise(context)
}

/// Reports that config or rules of `others` differ from those of the active instance. The caller reads `latest_episode` of
/// ([`SOURCE_TROUBLE`], [`INSTANCES_SUBJECT`]) from the store.
pub fn instances_differ(
    active: &str,
    others: &[String],
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: "instances",
        text: IncidentText::instances_differ(active, others),
        count: others.len(),
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::firing(INSTANCES_SUBJECT.to_owned(), latest_episode, facts).raise(context)
}

/// Reports that the clocks of this machine and of the source differ. `ahead` is negative if ours is behind. The caller reads
/// `latest_episode` of ([`SOURCE_TROUBLE`], [`CLOCK_SUBJECT`]) from the store.
pub fn clock_differs(
    ahead: TimeDelta,
    is_by_source: bool,
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let facts = IncidentFacts {
        kind: "clock",
        text: IncidentText::clock_differs(ahead, is_by_source, context.now),
        count: 1,
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::firing(CLOCK_SUBJECT.to_owned(), latest_episode, facts).raise(context)
}

/// Reports that a template of a rule failed and the built-in text was used, at most once a day per rule. The label `owner` is the
/// rule's owner, for routes.
pub fn template_failed(
    rule: &RuleId,
    owner: Option<&str>,
    error: &str,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let mut labels = vec![("rule", rule.to_string())];
    labels.extend(owner.map(|owner| ("owner", owner.to_owned())));
    let facts = IncidentFacts {
        kind: "template",
        labels,
        text: IncidentText::template_failed(rule, error),
        count: 1,
        since: context.now,
        ..IncidentFacts::default()
    };
    OwnIncident::event(format!("template/{rule}/{}", context.now.format("%Y-%m-%d")), facts).raise(context)
}

/// Ends an incident that a function above opened. Sent to the receivers of its first notification.
pub fn recovered(alert: &Alert, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let since = alert.starts_at.unwrap_or(alert.active_at);
    let incident = match alert.subject.as_str() {
        RELOAD_SUBJECT => phrase::DaemonIncident::Reload,
        DAMAGED_SUBJECT => phrase::DaemonIncident::DatabaseDamaged,
        FULL_SUBJECT => phrase::DaemonIncident::DiskFull,
        UNREACHABLE_SUBJECT => phrase::DaemonIncident::DatabaseUnreachable,
        INSTANCES_SUBJECT => phrase::DaemonIncident::Instances,
        CLOCK_SUBJECT => phrase::DaemonIncident::Clock,
        subject => match subject.strip_prefix(RECEIVER_PREFIX) {
            Some(receiver) => phrase::DaemonIncident::Receiver(receiver),
            None => phrase::DaemonIncident::Other(&alert.name),
        },
    };
    resolve(alert, Resolution::Cleared, IncidentText::recovered(&incident, since, context.now), context)
}

/// Ends an incident of a receiver that was removed from the config.
pub fn receiver_removed(alert: &Alert, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let receiver = alert.subject.trim_start_matches(RECEIVER_PREFIX);
    resolve(alert, Resolution::Unwatched, IncidentText::receiver_removed(receiver), context)
}

fn resolve(alert: &Alert, resolution: Resolution, text: IncidentText, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let (alert, draft) = writer(context).resolve(alert.clone(), resolution, text);
    let NotificationDraft { kind, transition, receivers, body, .. } = draft;
    let id = notification_id(&alert.id, &transition);
    let notification = Notification { id, alert: alert.id.clone(), kind, at: context.now, receivers, body };
    (alert, notification)
}

/// An incident without a feed.
struct OwnIncident<'a> {
    subject: String,
    state: AlertState,
    episode: u32,
    facts: IncidentFacts<'a>,
    /// The receiver that the incident is about, which cannot be notified.
    unreachable: Option<&'a ReceiverName>,
}

impl<'a> OwnIncident<'a> {
    /// Creates an incident that lasts until [`recovered`].
    fn firing(subject: String, latest_episode: u32, facts: IncidentFacts<'a>) -> Self {
        Self { subject, state: AlertState::Firing, episode: latest_episode.saturating_add(1), facts, unreachable: None }
    }

    /// Creates an incident without an end.
    fn event(subject: String, facts: IncidentFacts<'a>) -> Self {
        Self { subject, state: AlertState::Event, episode: 1, facts, unreachable: None }
    }

    /// Returns the alert and its notification.
    fn raise(self, context: &EvaluationContext<'_>) -> (Alert, Notification) {
        let mut alert = blank(RuleId::from(SOURCE_TROUBLE), SOURCE_TROUBLE, self.subject, self.state, context.now);
        alert.episode = self.episode;
        alert.id = alert_id(&alert.rule, &alert.subject, alert.episode);
        alert.active_at = self.facts.since;
        alert.starts_at = Some(self.facts.since);
        // A template failure is dropped: the built-in text is used, and the rule's own alerts report the failure.
        let receivers = writer(context).write_text(&mut Transitions::default(), &mut alert, &self.facts, None, self.unreachable);
        alert.notified.clone_from(&receivers);
        let body = plain_body(&alert, AlertStatus::Firing, self.facts.kind, context.now);
        let transition = if self.state == AlertState::Event { "event" } else { "firing" };
        let id = notification_id(&alert.id, transition);
        let kind = NotificationKind::Source;
        let notification = Notification { id, alert: alert.id.clone(), kind, at: context.now, receivers, body };
        (alert, notification)
    }
}

fn writer<'a>(context: &EvaluationContext<'a>) -> IncidentWriter<'a, rules::Rule> {
    IncidentWriter { rules: &context.rules.rules, routes: context.routes, now: context.now }
}
