//! The dated entries of one token (unlocks, emission, burns, buybacks), and the next time at which a sum over them changes.

use chrono::TimeDelta;

use model::{
    CliffPiece, Endpoint, Inclusion, Interval, KnownSupply, LinearPiece, LinearRate, LinearSupply, Record, ReferencePrice,
    Resource, SumWindow, Timestamp, TokenSnapshot, Tracked,
};

use super::known::is_known;

use super::reads::AggregateReads;
use super::window::{Flow, LatestEntry, PartSum, Sum, Window};

/// The interval at which a sum is computed again while linear unlocks enter or leave its window, so that it changes all the time.
const LINEAR_STEP: TimeDelta = TimeDelta::hours(1);

/// The tolerance around an instant at which a condition may change: fractions of days are rounded, and `daysSince > 35` changes just
/// after `daysSince >= 35`.
pub const EDGE_SLACK: TimeDelta = TimeDelta::seconds(1);

/// The dated entries of one token. A flow is `None` if its feed was never read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowEntries {
    flows: [Option<Vec<FlowEntry>>; 4],
    /// Coming and past linear unlocks.
    linear: Vec<LinearPiece>,
    /// Whether only cliff unlocks are known.
    is_cliffs_only: bool,
    /// The instant until which linear unlocks are known completely. `None` if they are known for the whole schedule.
    linear_until: Option<Timestamp>,
    price: Option<ReferencePrice>,
}

