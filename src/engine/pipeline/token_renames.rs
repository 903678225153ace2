//! Renames: the token list drops a slug and lists the same token under a new one. Pure.
//!
//! The list does not announce a rename, so it needs evidence: two of name, ticker, and website are equal, at least one supply figure
//! agrees and none contradicts, and no other token fits. Without evidence, the old slug is a token that left the list, and the new slug is
//! read for the first time.
//!
//! After a rename, all known facts move to the new slug: records under their keys, feeds, and open alerts with the lead times that were
//! notified. So the next response is compared with the known facts, and no reminder is repeated. The alerts of the old slug are resolved
//! as renamed.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Ingest, ScheduleFeed, TokenUpdate, Work, polled_at};
use model::{
    Alert, AlertState, Change, ChangeKind, Endpoint, Fact, FeedId, FeedState, FeedUpdate, Put, Record, RecordKey, Resource,
    RuleId, SOURCE_TROUBLE, Token, TokenId, TokenSnapshot, Tracked, alert_id,
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

/// The known facts of a token under its new slug.
#[derive(Debug)]
pub struct Renaming(TokenSnapshot);

impl Renaming {
    /// Moves the known facts of a token to its new slug. `old` holds the facts under the old slug, `to` those under the new slug, and
    /// `item` is the row of the new slug in the token list.
    #[must_use]
    pub fn of(old: &TokenSnapshot, to: &TokenSnapshot, item: &wire::TokenItem) -> Self {
        let (from, id) = (&old.token.id, &to.token.id);
        let token = Token { item: item.clone(), ..Token::unknown(id.clone()) };
        let is_open = |alert: &&Alert| {
            matches!(alert.state, AlertState::Pending | AlertState::Firing) && alert.rule.as_str() != SOURCE_TROUBLE
        };
        let moved = old.alerts.iter().filter(is_open).map(|alert| moved_alert(alert, from, id));
        let has = |alert: &Alert| to.alerts.iter().any(|other| (&other.rule, &other.subject) == (&alert.rule, &alert.subject));
        Self(TokenSnapshot {
            feeds: old.feeds.iter().map(|(endpoint, feed)| (*endpoint, stale(feed))).collect(),
            headers: old.headers.clone(),
            records: old.records.iter().map(|tracked| moved_record(tracked, from, id)).collect(),
            alerts: moved.filter(|alert| !has(alert)).collect(),
            ..TokenSnapshot::of(token)
        })
    }

    /// Returns rule and subject of each alert that opens. The store has the latest episode of each.
    #[must_use]
    pub fn openings(&self) -> Vec<(RuleId, String)> {
        self.0.alerts.iter().map(|alert| (alert.rule.clone(), alert.subject.clone())).collect()
    }

    /// Returns the snapshot of the new slug. `latest` holds the latest episodes of [`Self::openings`], in the same order; `to` holds the
    /// facts known under the new slug until now.
    #[must_use]
    pub fn into_snapshot(mut self, latest: &[u32], to: &TokenSnapshot) -> TokenSnapshot {
        for (alert, latest) in self.0.alerts.iter_mut().zip(latest.iter().copied().chain(std::iter::repeat(0))) {
            alert.episode = latest.saturating_add(1);
            alert.id = alert_id(&alert.rule, &alert.subject, alert.episode);
        }
        self.0.alerts.extend(to.alerts.iter().cloned());
        self.0
    }
}

impl Ingest<'_> {
    /// Moves a token to its new slug. `old` and `to` hold the known facts under the old and the new slug, and `new` is the snapshot that
    /// [`Renaming`] made of both.
    pub fn renamed<'k>(&self, work: &mut Work<'k>, old: &'k TokenSnapshot, to: &TokenSnapshot, new: &'k TokenSnapshot) {
        let change = rename_change(&old.token, &new.token);
        work.commit.tokens.push(new.token.item.clone());
        work.commit.changes.push(change.clone());
        work.commit.alerts.extend(new.alerts.iter().cloned());
        work.commit.feeds.extend(new_feeds(to, new));
        work.commit.feeds.extend(old_feeds(old, &new.token.id));
        let update = |known: &'k TokenSnapshot, is_watched: bool, records: &'k [Tracked], changes: Vec<Change>| TokenUpdate {
            token: Cow::Owned(self.watch.placed(known.token.clone())),
            is_watched,
            records: Cow::Borrowed(records),
            schedule: ScheduleFeed::of(known),
            resources: Cow::Borrowed(&RESOURCES),
            changes,
            added: Vec::new(),
            late: Vec::new(),
            alerts: &known.alerts,
            polled_at: polled_at(&known.feeds),
        };
        // The old slug is no longer watched, so its alerts are resolved.
        work.tokens.push(update(old, false, &[], vec![change.clone()]));
        work.tokens.push(update(new, true, &new.records, vec![change]));
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

/// Returns an open alert under the new slug, with its notified lead times.
fn moved_alert(alert: &Alert, from: &TokenId, to: &TokenId) -> Alert {
    let subject = match (alert.resource, &alert.key) {
        (Some(resource), Some(key)) => format!("{resource}/{to}/{key}"),
        _ => alert.subject.replacen(from.as_str(), to.as_str(), 1),
    };
    let labels = alert.labels.iter().map(|(name, value)| {
        let is_slug = name == "token" && value == from.as_str();
        (name.clone(), if is_slug { to.to_string() } else { value.clone() })
    });
    Alert { subject, token: Some(to.clone()), labels: labels.collect(), former_labels: Vec::new(), ..alert.clone() }
}

#[cfg(test)]
mod tests;
