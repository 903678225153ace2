//! Texts of incidents: a summary for the first line of a message and a description below it.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::{count, duration, instant, list_some, sentence};
use crate::{DeliveryId, Endpoint, FailureKind, FeedId, IncidentKind, ReceiverName, RuleId, Timestamp, Token, text::plain_chars};

/// Feeds that a message names; more are only counted.
const MAX_FEEDS: usize = 12;

/// Characters of an error message or a name from outside that a message repeats; the rest is cut.
const MAX_TEXT_CHARS: usize = 500;

/// Lost messages that the announcement of a dead letter repeats; the others are counted.
const MAX_LOST: usize = 3;

/// The summary and the description of an incident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncidentText {
    pub summary: String,
    pub description: String,
}

impl IncidentText {
    fn new(summary: impl Into<String>, description: impl Into<String>) -> Self {
        Self { summary: summary.into(), description: description.into() }
    }

    /// Feeds that cannot be read. `message` is the first error of this kind, empty if unknown.
    pub fn feeds_failing(kind: IncidentKind, feeds: &[FeedId], token: Option<&Token>, message: &str) -> Self {
        let (problem, advice) = problem_and_advice(kind);
        let kept = "Known data is kept: only complete responses can prove a removal.";
        Self::new(
            format!("{problem}: {}", feed_names(feeds, token)),
            [&sentence(message), kept, advice].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "),
        )
    }

    /// The end of an incident of `feeds` that began at `since`. `kind` is the label of the incident.
    pub fn feeds_recovered(recovery: &FeedRecovery<'_>, feeds: &[FeedId], kind: &str, since: Timestamp, now: Timestamp) -> Self {
        let (feeds, lasted) = (feed_names(feeds, None), duration(now - since));
        let (since, now) = (instant(since), instant(now));
        match recovery {
            FeedRecovery::Released(why) => Self::new(
                format!("{feeds}: response accepted after it was held for {lasted}: {why}"),
                format!("Responses were held from {since} to {now}. Notifications of the changes follow."),
            ),
            FeedRecovery::Responding if kind == FailureKind::Unreadable.as_str() => Self::new(
                format!("The database can be read again after {lasted}: {feeds}"),
                format!("The feeds were not compared from {since} to {now}. Notifications of changes since then follow."),
            ),
            FeedRecovery::Responding => Self::new(
                format!("The source responds again after {lasted} ({kind}): {feeds}"),
                format!(
                    "Polls failed from {since} to {now}. No known data was lost; notifications of changes since then follow. The data is \
                     as of {now}."
                ),
            ),
            FeedRecovery::Partial => Self::new(
                format!("The source responds again after {lasted} ({kind}), except for {feeds}"),
                format!(
                    "Polls failed since {since}. The feeds that still fail have alerts of their own. No known data was lost."
                ),
            ),
            FeedRecovery::Unwatched => {
                Self::new(format!("No longer watched: {feeds}"), format!("Polls failed since {since} ({kind}) and have stopped."))
            }
        }
    }

    /// A receiver that accepts no messages since `since`, with `waiting` undelivered messages.
    pub fn receiver_outage(receiver: &ReceiverName, waiting: u32, reason: &str, since: Timestamp, now: Timestamp) -> Self {
        let are = if waiting == 1 { "is" } else { "are" };
        Self::new(
            format!(
                "Receiver {receiver} has accepted no messages for {}: {} {are} waiting",
                duration(now - since),
                count(waiting, "delivery")
            ),
            format!(
                "{} Deliveries are retried automatically. To list them, run `cliffwatch outbox list`.",
                quoted_sentence(reason)
            ),
        )
    }

