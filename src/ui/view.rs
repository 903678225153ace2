//! What there is to look at, as plain values: made from rows of the store, shown by the commands, `/api/…` and the status page.
//!
//! The names of the fields are those of the JSON. Nothing here reads a clock or the store.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use serde::Serialize;

use crate::{
    alert::{Alert, AlertState, Labels},
    digest::{self, Plan},
    format,
    notify::unsubscribe::Subscriber,
    silence::SilenceView,
    store::model::{ChangeRow, Counts, CreditState, DeliveryState, EndpointStat, Standing, Telling, UpcomingRow, Via},
    supply::{AlertId, Endpoint, Precision, Record, Resource, Timestamp},
};

/// An unlock ahead.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnlockView {
    /// Slug.
    pub token_id: String,
    /// Ticker.
    pub symbol: String,
    /// Name.
    pub name: String,
    /// The date as the source has it; what it means depends on `precision`.
    pub unlock_date: Option<Timestamp>,
    /// How exact it is.
    pub precision: Precision,
    /// The date in words: `in March 2026`.
    pub when: String,
    /// Tokens that unlock at once.
    pub cliff_amount: Option<f64>,
    /// USD.
    pub cliff_value: Option<f64>,
    /// Percent of the market cap.
    pub value_to_market_cap: Option<f64>,
    /// Days until its time begins.
    pub days_until: Option<f64>,
    /// Who receives: allocation names, the largest first.
    pub allocations: Vec<String>,
    /// How the token is listed.
    pub listed_method: Option<String>,
    /// When the source last said so.
    pub polled_at: Option<Timestamp>,
    /// The record in the API's shape.
    pub record: serde_json::Value,
}

impl UnlockView {
    /// The view of a row; none where the record is no unlock.
    #[must_use]
    pub fn of(row: &UpcomingRow, now: Timestamp) -> Option<Self> {
        let Record::Unlock(event) = &row.tracked.record else {
            return None;
        };
        let interval = event.interval();
        let mut parts: Vec<(f64, &str)> = event
            .cliff_unlocks
            .get()
            .map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items())
            .iter()
            .filter_map(|part| Some((part.cliff_amount.copied().unwrap_or_default(), part.allocation_name.as_str()?)))
            .collect();
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(Self {
            token_id: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            name: row.token.name().to_owned(),
            unlock_date: event.unlock_date.copied(),
            precision: event.precision(),
            when: interval.as_ref().map_or_else(|| "not decided".to_owned(), format::when),
            cliff_amount: event.cliff_amount(),
            cliff_value: event.cliff_value(),
            value_to_market_cap: event.value_to_market_cap(),
            days_until: interval.map(|interval| interval.days_until(now)),
            allocations: parts.into_iter().map(|(_, name)| name.to_owned()).collect(),
            listed_method: event.listed_method.as_str().or(row.token.item.listed_method.as_str()).map(str::to_owned),
            polled_at: row.read_at,
            record: serde_json::to_value(&row.tracked.record).unwrap_or_default(),
        })
    }
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertView {
    /// Id.
    pub id: String,
    /// Name of the rule.
    pub rule: String,
    /// Where it stands.
    pub state: AlertState,
    /// Why it ended.
    pub reason: Option<&'static str>,
    /// Slug, where it is about a token.
    pub token_id: Option<String>,
    /// What it is about.
    pub resource: Option<Resource>,
    /// What it is about, within its rule.
    pub subject: String,
    /// First line of its message.
    pub summary: String,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Lead times told.
    pub leads: Vec<String>,
    /// Receivers that took a message of it.
    pub told: Vec<String>,
    /// Receivers whose latest message of it did not arrive, and what became of that: `waiting`, `due`, `retrying`, `dead`, `dropped`,
    /// `silenced`, `inhibited`, `acknowledged`.
    pub not_told: BTreeMap<String, String>,
    /// The record's time in words.
    pub when: Option<String>,
    /// When its condition first held.
    pub active_at: Timestamp,
    /// When it began to fire, or happened.
    pub starts_at: Option<Timestamp>,
    /// When it ended.
    pub ends_at: Option<Timestamp>,
    /// Its last step.
    pub updated_at: Timestamp,
}

impl AlertView {
    /// Who was told and who was not, in words: `ops, desk (silenced)`.
    #[must_use]
    pub fn told_words(&self) -> String {
        let told = self.told.iter().filter(|name| !self.not_told.contains_key(*name)).cloned();
        let not_told = self.not_told.iter().map(|(name, state)| match self.told.contains(name) {
            true => format!("{name} (last: {state})"),
            false => format!("{name} ({state})"),
        });
        told.chain(not_told).collect::<Vec<_>>().join(", ")
    }

