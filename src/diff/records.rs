//! Records with simpler identities: burns, buybacks, emissions, rows of the allocation table, funding rounds.
//!
//! Each resource says by a [`Shape`] what identifies its rows and which facts count. One path serves all: rows of one identity are
//! paired, equal ones first, then in order (equal rows of one day are as many rows); what is left on both sides and agrees in all
//! but its identity is the same row restated; the rest came, or needs proof that it is gone.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use serde_json::Value;

use super::{Absence, Diff, Keys, Settings, Window, align::Group, close, tell::shown};
use crate::{
    change::{AllocationChange, Change, ChangeKind, Fact, FieldChange},
    format,
    store::model::Put,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId, Tracked},
    wire::{Allocation, AllocationsData, Burn, Buyback, Emission, FundingRound, Maybe, NamedOr},
};

/// Rows that must vanish at once, and be more than half of all, before the answer is doubted.
const HOLD_AT_LEAST: usize = 3;
/// Rows restated in their value alone, and more than half of those that have one: the reference price drifted.
const DRIFT_AT_LEAST: usize = 3;
/// Burns, buybacks and rounds of one answer that are told each by itself; more are one change.
const MAX_ALONE: usize = 5;
/// Fields and allocations listed in one change.
const MAX_LISTED: usize = 50;

/// Fields that are numbers.
type Numbers = Vec<(Cow<'static, str>, Option<f64>)>;
/// Fields that are texts.
type Texts = Vec<(&'static str, Option<String>)>;
/// Texts that identify a row beside its date.
type Identity<'a> = Vec<Cow<'a, str>>;

/// What a resource's rows are made of.
struct Shape<T> {
    resource: Resource,
    /// What one row is called in a sentence.
    noun: &'static str,
    /// How many rows are told each by itself.
    alone: usize,
    date: fn(&T) -> Option<Timestamp>,
    /// The texts that identify a row beside its date.
    identity: fn(&T) -> Identity<'_>,
    /// Stem of a key.
    key: fn(&T) -> String,
    /// Facts that are numbers; the first is the amount of the row.
    numbers: fn(&T) -> Numbers,
    /// Numbers that follow a price where most change at once.
    drifting: &'static [&'static str],
    /// Facts that are texts.
    texts: fn(&T) -> Texts,
    record: fn(&T) -> Record,
    row: fn(&Record) -> Option<&T>,
}

fn day_or(at: Option<Timestamp>) -> String {
    match at {
        None => "undated".to_owned(),
        Some(at) if at.time() == chrono::NaiveTime::MIN => at.format("%Y-%m-%d").to_string(),
        Some(at) => at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
    }
}

fn text(field: &Maybe<String>) -> Cow<'_, str> {
    field.as_str().unwrap_or_default().into()
}

fn owned(field: &Maybe<String>) -> Option<String> {
    field.as_str().map(str::to_owned)
}

fn joined(list: &Maybe<Vec<String>>) -> Option<String> {
    let mut items = list.get()?.clone();
    items.sort_unstable();
    Some(items.join(", "))
}

const BURN: Shape<Burn> = Shape {
    resource: Resource::Burn,
    noun: "burn",
    alone: MAX_ALONE,
    date: |burn| burn.burn_date.copied(),
    identity: |burn| vec![text(&burn.burn_event_label), text(&burn.burn_type)],
    key: |burn| day_or(burn.burn_date.copied()),
    numbers: |burn| vec![("amount".into(), burn.amount.copied()), ("value".into(), burn.value.copied())],
    drifting: &["value"],
    texts: |burn| {
        let metadata = burn.metadata.get();
        vec![
            ("metadata.burners", metadata.and_then(|m| joined(&m.burners))),
            ("metadata.burnReasons", metadata.and_then(|m| joined(&m.burn_reasons))),
        ]
    },
    record: |burn| Record::Burn(Box::new(burn.clone())),
    row: |record| if let Record::Burn(burn) = record { Some(burn) } else { None },
};

