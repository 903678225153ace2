//! A token under another slug: the list no longer names the old one, and names a new one that is the same token. Pure.
//!
//! The list gives no other sign of it, so identity is a matter of evidence: name and ticker are the same (or one of them, and the
//! website), at least one figure of the supply agrees and none contradicts, and no other token could be meant. Without that, nothing is
//! told: the old slug is a token that left the list, the new one is read for the first time.
//!
//! With it, all that is known goes on under the new slug: records under their keys, feeds, and open alerts with the lead times that were
//! told. So the next answer is compared with what was known, and no reminder is repeated. The alerts of the old slug end as renamed.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::{Ingest, TokenNews, Work, polled_at};
use model::{
    Alert, AlertState, Change, ChangeKind, Endpoint, Fact, FeedId, FeedState, FeedUpdate, Put, Record, RecordKey, Resource,
    RuleId, SOURCE_TROUBLE, Token, TokenId, TokenSnapshot, Tracked, alert_id,
    wire::{self, Maybe, Text},
};

/// All that a token has records of.
pub const RESOURCES: [Resource; 6] =
    [Resource::Unlock, Resource::Burn, Resource::Buyback, Resource::Emission, Resource::Allocation, Resource::Funding];

/// Where the new slug stands in what is kept with the feeds of an old one; such a token is not asked about while no list names it.
const RENAMED_TO: &str = "cliffwatchRenamedTo";
/// Figures of the supply that differ by less, relatively, agree: some grow from day to day.
const SUPPLY_TOLERANCE: f64 = 0.01;

/// Pairs tokens that a complete list no longer names with those that it names and nobody knew, where they are surely the same: old slug,
/// new slug.
#[must_use]
pub fn renamed_tokens(gone: &[wire::TokenItem], new: &[wire::TokenItem]) -> Vec<(TokenId, TokenId)> {
    let slug = |item: &wire::TokenItem| item.id.as_str().map(TokenId::from);
    let only = |item: &wire::TokenItem, others: &[wire::TokenItem]| {
        let mut alike = others.iter().filter(|other| may_be(item, other));
        alike.next().filter(|_| alike.next().is_none()).cloned()
    };
    let pair = |old: &wire::TokenItem| {
        let to = only(old, new).filter(|to| is_same(old, to))?;
        let back = only(&to, gone)?;
        (back.id == old.id).then(|| Some((slug(old)?, slug(&to)?)))?
    };
    gone.iter().filter_map(pair).collect()
}

fn is_text(a: &Maybe<Text>, b: &Maybe<Text>) -> bool {
    let plain = |text: &Maybe<Text>| text.as_str().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    plain(a).is_some_and(|a| plain(b) == Some(a))
}

/// Whether two rows could be one token: they share a name, a ticker or a website.
fn may_be(a: &wire::TokenItem, b: &wire::TokenItem) -> bool {
    is_text(&a.name, &b.name) || is_text(&a.symbol, &b.symbol) || is_text(&a.website_url, &b.website_url)
}

/// Whether two rows are one token.
fn is_same(a: &wire::TokenItem, b: &wire::TokenItem) -> bool {
    let words = [(&a.name, &b.name), (&a.symbol, &b.symbol), (&a.website_url, &b.website_url)];
    let figures = [
        (a.max_supply, b.max_supply),
        (a.circulating_supply, b.circulating_supply),
        (a.unlocked_amount, b.unlocked_amount),
        (a.total_locked_amount, b.total_locked_amount),
    ];
    let known: Vec<(f64, f64)> = figures.iter().filter_map(|(a, b)| a.copied().zip(b.copied())).collect();
    let agree = |(a, b): &(f64, f64)| (a - b).abs() <= SUPPLY_TOLERANCE * a.max(*b);
    words.iter().filter(|(a, b)| is_text(a, b)).count() >= 2 && known.iter().all(agree) && known.iter().any(|(a, _)| *a > 0.0)
}

