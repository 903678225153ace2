//! The dated entries of one token (unlocks, emission, burns, buybacks), and the next time at which a sum over them changes.

use chrono::TimeDelta;

use model::{Interval, Precision, Record, Resource, Timestamp, Tracked, days, wire};

use super::window::{Flow, LatestEntry, Sum, Window};

/// The maximum number of daily releases of a segment: 100 years. Longer segments are cut.
const MAX_STEPS: i64 = 36_525;

/// The tolerance around an instant at which a condition may change: fractions of days are rounded, and `daysSince > 35` changes just
/// after `daysSince >= 35`.
pub const EDGE_SLACK: TimeDelta = TimeDelta::seconds(1);

const DAY: TimeDelta = TimeDelta::days(1);

/// The dated entries of one token. A flow is `None` if its feed was never read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowEntries {
    flows: [Option<Vec<FlowEntry>>; 4],
}

impl FlowEntries {
    /// Builds the entries of `records`. `is_known` returns whether a complete response for a resource was read, or the source
    /// reports that there is nothing to read. Flows of other resources stay unknown.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Tracked>, is_known: impl Fn(Resource) -> bool) -> Self {
        let mut entries = Self { flows: Flow::ALL.map(|flow| is_known(flow.resource()).then(Vec::new)) };
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

    fn flow(&self, flow: Flow) -> Option<&[FlowEntry]> {
        self.flows.get(flow as usize)?.as_deref()
    }

    fn flow_mut(&mut self, flow: Flow) -> Option<&mut Vec<FlowEntry>> {
        self.flows.get_mut(flow as usize)?.as_mut()
    }