const BUYBACK: Shape<Buyback> = Shape {
    resource: Resource::Buyback,
    noun: "buyback",
    alone: MAX_ALONE,
    date: |buyback| buyback.buyback_date.copied(),
    identity: |buyback| {
        vec![
            text(&buyback.buyback_event_label),
            text(&buyback.buyback_type),
            text(&buyback.target_address),
            text(&buyback.buyer_address),
        ]
    },
    key: |buyback| day_or(buyback.buyback_date.copied()),
    numbers: |buyback| {
        vec![
            ("tokenAmount".into(), buyback.token_amount.copied()),
            ("value".into(), buyback.value.copied()),
            ("spentAmount".into(), buyback.spent_amount.copied()),
        ]
    },
    drifting: &["value"],
    texts: |buyback| {
        vec![
            ("spentUnit", owned(&buyback.spent_unit)),
            ("resolution", owned(&buyback.resolution)),
            ("basis", owned(&buyback.basis)),
        ]
    },
    record: |buyback| Record::Buyback(Box::new(buyback.clone())),
    row: |record| {
        if let Record::Buyback(buyback) = record { Some(buyback) } else { None }
    },
};

const EMISSION: Shape<Emission> = Shape {
    resource: Resource::Emission,
    noun: "emission",
    alone: 1,
    date: |emission| emission.start_date.copied(),
    identity: |emission| vec![span(emission).to_string().into()],
    key: |emission| match span(emission) {
        0 | 1 => day_or(emission.start_date.copied()),
        days => format!("{}/{days}d", day_or(emission.start_date.copied())),
    },
    numbers: |emission| {
        let mut numbers = vec![("unlockAmount".into(), emission.unlock_amount.copied())];
        for item in emission.allocations.items() {
            if let NamedOr::Item(item) = item {
                let name = item.allocation_name.as_str().unwrap_or_default();
                numbers.push((format!("allocations.{name}.unlockAmount").into(), item.unlock_amount.copied()));
            }
        }
        numbers
    },
    drifting: &[],
    texts: |emission| vec![("listedMethod", owned(&emission.listed_method))],
    record: |emission| Record::Emission(Box::new(emission.clone())),
    row: |record| {
        if let Record::Emission(emission) = record { Some(emission) } else { None }
    },
};

/// Days that an emission covers: daily and weekly ones of a token stand side by side.
fn span(emission: &Emission) -> i64 {
    match (emission.start_date.copied(), emission.end_date.copied()) {
        (Some(start), Some(end)) => (end - start).num_days(),
        _ => 1,
    }
}

const ALLOCATION: Shape<Allocation> = Shape {
    resource: Resource::Allocation,
    noun: "allocation",
    alone: 1,
    date: |_| None,
    identity: |allocation| vec![text(&allocation.allocation_name)],
    key: |allocation| text(&allocation.allocation_name).into_owned(),
    numbers: |allocation| vec![("allocationAmount".into(), allocation.allocation_amount.copied())],
    drifting: &[],
    texts: |allocation| {
        vec![
            ("standardAllocationName", owned(&allocation.standard_allocation_name)),
            ("allocationType", owned(&allocation.allocation_type)),
        ]
    },
    record: |allocation| Record::Allocation(Box::new(allocation.clone())),
    row: |record| {
        if let Record::Allocation(allocation) = record { Some(allocation) } else { None }
    },
};

const FUNDING: Shape<FundingRound> = Shape {
    resource: Resource::Funding,
    noun: "funding round",
    alone: MAX_ALONE,
    date: |round| round.funding_date.copied(),
    identity: |round| vec![text(&round.investor_id), text(&round.token_id), text(&round.round_name)],
    key: |round| {
        format!(
            "{}/{}/{}/{}",
            text(&round.investor_id),
            text(&round.token_id),
            text(&round.round_name),
            day_or(round.funding_date.copied())
        )
    },
    numbers: |round| {
        vec![
            ("totalAmountRaisedinThatRound".into(), round.total_amount_raised.copied()),
            ("valuation".into(), round.valuation.copied()),
            ("pricePerToken".into(), round.price_per_token.copied()),
        ]
    },
    drifting: &[],
    texts: |round| vec![("isLeadInvestor", round.is_lead_investor.copied().map(|lead| lead.to_string()))],
    record: |round| Record::Funding(Box::new(round.clone())),
    row: |record| {
        if let Record::Funding(round) = record { Some(round) } else { None }
    },
};

/// Keys for the burns of a token that is seen for the first time. Tells nothing.
#[must_use]
pub fn baseline_burns(after: &[Burn]) -> Vec<Put> {
    baseline(&BURN, after)
}

/// Keys for the buybacks of a token that is seen for the first time. Tells nothing.
#[must_use]
pub fn baseline_buybacks(after: &[Buyback]) -> Vec<Put> {
    baseline(&BUYBACK, after)
}

