//! Incidents that are no feed's: a receiver, a dead letter, a reload, the database, a template. Each function makes one alert.

use chrono::TimeDelta;

use super::texts::{clip, instant, sentence, span_in_words};
use super::writer::{IncidentText, IncidentWriter};
use crate::evaluate::{EvaluationContext, NotificationDraft, Transitions, blank, plain_body};
use model::{
    Alert, AlertState, AlertStatus, DeliveryId, Labels, Notification, NotificationKind, ReceiverName, Resolution, RuleId,
    SOURCE_TROUBLE, Timestamp, alert_id, notification_id,
};

/// The subject of the alert about a failed reload.
pub const RELOAD_SUBJECT: &str = "reload";

/// The subject of the alert about a damaged database.
pub const DAMAGED_SUBJECT: &str = "store/damaged";

/// The subject of the alert about a full disk.
pub const FULL_SUBJECT: &str = "store/full";

/// The subject of the alert about a clock that is wrong.
pub const CLOCK_SUBJECT: &str = "clock";

/// `kind` of an alert about a receiver.
pub(super) const RECEIVER: &str = "receiver";

/// `kind` of an alert about a delivery that was given up.
const DEAD_LETTER: &str = "dead_letter";

/// `kind` of what lasts until [`recovered`].
pub(super) const LASTING_KINDS: [&str; 5] = [RECEIVER, "reload", "store_damaged", "store_full", "clock"];

/// Whether a notification of this kind and with these labels is about deliveries themselves: it goes out at once, whatever the routes
/// say, and its own failure is not announced, or that would never end.
pub fn is_about_delivery(kind: NotificationKind, labels: &Labels) -> bool {
    kind == NotificationKind::Source && labels.get("kind").is_some_and(|kind| [RECEIVER, DEAD_LETTER].contains(&kind.as_str()))
}

/// Messages that the announcement of a dead letter repeats; the others are counted.
const TEXTS_IN_MESSAGE: usize = 3;

/// A receiver does not accept anything since `since`. `waiting` deliveries wait for it; `latest_episode` is the store's for
/// ([`SOURCE_TROUBLE`], [`receiver_subject`]). Told to the fallback.
pub fn receiver_dead(
    receiver: &ReceiverName,
    reason: &str,
    waiting: u32,
    since: Timestamp,
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let lasted = span_in_words(context.now.signed_duration_since(since));
    let text = IncidentText {
        kind: RECEIVER,
        receiver: Some(receiver),
        summary: format!(
            "Receiver {receiver} accepts nothing for {lasted}: {}",
            if waiting == 1 { "1 delivery waits".to_owned() } else { format!("{waiting} deliveries wait") }
        ),
        description: format!(
            "{} Its deliveries are tried again by themselves; `cliffwatch outbox list` shows them.",
            sentence(&clip(reason))
        ),
        count: usize::try_from(waiting).unwrap_or(usize::MAX),
        since,
        ..IncidentText::default()
    };
    OwnIncident { dead: Some(receiver), ..OwnIncident::firing(receiver_subject(receiver), latest_episode, text) }.raise(context)
}

/// What the subject of an alert about a dead receiver begins with.
pub const RECEIVER_PREFIX: &str = "receiver/";

/// The subject of the alert about a dead receiver.
pub fn receiver_subject(receiver: &ReceiverName) -> String {
    format!("{RECEIVER_PREFIX}{receiver}")
}