    /// The views of alerts, each with where it stands with its receivers.
    #[must_use]
    pub fn all(alerts: &[Alert], standings: &HashMap<AlertId, Vec<Standing>>) -> Vec<Self> {
        let of = |alert: &Alert| Self::of(alert, standings.get(&alert.id).map_or(&[][..], Vec::as_slice));
        alerts.iter().map(of).collect()
    }

    /// The view of an alert.
    #[must_use]
    pub fn of(alert: &Alert, standings: &[Standing]) -> Self {
        let name = |standing: &Standing| standing.receiver.as_str().to_owned();
        Self {
            id: alert.id.as_str().to_owned(),
            rule: alert.name.clone(),
            state: alert.state,
            reason: alert.resolution.map(crate::alert::Resolution::as_str),
            token_id: alert.token.as_ref().map(|token| token.as_str().to_owned()),
            resource: alert.resource,
            subject: alert.subject.clone(),
            summary: alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()),
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            leads: alert.leads.clone(),
            told: standings.iter().filter(|standing| standing.was_told).map(name).collect(),
            not_told: standings
                .iter()
                .filter(|standing| standing.state != DeliveryState::Delivered.as_str())
                .map(|standing| (name(standing), standing.state.clone()))
                .collect(),
            when: alert.due.as_ref().map(format::when),
            active_at: alert.active_at,
            starts_at: alert.starts_at,
            ends_at: alert.ends_at,
            updated_at: alert.updated_at,
        }
    }
}

/// How everything stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// The time of this look.
    pub at: Timestamp,
    /// Version of the program that looks.
    pub version: &'static str,
    /// Whether the source answers; null where it was never asked.
    pub source_up: Option<bool>,
    /// What is wrong with the source, a receiver or this program.
    pub troubles: Vec<String>,
    /// Endpoints that were asked, in their order.
    pub endpoints: Vec<EndpointView>,
    /// The quota.
    pub credits: CreditView,
    /// Feeds whose answer is held because most of a token's records vanished at once.
    pub removals_held: u64,
    /// Records that complete answers left out, not often enough yet to be gone.
    pub removals_awaiting_proof: u64,
    /// Feeds that fail.
    pub feeds_failing: u64,
    /// Tokens known.
    pub tokens: u64,
    /// Tokens that the list names.
    pub tokens_listed: u64,
    /// Records by resource.
    pub records: BTreeMap<&'static str, u64>,
    /// Alerts by state.
    pub alerts: BTreeMap<&'static str, u64>,
    /// The outbox of each receiver of the config, and of those that left it with messages waiting.
    pub outbox: Vec<OutboxView>,
    /// Silences that hold or will.
    pub silences: Vec<SilenceView>,
    /// Alerts that somebody acknowledged.
    pub acknowledged: usize,
    /// Digests.
    pub digests: Vec<DigestView>,
    /// The database.
    pub database: DatabaseView,
    /// The rules.
    pub rules: RulesView,
    /// What the daemon says of itself; null when a command looks into the database beside it.
    pub daemon: Option<DaemonView>,
}

/// How one endpoint fares.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointView {
    /// Which.
    pub endpoint: Endpoint,
    /// Last complete, valid answer.
    pub last_success: Option<Timestamp>,
    /// Its age, seconds.
    pub age_seconds: Option<i64>,
    /// Last try.
    pub last_try: Option<Timestamp>,
    /// Feeds that were ever tried.
    pub feeds: u64,
    /// Of these, those that fail.
    pub failing: u64,
    /// Since when.
    pub failing_since: Option<Timestamp>,
    /// What failed last, where something fails now.
    pub last_error: Option<String>,
}

/// The quota.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreditView {
    /// Used in the period, as the API reports.
    pub used: Option<u64>,
    /// Allowance, as the API reports.
    pub limit: Option<u64>,
    /// When the period ends.
    pub reset_at: Option<Timestamp>,
    /// What this program spent in the period.
    pub spent: u64,
    /// What this program spent today (UTC).
    pub spent_today: u64,
    /// Whether the API said that nothing is left.
    pub exhausted: bool,
}

/// The outbox of one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxView {
    /// Which receiver.
    pub receiver: String,
    /// Waiting, retries included.
    pub pending: u64,
    /// Of these, tried at least once.
    pub retrying: u64,
    /// Age of the oldest that waits, seconds.
    pub oldest_seconds: Option<i64>,
    /// Dead letters.
    pub dead: u64,
    /// Accepted so far.
    pub delivered: u64,
    /// Messages that are in no delivery yet: they wait for their group, or for the end of a mute time.
    pub waiting: u64,
    /// Held back by silences now, of alerts that fire.
    pub silenced: u64,
    /// Held back by other alerts now, of alerts that fire.
    pub inhibited: u64,
    /// Held back by whatever in the last day, of whichever alerts.
    pub held_last_day: u64,
}

