//! Renames: the token list drops a slug and lists the same token under a new one. Pure.
//!
//! The list does not announce a rename, so it needs evidence: two of name, ticker, and website are equal, at least one supply figure
//! agrees and none contradicts, and no other token fits. Without evidence, the old slug is a token that left the list, and the new slug is
//! read for the first time.
//!
//! After a rename, everything known moves to the new slug: records under their keys, feeds, open alerts, incidents of the feeds, and
//! silences. So the next response is compared with the known facts. An alert keeps its id, which receivers, acknowledgements, and messages
//! refer to: it continues without a message, and no reminder is repeated. A closed alert with another id stays in the history of the old
//! slug.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Ingest, ScheduleFeed, TokenUpdate, Work, polled_at};
use crate::evaluate::RENAMED_OUTCOME;
use model::{
    Alert, AlertState, Change, ChangeKind, Endpoint, Fact, FeedId, FeedState, FeedUpdate, Labels, OUTCOME, Put, Record,
    RecordKey, Resolution, Resource, RuleId, SOURCE_TROUBLE, Silence, TOKEN_LABEL, Timestamp, Token, TokenId, TokenSnapshot,
    Tracked, alert_id,
    phrase::changes::{ChangeClause, ScheduleUnit, summary},
    wire::{self, Maybe, Text},
};

/// Every resource of a token.
pub const RESOURCES: [Resource; 6] =
    [Resource::Unlock, Resource::Burn, Resource::Buyback, Resource::Emission, Resource::Allocation, Resource::Funding];

/// The header field that holds the new slug in the feeds of an old one. Such a token is not polled unless a list names it again.
const RENAMED_TO: &str = "cliffwatchRenamedTo";
/// The relative difference below which supply figures agree. Some of them grow daily.
const SUPPLY_TOLERANCE: f64 = 0.01;

/// Returns the old and the new slug of each renamed token. `missing` holds the tokens that a complete list no longer names, `new` those that
/// it names for the first time.
#[must_use]
pub fn renamed_tokens(missing: &[wire::TokenItem], new: &[wire::TokenItem]) -> Vec<(TokenId, TokenId)> {
    renamed_in(&TextIndex::of(missing), &TextIndex::of(new))
}

fn renamed_in(missing: &TextIndex<'_>, new: &TextIndex<'_>) -> Vec<(TokenId, TokenId)> {
    let slug = |item: &wire::TokenItem| item.id.as_str().map(TokenId::from);
    let pair = |old: &wire::TokenItem| {
        let to = new.only_similar(old).filter(|to| is_same(old, to))?;
        let back = missing.only_similar(to)?;
        (back.id == old.id).then(|| Some((slug(old)?, slug(to)?)))?
    };
    missing.items.iter().filter_map(pair).collect()
}

/// Rows of the token list by name, ticker, and website. Two rows may be one token if they share one of them.
struct TextIndex<'a> {
    items: &'a [wire::TokenItem],
    /// The indices of the rows with a text, for each kind of text.
    by_text: [HashMap<String, Vec<usize>>; 3],
    /// The number of rows that lookups have examined.
    #[cfg(test)]
    examined: std::cell::Cell<usize>,
}

impl<'a> TextIndex<'a> {
    fn of(items: &'a [wire::TokenItem]) -> Self {
        let mut by_text: [HashMap<String, Vec<usize>>; 3] = Default::default();
        for (index, item) in items.iter().enumerate() {
            for (map, text) in by_text.iter_mut().zip(texts(item)) {
                if let Some(text) = plain(text) {
                    map.entry(text).or_default().push(index);
                }
            }
        }
        Self {
            items,
            by_text,
            #[cfg(test)]
            examined: Default::default(),
        }
    }

    /// Returns the only row that may be the same token as `item`. `None` if no row or several rows may be.
    fn only_similar(&self, item: &wire::TokenItem) -> Option<&'a wire::TokenItem> {
        let mut found = None;
        let with_text = self.by_text.iter().zip(texts(item)).filter_map(|(map, text)| map.get(&plain(text)?));
        // The second row ends the search, however many share a text.
        for index in with_text.flatten() {
            #[cfg(test)]
            self.examined.set(self.examined.get() + 1);
            if *found.get_or_insert(*index) != *index {
                return None;
            }
        }
        self.items.get(found?)
    }
}

