//! Emission, burns, and buybacks of a token per calendar month, and the net of them.

use chrono::{Datelike, Months, NaiveDate};
use serde::Serialize;

use chart::Chart;
use chart::curve::Curve;
use chart::flows::{FlowMonth, draw};
use chart::scale::midnight;
use model::{Endpoint, Record, Resource, Timestamp, TokenSnapshot};

/// The number of months before the current one, and from the current one on.
const PAST: u32 = 12;
const AHEAD: u32 = 12;

#[derive(Debug, Serialize)]
pub(super) struct FlowCard {
    chart: Chart,
    /// Oldest first.
    rows: Vec<FlowRow>,
    has_emission: bool,
    has_burns: bool,
    has_buybacks: bool,
    /// The names of what was never read, which the net leaves out. `None` if all was read.
    unread: Option<String>,
}

/// A month. Amounts are in tokens, and unknown for a coming month, except for the emission.
#[derive(Debug, Serialize)]
struct FlowRow {
    month: String,
    is_current: bool,
    emission: f64,
    burned: Option<f64>,
    bought_back: Option<f64>,
    /// USD.
    bought_back_value: Option<f64>,
    net_of_burns: Option<f64>,
    net: Option<f64>,
}

type PastFlows = Vec<PastFlow>;

/// A burn or a buyback.
#[derive(Clone, Copy, Debug)]
struct PastFlow {
    at: Timestamp,
    /// Tokens.
    amount: Option<f64>,
    /// USD.
    value: Option<f64>,
}

impl FlowCard {
    /// `None` if nothing is released, burned, or bought back in these months.
    pub(super) fn of(snapshot: &TokenSnapshot, curves: &[Curve], now: Timestamp) -> Option<Self> {
        let current = now.date_naive().with_day(1)?;
        let first = current.checked_sub_months(Months::new(PAST))?;
        let (burns, buybacks) =
            (past(snapshot, Resource::Burn, Endpoint::Burn), past(snapshot, Resource::Buyback, Endpoint::Buyback));
        let month = |index: u32| Some(row(first.checked_add_months(Months::new(index))?, curves, (&burns, &buybacks), now));
        let mut all: Vec<(FlowMonth, FlowRow)> = (0..PAST + AHEAD).filter_map(month).collect();
        // Without a schedule ahead, the coming months would be empty.
        while all.last().is_some_and(|(month, _)| month.at > now && month.emission <= 0.0) {
            all.pop();
        }
        let (months, rows): (Vec<FlowMonth>, Vec<FlowRow>) = all.into_iter().unzip();
        let has_emission = months.iter().any(|month| month.emission > 0.0);
        let has = |flows: &Option<PastFlows>| flows.as_ref().is_some_and(|flows| !flows.is_empty());
        let unread: Vec<&str> = [("burns", &burns), ("buybacks", &buybacks)]
            .iter()
            .filter(|(_, flows)| flows.is_none())
            .map(|(name, _)| *name)
            .collect();
        Some(Self {
            chart: draw(&months, now)?,
            rows,
            has_emission,
            has_burns: has(&burns),
            has_buybacks: has(&buybacks),
            unread: (!unread.is_empty()).then(|| unread.join(" and ")),
        })
    }
}

fn row(
    first: NaiveDate,
    curves: &[Curve],
    (burns, buybacks): (&Option<PastFlows>, &Option<PastFlows>),
    now: Timestamp,
) -> (FlowMonth, FlowRow) {
    let at = midnight(first);
    let until = first.checked_add_months(Months::new(1)).map_or(at, midnight);
    let just_before = |at: Timestamp| at - chrono::TimeDelta::milliseconds(1);
    let total = |at: Timestamp| curves.iter().map(|curve| curve.at(at)).sum::<f64>();
    let is_past = at <= now;
    let is_current = is_past && now < until;
    // Of the current month, the emission so far.
    let emission = total(if is_current { now } else { just_before(until) }) - total(just_before(at));
    // An unknown part makes the sum unknown.
    let sum = |flows: &Option<PastFlows>, value: fn(&PastFlow) -> Option<f64>| {
        let flows = flows.as_ref().filter(|_| is_past)?;
        flows.iter().filter(|flow| (at..until).contains(&flow.at)).map(value).sum::<Option<f64>>()
    };
    let (burned, bought_back) = (sum(burns, |flow| flow.amount), sum(buybacks, |flow| flow.amount));
    let net_of_burns = burned.map(|burned| emission - burned);
    let net = (is_past && (burned.is_some() || burns.is_none()) && (bought_back.is_some() || buybacks.is_none()))
        .then(|| emission - burned.unwrap_or_default() - bought_back.unwrap_or_default());
    let row = FlowRow {
        month: first.format("%b %Y").to_string(),
        is_current,
        emission,
        burned,
        bought_back,
        bought_back_value: sum(buybacks, |flow| flow.value),
        net_of_burns,
        net,
    };
    (FlowMonth { at, emission, burned, bought_back, net }, row)
}

/// Returns the burns or buybacks. `None` if the feed was never read and no record is known.
fn past(snapshot: &TokenSnapshot, resource: Resource, endpoint: Endpoint) -> Option<PastFlows> {
    let known = |number: Option<f64>| number.filter(|number| number.is_finite() && *number >= 0.0);
    let flow = |record: &Record| match record {
        Record::Burn(burn) => Some(PastFlow {
            at: burn.burn_date.copied()?,
            amount: known(burn.amount.copied()),
            value: known(burn.value.copied()),
        }),
        Record::Buyback(buyback) => Some(PastFlow {
            at: buyback.buyback_date.copied()?,
            amount: known(buyback.token_amount.copied()),
            value: known(buyback.value.copied()),
        }),
        _ => None,
    };
    let flows: PastFlows = snapshot.records_of(resource).filter_map(|tracked| flow(&tracked.record)).collect();
    let is_read = snapshot.feed(endpoint).is_some_and(|feed| feed.read_at.is_some());
    (is_read || !flows.is_empty()).then_some(flows)
}