impl OutboxView {
    /// What is not in its outbox, in words: `2 waiting, 1 silenced, 5 held back in a day`; empty where nothing is.
    #[must_use]
    pub fn held_words(&self) -> String {
        let parts = [
            (self.waiting, "waiting"),
            (self.silenced, "silenced"),
            (self.inhibited, "inhibited"),
            (self.held_last_day, "held back in a day"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

/// The digest of a receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DigestView {
    /// Whose.
    pub receiver: String,
    /// When it is sent, in words.
    pub when: String,
    /// The time of the last one; before the first, the time from which on there are digests. Null where none was due yet.
    pub last_at: Option<Timestamp>,
    /// The time of the next.
    pub next_at: Option<Timestamp>,
    /// Mail recipients in the config; none for other receivers.
    pub recipients: usize,
    /// Of these, those who stopped it, with those who are gone from the config since.
    pub stopped: Vec<StoppedView>,
}

/// Somebody who stopped a digest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoppedView {
    /// Mail address.
    pub address: String,
    /// Since when.
    pub at: Timestamp,
    /// `link`, or `hand` for the operator's.
    pub via: Via,
}

impl DigestView {
    /// Every digest of the config.
    #[must_use]
    pub fn all(plans: &[Plan], subscribers: &[Subscriber], telling: &Telling, now: Timestamp) -> Vec<Self> {
        let of = |plan: &Plan| {
            let job = digest::job_name(&plan.receiver);
            let stopped = telling.opt_outs.iter().filter(|wish| wish.receiver == plan.receiver);
            let stopped = stopped.map(|wish| StoppedView { address: wish.address.clone(), at: wish.at, via: wish.via });
            Self {
                receiver: plan.receiver.as_str().to_owned(),
                when: plan.words.clone(),
                last_at: telling.digests.iter().find(|(name, _)| *name == job).map(|(_, slot)| *slot),
                next_at: plan.schedule.next(now),
                recipients: subscribers.iter().filter(|subscriber| subscriber.receiver == plan.receiver).count(),
                stopped: stopped.collect(),
            }
        };
        plans.iter().map(of).collect()
    }
}

/// The database.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseView {
    /// Its file.
    pub path: String,
    /// Its size, bytes.
    pub bytes: u64,
}

/// The rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesView {
    /// Rules that are at work.
    pub count: Option<u32>,
    /// What is wrong with the files; the rules before them are at work.
    pub problem: Option<String>,
}

/// What the daemon says of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonView {
    /// Whether it works.
    pub ready: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// When its last cycle ended.
    pub last_cycle_at: Option<Timestamp>,
    /// What that cycle did, in a line.
    pub last_cycle: Option<String>,
    /// When the files were last reloaded.
    pub last_reload_at: Option<Timestamp>,
}

/// What a [`StatusView`] is made from.
#[derive(Clone, Debug)]
pub struct StatusParts<'a> {
    /// The time of the look.
    pub now: Timestamp,
    /// From the store.
    pub counts: &'a Counts,
    /// From the store.
    pub endpoints: &'a [EndpointStat],
    /// From the store.
    pub credit: &'a CreditState,
    /// Open alerts about the source, a receiver or this program.
    pub troubles: &'a [Alert],
    /// Receivers of the config.
    pub receivers: Vec<String>,
    /// From the store.
    pub telling: &'a Telling,
    /// Digests of the config.
    pub digests: &'a [Plan],
    /// Who gets them by mail.
    pub subscribers: &'a [Subscriber],
    /// The database file.
    pub database: PathBuf,
    /// The rules.
    pub rules: RulesView,
    /// The daemon.
    pub daemon: Option<DaemonView>,
}