/// Returns the texts that identify a token: name, ticker, and website.
fn texts(item: &wire::TokenItem) -> [&Maybe<Text>; 3] {
    [&item.name, &item.symbol, &item.website_url]
}

/// Returns a text without differences that do not matter. `None` if it is missing or empty.
fn plain(text: &Maybe<Text>) -> Option<String> {
    text.as_str().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty())
}

fn is_equal(a: &Maybe<Text>, b: &Maybe<Text>) -> bool {
    plain(a).is_some_and(|a| plain(b) == Some(a))
}

/// Returns whether two rows are surely one token.
fn is_same(a: &wire::TokenItem, b: &wire::TokenItem) -> bool {
    let texts = texts(a).into_iter().zip(texts(b));
    let figures = [
        (a.max_supply, b.max_supply),
        (a.circulating_supply, b.circulating_supply),
        (a.unlocked_amount, b.unlocked_amount),
        (a.total_locked_amount, b.total_locked_amount),
    ];
    let known: Vec<(f64, f64)> = figures.iter().filter_map(|(a, b)| a.copied().zip(b.copied())).collect();
    let agree = |(a, b): &(f64, f64)| (a - b).abs() <= SUPPLY_TOLERANCE * a.max(*b);
    texts.filter(|(a, b)| is_equal(a, b)).count() >= 2 && known.iter().all(agree) && known.iter().any(|(a, _)| *a > 0.0)
}

/// Returns whether the known facts of a token moved to another slug.
#[must_use]
pub fn is_renamed(known: &TokenSnapshot) -> bool {
    known.headers.iter().any(|(_, header)| header.get(RENAMED_TO).is_some())
}

/// Returns whether nothing is known of a token: it was never polled, or its facts moved to another slug.
#[must_use]
pub fn is_unread(known: &TokenSnapshot) -> bool {
    is_renamed(known) || known.feeds.iter().all(|(_, feed)| feed.baseline_at.is_none())
}

/// Everything that a rename moves, except for the episodes of the alerts.
#[derive(Debug)]
pub struct Renaming {
    snapshot: TokenSnapshot,
    /// The alerts of the token and the incidents of its feeds, before and after. The subject differs, unless an incident covers more.
    moves: Vec<(Alert, Alert)>,
    /// Alerts of the old slug that the new one has already.
    left: Vec<Alert>,
    silences: Vec<Silence>,
}

/// A token under its new slug.
#[derive(Debug)]
pub struct RenamedToken {
    /// The known facts, with the open alerts.
    pub snapshot: TokenSnapshot,
    /// Alerts to store: those that moved, and a closed one in the history of each old subject.
    alerts: Vec<Alert>,
    /// Alerts of the old slug to resolve.
    left: Vec<Alert>,
    /// Silences to add for the new slug.
    silences: Vec<Silence>,
}