/// Keys for the daily or weekly emissions of a token that is seen for the first time. Tells nothing.
#[must_use]
pub fn baseline_emissions(after: &[Emission]) -> Vec<Put> {
    baseline(&EMISSION, after)
}

/// Keys for the allocation table of a token that is seen for the first time. Tells nothing.
#[must_use]
pub fn baseline_allocations(after: &[Allocation]) -> Vec<Put> {
    baseline(&ALLOCATION, after)
}

/// Keys for the funding rounds of an investor that is seen for the first time. Tells nothing.
#[must_use]
pub fn baseline_funding(after: &[FundingRound]) -> Vec<Put> {
    baseline(&FUNDING, after)
}

/// What a complete answer changes in the burns of a token. Amounts and values that were restated are `revised`; where most values
/// of at least three rows change and their amounts do not, the price drifted, which is no change.
#[must_use]
pub fn diff_burns(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[Burn],
    settings: &Settings,
    window: &Window,
) -> Diff {
    diff_rows(&BURN, token, before, missing, after, settings, window)
}

/// What a complete answer changes in the buybacks of a token; as [`diff_burns`].
#[must_use]
pub fn diff_buybacks(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[Buyback],
    settings: &Settings,
    window: &Window,
) -> Diff {
    diff_rows(&BUYBACK, token, before, missing, after, settings, window)
}

/// What a complete answer changes in the emissions of a token. Daily and weekly ones stand side by side: an answer speaks only of
/// those that last as long as its own.
#[must_use]
pub fn diff_emissions(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[Emission],
    settings: &Settings,
    window: &Window,
) -> Diff {
    // What is not in question is handed on neither as known nor as missing; keys of other spans differ by their ending.
    let spans: HashSet<i64> = after.iter().map(span).collect();
    let concerns = |record: &Record| matches!(record, Record::Emission(emission) if spans.contains(&span(emission)));
    let (asked, others): (Vec<&Tracked>, Vec<&Tracked>) = before.iter().partition(|tracked| concerns(&tracked.record));
    if asked.is_empty() && after.is_empty() {
        return diff_rows(&EMISSION, token, before, missing, after, settings, window);
    }
    let asked: Vec<Tracked> = asked.into_iter().cloned().collect();
    let mut diff = diff_rows(&EMISSION, token, &asked, missing, after, settings, window);
    let others: HashSet<&RecordKey> = others.into_iter().map(|tracked| &tracked.key).collect();
    diff.missing.extend(missing.iter().filter(|(key, _)| others.contains(key)).cloned());
    diff
}

/// What a complete answer changes in the funding rounds of one investor. `before` holds that investor's rounds.
#[must_use]
pub fn diff_funding(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[FundingRound],
    settings: &Settings,
    window: &Window,
) -> Diff {
    diff_rows(&FUNDING, token, before, missing, after, settings, window)
}

/// What a complete answer changes in the allocation table of a token. Unlocked and locked amounts drift daily and are no change.
///
/// `header` is the payload beside the rows as it was kept from the last answer (`maxSupply` is read from it): where the maximum
/// supply changed, that is told once, here.
#[must_use]
pub fn diff_allocations(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &AllocationsData,
    header: Option<&Value>,
    settings: &Settings,
) -> Diff {
    let rows = after.allocations.items();
    let mut diff = diff_rows(&ALLOCATION, token, before, missing, rows, settings, &Window::ALL);
    if diff.held {
        return diff;
    }
    let was = header.and_then(|header| header.get("maxSupply")).and_then(Value::as_f64);
    let is = after.max_supply.copied();
    if was.is_some() || is.is_some() {
        diff.changes.extend(max_supply_change(token, was, is, settings));
    } else {
        // Without a maximum supply, the total of the table stands for it.
        let sum = |amounts: &mut dyn Iterator<Item = Option<f64>>| amounts.sum::<Option<f64>>();
        let was = sum(&mut before.iter().filter_map(|t| (ALLOCATION.row)(&t.record)).map(|row| row.allocation_amount.copied()));
        let is = sum(&mut rows.iter().map(|row| row.allocation_amount.copied()));
        if diff.missing.is_empty() && !before.is_empty() {
            diff.changes.extend(supply_change(token, "total of the allocations", was, is, settings));
        }
    }
    diff
}

/// The change of a token's maximum supply, where both are known and differ. Of the two places that tell it (token list and allocation
/// table) the caller compares one with itself, not with the other.
#[must_use]
pub fn max_supply_change(token: &TokenId, before: Option<f64>, after: Option<f64>, settings: &Settings) -> Option<Change> {
    supply_change(token, "maximum supply", before, after, settings)
}

