//! The identity of the rows of each resource, and the facts that count as changes.

use std::borrow::Cow;

use crate::diff::{
    date_key,
    tolerances::{TOTAL, close},
};
use model::{
    supply::{Record, Resource, Timestamp},
    wire::{Allocation, Burn, Buyback, Emission, EmissionAllocation, FundingRound, Maybe, NamedOr, Text},
};

/// The maximum number of burns, buybacks, or rounds of one response that are separate changes. More are one change.
const MAX_SEPARATE: usize = 5;

pub(super) type NumberFields = Vec<(Cow<'static, str>, Option<f64>)>;
pub(super) type TextFields = Vec<(&'static str, Option<String>)>;
/// The texts that identify a row beside its date.
pub(super) type RowIdentity<'a> = Vec<Cow<'a, str>>;

/// The identity and the facts of the rows of one resource.
pub(super) struct RecordShape<T> {
    pub(super) resource: Resource,
    /// The noun for one row in a sentence.
    pub(super) noun: &'static str,
    /// The maximum number of rows that are separate changes. More are one change.
    pub(super) max_separate: usize,
    pub(super) date: fn(&T) -> Option<Timestamp>,
    /// The field of `date`.
    pub(super) date_field: &'static str,
    /// The texts that identify a row beside its date.
    pub(super) identity: fn(&T) -> RowIdentity<'_>,
    /// The field names of `identity`, in the same order. A change of one is a fact of the row.
    pub(super) identity_fields: &'static [&'static str],
    /// The key of a row that is alone on its date.
    pub(super) key: fn(&T) -> String,
    /// The numeric facts. The first is the amount of the row.
    pub(super) numbers: fn(&T) -> NumberFields,
    /// The numeric facts that drift with a price.
    pub(super) drifting: &'static [&'static str],
    /// The text facts that are not part of the identity.
    pub(super) texts: fn(&T) -> TextFields,
    /// Fills the gaps of a row with the known facts.
    pub(super) fill: fn(&mut T, &T),
    pub(super) record: fn(&T) -> Record,
    pub(super) row: fn(&Record) -> Option<&T>,
}

fn text(field: &Maybe<Text>) -> Cow<'_, str> {
    field.as_str().unwrap_or_default().into()
}

fn owned(field: &Maybe<Text>) -> Option<String> {
    field.as_str().map(str::to_owned)
}

/// Returns whether an amount is given and differs from the known one.
fn is_other(amount: &Maybe<f64>, known: &Maybe<f64>) -> bool {
    amount.get().is_some() && amount.copied() != known.copied()
}

fn joined(list: &Maybe<Vec<String>>) -> Option<String> {
    let mut items = list.get()?.clone();
    items.sort_unstable();
    Some(items.join(", "))
}

pub(super) const BURN: RecordShape<Burn> = RecordShape {
    resource: Resource::Burn,
    noun: "burn",
    max_separate: MAX_SEPARATE,
    date: |burn| burn.burn_date.copied(),
    date_field: "burnDate",
    identity: |burn| vec![text(&burn.burn_event_label), text(&burn.burn_type)],
    identity_fields: &["burnEventLabel", "burnType"],
    key: |burn| date_key(burn.burn_date.copied()),
    numbers: |burn| vec![("amount".into(), burn.amount.copied()), ("value".into(), burn.value.copied())],
    drifting: &["value"],
    texts: |burn| {
        let metadata = burn.metadata.get();
        vec![
            ("metadata.burners", metadata.and_then(|m| joined(&m.burners))),
            ("metadata.burnReasons", metadata.and_then(|m| joined(&m.burn_reasons))),
        ]
    },
    fill: |burn, known| {
        let mut known = known.clone();
        // A value belongs to an amount.
        if is_other(&burn.amount, &known.amount) {
            known.value = Maybe::Absent;
        }
        if let (Some(is), Some(was)) = (burn.metadata.get_mut(), known.metadata.get()) {
            is.fill_gaps(was);
        }
        burn.fill_gaps(&known);
    },
    record: |burn| Record::Burn(Box::new(burn.clone())),
    row: |record| if let Record::Burn(burn) = record { Some(burn) } else { None },
};

pub(super) const BUYBACK: RecordShape<Buyback> = RecordShape {
    resource: Resource::Buyback,
    noun: "buyback",
    max_separate: MAX_SEPARATE,
    date: |buyback| buyback.buyback_date.copied(),
    date_field: "buybackDate",
    identity: |buyback| {
        vec![
            text(&buyback.buyback_event_label),
            text(&buyback.buyback_type),
            text(&buyback.target_address),
            text(&buyback.buyer_address),
        ]
    },
    identity_fields: &["buybackEventLabel", "buybackType", "targetAddress", "buyerAddress"],
    key: |buyback| date_key(buyback.buyback_date.copied()),
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
    fill: |buyback, known| {
        let mut known = known.clone();
        if is_other(&buyback.token_amount, &known.token_amount) {
            known.value = Maybe::Absent;
        }
        buyback.fill_gaps(&known);
    },
    record: |buyback| Record::Buyback(Box::new(buyback.clone())),
    row: |record| {
        if let Record::Buyback(buyback) = record { Some(buyback) } else { None }
    },
};