/// Whether what is known of a token went on under another slug.
#[must_use]
pub fn is_renamed(known: &TokenSnapshot) -> bool {
    known.headers.iter().any(|(_, header)| header.get(RENAMED_TO).is_some())
}

/// Whether nothing was ever read of a token, or all that was went on under another slug.
#[must_use]
pub fn is_unread(known: &TokenSnapshot) -> bool {
    is_renamed(known) || known.feeds.iter().all(|(_, feed)| feed.baseline_at.is_none())
}

/// What is known of a token, as it goes on under another slug.
#[derive(Debug)]
pub struct Renaming(TokenSnapshot);

impl Renaming {
    /// `old` is all that is known of the token, `to` what was known under the new slug until now, `item` its row of the list.
    #[must_use]
    pub fn of(old: &TokenSnapshot, to: &TokenSnapshot, item: &wire::TokenItem) -> Self {
        let (from, id) = (&old.token.id, &to.token.id);
        let token = Token { item: item.clone(), ..Token::unknown(id.clone()) };
        let is_open = |alert: &&Alert| {
            matches!(alert.state, AlertState::Pending | AlertState::Firing) && alert.rule.as_str() != SOURCE_TROUBLE
        };
        let carried = old.alerts.iter().filter(is_open).map(|alert| alert_of(alert, from, id));
        let has = |alert: &Alert| to.alerts.iter().any(|other| (&other.rule, &other.subject) == (&alert.rule, &alert.subject));
        Self(TokenSnapshot {
            feeds: old.feeds.iter().map(|(endpoint, feed)| (*endpoint, to_be_read(feed))).collect(),
            headers: old.headers.clone(),
            records: old.records.iter().map(|tracked| record_of(tracked, from, id)).collect(),
            alerts: carried.filter(|alert| !has(alert)).collect(),
            ..TokenSnapshot::of(token)
        })
    }

    /// The alerts that it opens, by rule and subject: the store knows the latest episode of each.
    #[must_use]
    pub fn openings(&self) -> Vec<(RuleId, String)> {
        self.0.alerts.iter().map(|alert| (alert.rule.clone(), alert.subject.clone())).collect()
    }

    /// The token as it is known from now on. `latest` are the latest episodes of what it opens, `to` is what was known until now.
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
    /// A token goes on under another slug. `old` is all that is known of it, `to` what was known under the new slug, `new` what
    /// [`Renaming`] made of both.
    pub fn renamed<'k>(&self, work: &mut Work<'k>, old: &'k TokenSnapshot, to: &TokenSnapshot, new: &'k TokenSnapshot) {
        let change = renamed(&old.token, &new.token);
        work.commit.tokens.push(new.token.item.clone());
        work.commit.changes.push(change.clone());
        work.commit.alerts.extend(new.alerts.iter().cloned());
        work.commit.feeds.extend(begun(to, new));
        work.commit.feeds.extend(ended(old, &new.token.id));
        let news = |known: &'k TokenSnapshot, is_watched: bool, records: &'k [Tracked], changes: Vec<Change>| TokenNews {
            token: Cow::Owned(self.watch.placed(known.token.clone())),
            is_watched,
            records: Cow::Borrowed(records),
            resources: Cow::Borrowed(&RESOURCES),
            changes,
            added: Vec::new(),
            late: Vec::new(),
            alerts: &known.alerts,
            polled_at: polled_at(&known.feeds),
        };
        // Nobody watches the old slug any more: its alerts end.
        work.tokens.push(news(old, false, &[], vec![change.clone()]));
        work.tokens.push(news(new, true, &new.records, vec![change]));
    }

    /// A token that went on under another slug is listed again by itself: it is read as if for the first time.
    pub fn relisted(&self, work: &mut Work<'_>, known: &TokenSnapshot) {
        work.commit.feeds.extend(known.feeds.iter().map(|(endpoint, _)| unread(*endpoint, &known.token.id)));
    }
}