fn supply_change(token: &TokenId, what: &str, before: Option<f64>, after: Option<f64>, settings: &Settings) -> Option<Change> {
    let (from, to) = (before?, after?);
    if close(from, to, settings.tolerance) {
        return None;
    }
    let mut change = Change::of(ChangeKind::SupplyChanged, Resource::Allocation, token);
    change.from = Some(Fact::Amount(from));
    change.to = Some(Fact::Amount(to));
    change.ratio = (from != 0.0).then(|| to / from);
    let times = change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
    change.summary = format!("{what} changed from {} to {}{times}", format::amount(from), format::amount(to));
    Some(change)
}

fn baseline<T>(shape: &Shape<T>, after: &[T]) -> Vec<Put> {
    let mut keys = Keys::default();
    ordered(shape, after)
        .into_iter()
        .map(|row| Put { key: keys.fresh(&(shape.key)(row)), record: (shape.record)(row), is_new_version: true })
        .collect()
}

/// Rows in an order that does not depend on that of the answer: date, identity, facts.
fn ordered<'a, T>(shape: &Shape<T>, rows: &'a [T]) -> Vec<&'a T> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = serde_json::to_string(&(shape.record)(row)).unwrap_or_default();
            (((shape.date)(row), (shape.identity)(row), text), row)
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The facts of a row: numbers, texts.
struct Facts {
    numbers: Numbers,
    texts: Texts,
}

impl Facts {
    fn of<T>(shape: &Shape<T>, row: &T) -> Self {
        Self { numbers: (shape.numbers)(row), texts: (shape.texts)(row) }
    }

    fn amount(&self) -> Option<f64> {
        self.numbers.first().and_then(|(_, amount)| *amount)
    }

    /// Equal in each number and text, whatever is missing on both sides.
    fn same(&self, other: &Self, tolerance: f64) -> bool {
        self.numbers.len() == other.numbers.len()
            && self.numbers.iter().zip(&other.numbers).all(|(a, b)| {
                a.0 == b.0
                    && match (a.1, b.1) {
                        (Some(a), Some(b)) => close(a, b, tolerance),
                        (None, None) => true,
                        _ => false,
                    }
            })
            && self.texts == other.texts
    }

    /// What differs to tell: what appeared or changed. What is missing now is neither zero nor gone.
    fn differences(&self, after: &Self, tolerance: f64) -> Vec<FieldChange> {
        let number = |value: Option<f64>| value.map_or(Value::Null, Value::from);
        let mut found = Vec::new();
        for (field, to) in &after.numbers {
            let Some(to) = to else { continue };
            let from = self.numbers.iter().find(|(name, _)| name == field).and_then(|(_, from)| *from);
            if from.is_none_or(|from| !close(from, *to, tolerance)) {
                found.push(FieldChange { field: field.clone().into_owned(), from: number(from), to: number(Some(*to)) });
            }
        }
        for ((field, to), (_, from)) in after.texts.iter().zip(&self.texts) {
            if to.is_some() && from != to {
                found.push(FieldChange {
                    field: (*field).to_owned(),
                    from: from.clone().map_or(Value::Null, Value::from),
                    to: to.clone().map_or(Value::Null, Value::from),
                });
            }
        }
        found
    }
}

struct Paired {
    old: usize,
    new: usize,
    fields: Vec<FieldChange>,
}