impl StatusView {
    /// The view of these parts.
    #[must_use]
    pub fn of(parts: StatusParts<'_>) -> Self {
        let StatusParts { now, counts, credit, .. } = parts;
        let asked: Vec<&EndpointStat> = parts.endpoints.iter().filter(|stat| stat.last_try.is_some()).collect();
        // Alerts about single feeds leave the source up; those about all of it have these subjects.
        let is_down = parts
            .troubles
            .iter()
            .any(|alert| matches!(alert.subject.as_str(), "source" | "source/unauthorized" | "source/quota"));
        let mut names = parts.receivers.clone();
        names.extend(
            counts
                .outbox
                .iter()
                .filter(|row| row.pending() > 0 || row.of(DeliveryState::Dead) > 0)
                .map(|row| row.receiver.as_str().to_owned()),
        );
        let telling = parts.telling;
        names.extend(telling.held.iter().map(|row| row.receiver.as_str().to_owned()));
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let outbox = names.into_iter().map(|name| {
            let row = counts.outbox.iter().find(|row| row.receiver.as_str() == name);
            let held = telling.held.iter().find(|row| row.receiver.as_str() == name);
            OutboxView {
                pending: row.map_or(0, |row| row.pending()),
                retrying: row.map_or(0, |row| row.of(DeliveryState::Retrying)),
                oldest_seconds: row.and_then(|row| row.oldest_pending).map(|at| (now - at).num_seconds().max(0)),
                dead: row.map_or(0, |row| row.of(DeliveryState::Dead)),
                delivered: row.map_or(0, |row| row.of(DeliveryState::Delivered)),
                waiting: held.map_or(0, |held| held.waiting),
                silenced: held.map_or(0, |held| held.silenced),
                inhibited: held.map_or(0, |held| held.inhibited),
                held_last_day: held.map_or(0, |held| held.lately),
                receiver: name,
            }
        });
        Self {
            at: now,
            version: env!("CARGO_PKG_VERSION"),
            source_up: (!asked.is_empty()).then_some(!is_down),
            troubles: parts
                .troubles
                .iter()
                .filter(|alert| alert.state == AlertState::Firing)
                .map(|alert| alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()))
                .collect(),
            endpoints: asked.into_iter().map(|stat| EndpointView::of(stat, now)).collect(),
            credits: CreditView {
                used: credit.used,
                limit: credit.limit,
                reset_at: credit.reset_at,
                spent: credit.spent,
                spent_today: if credit.day.is_some_and(|day| day.date_naive() == now.date_naive()) {
                    credit.spent_today
                } else {
                    0
                },
                exhausted: credit.exhausted,
            },
            removals_held: counts.removals_held,
            removals_awaiting_proof: counts.removals_awaiting_proof,
            feeds_failing: counts.feeds_failing,
            tokens: counts.tokens,
            tokens_listed: counts.tokens_listed,
            records: counts.records.iter().map(|(resource, count)| (resource.as_str(), *count)).collect(),
            alerts: counts.alerts.iter().map(|(state, count)| (state.as_str(), *count)).collect(),
            outbox: outbox.collect(),
            silences: telling.silences.iter().map(|silence| SilenceView::of(silence.clone(), now)).collect(),
            acknowledged: telling.acks.len(),
            digests: DigestView::all(parts.digests, parts.subscribers, telling, now),
            database: DatabaseView { path: parts.database.display().to_string(), bytes: counts.database_bytes },
            rules: parts.rules,
            daemon: parts.daemon,
        }
    }

    /// Whether nothing was ever asked: an empty list then says nothing.
    #[must_use]
    pub fn was_never_asked(&self) -> bool {
        self.source_up.is_none()
    }
}

impl EndpointView {
    fn of(stat: &EndpointStat, now: Timestamp) -> Self {
        Self {
            endpoint: stat.endpoint,
            last_success: stat.last_success,
            age_seconds: stat.last_success.map(|at| (now - at).num_seconds().max(0)),
            last_try: stat.last_try,
            feeds: stat.feeds,
            failing: stat.failing,
            failing_since: stat.failing_since,
            last_error: stat.last_error.as_ref().filter(|_| stat.failing > 0).map(|(_, message)| message.clone()),
        }
    }
}

/// A change in a line: token, what happened.
#[must_use]
pub fn change_line(row: &ChangeRow) -> String {
    let token = row.symbol.as_deref().unwrap_or(row.token.as_str());
    format!("{token}: {} {}", row.resource, row.change.summary)
}

/// A length of time in short, for ages: `12 s`, `5 min`, `3 h`, `12 d`.
#[must_use]
pub fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// How far ahead something is, for people: `in 3 days`, `now`.
#[must_use]
pub fn ahead(days_until: f64) -> String {
    if days_until <= 0.0 {
        "now".to_owned()
    } else if days_until < 1.0 {
        format!("in {:.0} h", (days_until * 24.0).ceil())
    } else {
        let whole = days_until.round();
        format!("in {whole:.0} day{}", if whole < 1.5 { "" } else { "s" })
    }
}

/// A size for people: `12.3 MiB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(count: u64) -> String {
    let mut size = count as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} GiB")
}