    fn add(&mut self, record: &Record) {
        let nominal = record.unlock().and_then(|event| event.unlock_date.copied());
        let once = |interval: Interval, amount, value| FlowEntry {
            start: interval.start,
            end: interval.end,
            counted: (interval.nominal(nominal).start, interval.nominal(nominal).end),
            steps: 1,
            amount,
            value,
            count: 1.0,
        };
        // A record without a date belongs to no window.
        let Some(interval) = record.interval() else { return };
        match record {
            Record::Unlock(event) => {
                let Some(ahead) = self.flow_mut(Flow::Ahead) else { return };
                let has_cliff = event.cliff_unlocks.get().is_some();
                if has_cliff {
                    ahead.push(once(interval, event.cliff_amount(), event.cliff_value()));
                }
                let first = ahead.len();
                segments(event, ahead);
                if !has_cliff && let Some(entry) = ahead.get(first).copied() {
                    // The start of a segment is an event of its own, with no cliff amount.
                    ahead.push(FlowEntry { count: 1.0, ..once(interval, Some(0.0), Some(0.0)) });
                    debug_assert!(entry.count == 0.0, "segments count by their event");
                }
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
        let (from, to) = match window.flow {
            Flow::Ahead => (now, later(now, window.span)),
            _ => (earlier(now, window.span), now),
        };
        let mut sum = Sum::ZERO;
        // Entries are sorted by start: skip those before the window, and stop at the first one after it.
        let first = if window.flow == Flow::Ahead { 0 } else { entries.partition_point(|entry| entry.start <= from) };
        for entry in entries.iter().skip(first).take_while(|entry| entry.start <= to) {
            if window.flow == Flow::Ahead && entry.steps == 1 && !entry.is_counted(now, to) {
                if now < entry.end {
                    sum = sum.plus(Sum { possible: entry.value, ..Sum::ZERO });
                }
                continue;
            }
            let times = match (window.flow, entry.steps) {
                (Flow::Ahead, 1) => 1.0,
                (_, 1) => f64::from(u8::from(entry.start > from)),
                _ => releases(entry, from, to),
            };
            if times > 0.0 {
                let part = |each: Option<f64>| each.map(|each| each * times);
                let count = if entry.steps == 1 { entry.count } else { 0.0 };
                sum = sum.plus(Sum { amount: part(entry.amount), value: part(entry.value), count: Some(count), ..Sum::ZERO });
            }
        }
        sum
    }

    /// Returns the latest entry of a flow that starts at or before `now`.
    pub fn last(&self, flow: Flow, now: Timestamp) -> Option<LatestEntry> {
        let entries = self.flow(flow)?;
        let entry = entries.get(entries.partition_point(|entry| entry.start <= now).checked_sub(1)?)?;
        Some(LatestEntry { at: entry.start, amount: entry.amount, value: entry.value })
    }

    /// Returns the next instant after `now` at which a sum of `windows` changes without new data, or at which `since` has passed
    /// since the latest burn or buyback. `None` if there is no such instant.
    pub fn next_change(&self, windows: &[Window], since: &[(Flow, TimeDelta)], now: Timestamp) -> Option<Timestamp> {
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
        for window in windows {
            if window.flow != Flow::Ahead {
                happened(window.flow, window.span, &mut consider);
                continue;
            }
            let far = later(now, window.span);
            for entry in self.flow(window.flow).unwrap_or_default() {
                if entry.steps == 1 {
                    if entry.end > now {
                        consider(entry.end);
                        // The nominal date of a month enters and leaves the window on its own.
                        consider(earlier(entry.counted.0, window.span));
                        consider(entry.counted.1);
                    }
                } else {
                    for edge in [now, far] {
                        if let Some(release) = release_after(entry, entry.steps, edge) {
                            consider(later(now, release - edge));
                        }
                    }
                }
                if entry.start > far {
                    // All further entries enter and leave the window later than this one.
                    consider(earlier(entry.start, window.span));
                    break;
                }
            }
        }
        for (flow, span) in since {
            happened(*flow, *span, &mut consider);
            // `daysSince > 35` turns just after `daysSince >= 35` does.
            happened(*flow, span.checked_add(&EDGE_SLACK).unwrap_or(*span), &mut consider);
        }
        next
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct FlowEntry {
    /// The first instant of the entry's date. For daily releases, the time of the first one.
    start: Timestamp,
    /// The first instant after the entry's date. From then on the entry is in the past. For daily releases, equal to `start`.
    end: Timestamp,
    /// The interval by which a sum counts the entry: the nominal day of a month or week, from its first instant to the first
    /// instant after it. For other precisions, `start` to `end`.
    counted: (Timestamp, Timestamp),
    /// The number of daily releases, the first at `start`. 1 for everything else.
    steps: i64,
    /// Tokens per release.
    amount: Option<f64>,
    /// USD per release.
    value: Option<f64>,
    /// The number of events that the entry stands for. An event with several parts counts once.
    count: f64,
}

impl FlowEntry {
    /// Returns `true` if the nominal date, or the whole date of an exact entry, overlaps the window from `now` to `to`.
    fn is_counted(&self, now: Timestamp, to: Timestamp) -> bool {
        now < self.counted.1 && self.counted.0 <= to
    }
}

/// Adds one entry for each linear segment of an event that has a start and a duration.
fn segments(event: &wire::UnlockEvent, into: &mut Vec<FlowEntry>) {
    let Some(linear) = event.linear_unlocks.get() else { return };
    for part in linear.allocation_breakdown.items() {
        if Precision::of(part.unlock_precision.as_str()) == Precision::ToBeDetermined {
            continue;
        }
        let Some(begin) = part.begin_date.copied().or(event.unlock_date.copied()) else { continue };
        let whole_days = |days: f64| if days.is_finite() { days.ceil().clamp(0.0, 36_525.0) as i64 } else { 0 };
        let steps = match (part.end_date.copied(), part.duration_of_rate.copied()) {
            (Some(end), _) if end > begin => whole_days(days(end - begin)),
            (_, Some(duration)) => whole_days(duration),
            _ => 0,
        };
        let steps = steps.clamp(0, MAX_STEPS);
        if steps == 0 {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "a century has few days")]
        let each = |total: Option<f64>| total.map(|total| total / steps as f64);
        let amount = each(part.linear_amount.copied()).or(part.daily_amount.copied());
        let priced = || Some(amount? * part.reference_price.copied()?);
        let value = each(part.linear_value.copied()).or(part.daily_value.copied()).or_else(priced);
        // The tokens of a day are released when the day is over.
        let start = later(begin, DAY);
        into.push(FlowEntry { start, end: start, counted: (start, start), steps, amount, value, count: 0.0 });
    }
}

/// Returns the number of releases in `(from, to]`.
#[expect(clippy::cast_precision_loss, reason = "a century has few days")]
fn releases(entry: &FlowEntry, from: Timestamp, to: Timestamp) -> f64 {
    let until = |at: Timestamp| {
        let passed = at - entry.start;
        if passed < TimeDelta::zero() { 0 } else { (passed.num_milliseconds() / DAY.num_milliseconds() + 1).min(entry.steps) }
    };
    (until(to) - until(from)) as f64
}

/// Returns the time of the first release after `edge`. `None` if the segment ends before that.
fn release_after(entry: &FlowEntry, steps: i64, edge: Timestamp) -> Option<Timestamp> {
    let passed = edge - entry.start;
    let index = if passed < TimeDelta::zero() { 0 } else { passed.num_milliseconds().checked_div(DAY.num_milliseconds())? + 1 };
    (index < steps).then(|| entry.start.checked_add_signed(TimeDelta::try_days(index)?)).flatten()
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