#[expect(clippy::too_many_lines, reason = "one path from rows to a diff, in the order in which it happens")]
fn diff_rows<T>(
    shape: &Shape<T>,
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[T],
    settings: &Settings,
    window: &Window,
) -> Diff {
    let absence = Absence::new(missing, settings);
    let known: Vec<(&RecordKey, &T, &Record)> = before
        .iter()
        .filter_map(|tracked| Some((&tracked.key, (shape.row)(&tracked.record)?, &tracked.record)))
        .filter(|(_, row, _)| window.contains((shape.date)(row)))
        .collect();
    let mut diff = Diff::default();
    if after.is_empty() {
        diff.missing = known.iter().map(|(key, _, _)| ((*key).clone(), absence.count(key))).collect();
        diff.held = !known.is_empty();
        return diff;
    }
    let rows = ordered(shape, after);
    for two in after.windows(2) {
        // Sources list newest first or oldest first; only a mixture is odd, and that is known after the first step.
        if let (Some(a), Some(b), Some(first), Some(last)) = (
            (shape.date)(&two[0]),
            (shape.date)(&two[1]),
            after.first().and_then(|row| (shape.date)(row)),
            after.last().and_then(|row| (shape.date)(row)),
        ) && ((first <= last && a > b) || (first > last && a < b))
        {
            diff.odd.reordered += 1;
        }
    }
    let old_facts: Vec<Facts> = known.iter().map(|(_, row, _)| Facts::of(shape, row)).collect();
    let new_facts: Vec<Facts> = rows.iter().map(|row| Facts::of(shape, row)).collect();
    let (mut new_of_old, mut old_of_new) = (vec![None; known.len()], vec![None; rows.len()]);

    // Rows of one identity: equal ones first, then in order.
    let mut groups: BTreeMap<(Option<Timestamp>, Identity<'_>), Group> = BTreeMap::new();
    for (o, (_, row, _)) in known.iter().enumerate() {
        groups.entry(((shape.date)(row), (shape.identity)(row))).or_default().0.push(o);
    }
    for (n, row) in rows.iter().enumerate() {
        groups.entry(((shape.date)(row), (shape.identity)(row))).or_default().1.push(n);
    }
    for (mut olds, mut news) in groups.into_values() {
        let amount = |facts: &Facts| facts.amount().unwrap_or(f64::NEG_INFINITY);
        olds.sort_by(|a, b| amount(&old_facts[*a]).total_cmp(&amount(&old_facts[*b])).then(known[*a].0.cmp(known[*b].0)));
        news.sort_by(|a, b| amount(&new_facts[*a]).total_cmp(&amount(&new_facts[*b])).then(a.cmp(b)));
        let mut free: Vec<usize> = news;
        olds.retain(|o| {
            // Sorted by amount, so an equal row is among the first whose amount is not below.
            let from = free.partition_point(|n| {
                let (new, old) = (amount(&new_facts[*n]), amount(&old_facts[*o]));
                new < old && !close(new, old, settings.tolerance)
            });
            let near = free.iter().skip(from).take_while(|n| {
                let (new, old) = (amount(&new_facts[**n]), amount(&old_facts[*o]));
                new <= old || close(new, old, settings.tolerance)
            });
            let Some(k) = near.take(64).position(|n| old_facts[*o].same(&new_facts[*n], settings.tolerance)).map(|k| k + from)
            else {
                return true;
            };
            let n = free.remove(k);
            new_of_old[*o] = Some(n);
            old_of_new[n] = Some(*o);
            false
        });
        for (o, n) in olds.into_iter().zip(free) {
            new_of_old[o] = Some(n);
            old_of_new[n] = Some(o);
        }
    }
    pair_restated(shape, &known, &rows, &old_facts, &new_facts, &mut new_of_old, &mut old_of_new, settings);

    let vanished: Vec<usize> = (0..known.len()).filter(|o| new_of_old[*o].is_none()).collect();
    let doubted = vanished.iter().any(|o| absence.count(known[*o].0) <= absence.needed);
    if vanished.len() >= HOLD_AT_LEAST && vanished.len() * 2 > known.len() && doubted {
        diff.missing = vanished.iter().map(|o| (known[*o].0.clone(), absence.count(known[*o].0))).collect();
        diff.held = true;
        return diff;
    }

    let mut pairs: Vec<Paired> = (0..known.len())
        .filter_map(|old| {
            let new = new_of_old[old]?;
            Some(Paired { old, new, fields: old_facts[old].differences(&new_facts[new], settings.tolerance) })
        })
        .collect();
    for field in shape.drifting {
        let alone = |pair: &&Paired| {
            pair.fields.len() == 1 && pair.fields.iter().all(|change| change.field == *field && !change.from.is_null())
        };
        let drifted = pairs.iter().filter(alone).count();
        let valued =
            old_facts.iter().filter(|facts| facts.numbers.iter().any(|(name, value)| name == field && value.is_some())).count();
        if drifted >= DRIFT_AT_LEAST && drifted * 2 > valued {
            for pair in &mut pairs {
                pair.fields.retain(|change| change.field != *field);
            }
        }
    }
    let mut keys = Keys::taken(before.iter().filter(|t| t.record.resource() == shape.resource).map(|t| &t.key));
    let mut new_keys: Vec<Option<RecordKey>> = vec![None; rows.len()];
    for pair in &mut pairs {
        let (key, old_row, old_record) = known[pair.old];
        new_keys[pair.new] = Some(key.clone());
        let record = (shape.record)(rows[pair.new]);
        // Another date or name is a fact that identifies, but a fact.
        let (was, is) = ((shape.date)(old_row), (shape.date)(rows[pair.new]));
        if was != is {
            let date = |at: Option<Timestamp>| {
                at.map_or(Value::Null, |at| at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true).into())
            };
            pair.fields.insert(0, FieldChange { field: date_field(shape.resource).to_owned(), from: date(was), to: date(is) });
        }
        for ((field, a), b) in
            identity_fields(shape.resource).iter().zip((shape.identity)(old_row)).zip((shape.identity)(rows[pair.new]))
        {
            if a != b {
                pair.fields.push(FieldChange {
                    field: (*field).to_owned(),
                    from: a.into_owned().into(),
                    to: b.into_owned().into(),
                });
            }
        }
        if record != *old_record {
            let is_new_version = !pair.fields.is_empty() || !old_facts[pair.old].same(&new_facts[pair.new], settings.tolerance);
            diff.put.push(Put { key: key.clone(), record, is_new_version });
        }
    }
    let come: Vec<usize> = (0..rows.len()).filter(|n| old_of_new[*n].is_none()).collect();
    for n in &come {
        let key = keys.fresh(&(shape.key)(rows[*n]));
        new_keys[*n] = Some(key.clone());
        diff.put.push(Put { key, record: (shape.record)(rows[*n]), is_new_version: true });
    }
    let mut gone = Vec::new();
    for o in vanished {
        let key = known[o].0;
        if absence.is_proven(key) {
            diff.removed.push(key.clone());
            gone.push(o);
        } else {
            diff.missing.push((key.clone(), absence.count(key)));
        }
    }
    let in_window: HashSet<&RecordKey> = known.iter().map(|(key, _, _)| *key).collect();
    diff.missing
        .extend(missing.iter().filter(|(key, _)| before.iter().any(|t| t.key == *key) && !in_window.contains(key)).cloned());

    pairs.retain(|pair| !pair.fields.is_empty());
    tell_revised(shape, token, &known, &rows, &new_keys, pairs, &mut diff.changes);
    let came: Vec<Row> = come
        .iter()
        .filter_map(|n| {
            let key = new_keys[*n].clone()?;
            Some(Row { key, record: (shape.record)(rows[*n]), amount: new_facts[*n].amount(), date: (shape.date)(rows[*n]) })
        })
        .collect();
    tell_come_or_gone(shape, ChangeKind::Added, token, came, &mut diff.changes);
    let gone = gone
        .into_iter()
        .map(|o| Row {
            key: known[o].0.clone(),
            record: known[o].2.clone(),
            amount: old_facts[o].amount(),
            date: (shape.date)(known[o].1),
        })
        .collect();
    tell_come_or_gone(shape, ChangeKind::Removed, token, gone, &mut diff.changes);
    diff
}