    /// A delivery that became a dead letter. `lost` are reason and summary of each notification in it.
    pub fn dead_letter(delivery: DeliveryId, receiver: &ReceiverName, lost: &[(&str, &str)], reason: &str) -> Self {
        let mut texts: Vec<String> =
            lost.iter().take(MAX_LOST).map(|(reason, summary)| format!("[{reason}] {}", quote(summary))).collect();
        if lost.is_empty() {
            texts.push("a message that cannot be read".to_owned());
        }
        let more = lost.len().saturating_sub(texts.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Self::new(
            format!("Not delivered to {receiver}: {}{more}", texts.join("; ")),
            format!(
                "Delivery {delivery} became a dead letter: {} To see each attempt, run `cliffwatch outbox show {delivery}`; to send it \
                 again, run `cliffwatch outbox retry {delivery}`.",
                quoted_sentence(reason)
            ),
        )
    }

    /// A recipient of a mail receiver that the server rejects.
    pub fn recipient_rejected(receiver: &ReceiverName, address: &str, reply: &str) -> Self {
        Self::new(
            format!(
                "{} did not get a mail of receiver {receiver}, because the mail server rejected the recipient",
                quote(address)
            ),
            format!(
                "{} The other recipients got the mail. Correct or remove the address in the config, or have the mailbox repaired.",
                quoted_sentence(reply)
            ),
        )
    }

    /// Changed files that were not loaded. `problem` has a line for each problem.
    pub fn reload_failed(problems: u32, problem: &str) -> Self {
        Self::new(
            format!(
                "Changed files were not loaded because of {}; the previous config and rules stay active",
                count(problems, "problem")
            ),
            format!(
                "{} To see every problem and its location, run `cliffwatch check` and `cliffwatch test`.",
                quoted_sentence(problem)
            ),
        )
    }

    pub fn database_damaged(error: &str) -> Self {
        Self::new(
            "The database is damaged",
            format!(
                "{} Stop the daemon and restore a copy that `cliffwatch backup` made: `cliffwatch restore FILE`.",
                quoted_sentence(error)
            ),
        )
    }

    pub fn disk_full(error: &str) -> Self {
        Self::new(
            "The disk of the database is full: no new data can be stored",
            format!("{} Free some disk space. Polls whose results were not stored are repeated.", quoted_sentence(error)),
        )
    }

    /// A database server that `instance` cannot reach since `since`.
    pub fn database_unreachable(instance: &str, error: &str, since: Timestamp) -> Self {
        Self::new(
            format!("The database server cannot be reached from {}", quote(instance)),
            format!(
                "{} Since {}, this instance has neither polled nor notified. It continues by itself when the server responds.",
                quoted_sentence(error),
                instant(since)
            ),
        )
    }

    /// Instances on one database whose config or rules differ from those of the active one.
    pub fn instances_differ(active: &str, others: &[String]) -> Self {
        let names = quote(&list_some(others, MAX_FEEDS, 0));
        Self::new(
            format!("Config or rules of {names} differ from those of the active instance {}", quote(active)),
            "After a takeover, other rules and receivers would apply. Install the same files on every machine.",
        )
    }

    /// Our clock differs from the source's clock by `ahead`, negative if it is behind. `is_source_trusted` says which of the two the daemon
    /// goes by.
    pub fn clock_differs(ahead: TimeDelta, is_source_trusted: bool, now: Timestamp) -> Self {
        let side = if ahead > TimeDelta::zero() { "ahead of" } else { "behind" };
        let (trusted, advice) = if is_source_trusted {
            (
                "the source's clock",
                "Alerts use it until this machine's clock is right. Set the clock; `timedatectl status` shows whether it is synchronized.",
            )
        } else {
            (
                "this machine's clock",
                "It ran evenly while the source's clock was changed. Set the clock of the source or the mirror.",
            )
        };
        Self::new(
            format!("This machine's clock is {} {side} the source's clock", duration(ahead)),
            format!("Trusted: {trusted}, which shows {}. {advice}", instant(now)),
        )
    }

    pub fn template_failed(rule: &RuleId, error: &str) -> Self {
        Self::new(format!("A template of rule {rule} failed; the built-in text was sent instead"), quoted_sentence(error))
    }

    /// The end of an incident of the daemon or a receiver that began at `since`.
    pub fn recovered(incident: &DaemonIncident<'_>, since: Timestamp, now: Timestamp) -> Self {
        let lasted = duration(now - since);
        let summary = match incident {
            DaemonIncident::Reload => "The changed files are loaded".to_owned(),
            DaemonIncident::DatabaseDamaged => "The database is no longer damaged".to_owned(),
            DaemonIncident::DiskFull => "The database can be written again".to_owned(),
            DaemonIncident::DatabaseUnreachable => "The database server can be reached again".to_owned(),
            DaemonIncident::Instances => "All instances have the same config and rules again".to_owned(),
            DaemonIncident::Clock => "The clocks of this machine and of the source agree again".to_owned(),
            DaemonIncident::Receiver(receiver) => format!("Receiver {receiver} accepts messages again after {lasted}"),
            DaemonIncident::Other(name) => format!("{name} ended after {lasted}"),
        };
        Self::new(summary, format!("It lasted from {} to {}.", instant(since), instant(now)))
    }

    pub fn receiver_removed(receiver: &str) -> Self {
        Self::new(
            format!("Receiver {receiver} is no longer in the config"),
            "Its undelivered messages are now dead letters. To list them, run `cliffwatch outbox list --state dead`.",
        )
    }
}

/// The reason why an incident of feeds ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedRecovery<'a> {
    /// A held response was accepted; why, for people.
    Released(&'a str),
    Responding,
    /// Most feeds responded; the incident continues for the others.
    Partial,
    /// The feeds are no longer watched.
    Unwatched,
}

/// An incident of the daemon or of a receiver, as opposed to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonIncident<'a> {
    Reload,
    DatabaseDamaged,
    DiskFull,
    DatabaseUnreachable,
    Instances,
    Clock,
    Receiver(&'a str),
    /// Any other, by the name of its alert.
    Other(&'a str),
}

/// Dead letters of a receiver, for a digest: `3 deliveries to ops failed for good; to list them, run …`.
pub fn dead_letters(receiver: &ReceiverName, letters: u64) -> String {
    format!("{} to {receiver} (`cliffwatch outbox list --state dead`)", count(letters, "dead letter"))
}

/// The problem as the start of a sentence, and what the operator can do or the daemon does.
fn problem_and_advice(kind: IncidentKind) -> (&'static str, &'static str) {
    const RETRIED: &str = "Polling is retried automatically.";
    let IncidentKind::Failure(failure) = kind else {
        return (
            "Most upcoming records are missing from a response, which is held",
            "The response is accepted when further complete responses confirm it.",
        );
    };
    match failure {
        FailureKind::Unreachable => ("The source is unreachable", RETRIED),
        FailureKind::Timeout => ("The source does not respond in time", RETRIED),
        FailureKind::ServerError => ("The source responds with server errors", RETRIED),
        FailureKind::NoKey => (
            "The source requires an API key, and none is configured",
            "Set source.api_key_file, source.api_key, or the credential api-key.",
        ),
        FailureKind::UnusableKey => (
            "The API key cannot be used, so no request was sent",
            "Correct source.api_key, or the file or credential that contains it. It is read again within seconds.",
        ),
        FailureKind::Unauthorized => {
            ("The source rejects the API key", "Check source.api_key, or the file or credential that contains it.")
        }
        FailureKind::Forbidden => {
            ("The API plan does not include the requested data", "Turn the endpoint off in [schedule], or upgrade the plan.")
        }
        FailureKind::RateLimited => (
            "The source limits the request rate",
            "Polling resumes when the source allows it. Set requests_per_minute to poll more slowly.",
        ),
        FailureKind::QuotaExhausted => (
            "The API credits of this period are used up",
            "Polling resumes when the period ends. If the API has more credits now, run `cliffwatch credits recheck`.",
        ),
        FailureKind::NotFound => (
            "The source does not have the requested data",
            "Check the spelling in watch.tokens, and whether the source still lists the token.",
        ),
        FailureKind::UnexpectedStatus => ("The source responds with an unexpected status", RETRIED),
        FailureKind::BadAnswer => ("The source sends responses that cannot be parsed", RETRIED),
        FailureKind::TooLarge => {
            ("The source sends responses larger than source.max_body", "Raise source.max_body if the responses are genuine.")
        }
        FailureKind::Incomplete => ("The source sends incomplete responses", RETRIED),
        FailureKind::Emptied => ("The source sends empty responses where there were records", RETRIED),
        FailureKind::NotStored => (
            "A response cannot be stored",
            "It is polled again after growing waits; all other responses are stored. Please report this error.",
        ),
        FailureKind::Unreadable => (
            "A row of the database is damaged",
            "Everything else is polled and evaluated. To repair it, stop the daemon, and restore a copy with `cliffwatch restore`.",
        ),
        FailureKind::Suspended => ("Polling is suspended after repeated failures", RETRIED),
        FailureKind::Deferred => ("A poll costs more credits than planned", RETRIED),
    }
}

/// `unlock_events of ARB (arbitrum)`, several feeds by name, or `120 feeds (burn 30, unlock_events 90)`.
fn feed_names(feeds: &[FeedId], token: Option<&Token>) -> String {
    if let [feed] = feeds {
        return match (&feed.token, token) {
            (Some(id), Some(token)) if token.symbol() != id.as_str() => {
                quote(&format!("{} of {} ({id})", feed.endpoint, token.symbol()))
            }
            (Some(id), _) => quote(&format!("{} of {id}", feed.endpoint)),
            (None, _) => feed.endpoint.to_string(),
        };
    }
    if feeds.len() <= MAX_FEEDS {
        let names: Vec<String> = feeds.iter().map(FeedId::to_string).collect();
        return quote(&list_some(&names, MAX_FEEDS, 0));
    }
    let mut counts: BTreeMap<Endpoint, usize> = BTreeMap::new();
    for feed in feeds {
        *counts.entry(feed.endpoint).or_default() += 1;
    }
    let parts: Vec<_> = counts.iter().map(|(endpoint, count)| format!("{endpoint} {count}")).collect();
    format!("{} ({})", count(feeds.len(), "feed"), parts.join(", "))
}

/// An error message from outside as a sentence of its own.
fn quoted_sentence(text: &str) -> String {
    sentence(&quote(text))
}

/// A text from outside on one line, without hostile characters, cut at `MAX_TEXT_CHARS`.
pub fn quote(text: &str) -> String {
    let mut line: String = plain_chars(text).take(MAX_TEXT_CHARS).collect();
    if text.chars().count() > MAX_TEXT_CHARS {
        line.push('…');
    }
    line.trim().to_owned()
}