impl FlowEntries {
    /// Builds the entries of `records`. `is_known` returns whether a complete response for a resource was read, or the source
    /// reports that there is nothing to read. Flows of other resources stay unknown. Linear unlocks are valued at the latest price of
    /// the records, unless [`Self::with_supply`] gives one.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Tracked>, is_known: impl Fn(Resource) -> bool) -> Self {
        let flows = Flow::ALL.map(|flow| is_known(flow.resource()).then(Vec::new));
        let mut entries = Self { flows, ..Self::default() };
        for tracked in records {
            entries.add(&tracked.record);
        }
        if let Some(emitted) = entries.flow_mut(Flow::Emitted) {
            remove_redundant_weeks(emitted);
        }
        for entries in entries.flows.iter_mut().flatten() {
            entries.sort_by_key(|entry| entry.start);
        }
        entries
    }

    /// Builds the entries of a token with all its records.
    #[must_use]
    pub fn of_snapshot(snapshot: &TokenSnapshot) -> Self {
        let TokenSnapshot { token, feeds, records, .. } = snapshot;
        let linear = LinearSupply::of(snapshot.feed(Endpoint::UnlockEvents), snapshot.schedule_header());
        Self::of(records, |resource| is_known(resource, feeds, &token.item)).with_supply(&linear, None)
    }

    /// Adds what is known about linear unlocks besides the records. `price` is the latest of the whole schedule.
    #[must_use]
    pub fn with_supply(mut self, linear: &LinearSupply, price: Option<ReferencePrice>) -> Self {
        self.is_cliffs_only = linear.coverage.known == KnownSupply::Cliffs;
        self.linear_until = linear.coverage.linear_until;
        self.linear.extend(&linear.emission);
        self.price = price.or(self.price);
        self
    }

    fn flow(&self, flow: Flow) -> Option<&[FlowEntry]> {
        self.flows.get(flow as usize)?.as_deref()
    }

    fn flow_mut(&mut self, flow: Flow) -> Option<&mut Vec<FlowEntry>> {
        self.flows.get_mut(flow as usize)?.as_mut()
    }

    fn add(&mut self, record: &Record) {
        let once = |interval: Interval, amount, value| FlowEntry {
            start: interval.start,
            end: interval.end,
            nominal: interval.start,
            kind: EntryKind::Happened,
            amount,
            value,
        };
        // A record without a date belongs to no window.
        let Some(interval) = record.interval() else { return };
        match record {
            Record::Unlock(event) => {
                let Some(ahead) = self.flow_mut(Flow::Ahead) else { return };
                let nominal = event.unlock_date.copied().unwrap_or(interval.start);
                match CliffPiece::of(event) {
                    Some(CliffPiece { amount, value, .. }) => {
                        ahead.push(FlowEntry { nominal, kind: EntryKind::Cliff, ..once(interval, amount, value) });
                    }
                    None => {
                        ahead.push(FlowEntry { nominal, kind: EntryKind::LinearStart, ..once(interval, Some(0.0), Some(0.0)) });
                    }
                }
                self.linear.extend(LinearPiece::of(event));
                let latest = [self.price, ReferencePrice::latest([&**event])];
                self.price = latest.into_iter().flatten().max_by_key(|price| price.at);
            }
            Record::Burn(burn) => {
                let amount = burn.amount.copied();
                let priced = || Some(amount? * burn.price_per_token.copied()?);
                let value = burn.value.copied().or_else(priced);
                if let Some(burned) = self.flow_mut(Flow::Burned) {
                    burned.push(once(interval, amount, value));
                }
            }
            Record::Buyback(buyback) => {
                if let Some(bought) = self.flow_mut(Flow::BoughtBack) {
                    bought.push(once(interval, buyback.token_amount.copied(), buyback.value.copied()));
                }
            }
            Record::Emission(emission) => {
                let amount = emission.unlock_amount.copied();
                let priced = || Some(amount? * emission.reference_price.copied()?);
                let value = emission.unlock_value.copied().or_else(priced);
                if let Some(emitted) = self.flow_mut(Flow::Emitted) {
                    emitted.push(once(interval, amount, value));
                }
            }
            Record::Allocation(_) | Record::Funding(_) => {}
        }
    }

    /// Returns whether each flow is known, in the order of [`Flow::ALL`].
    pub fn known(&self) -> [bool; 4] {
        Flow::ALL.map(|flow| self.flow(flow).is_some())
    }

    pub fn sum(&self, window: Window, now: Timestamp) -> Sum {
        let Some(entries) = self.flow(window.flow) else { return Sum::default() };
        if window.flow == Flow::Ahead {
            return self.sum_ahead(entries, SumWindow { at: now, until: later(now, window.span) });
        }
        let from = earlier(now, window.span);
        // Entries are sorted by start: skip those before the window, and stop at the first one after it.
        let first = entries.partition_point(|entry| entry.start <= from);
        let happened = entries.iter().skip(first).take_while(|entry| entry.start <= now);
        happened.fold(Sum::ZERO, |sum, entry| {
            sum.plus(Sum { amount: entry.amount, value: entry.value, count: Some(1.0), ..Sum::ZERO })
        })
    }

    fn sum_ahead(&self, entries: &[FlowEntry], window: SumWindow) -> Sum {
        let mut sum = Sum::ZERO;
        for entry in entries.iter().take_while(|entry| entry.start <= window.until) {
            let cliff = PartSum { amount: entry.amount, value: entry.value, count: Some(1.0) };
            let part = match (entry.inclusion(window), entry.kind) {
                (Some(Inclusion::Counted), EntryKind::LinearStart) => Sum { count: Some(1.0), ..Sum::ZERO },
                (Some(Inclusion::Counted), _) => Sum { cliff, ..Sum::ZERO }.with_part(cliff),
                (Some(Inclusion::Inexact), EntryKind::Cliff) => Sum { possible: entry.value, ..Sum::ZERO },
                _ => continue,
            };
            sum = sum.plus(part);
        }
        let price = self.price.map(|price| price.usd);
        for piece in &self.linear {
            let Some(share) = piece.share_in(window) else { continue };
            let amount = piece.amount.map(|amount| amount * share);
            let value = amount.zip(price).map(|(amount, price)| amount * price);
            let linear = PartSum { amount, value, count: Some(0.0) };
            sum = sum.plus(Sum { linear, ..Sum::ZERO }.with_part(linear));
        }
        if self.is_cliffs_only { Sum { linear: PartSum::default(), ..sum } } else { sum }
    }

    /// Returns the linear release at an instant. `None` if linear unlocks are not known, or if the amount of one that runs is unknown.
    /// A change after the end of the known linear supply is left out.
    pub fn linear_rate(&self, now: Timestamp) -> Option<LinearRate> {
        let is_unsized = |piece: &LinearPiece| piece.amount.is_none() && piece.runs_at(now.timestamp_millis());
        if self.flow(Flow::Ahead).is_none() || self.is_cliffs_only || self.linear.iter().any(is_unsized) {
            return None;
        }
        Some(LinearRate::at(&self.linear, now, self.linear_until))
    }

    /// Returns the instant until which linear unlocks are known completely. `None` if they are known for the whole schedule.
    pub fn linear_until(&self) -> Option<Timestamp> {
        self.linear_until
    }

    pub fn price(&self) -> Option<ReferencePrice> {
        self.price
    }

    /// Returns the latest entry of a flow that starts at or before `now`.
    pub fn last(&self, flow: Flow, now: Timestamp) -> Option<LatestEntry> {
        let entries = self.flow(flow)?;
        let entry = entries.get(entries.partition_point(|entry| entry.start <= now).checked_sub(1)?)?;
        Some(LatestEntry { at: entry.start, amount: entry.amount, value: entry.value })
    }

    /// Returns the next instant after `now` at which a value that rules read changes without new data, or passes a threshold. `None` if
    /// there is no such instant.
    pub fn next_change(&self, reads: &AggregateReads, now: Timestamp) -> Option<Timestamp> {
        let mut next: Option<Timestamp> = None;
        let mut consider = |at: Timestamp| {
            if at > now && next.is_none_or(|next| at < next) {
                next = Some(at);
            }
        };
        // In a window over the past, the first entry is the next to leave, and the first future entry is the next to enter.
        let happened = |flow: Flow, span: TimeDelta, consider: &mut dyn FnMut(Timestamp)| {
            let entries = self.flow(flow).unwrap_or_default();
            for edge in [earlier(now, span), now] {
                if let Some(entry) = entries.get(entries.partition_point(|entry| entry.start <= edge)) {
                    consider(entry.start);
                    consider(later(entry.start, span));
                }
            }
        };
        for window in reads.windows.iter() {
            if window.flow != Flow::Ahead {
                happened(window.flow, window.span, &mut consider);
                continue;
            }
            let far = later(now, window.span);
            for entry in self.flow(window.flow).unwrap_or_default() {
                if entry.end >= now {
                    consider(entry.end);
                    consider(entry.nominal);
                    consider(earlier(entry.nominal, window.span));
                }
                if entry.start > far {
                    // All further entries enter and leave the window later than this one.
                    consider(earlier(entry.start, window.span));
                    break;
                }
            }
            if self.flow(window.flow).is_some() {
                self.next_linear_change(now, far).into_iter().for_each(&mut consider);
            }
        }
        for (flow, span) in &reads.since {
            happened(*flow, *span, &mut consider);
            // `daysSince > 35` turns just after `daysSince >= 35` does.
            happened(*flow, span.checked_add(&EDGE_SLACK).unwrap_or(*span), &mut consider);
        }
        if reads.has_supply {
            self.supply_changes(reads, now, &mut consider);
        }
        next
    }

    /// Passes the instants at which the daily release changes, and at which its next change or the age of the price passes a threshold.
    fn supply_changes(&self, reads: &AggregateReads, now: Timestamp, consider: &mut dyn FnMut(Timestamp)) {
        let edges = self.linear.iter().flat_map(|piece| [piece.starts_at, piece.ends_at]);
        let next_edge = edges.filter(|edge| *edge > now.timestamp_millis()).min().and_then(Timestamp::from_timestamp_millis);
        next_edge.into_iter().for_each(&mut *consider);
        if let Some(at) = self.linear_rate(now).and_then(|rate| rate.changes_at) {
            // `<` changes just after `<=`.
            for near in reads.rate_leads.iter().map(|lead| earlier(at, *lead)) {
                consider(near);
                consider(later(near, EDGE_SLACK));
            }
        }
        if let Some(at) = self.price.and_then(|price| price.at) {
            for old in reads.price_ages.iter().map(|age| later(at, *age)) {
                consider(old);
                consider(later(old, EDGE_SLACK));
            }
        }
    }

    /// Returns the next instant after `now` at which the linear part of a sum from `now` to `far` changes by a step that matters.
    fn next_linear_change(&self, now: Timestamp, far: Timestamp) -> Option<Timestamp> {
        let rate = |at: Timestamp| {
            let at = at.timestamp_millis();
            self.linear.iter().filter(|piece| piece.runs_at(at)).filter_map(LinearPiece::per_day).sum::<f64>()
        };
        let (leaving, entering) = (rate(now), rate(far));
        // While as much enters the window as leaves it, the sum stays the same.
        let is_steady = (leaving - entering).abs() <= 1e-9 * leaving.max(entering);
        let step = (!is_steady).then(|| later(now, LINEAR_STEP));
        let edges = self.linear.iter().flat_map(|piece| [piece.starts_at, piece.ends_at]);
        let after = |edge: i64, at: Timestamp| {
            let distance = edge.checked_sub(at.timestamp_millis()).filter(|distance| *distance > 0)?;
            Some(later(now, TimeDelta::try_milliseconds(distance)?))
        };
        edges.flat_map(|edge| [after(edge, now), after(edge, far)]).flatten().chain(step).min()
    }
}