/// Pairs what is left on both sides and agrees in all but its date, or in all but its label: the same row, restated. Only where no
/// other row could be meant.
#[expect(clippy::too_many_arguments, reason = "a step of the path above, on its state")]
fn pair_restated<T>(
    shape: &Shape<T>,
    known: &[(&RecordKey, &T, &Record)],
    rows: &[&T],
    old_facts: &[Facts],
    new_facts: &[Facts],
    new_of_old: &mut [Option<usize>],
    old_of_new: &mut [Option<usize>],
    settings: &Settings,
) {
    // Emissions are their date: another day is another record.
    if shape.resource == Resource::Emission {
        return;
    }
    // By date first (the label differs), then by label (the date differs). Allocations have no date: their amount must agree.
    for by_date in [true, false] {
        let mut places: HashMap<String, Group> = HashMap::new();
        let place = |row: &T| {
            if by_date { format!("{:?}", (shape.date)(row)) } else { format!("{:?}", (shape.identity)(row)) }
        };
        for o in (0..known.len()).filter(|o| new_of_old[*o].is_none()) {
            places.entry(place(known[o].1)).or_default().0.push(o);
        }
        for n in (0..rows.len()).filter(|n| old_of_new[*n].is_none()) {
            places.entry(place(rows[n])).or_default().1.push(n);
        }
        for (olds, news) in places.into_values() {
            for o in &olds {
                let likely = |n: &&usize| match (old_facts[*o].amount(), new_facts[**n].amount()) {
                    (Some(a), Some(b)) => a != 0.0 && close(a, b, settings.tolerance),
                    _ => false,
                };
                let candidates: Vec<usize> = news.iter().filter(likely).copied().collect();
                let [n] = candidates[..] else { continue };
                let rivals = olds.iter().filter(|other| {
                    matches!((old_facts[**other].amount(), new_facts[n].amount()), (Some(a), Some(b)) if close(a, b, settings.tolerance))
                });
                if rivals.count() == 1 && old_of_new[n].is_none() {
                    new_of_old[*o] = Some(n);
                    old_of_new[n] = Some(*o);
                }
            }
        }
    }
}

