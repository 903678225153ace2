//! Computes daily emission from a schedule, and weekly emission from daily emission. Pure.
//!
//! A cliff unlock counts on its UTC day. A linear unlock is spread evenly over its time.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime};

use crate::payload::totals::add;
use model::Timestamp;
use model::wire::{Emission, EmissionAllocation, Maybe, NamedOr, Text, UnlockEvent};

/// The maximum number of days. Longer schedules are cut.
const MAX_DAYS: usize = 36_525;
const DAY_SECS: i64 = 86_400;

/// The amounts of one day, by index of the allocation.
type RecipientShares = BTreeMap<usize, f64>;

/// Returns every day from the first to the last of the schedule, including days without emission.
pub fn daily(events: &[UnlockEvent]) -> Vec<Emission> {
    let mut recipients: Vec<(Maybe<Text>, Maybe<Text>)> = Vec::new();
    let mut index = |name: &Maybe<Text>, standard: &Maybe<Text>| {
        recipients.iter().position(|known| known.0 == *name && known.1 == *standard).unwrap_or_else(|| {
            recipients.push((name.clone(), standard.clone()));
            recipients.len() - 1
        })
    };
    let mut days: BTreeMap<i64, RecipientShares> = BTreeMap::new();
    let mut price = None;
    for event in events {
        if let Some(cliffs) = event.cliff_unlocks.get() {
            for item in cliffs.allocation_breakdown.items() {
                price = price.or(item.reference_price.copied());
                let at = item.unlock_date.copied().or(event.unlock_date.copied());
                if let (Some(at), Some(amount)) = (at, item.cliff_amount.copied()) {
                    let recipient = index(&item.allocation_name, &item.standard_allocation_name);
                    let day = at.timestamp().div_euclid(DAY_SECS);
                    *days.entry(day).or_default().entry(recipient).or_default() += amount;
                }
            }
        }
        if let Some(linears) = event.linear_unlocks.get() {
            for item in linears.allocation_breakdown.items() {
                price = price.or(item.reference_price.copied());
                if let (Some(begin), Some(end), Some(amount)) =
                    (item.begin_date.copied(), item.end_date.copied(), item.linear_amount.copied())
                {
                    let recipient = index(&item.allocation_name, &item.standard_allocation_name);
                    spread(&mut days, recipient, begin.timestamp(), end.timestamp(), amount);
                }
            }
        }
    }
    let (Some((&first, _)), Some((&last, _))) = (days.first_key_value(), days.last_key_value()) else {
        return Vec::new();
    };
    let of_all = |pick: fn(&UnlockEvent) -> &Maybe<Text>| events.first().map_or(Maybe::Null, |event| pick(event).clone());
    let (name, symbol, method) =
        (of_all(|event| &event.token_name), of_all(|event| &event.token_symbol), of_all(|event| &event.listed_method));
    let mut cumulative = 0.0;
    (first..=last)
        .take(MAX_DAYS)
        .map(|day| {
            let shares = days.get(&day);
            let allocations: Vec<_> = shares
                .into_iter()
                .flatten()
                .filter_map(|(recipient, amount)| {
                    let (name, standard) = recipients.get(*recipient)?;
                    Some(NamedOr::Item(EmissionAllocation {
                        allocation_name: name.clone(),
                        standard_allocation_name: standard.clone(),
                        unlock_amount: (*amount).into(),
                        unlock_value: Maybe::or_null(price.map(|price| amount * price)),
                        ..Default::default()
                    }))
                })
                .collect();
            let amount: f64 = shares.into_iter().flat_map(BTreeMap::values).sum();
            cumulative += amount;
            Emission {
                start_date: midnight(day).into(),
                end_date: midnight(day + 1).into(),
                token_name: name.clone(),
                token_symbol: symbol.clone(),
                listed_method: method.clone(),
                unlock_amount: amount.into(),
                unlock_value: Maybe::or_null(price.map(|price| amount * price)),
                reference_price: Maybe::or_null(price),
                allocations: allocations.into(),
                total_cumulative_unlocked_amount: cumulative.into(),
                ..Default::default()
            }
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a few thousand years fit a double")]
fn spread(days: &mut BTreeMap<i64, RecipientShares>, recipient: usize, begin: i64, end: i64, amount: f64) {
    if end <= begin {
        *days.entry(begin.div_euclid(DAY_SECS)).or_default().entry(recipient).or_default() += amount;
        return;
    }
    let (first, last) = (begin.div_euclid(DAY_SECS), (end - 1).div_euclid(DAY_SECS));
    let whole = (end - begin) as f64;
    for day in (first..=last).take(MAX_DAYS) {
        let from = begin.max(day * DAY_SECS);
        let until = end.min((day + 1) * DAY_SECS);
        *days.entry(day).or_default().entry(recipient).or_default() += amount * ((until - from) as f64 / whole);
    }
}

fn midnight(day: i64) -> Timestamp {
    DateTime::from_timestamp(day.saturating_mul(DAY_SECS), 0).unwrap_or_default()
}

/// Returns the Sunday on or before a day.
pub fn sunday_of(day: NaiveDate) -> NaiveDate {
    day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_sunday()))).unwrap_or(day)
}

