//! Burns, buybacks and rounds that wait for facts: an amount, a value or a price that comes a poll later.
//!
//! A rule that needs such a fact cannot be judged when the record comes, and the record is new only once. So records that lack facts are
//! remembered with the time at which they were first seen; when a fact comes, a rule that could not be told before is judged then. The
//! list is kept with the feed, and survives a restart.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use chrono::TimeDelta;
use serde_json::Value;

use model::{
    rows::Put,
    supply::{Record, RecordKey, Timestamp, Tracked},
};

/// Where the list stands in what is kept with a feed.
const WAITING: &str = "cliffwatchWaiting";
/// How long a record is remembered. How long a rule waits is said by its `since`.
const REMEMBERED_FOR: TimeDelta = TimeDelta::days(30);
/// Records that are remembered for one feed; of more, the latest.
const MOST_REMEMBERED: usize = 500;

/// A burn, a buyback or a round of which more is known than when it came.
#[derive(Clone, Debug, PartialEq)]
pub struct LateArrival {
    /// As it is now.
    pub tracked: Tracked,
    /// As it was known before.
    pub before: Record,
    /// When it came.
    pub seen_at: Timestamp,
}

/// Records that wait, with the time at which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting(BTreeMap<RecordKey, Timestamp>);

impl Waiting {
    /// The list that is kept with a feed; without what has waited too long.
    #[must_use]
    pub fn read(header: Option<&Value>, now: Timestamp) -> Self {
        let list = header.and_then(|header| header.get(WAITING)).and_then(Value::as_object);
        let waiting = list.into_iter().flatten().filter_map(|(key, at)| {
            let at = model::wire::parse_timestamp(at.as_str()?)?;
            (now.signed_duration_since(at) <= REMEMBERED_FOR).then(|| (key.as_str().into(), at))
        });
        Self(waiting.collect())
    }

    /// Whether a record waits.
    #[must_use]
    pub fn has(&self, key: &RecordKey) -> bool {
        self.0.contains_key(key)
    }

    /// Records that waited and of which more is known now. `known` are the records before.
    #[must_use]
    pub fn late(&self, known: &[Tracked], put: &[Put]) -> Vec<LateArrival> {
        if self.0.is_empty() {
            return Vec::new();
        }
        put.iter()
            .filter_map(|put| {
                let seen_at = *self.0.get(&put.key)?;
                let before = known.iter().find(|tracked| tracked.key == put.key)?.record.clone();
                Some(LateArrival { tracked: Tracked { key: put.key.clone(), record: put.record.clone() }, before, seen_at })
            })
            .collect()
    }

    /// The list from now on: what came just now or waits already, as far as it still lacks a fact. `after` are the records from now on.
    #[must_use]
    pub fn next(mut self, arrived: &[Tracked], after: &[Tracked], now: Timestamp) -> Self {
        for tracked in arrived {
            self.0.entry(tracked.key.clone()).or_insert(now);
        }
        if self.0.is_empty() {
            return self;
        }
        let lacking: HashSet<&RecordKey> =
            after.iter().filter(|tracked| lacks_facts(&tracked.record)).map(|tracked| &tracked.key).collect();
        self.0.retain(|key, _| lacking.contains(key));
        if self.0.len() > MOST_REMEMBERED {
            let mut times: Vec<Timestamp> = self.0.values().copied().collect();
            times.sort_unstable();
            let from = times.get(times.len() - MOST_REMEMBERED).copied();
            self.0.retain(|_, at| Some(*at) >= from);
        }
        self
    }

    /// Puts the list to what is kept with a feed.
    pub fn write(&self, header: &mut Value) {
        if let (Some(header), false) = (header.as_object_mut(), self.0.is_empty()) {
            let list = self.0.iter().map(|(key, at)| (key.to_string(), at.to_rfc3339().into()));
            header.insert(WAITING.to_owned(), Value::Object(list.collect()));
        }
    }
}

/// Whether a burn, a buyback or a round lacks a fact that a rule may ask for.
fn lacks_facts(record: &Record) -> bool {
    match record {
        Record::Burn(burn) => [&burn.amount, &burn.value, &burn.price_per_token].iter().any(|fact| fact.get().is_none()),
        Record::Buyback(buyback) => {
            [&buyback.token_amount, &buyback.value, &buyback.spent_amount].iter().any(|fact| fact.get().is_none())
        }
        Record::Funding(round) => {
            let numbers = [&round.total_amount_raised, &round.valuation, &round.price_per_token];
            round.is_lead_investor.get().is_none() || numbers.iter().any(|fact| fact.get().is_none())
        }
        _ => false,
    }
}