/// The one sentence.
fn renamed(old: &Token, new: &Token) -> Change {
    let mut change = Change::of(ChangeKind::Renamed, Resource::Unlock, &new.id);
    change.from = Some(Fact::Text(old.id.to_string()));
    change.to = Some(Fact::Text(new.id.to_string()));
    change.summary = format!("the source lists {} as {} now, no longer as {}", old.name(), new.id, old.id);
    change
}

/// The feeds of the new slug, with all records.
fn begun(to: &TokenSnapshot, new: &TokenSnapshot) -> Vec<FeedUpdate> {
    let kept: HashSet<(Resource, &RecordKey)> =
        new.records.iter().map(|tracked| (tracked.record.resource(), &tracked.key)).collect();
    let mut written: HashSet<Resource> = HashSet::new();
    let update = |(endpoint, state): &(Endpoint, FeedState)| {
        let resource = endpoint.resource().filter(|resource| written.insert(*resource));
        let is_own = |tracked: &&Tracked| Some(tracked.record.resource()) == resource;
        let put = |tracked: &Tracked| Put { key: tracked.key.clone(), record: tracked.record.clone(), is_new_version: true };
        let stands_in = |tracked: &&Tracked| is_own(tracked) && !kept.contains(&(tracked.record.resource(), &tracked.key));
        let header = new.headers.iter().find(|(of, _)| of == endpoint).map(|(_, header)| header.clone());
        FeedUpdate {
            id: FeedId::of(*endpoint, &new.token.id),
            state: state.clone(),
            put: new.records.iter().filter(is_own).map(put).collect(),
            removed: to.records.iter().filter(stands_in).map(|tracked| tracked.key.clone()).collect(),
            header: Some(header.unwrap_or_else(|| Value::Object(serde_json::Map::new()))),
        }
    };
    let others = to.feeds.iter().filter(|(endpoint, _)| new.feed(*endpoint).is_none());
    new.feeds.iter().map(update).chain(others.map(|(endpoint, _)| unread(*endpoint, &new.token.id))).collect()
}

/// A feed of which nothing was ever read.
fn unread(endpoint: Endpoint, token: &TokenId) -> FeedUpdate {
    FeedUpdate {
        id: FeedId::of(endpoint, token),
        state: FeedState::default(),
        put: Vec::new(),
        removed: Vec::new(),
        header: Some(Value::Object(serde_json::Map::new())),
    }
}

/// The feeds of the old slug: without records, and not to be read any more.
fn ended(old: &TokenSnapshot, to: &TokenId) -> Vec<FeedUpdate> {
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
            state: FeedState { stale: false, failing_since: None, ..to_be_read(&state) },
            put: Vec::new(),
            removed: old.records.iter().filter(is_own).map(|tracked| tracked.key.clone()).collect(),
            header: Some(serde_json::json!({RENAMED_TO: to.as_str()})),
        }
    };
    feeds.into_iter().map(update).collect()
}

/// A feed that answers in other bytes next time, and may say what only the new slug says.
fn to_be_read(feed: &FeedState) -> FeedState {
    let stale = feed.baseline_at.is_some();
    FeedState { hash: None, mark: None, held_since: None, failing_since: None, missing: Vec::new(), stale, ..feed.clone() }
}

/// A record under the new slug. A round names its token.
fn record_of(tracked: &Tracked, from: &TokenId, to: &TokenId) -> Tracked {
    let mut tracked = tracked.clone();
    if let Record::Funding(round) = &mut tracked.record {
        round.token_id = to.to_string().into();
        tracked.key = tracked.key.as_str().replacen(&format!("/{from}/"), &format!("/{to}/"), 1).into();
    }
    tracked
}

/// An open alert under the new slug, as far as it was told.
fn alert_of(alert: &Alert, from: &TokenId, to: &TokenId) -> Alert {
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