pub(super) const EMISSION: RecordShape<Emission> = RecordShape {
    resource: Resource::Emission,
    noun: "emission",
    max_separate: 1,
    date: |emission| emission.start_date.copied(),
    date_field: "startDate",
    identity: |emission| vec![span(emission).to_string().into()],
    identity_fields: &[],
    key: |emission| match span(emission) {
        0 | 1 => date_key(emission.start_date.copied()),
        days => format!("{}/{days}d", date_key(emission.start_date.copied())),
    },
    numbers: |emission| {
        let mut numbers = vec![("unlockAmount".into(), emission.unlock_amount.copied())];
        for item in emission.allocations.items().iter().filter_map(NamedOr::item) {
            // Without a name, the recipient is unknown.
            if let Some(name) = item.allocation_name.as_str() {
                numbers.push((format!("allocations.{name}.unlockAmount").into(), item.unlock_amount.copied()));
            }
        }
        numbers
    },
    drifting: &[],
    texts: |emission| vec![("listedMethod", owned(&emission.listed_method))],
    fill: |emission, known| {
        let mut known = known.clone();
        if is_other(&emission.unlock_amount, &known.unlock_amount) {
            known.unlock_value = Maybe::Absent;
        }
        fill_items(emission, &known);
        emission.fill_gaps(&known);
    },
    record: |emission| Record::Emission(Box::new(emission.clone())),
    row: |record| {
        if let Record::Emission(emission) = record { Some(emission) } else { None }
    },
};

/// Fills the gaps of the recipients of an emission. Recipients that it leaves out stay, if the others do not add up to its total.
fn fill_items(emission: &mut Emission, known: &Emission) {
    let total = emission.unlock_amount.copied().or(known.unlock_amount.copied());
    let Some(items) = emission.allocations.get_mut() else { return };
    items.retain(|item| item.item().is_none_or(|item| item.allocation_name.get().is_some()));
    let mut sum = 0.0;
    for item in items.iter_mut().filter_map(NamedOr::item_mut) {
        let was = known.allocations.items().iter().filter_map(NamedOr::item);
        if let Some(was) = was.into_iter().find(|was| was.allocation_name == item.allocation_name) {
            let mut was = was.clone();
            if is_other(&item.unlock_amount, &was.unlock_amount) {
                was.unlock_value = Maybe::Absent;
            }
            item.fill_gaps(&was);
        }
        sum += item.unlock_amount.copied().unwrap_or_default();
    }
    if total.is_none_or(|total| close(total, sum, TOTAL)) {
        return;
    }
    let absent = |was: &&NamedOr<EmissionAllocation>| {
        was.item()
            .is_some_and(|was| items.iter().filter_map(NamedOr::item).all(|item| item.allocation_name != was.allocation_name))
    };
    let absent: Vec<_> = known.allocations.items().iter().filter(absent).cloned().collect();
    items.extend(absent);
}

/// Returns the number of days that an emission covers. A token has daily and weekly emissions.
pub(super) fn span(emission: &Emission) -> i64 {
    match (emission.start_date.copied(), emission.end_date.copied()) {
        (Some(start), Some(end)) => (end - start).num_days(),
        _ => 1,
    }
}

pub(super) const ALLOCATION: RecordShape<Allocation> = RecordShape {
    resource: Resource::Allocation,
    noun: "allocation",
    max_separate: 1,
    date: |_| None,
    date_field: "startDate",
    identity: |allocation| vec![text(&allocation.allocation_name)],
    identity_fields: &["allocationName"],
    key: |allocation| text(&allocation.allocation_name).into_owned(),
    numbers: |allocation| vec![("allocationAmount".into(), allocation.allocation_amount.copied())],
    drifting: &[],
    texts: |allocation| {
        vec![
            ("standardAllocationName", owned(&allocation.standard_allocation_name)),
            ("allocationType", owned(&allocation.allocation_type)),
        ]
    },
    fill: Allocation::fill_gaps,
    record: |allocation| Record::Allocation(Box::new(allocation.clone())),
    row: |record| {
        if let Record::Allocation(allocation) = record { Some(allocation) } else { None }
    },
};

pub(super) const FUNDING: RecordShape<FundingRound> = RecordShape {
    resource: Resource::Funding,
    noun: "funding round",
    max_separate: MAX_SEPARATE,
    date: |round| round.funding_date.copied(),
    date_field: "fundingDate",
    identity: |round| vec![text(&round.investor_id), text(&round.token_id), text(&round.round_name)],
    identity_fields: &["investorId", "tokenId", "roundName"],
    key: |round| {
        format!(
            "{}/{}/{}/{}",
            text(&round.investor_id),
            text(&round.token_id),
            text(&round.round_name),
            date_key(round.funding_date.copied())
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
    fill: FundingRound::fill_gaps,
    record: |round| Record::Funding(Box::new(round.clone())),
    row: |record| {
        if let Record::Funding(round) = record { Some(round) } else { None }
    },
};
