//! Late facts: the amount, value, or price of a burn, buyback, or funding round that arrives some polls after its record.
//!
//! A rule that needs the fact cannot be evaluated when the record arrives, and a record is new only once. So incomplete records are
//! stored in the header of the feed, with the time of their first response. When a fact arrives, the rules that needed it are evaluated.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use chrono::TimeDelta;
use serde_json::Value;

use model::{
    rows::Put,
    supply::{Record, RecordKey, Timestamp, Tracked},
};

/// The header field that holds the incomplete records.
const FIELD: &str = "cliffwatchWaiting";

/// The maximum age of an incomplete record. The `since` of a rule may end its wait earlier.
const MAX_AGE: TimeDelta = TimeDelta::days(30);

/// The maximum number of incomplete records of one feed. If there are more, the latest stay.
const MAX_RECORDS: usize = 500;

/// A burn, buyback, or funding round whose facts arrived late.
#[derive(Clone, Debug, PartialEq)]
pub struct LateArrival {
    pub tracked: Tracked,
    /// The record without the late facts.
    pub before: Record,
    /// The time of the first response with the record.
    pub seen_at: Timestamp,
}

/// Records with missing facts, each with the time of its first response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IncompleteRecords(BTreeMap<RecordKey, Timestamp>);

impl IncompleteRecords {
    /// Reads the incomplete records from a header and drops records older than `MAX_AGE`.
    #[must_use]
    pub fn read(header: Option<&Value>, now: Timestamp) -> Self {
        let list = header.and_then(|header| header.get(FIELD)).and_then(Value::as_object);
        let waiting = list.into_iter().flatten().filter_map(|(key, at)| {
            let at = model::wire::parse_timestamp(at.as_str()?)?;
            (now.signed_duration_since(at) <= MAX_AGE).then(|| (key.as_str().into(), at))
        });
        Self(waiting.collect())
    }

    #[must_use]
    pub fn contains(&self, key: &RecordKey) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the incomplete records that `put` gives more facts. `known` holds the records before.
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

    /// Returns the incomplete records after a response that added `arrived`. `after` holds all records after the response.
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
        if self.0.len() > MAX_RECORDS {
            let mut times: Vec<Timestamp> = self.0.values().copied().collect();
            times.sort_unstable();
            let from = times.get(times.len() - MAX_RECORDS).copied();
            self.0.retain(|_, at| Some(*at) >= from);
        }
        self
    }

    /// Writes the incomplete records to a header.
    pub fn write(&self, header: &mut Value) {
        if let (Some(header), false) = (header.as_object_mut(), self.0.is_empty()) {
            let list = self.0.iter().map(|(key, at)| (key.to_string(), at.to_rfc3339().into()));
            header.insert(FIELD.to_owned(), Value::Object(list.collect()));
        }
    }
}

/// Returns whether a burn, buyback, or funding round lacks a fact that a rule may need.
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