/// A delivery was given up. None where all that it told was itself about a receiver or a dead letter: that would make a loop.
/// Told to the fallback of its receiver, once: the same delivery, retried by hand and dead again, makes the same notification.
pub fn dead_letter(
    delivery: DeliveryId,
    receiver: &ReceiverName,
    notifications: &[Notification],
    reason: &str,
    context: &EvaluationContext<'_>,
) -> Option<(Alert, Notification)> {
    if notifications.iter().all(|notification| is_about_delivery(notification.kind, &notification.body.labels)) {
        return None;
    }
    let lost: Vec<String> = notifications
        .iter()
        .take(TEXTS_IN_MESSAGE)
        .map(|notification| {
            let body = &notification.body;
            let text = body.annotations.get("summary").filter(|text| !text.is_empty()).unwrap_or(&body.rule);
            format!("[{}] {}", body.reason, clip(text))
        })
        .collect();
    let more = notifications.len().saturating_sub(lost.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let text = IncidentText {
        kind: DEAD_LETTER,
        receiver: Some(receiver),
        summary: format!("Not delivered to {receiver}: {}{more}", lost.join("; ")),
        description: format!(
            "Delivery {delivery} was given up: {} `cliffwatch outbox show {delivery}` shows each attempt, `cliffwatch outbox retry \
             {delivery}` sends it again.",
            sentence(&clip(reason))
        ),
        count: notifications.len(),
        since: context.now,
        ..IncidentText::default()
    };
    Some(OwnIncident { dead: Some(receiver), ..OwnIncident::event(format!("dead/{delivery}"), text) }.raise(context))
}

/// A changed config or changed rules could not be put to work: those before stay. `problem` says the places, a line each; `owners`
/// are those of the rules concerned; `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`RELOAD_SUBJECT`]).
pub fn reload_failed(
    problems: u32,
    problem: &str,
    owners: &[String],
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let noun = if problems == 1 { "problem" } else { "problems" };
    let advice = "`cliffwatch check` and `cliffwatch test` show every problem with its place.";
    let text = IncidentText {
        kind: "reload",
        labels: if owners.is_empty() { Vec::new() } else { vec![("owner", owners.join(", "))] },
        summary: format!("Changed files have {problems} {noun}: what was at work before stays"),
        description: format!("{} {advice}", sentence(&clip(problem))),
        count: 1,
        since: context.now,
        ..IncidentText::default()
    };
    OwnIncident::firing(RELOAD_SUBJECT.to_owned(), latest_episode, text).raise(context)
}

/// The database is damaged. `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`DAMAGED_SUBJECT`]), or zero where it cannot
/// be asked.
pub fn store_damaged(error: &str, latest_episode: u32, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let text = IncidentText {
        kind: "store_damaged",
        summary: "The database is damaged".to_owned(),
        description: format!(
            "{} Stop the daemon and put back a copy that `cliffwatch backup` made: `cliffwatch restore FILE`.",
            sentence(&clip(error))
        ),
        count: 1,
        since: context.now,
        ..IncidentText::default()
    };
    OwnIncident::firing(DAMAGED_SUBJECT.to_owned(), latest_episode, text).raise(context)
}

/// The disk of the database is full: nothing can be recorded, so nothing is told but this, and polls are repeated until there is
/// room. `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`FULL_SUBJECT`]), or zero where it cannot be asked.
pub fn store_full(error: &str, latest_episode: u32, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let text = IncidentText {
        kind: "store_full",
        summary: "The disk of the database is full: nothing new can be recorded".to_owned(),
        description: format!("{} Free space; what could not be recorded is asked for again.", sentence(&clip(error))),
        count: 1,
        since: context.now,
        ..IncidentText::default()
    };
    OwnIncident::firing(FULL_SUBJECT.to_owned(), latest_episode, text).raise(context)
}

/// The clock of this machine and that of the source differ. `ahead` is by how much ours is ahead, negative where it is behind;
/// `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`CLOCK_SUBJECT`]).
pub fn clock_differs(
    ahead: TimeDelta,
    is_by_source: bool,
    latest_episode: u32,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let side = if ahead > TimeDelta::zero() { "ahead of" } else { "behind" };
    let (whose, advice) = match is_by_source {
        true => (
            "the source's",
            "Alerts go by the source's time until then. Set the clock of this machine: `timedatectl status` says whether it is kept right.",
        ),
        false => (
            "ours",
            "This machine's clock has run on evenly while the source's was set: it is the source, or the mirror, whose clock is to be put right.",
        ),
    };
    let text = IncidentText {
        kind: "clock",
        summary: format!("The clock of this machine is {} {side} the source's", span_in_words(ahead.abs())),
        description: format!("The time that is gone by is {whose}: {}. {advice}", instant(context.now)),
        count: 1,
        since: context.now,
        ..IncidentText::default()
    };
    OwnIncident::firing(CLOCK_SUBJECT.to_owned(), latest_episode, text).raise(context)
}

/// A template of a rule failed, and the built-in text stood in its place. Labelled with the rule's owner, so that routes can send
/// it there; once a day for each rule.
pub fn template_failed(
    rule: &RuleId,
    owner: Option<&str>,
    error: &str,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let mut labels = vec![("rule", rule.to_string())];
    labels.extend(owner.map(|owner| ("owner", owner.to_owned())));
    let text = IncidentText {
        kind: "template",
        labels,
        summary: format!("A template of the rule {rule} failed: the built-in text was sent in its place"),
        description: sentence(&clip(error)),
        count: 1,
        since: context.now,
        ..IncidentText::default()
    };
    OwnIncident::event(format!("template/{rule}/{}", context.now.format("%Y-%m-%d")), text).raise(context)
}

/// The end of an incident that one of the functions above raised: told to those who heard of it.
pub fn recovered(alert: &Alert, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let since = alert.starts_at.unwrap_or(alert.active_at);
    let lasted = span_in_words(context.now.signed_duration_since(since));
    let summary = match alert.subject.as_str() {
        RELOAD_SUBJECT => "The changed configuration was loaded".to_owned(),
        DAMAGED_SUBJECT => "The database is sound again".to_owned(),
        FULL_SUBJECT => "The database can be written again".to_owned(),
        CLOCK_SUBJECT => "The clocks of this machine and of the source agree again".to_owned(),
        subject => match subject.strip_prefix(RECEIVER_PREFIX) {
            Some(receiver) => format!("Receiver {receiver} accepts deliveries again after {lasted}"),
            None => format!("{} is over after {lasted}", alert.name),
        },
    };
    let description = format!("It lasted from {} to {}.", instant(since), instant(context.now));
    over(alert, Resolution::Cleared, summary, description, context)
}

/// The end of an incident of a receiver that the config no longer has: nobody will ever accept anything in its name.
pub fn receiver_removed(alert: &Alert, context: &EvaluationContext<'_>) -> (Alert, Notification) {
    let receiver = alert.subject.trim_start_matches(RECEIVER_PREFIX);
    let summary = format!("Receiver {receiver} is no longer in the config");
    let description = "What was still to be delivered to it is in the list of dead letters.".to_owned();
    over(alert, Resolution::Unwatched, summary, description, context)
}

fn over(
    alert: &Alert,
    why: Resolution,
    summary: String,
    description: String,
    context: &EvaluationContext<'_>,
) -> (Alert, Notification) {
    let (alert, telling) = writer(context).over(alert.clone(), why, summary, description);
    let NotificationDraft { kind, transition, receivers, body, .. } = telling;
    let id = notification_id(&alert.id, &transition);
    let notification = Notification { id, alert: alert.id.clone(), kind, at: context.now, receivers, body };
    (alert, notification)
}

/// One incident that is no feed's.
struct OwnIncident<'a> {
    subject: String,
    state: AlertState,
    episode: u32,
    text: IncidentText<'a>,
    /// The receiver that it is about, which cannot be told of it.
    dead: Option<&'a ReceiverName>,
}

impl<'a> OwnIncident<'a> {
    /// One that lasts until [`recovered`].
    fn firing(subject: String, latest_episode: u32, text: IncidentText<'a>) -> Self {
        Self { subject, state: AlertState::Firing, episode: latest_episode.saturating_add(1), text, dead: None }
    }

    /// One that happens and has no end.
    fn event(subject: String, text: IncidentText<'a>) -> Self {
        Self { subject, state: AlertState::Event, episode: 1, text, dead: None }
    }

    /// Makes its alert and notification.
    fn raise(self, context: &EvaluationContext<'_>) -> (Alert, Notification) {
        let mut alert = blank(RuleId::from(SOURCE_TROUBLE), SOURCE_TROUBLE, self.subject, self.state, context.now);
        alert.episode = self.episode;
        alert.id = alert_id(&alert.rule, &alert.subject, alert.episode);
        alert.active_at = self.text.since;
        alert.starts_at = Some(self.text.since);
        // What a template fails with here is known from the rule's own alerts; the built-in words stand in its place.
        let receivers = writer(context).word(&mut Transitions::default(), &mut alert, &self.text, None, self.dead);
        alert.told.clone_from(&receivers);
        let body = plain_body(&alert, AlertStatus::Firing, self.text.kind, context.now);
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