/// Sums up days to weeks that begin on Sunday. Version 1 has only names of allocations. `days` must be in chronological order.
pub fn weekly(days: &[Emission], version: u8) -> Vec<Emission> {
    let mut weeks: BTreeMap<NaiveDate, Vec<&Emission>> = BTreeMap::new();
    for day in days {
        if let Some(start) = day.start_date.copied() {
            weeks.entry(sunday_of(start.date_naive())).or_default().push(day);
        }
    }
    weeks.into_iter().filter_map(|(sunday, days)| week(sunday, &days, version)).collect()
}

fn week(sunday: NaiveDate, days: &[&Emission], version: u8) -> Option<Emission> {
    let last = days.last()?;
    let at = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
    let mut parts: Vec<EmissionAllocation> = Vec::new();
    for day in days {
        for allocation in day.allocations.items() {
            let NamedOr::Item(allocation) = allocation else { continue };
            let same = |part: &&mut EmissionAllocation| {
                part.allocation_name == allocation.allocation_name
                    && part.standard_allocation_name == allocation.standard_allocation_name
            };
            match parts.iter_mut().find(same) {
                Some(part) => {
                    part.unlock_amount = add(&part.unlock_amount, &allocation.unlock_amount);
                    part.unlock_value = add(&part.unlock_value, &allocation.unlock_value);
                }
                None => parts.push(EmissionAllocation { committed_claim: Maybe::Absent, ..allocation.clone() }),
            }
        }
    }
    let mut week = Emission {
        start_date: at(sunday).into(),
        end_date: at(sunday.checked_add_days(Days::new(7))?).into(),
        token_name: last.token_name.clone(),
        token_symbol: last.token_symbol.clone(),
        listed_method: last.listed_method.clone(),
        unlock_amount: days.iter().fold(Maybe::Null, |sum, day| add(&sum, &day.unlock_amount)),
        unlock_value: days.iter().fold(Maybe::Null, |sum, day| add(&sum, &day.unlock_value)),
        reference_price: last.reference_price,
        total_cumulative_unlocked_amount: last.total_cumulative_unlocked_amount,
        ..Default::default()
    };
    if version == 1 {
        name_only(&mut week, &parts);
    } else {
        week.allocations = parts.into_iter().map(NamedOr::Item).collect::<Vec<_>>().into();
    }
    Some(week)
}

/// Converts a stored week to the form of a version. Returns `None` if the version needs amounts that the week does not have.
pub fn week_in_version(mut week: Emission, version: u8) -> Option<Emission> {
    let names_only = week.allocations.items().iter().any(|item| matches!(item, NamedOr::Name(_)));
    if version > 1 {
        return (!names_only).then_some(week);
    }
    if !names_only {
        let items = std::mem::take(&mut week.allocations).into_option().unwrap_or_default();
        let parts: Vec<EmissionAllocation> =
            items.into_iter().filter_map(|item| if let NamedOr::Item(item) = item { Some(item) } else { None }).collect();
        name_only(&mut week, &parts);
    }
    Some(week)
}

/// Replaces the allocations of a week by their names and categories, as in version 1.
fn name_only(week: &mut Emission, parts: &[EmissionAllocation]) {
    let mut standards: Vec<String> =
        parts.iter().filter_map(|part| part.standard_allocation_name.as_str().map(str::to_owned)).collect();
    standards.sort_unstable();
    standards.dedup();
    let names = parts.iter().filter_map(|part| part.allocation_name.as_str().map(str::to_owned));
    week.allocations = names.map(NamedOr::Name).collect::<Vec<_>>().into();
    week.standard_allocations = standards.into();
}