impl Renaming {
    /// Moves everything known of a token to its new slug. `old` holds the facts under the old slug, `to` those under the new slug, and
    /// `item` is the row of the new slug in the token list. `global` are the open alerts of no token, and `silences` those that have not
    /// ended.
    #[must_use]
    pub fn of(old: &TokenSnapshot, to: &TokenSnapshot, item: &wire::TokenItem, global: &[Alert], silences: &[Silence]) -> Self {
        let (from, id) = (&old.token.id, &to.token.id);
        let token = Token { item: item.clone(), ..Token::unknown(id.clone()) };
        let is_open = |alert: &&Alert| matches!(alert.state, AlertState::Pending | AlertState::Firing);
        let has = |moved: &Alert| {
            let is_equal = |other: &Alert| (&other.rule, &other.subject) == (&moved.rule, &moved.subject);
            to.alerts.iter().chain(global).any(is_equal)
        };
        let own = old.alerts.iter().filter(is_open).filter(|alert| alert.rule.as_str() != SOURCE_TROUBLE);
        let own = own.map(|alert| (alert.clone(), moved_alert(alert, from, id)));
        let (left, mut moves): (Vec<_>, Vec<_>) = own.partition(|(_, moved)| has(moved));
        moves.extend(global.iter().filter(is_open).filter_map(|alert| {
            let moved = moved_incident(alert, from, id)?;
            // An incident without feeds ends with the cycle.
            let is_known = moved.subject != alert.subject && has(&moved);
            let moved = if is_known { Alert { members: Vec::new(), ..alert.clone() } } else { moved };
            Some((alert.clone(), moved))
        }));
        let snapshot = TokenSnapshot {
            feeds: old.feeds.iter().map(|(endpoint, feed)| (*endpoint, stale(feed))).collect(),
            headers: old.headers.clone(),
            records: old.records.iter().map(|tracked| moved_record(tracked, from, id)).collect(),
            ..TokenSnapshot::of(token)
        };
        let silences = silences.iter().filter_map(|silence| silence.under_new_slug(from, id)).collect();
        Self { snapshot, moves, left: left.into_iter().map(|(alert, _)| alert).collect(), silences }
    }

    /// Returns rule and subject of each alert that gets another subject. The store has the latest episode of each.
    #[must_use]
    pub fn openings(&self) -> Vec<(RuleId, String)> {
        let has_moved = self.moves.iter().filter(|(before, moved)| before.subject != moved.subject);
        has_moved.map(|(_, moved)| (moved.rule.clone(), moved.subject.clone())).collect()
    }

    /// Returns the token under its new slug. `latest` holds the latest episodes of [`Self::openings`], in the same order; `to` holds the
    /// facts known under the new slug until now.
    #[must_use]
    pub fn into_token(self, latest: &[u32], to: &TokenSnapshot, now: Timestamp) -> RenamedToken {
        let Self { mut snapshot, moves, left, silences } = self;
        let mut latest = latest.iter().copied();
        let mut alerts = Vec::new();
        for (before, mut moved) in moves {
            let has_moved = before.subject != moved.subject;
            if has_moved {
                moved.episode = latest.next().unwrap_or_default().saturating_add(1);
            }
            if moved.token.is_some() {
                snapshot.alerts.push(moved.clone());
            }
            // First the alert that moves, because an episode of a subject is unique.
            alerts.push(moved);
            alerts.extend(has_moved.then(|| former_alert(before, now)));
        }
        snapshot.alerts.extend(to.alerts.iter().cloned());
        RenamedToken { snapshot, alerts, left, silences }
    }
}

impl Ingest<'_> {
    /// Moves a token to its new slug. `old` and `to` hold the known facts under the old and the new slug, and `new` is what [`Renaming`]
    /// made of both.
    pub fn renamed<'k>(&self, work: &mut Work<'k>, old: &'k TokenSnapshot, to: &TokenSnapshot, new: &'k RenamedToken) {
        let RenamedToken { snapshot, alerts, left, silences } = new;
        let change = rename_change(&old.token, &snapshot.token);
        work.commit.tokens.push(snapshot.token.item.clone());
        work.commit.changes.push(change.clone());
        work.commit.alerts.extend(alerts.iter().cloned());
        work.commit.silences.extend(silences.iter().cloned());
        work.commit.feeds.extend(new_feeds(to, snapshot));
        work.commit.feeds.extend(old_feeds(old, &snapshot.token.id));
        let update = |known: &'k TokenSnapshot, records: &'k [Tracked], alerts: &'k [Alert]| TokenUpdate {
            token: Cow::Owned(self.watch.placed(known.token.clone())),
            is_watched: known.token.id == snapshot.token.id,
            records: Cow::Borrowed(records),
            schedule: ScheduleFeed::of(known),
            resources: Cow::Borrowed(&RESOURCES),
            changes: vec![change.clone()],
            added: Vec::new(),
            late: Vec::new(),
            alerts,
            polled_at: polled_at(&known.feeds),
        };
        // The old slug is no longer watched, so the alerts that did not move are resolved.
        work.tokens.push(update(old, &[], left));
        work.tokens.push(update(snapshot, &snapshot.records, &snapshot.alerts));
    }

    /// Resets a renamed token whose old slug is listed again: it is read as if for the first time.
    pub fn relisted(&self, work: &mut Work<'_>, known: &TokenSnapshot) {
        work.commit.feeds.extend(known.feeds.iter().map(|(endpoint, _)| unread(*endpoint, &known.token.id)));
    }
}