/// The kind of fact that an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Cliff,
    /// The start of linear unlocks without a cliff unlock: an event without an amount.
    LinearStart,
    /// A burn, a buyback, or the emission of a day or a week.
    Happened,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct FlowEntry {
    /// The first instant of the entry's date.
    start: Timestamp,
    /// The first instant after the entry's date. From then on the entry is in the past.
    end: Timestamp,
    /// The source's date, by which sums count an unlock.
    nominal: Timestamp,
    kind: EntryKind,
    /// Tokens.
    amount: Option<f64>,
    /// USD.
    value: Option<f64>,
}

impl FlowEntry {
    fn inclusion(&self, window: SumWindow) -> Option<Inclusion> {
        window.inclusion(self.start.timestamp_millis(), self.end.timestamp_millis(), self.nominal.timestamp_millis())
    }
}

/// Removes weekly emission if there is daily emission, because both report the same tokens.
fn remove_redundant_weeks(entries: &mut Vec<FlowEntry>) {
    let is_day = |entry: &FlowEntry| entry.end - entry.start <= TimeDelta::hours(36);
    if entries.iter().any(is_day) {
        entries.retain(is_day);
    }
}

pub(super) fn later(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_add_signed(by).unwrap_or(Timestamp::MAX_UTC)
}

pub(super) fn earlier(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_sub_signed(by).unwrap_or(Timestamp::MIN_UTC)
}