fn date_field(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "unlockDate",
        Resource::Burn => "burnDate",
        Resource::Buyback => "buybackDate",
        Resource::Emission | Resource::Allocation => "startDate",
        Resource::Funding => "fundingDate",
    }
}

/// Fields of [`Shape::identity`], in its order.
fn identity_fields(resource: Resource) -> &'static [&'static str] {
    match resource {
        Resource::Burn => &["burnEventLabel", "burnType"],
        Resource::Buyback => &["buybackEventLabel", "buybackType", "targetAddress", "buyerAddress"],
        Resource::Allocation => &["allocationName"],
        Resource::Funding => &["investorId", "tokenId", "roundName"],
        Resource::Unlock | Resource::Emission => &[],
    }
}

/// The kind of a change of one field.
fn kind_of(resource: Resource, field: &str) -> ChangeKind {
    match (resource, field) {
        (Resource::Allocation, "allocationAmount") => ChangeKind::Resized,
        (Resource::Allocation, "allocationName" | "standardAllocationName") => ChangeKind::Renamed,
        _ => ChangeKind::Revised,
    }
}

fn fact(value: &Value) -> Option<Fact> {
    match value {
        Value::Number(number) => number.as_f64().map(Fact::Amount),
        Value::String(text) => Some(crate::wire::parse_timestamp(text).map_or_else(|| Fact::Text(text.clone()), Fact::Time)),
        _ => None,
    }
}

fn tell_revised<T>(
    shape: &Shape<T>,
    token: &TokenId,
    known: &[(&RecordKey, &T, &Record)],
    rows: &[&T],
    new_keys: &[Option<RecordKey>],
    pairs: Vec<Paired>,
    changes: &mut Vec<Change>,
) {
    let mut by_kind: BTreeMap<ChangeKind, Vec<Paired>> = BTreeMap::new();
    for pair in pairs {
        let mut split: BTreeMap<ChangeKind, Vec<FieldChange>> = BTreeMap::new();
        for field in pair.fields {
            split.entry(kind_of(shape.resource, &field.field)).or_default().push(field);
        }
        for (kind, fields) in split {
            by_kind.entry(kind).or_default().push(Paired { old: pair.old, new: pair.new, fields });
        }
    }
    for (kind, pairs) in by_kind {
        if pairs.len() <= shape.alone {
            changes.extend(pairs.into_iter().map(|pair| {
                let mut change = revised(shape, kind, token, std::slice::from_ref(&pair), known, rows);
                change.key.clone_from(&new_keys[pair.new]);
                change
            }));
        } else {
            changes.push(revised(shape, kind, token, &pairs, known, rows));
        }
    }
}