fn rename_change(old: &Token, new: &Token) -> Change {
    let mut change = Change::of(ChangeKind::Renamed, Resource::Unlock, &new.id);
    change.from = Some(Fact::Text(old.id.to_string()));
    change.to = Some(Fact::Text(new.id.to_string()));
    let (name, from, to) = (old.name().to_owned(), old.id.to_string(), new.id.to_string());
    change.summary = summary(&[ChangeClause::Relisted { name, from, to }], &ScheduleUnit::default());
    change
}

/// Returns the feeds of the new slug, with all records.
fn new_feeds(to: &TokenSnapshot, new: &TokenSnapshot) -> Vec<FeedUpdate> {
    let kept: HashSet<(Resource, &RecordKey)> =
        new.records.iter().map(|tracked| (tracked.record.resource(), &tracked.key)).collect();
    let mut written: HashSet<Resource> = HashSet::new();
    let update = |(endpoint, state): &(Endpoint, FeedState)| {
        let resource = endpoint.resource().filter(|resource| written.insert(*resource));
        let is_own = |tracked: &&Tracked| Some(tracked.record.resource()) == resource;
        let put = |tracked: &Tracked| Put { key: tracked.key.clone(), record: tracked.record.clone(), is_new_version: true };
        let is_replaced = |tracked: &&Tracked| is_own(tracked) && !kept.contains(&(tracked.record.resource(), &tracked.key));
        let header = new.headers.iter().find(|(of, _)| of == endpoint).map(|(_, header)| header.clone());
        FeedUpdate {
            id: FeedId::of(*endpoint, &new.token.id),
            state: state.clone(),
            put: new.records.iter().filter(is_own).map(put).collect(),
            removed: to.records.iter().filter(is_replaced).map(|tracked| tracked.key.clone()).collect(),
            header: Some(header.unwrap_or_else(|| Value::Object(serde_json::Map::new()))),
        }
    };
    let others = to.feeds.iter().filter(|(endpoint, _)| new.feed(*endpoint).is_none());
    new.feeds.iter().map(update).chain(others.map(|(endpoint, _)| unread(*endpoint, &new.token.id))).collect()
}

/// Returns a feed as if it was never polled.
fn unread(endpoint: Endpoint, token: &TokenId) -> FeedUpdate {
    FeedUpdate {
        id: FeedId::of(endpoint, token),
        state: FeedState::default(),
        put: Vec::new(),
        removed: Vec::new(),
        header: Some(Value::Object(serde_json::Map::new())),
    }
}

/// Returns the feeds of the old slug, without records, and no longer polled.
fn old_feeds(old: &TokenSnapshot, to: &TokenId) -> Vec<FeedUpdate> {
    let mut feeds = old.feeds.clone();
    if old.feed(Endpoint::UnlockEvents).is_none() {
        feeds.push((Endpoint::UnlockEvents, FeedState::default()));
    }
    let mut written: HashSet<Resource> = HashSet::new();
    let update = |(endpoint, state): (Endpoint, FeedState)| {
        let resource = endpoint.resource().filter(|resource| written.insert(*resource));
        let is_own = |tracked: &&Tracked| Some(tracked.record.resource()) == resource;
        FeedUpdate {
            id: FeedId::of(endpoint, &old.token.id),
            state: FeedState { stale: false, failing_since: None, ..stale(&state) },
            put: Vec::new(),
            removed: old.records.iter().filter(is_own).map(|tracked| tracked.key.clone()).collect(),
            header: Some(serde_json::json!({RENAMED_TO: to.as_str()})),
        }
    };
    feeds.into_iter().map(update).collect()
}