fn revised<T>(
    shape: &Shape<T>,
    kind: ChangeKind,
    token: &TokenId,
    pairs: &[Paired],
    known: &[(&RecordKey, &T, &Record)],
    rows: &[&T],
) -> Change {
    let mut change = Change::of(kind, shape.resource, token);
    change.count = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
    let Some(first) = pairs.first() else { return change };
    change.old = Some(known[first.old].2.clone());
    change.new = Some((shape.record)(rows[first.new]));
    // The amount of the whole, where amounts changed; else the first fact that did.
    let amount_field = (shape.numbers)(rows[first.new]).first().map(|(field, _)| field.clone().into_owned()).unwrap_or_default();
    let mut sums: Option<(f64, f64)> = None;
    for pair in pairs {
        for field in &pair.fields {
            if field.field == amount_field
                && let (Some(from), Some(to)) = (field.from.as_f64(), field.to.as_f64())
            {
                let sum = sums.get_or_insert((0.0, 0.0));
                sum.0 += from;
                sum.1 += to;
            }
        }
    }
    let lead = first.fields.first();
    if let Some((from, to)) = sums {
        change.from = Some(Fact::Amount(from));
        change.to = Some(Fact::Amount(to));
        change.ratio = (from != 0.0).then(|| to / from);
    } else if let Some(lead) = lead {
        change.from = fact(&lead.from);
        change.to = fact(&lead.to);
        if let (Some(Fact::Amount(from)), Some(Fact::Amount(to))) = (&change.from, &change.to) {
            change.ratio = (*from != 0.0).then(|| to / from);
        }
        if let (Some(Fact::Time(from)), Some(Fact::Time(to))) = (&change.from, &change.to) {
            change.shift_days = Some(crate::supply::days(*to - *from));
        }
    }
    change.fields = pairs.iter().flat_map(|pair| pair.fields.iter().cloned()).take(MAX_LISTED).collect();
    if shape.resource == Resource::Allocation {
        change.allocations = pairs
            .iter()
            .take(MAX_LISTED)
            .filter_map(|pair| {
                let lead = pair.fields.first()?;
                let (from, to) = (fact(&lead.from), fact(&lead.to));
                let ratio = match (&from, &to) {
                    (Some(Fact::Amount(from)), Some(Fact::Amount(to))) if *from != 0.0 => Some(to / from),
                    _ => None,
                };
                Some(AllocationChange { name: (shape.key)(rows[pair.new]), from, to, shift_days: None, ratio, count: 1 })
            })
            .collect();
    }
    let subject = describe(shape, pairs.len(), (shape.date)(rows[first.new]), &(shape.key)(rows[first.new]));
    let what = match (sums, lead) {
        (Some((from, to)), _) => {
            let times = change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
            let verb = if kind == ChangeKind::Resized { "resized" } else { "restated" };
            format!("{verb} from {} to {}{times}", format::amount(from), format::amount(to))
        }
        (None, Some(lead)) if lead.field == "allocationName" => format!("renamed from {}", shown(&lead.from)),
        (None, Some(lead)) if lead.from.is_null() => format!("{} is now {}", lead.field, shown(&lead.to)),
        (None, Some(lead)) => format!("{} changed from {} to {}", lead.field, shown(&lead.from), shown(&lead.to)),
        (None, None) => "revised".to_owned(),
    };
    change.summary = format!("{subject} {what}");
    change
}

/// The subject of a sentence about rows.
fn describe<T>(shape: &Shape<T>, count: usize, date: Option<Timestamp>, key: &str) -> String {
    match (count, date) {
        (1, Some(at)) => format!("{} of {}", shape.noun, format::day(at)),
        (1, None) => format!("{} {}", shape.noun, format::name(key)),
        (count, Some(at)) => format!("{} from {} on", format::count(count, shape.noun), format::day(at)),
        (count, None) => format!("{}, {} among them,", format::count(count, shape.noun), format::name(key)),
    }
}

/// A row that came or is gone.
struct Row {
    key: RecordKey,
    record: Record,
    amount: Option<f64>,
    date: Option<Timestamp>,
}

fn tell_come_or_gone<T>(shape: &Shape<T>, kind: ChangeKind, token: &TokenId, rows: Vec<Row>, changes: &mut Vec<Change>) {
    let size = if rows.len() <= shape.alone { 1 } else { rows.len() };
    for group in rows.chunks(size.max(1)) {
        let Some(first) = group.first() else { continue };
        let mut change = Change::of(kind, shape.resource, token);
        change.count = u32::try_from(group.len()).unwrap_or(u32::MAX);
        let known = group.iter().any(|row| row.amount.is_some());
        let total: f64 = group.iter().filter_map(|row| row.amount).sum();
        let fact = known.then_some(Fact::Amount(total));
        let subject = describe(shape, group.len(), first.date, first.key.as_str());
        let amount = if known { format!(", {}", format::amount(total)) } else { String::new() };
        change.summary = format!("{}: {}{amount}", kind.as_str(), subject.trim_end_matches(','));
        if group.len() == 1 {
            change.key = Some(first.key.clone());
        }
        if kind == ChangeKind::Added {
            change.to = fact;
            change.new = Some(first.record.clone());
        } else {
            change.from = fact;
            change.old = Some(first.record.clone());
        }
        if shape.resource == Resource::Allocation {
            change.allocations = group
                .iter()
                .take(MAX_LISTED)
                .map(|row| {
                    let fact = row.amount.map(Fact::Amount);
                    let name = row.key.as_str().to_owned();
                    let (from, to) = if kind == ChangeKind::Added { (None, fact) } else { (fact, None) };
                    AllocationChange { name, from, to, count: 1, ..AllocationChange::default() }
                })
                .collect();
        }
        changes.push(change);
    }
}