/// Returns a feed that is polled again and compared, whatever its hash and mark were under the old slug.
fn stale(feed: &FeedState) -> FeedState {
    let stale = feed.baseline_at.is_some();
    FeedState { hash: None, mark: None, hold: None, failing_since: None, missing: Vec::new(), stale, ..feed.clone() }
}

/// Returns a record under the new slug. A funding round names its token.
fn moved_record(tracked: &Tracked, from: &TokenId, to: &TokenId) -> Tracked {
    let mut tracked = tracked.clone();
    if let Record::Funding(round) = &mut tracked.record {
        round.token_id = to.to_string().into();
        tracked.key = tracked.key.as_str().replacen(&format!("/{from}/"), &format!("/{to}/"), 1).into();
    }
    tracked
}

/// Returns an open alert under the new slug, with its id, its acknowledgement, and its notified lead times.
fn moved_alert(alert: &Alert, from: &TokenId, to: &TokenId) -> Alert {
    let subject = match (alert.resource, &alert.key) {
        (Some(resource), Some(key)) => format!("{resource}/{to}/{key}"),
        _ => with_new_slug(&alert.subject, from, to).unwrap_or_else(|| alert.subject.clone()),
    };
    let mut moved = Alert { subject, token: Some(to.clone()), ..alert.clone() };
    moved.relabel(moved_labels(alert, from, to));
    moved
}

/// Returns an incident of the source under the new slug. `None` if it covers no feed of the old one.
fn moved_incident(alert: &Alert, from: &TokenId, to: &TokenId) -> Option<Alert> {
    let is_own = |member: &String| with_new_slug(member, from, to).is_some();
    if alert.rule.as_str() != SOURCE_TROUBLE || !alert.members.iter().any(is_own) {
        return None;
    }
    let moved_text = |text: &String| with_new_slug(text, from, to).unwrap_or_else(|| text.clone());
    let mut members: Vec<String> = alert.members.iter().map(moved_text).collect();
    members.sort();
    // A slug can be the name of an endpoint, which is the last part of the subject of that endpoint.
    let moved_feed = |(source, feed): (&str, &str)| Some(format!("{source}/{}", with_new_slug(feed, from, to)?));
    let subject = alert.subject.split_once('/').and_then(moved_feed).unwrap_or_else(|| alert.subject.clone());
    let mut moved = Alert { subject, members, ..alert.clone() };
    moved.relabel(moved_labels(alert, from, to));
    Some(moved)
}

/// Replaces the slug at the end of a feed, or of a subject without a record. `None` if it ends with another slug.
fn with_new_slug(text: &str, from: &TokenId, to: &TokenId) -> Option<String> {
    let prefix = text.strip_suffix(from.as_str()).filter(|prefix| prefix.ends_with('/'))?;
    Some(format!("{prefix}{to}"))
}

fn moved_labels(alert: &Alert, from: &TokenId, to: &TokenId) -> Labels {
    let labels = alert.labels.iter().map(|(name, value)| {
        let is_slug = name == TOKEN_LABEL && value == from.as_str();
        (name.clone(), if is_slug { to.to_string() } else { value.clone() })
    });
    labels.collect()
}

/// Returns the closed alert that stays in the history of the old subject. It also keeps later alerts of that subject from getting the id
/// of the alert that moved.
fn former_alert(alert: Alert, now: Timestamp) -> Alert {
    let mut former = Alert {
        id: alert_id(&alert.rule, &format!("{} renamed", alert.subject), alert.episode),
        state: AlertState::Resolved,
        resolution: Some(Resolution::Renamed),
        ends_at: Some(now),
        false_since: None,
        recheck_at: None,
        notified: Vec::new(),
        members: Vec::new(),
        updated_at: now,
        text_at: None,
        ..alert
    };
    former.annotations.insert(OUTCOME.to_owned(), RENAMED_OUTCOME.to_owned());
    former
}

#[cfg(test)]
mod tests;
