//! Aggregates: what unlocks, was emitted, burned and bought back within a window of time, for a token and for a group of them.
//!
//! Cast: a [`Ledger`] holds the dated entries of one token, as far as its feeds were ever read. [`Totals`] are the sums over the
//! windows that rules ask for, at one instant; those of a group are made from those of its tokens. A [`Book`] keeps the totals of
//! every token between ticks, with the instant at which time alone will change them, so that a tick works out what moved and
//! nothing else.
//!
//! Promises: a feed that was never read gives no sum at all, never zero; a sum with an unknown part is unknown; what is the same
//! instant and the same records is the same sum, whether worked out anew or kept. Pure: the time comes in as `now`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chrono::TimeDelta;

use crate::{
    supply::{Endpoint, FeedState, Interval, Precision, Record, Resource, Timestamp, Token, TokenId, Tracked, days},
    wire,
};

/// A segment that runs longer is cut: no schedule speaks of more than a century.
const MAX_STEPS: i64 = 36_525;

/// At the latest then a token is worked out again, whatever its records say. The store reads entries a little farther than the
/// longest window, and what lies beyond that must come into sight in time.
pub const LONGEST_REST: TimeDelta = TimeDelta::days(28);

/// What moves tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// Unlocks to come: cliffs, and the daily releases of linear segments.
    Ahead,
    /// Emission, as the source reports it for days or weeks that are over.
    Emitted,
    /// Burns.
    Burned,
    /// Buybacks.
    BoughtBack,
}

impl Flow {
    /// All of them.
    pub const ALL: [Flow; 4] = [Flow::Ahead, Flow::Emitted, Flow::Burned, Flow::BoughtBack];

    /// The word in conditions and templates.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Flow::Ahead => "ahead",
            Flow::Emitted => "emitted",
            Flow::Burned => "burned",
            Flow::BoughtBack => "boughtBack",
        }
    }

    /// The flow of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flow| flow.as_str() == word)
    }

    /// The records that it is made of.
    #[must_use]
    pub fn resource(self) -> Resource {
        match self {
            Flow::Ahead => Resource::Unlock,
            Flow::Emitted => Resource::Emission,
            Flow::Burned => Resource::Burn,
            Flow::BoughtBack => Resource::Buyback,
        }
    }
}

/// A window that a rule asks for: `burned("30d")`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// Of what.
    pub flow: Flow,
    /// From now on for [`Flow::Ahead`], up to now for the others.
    pub span: TimeDelta,
}

/// What is in a window. A part is none where it cannot be told: the feed was never read, or an entry does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
    /// Entries: unlock events, burns, buybacks, reported days or weeks.
    pub count: Option<f64>,
}

impl Sum {
    /// Nothing, known to be nothing.
    const ZERO: Sum = Sum { amount: Some(0.0), value: Some(0.0), count: Some(0.0) };

    /// Both together; unknown where one is.
    #[must_use]
    pub fn plus(self, other: Sum) -> Sum {
        let add = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Sum { amount: add(self.amount, other.amount), value: add(self.value, other.value), count: add(self.count, other.count) }
    }
}

/// The latest burn or buyback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Last {
    /// When.
    pub at: Timestamp,
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
}

impl Last {
    /// Days that have passed since.
    #[must_use]
    pub fn days_since(&self, now: Timestamp) -> f64 {
        days(now - self.at)
    }
}

/// One dated entry.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// When it begins to count: the first instant of its date; for a daily release, the first one.
    start: Timestamp,
    /// When it ceases to lie ahead: the first instant after its date.
    end: Timestamp,
    /// Daily releases, the first at `start`; one for everything else.
    steps: i64,
    /// Tokens of each.
    amount: Option<f64>,
    /// USD of each.
    value: Option<f64>,
    /// What it counts for: an event of several parts counts once.
    count: f64,
}

const DAY: TimeDelta = TimeDelta::days(1);

/// The dated entries of one token. A flow whose feed was never read is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    flows: [Option<Vec<Entry>>; 4],
}

impl Ledger {
    /// The entries that `records` make. `is_known` says of which resources a complete answer was ever read (or of which the source
    /// says that there is nothing to read): the others stay unknown.
    #[must_use]
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Tracked>, is_known: impl Fn(Resource) -> bool) -> Self {
        let mut ledger = Self { flows: Flow::ALL.map(|flow| is_known(flow.resource()).then(Vec::new)) };
        for tracked in records {
            ledger.add(&tracked.record);
        }
        if let Some(emitted) = ledger.flow_mut(Flow::Emitted) {
            keep_finest(emitted);
        }
        for entries in ledger.flows.iter_mut().flatten() {
            entries.sort_by_key(|entry| entry.start);
        }
        ledger
    }

    fn flow(&self, flow: Flow) -> Option<&[Entry]> {
        self.flows.get(flow as usize)?.as_deref()
    }

    fn flow_mut(&mut self, flow: Flow) -> Option<&mut Vec<Entry>> {
        self.flows.get_mut(flow as usize)?.as_mut()
    }

    fn add(&mut self, record: &Record) {
        let once = |interval: Interval, amount, value| Entry {
            start: interval.start,
            end: interval.end,
            steps: 1,
            amount,
            value,
            count: 1.0,
        };
        // What has no date is in no window.
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
                    // The begin of a segment is an event of its own, with nothing that unlocks at once.
                    ahead.push(Entry { count: 1.0, ..once(interval, Some(0.0), Some(0.0)) });
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

    /// Which flows are known, in the order of [`Flow::ALL`].
    #[must_use]
    pub fn known(&self) -> [bool; 4] {
        Flow::ALL.map(|flow| self.flow(flow).is_some())
    }

    /// What is in a window at `now`.
    #[must_use]
    pub fn sum(&self, window: Window, now: Timestamp) -> Sum {
        let Some(entries) = self.flow(window.flow) else { return Sum::default() };
        let (from, to) = match window.flow {
            Flow::Ahead => (now, later(now, window.span)),
            _ => (earlier(now, window.span), now),
        };
        let mut sum = Sum::ZERO;
        // Entries are in the order of their starts: what begins after the window ends it, and what happened before it is passed over.
        let first = if window.flow == Flow::Ahead { 0 } else { entries.partition_point(|entry| entry.start <= from) };
        for entry in entries.iter().skip(first).take_while(|entry| entry.start <= to) {
            let times = match (window.flow, entry.steps) {
                (Flow::Ahead, 1) => f64::from(u8::from(now < entry.end)),
                (_, 1) => f64::from(u8::from(entry.start > from)),
                _ => releases(entry, from, to),
            };
            if times > 0.0 {
                let part = |each: Option<f64>| each.map(|each| each * times);
                let count = if entry.steps == 1 { entry.count } else { 0.0 };
                sum = sum.plus(Sum { amount: part(entry.amount), value: part(entry.value), count: Some(count) });
            }
        }
        sum
    }

    /// The latest entry of a flow up to `now`.
    #[must_use]
    pub fn last(&self, flow: Flow, now: Timestamp) -> Option<Last> {
        let entries = self.flow(flow)?;
        let entry = entries.get(entries.partition_point(|entry| entry.start <= now).checked_sub(1)?)?;
        Some(Last { at: entry.start, amount: entry.amount, value: entry.value })
    }

    /// The next instant after `now` at which time alone changes a sum of `windows`, or lets `since` days pass since the latest
    /// burn or buyback. None where nothing will.
    #[must_use]
    pub fn next_change(&self, windows: &[Window], since: &[(Flow, TimeDelta)], now: Timestamp) -> Option<Timestamp> {
        let mut next: Option<Timestamp> = None;
        let mut consider = |at: Timestamp| {
            if at > now && next.is_none_or(|next| at < next) {
                next = Some(at);
            }
        };
        // Of what happened, the entry that leaves a window next is the first one in it, and the first that is yet to come enters it.
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
                    }
                } else {
                    for edge in [now, far] {
                        if let Some(release) = release_after(entry, entry.steps, edge) {
                            consider(later(now, release - edge));
                        }
                    }
                }
                if entry.start > far {
                    // What begins later enters the window later, and ends later still.
                    consider(earlier(entry.start, window.span));
                    break;
                }
            }
        }
        for (flow, span) in since {
            happened(*flow, *span, &mut consider);
        }
        next
    }
}

/// The daily releases of an event's linear segments, one entry each.
fn segments(event: &wire::UnlockEvent, into: &mut Vec<Entry>) {
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
        // What a day releases is there when the day is over.
        let start = later(begin, DAY);
        into.push(Entry { start, end: start, steps, amount, value, count: 0.0 });
    }
}

/// Releases of a segment in `(from, to]`.
#[expect(clippy::cast_precision_loss, reason = "a century has few days")]
fn releases(entry: &Entry, from: Timestamp, to: Timestamp) -> f64 {
    let until = |at: Timestamp| {
        let passed = at - entry.start;
        if passed < TimeDelta::zero() { 0 } else { (passed.num_milliseconds() / DAY.num_milliseconds() + 1).min(entry.steps) }
    };
    (until(to) - until(from)) as f64
}

/// The first release of a segment after `edge`.
fn release_after(entry: &Entry, steps: i64, edge: Timestamp) -> Option<Timestamp> {
    let passed = edge - entry.start;
    let index = if passed < TimeDelta::zero() { 0 } else { passed.num_milliseconds().checked_div(DAY.num_milliseconds())? + 1 };
    (index < steps).then(|| entry.start.checked_add_signed(TimeDelta::try_days(index)?)).flatten()
}

/// Where days and weeks of emission are both there, the weeks would count the days again.
fn keep_finest(entries: &mut Vec<Entry>) {
    let is_day = |entry: &Entry| entry.end - entry.start <= TimeDelta::hours(36);
    if entries.iter().any(is_day) {
        entries.retain(is_day);
    }
}

fn later(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_add_signed(by).unwrap_or(Timestamp::MAX_UTC)
}

fn earlier(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_sub_signed(by).unwrap_or(Timestamp::MIN_UTC)
}

/// A token of a group, as the rules of a portfolio see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Slug.
    pub id: TokenId,
    /// Ticker.
    pub symbol: String,
    /// Name.
    pub name: String,
    /// Its own totals.
    pub totals: Arc<Totals>,
    /// Percent of the group's market cap.
    pub share: Option<f64>,
}

/// The sums over all windows that rules ask for, of a token or of a group, at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    windows: Arc<[Window]>,
    sums: Box<[Sum]>,
    /// The latest burn; none where there is none, or where burns were never read.
    pub last_burn: Option<Last>,
    /// The latest buyback.
    pub last_buyback: Option<Last>,
    /// USD; of a group, the sum over its tokens.
    pub market_cap: Option<f64>,
    /// Tokens; none for a group.
    pub max_supply: Option<f64>,
    /// Tokens; none for a group.
    pub circulating_supply: Option<f64>,
    /// Percent of the market cap of each of its groups, by name; empty for a group.
    pub shares: BTreeMap<String, f64>,
    /// Name of the group; none for a token and for all watched tokens.
    pub group: Option<String>,
    /// Its tokens, by slug; empty for a token.
    pub members: Vec<Member>,
}

impl Totals {
    /// The totals of one token at `now`.
    #[must_use]
    pub fn of(token: &Token, ledger: &Ledger, windows: &Arc<[Window]>, now: Timestamp) -> Self {
        Self {
            windows: windows.clone(),
            sums: windows.iter().map(|window| ledger.sum(*window, now)).collect(),
            last_burn: ledger.last(Flow::Burned, now),
            last_buyback: ledger.last(Flow::BoughtBack, now),
            market_cap: token.item.market_cap.copied(),
            max_supply: token.item.max_supply.copied(),
            circulating_supply: token.item.circulating_supply.copied(),
            ..Self::default()
        }
    }

    /// The totals of a group. Where something of one token is unknown, so is the sum.
    #[must_use]
    pub fn of_group(group: Option<&str>, members: Vec<Member>, windows: &Arc<[Window]>) -> Self {
        let market_cap = members.iter().try_fold(0.0, |sum, member| Some(sum + member.totals.market_cap?));
        let sums = windows
            .iter()
            .map(|window| members.iter().fold(Sum::ZERO, |sum, member| sum.plus(member.totals.sum(*window).unwrap_or_default())));
        let latest =
            |of: fn(&Totals) -> Option<Last>| members.iter().filter_map(|member| of(&member.totals)).max_by_key(|last| last.at);
        let mut totals = Self {
            windows: windows.clone(),
            sums: sums.collect(),
            last_burn: latest(|totals| totals.last_burn),
            last_buyback: latest(|totals| totals.last_buyback),
            market_cap,
            group: group.map(str::to_owned),
            ..Self::default()
        };
        totals.members = members;
        for member in &mut totals.members {
            member.share = share(member.totals.market_cap, market_cap);
        }
        totals
    }

    /// Made-up totals to try templates with: everything known, or nothing.
    pub(crate) fn sample(windows: &[Window], is_known: bool, now: Timestamp) -> Self {
        let mut windows = windows.to_vec();
        windows.sort_unstable();
        let known = |value: f64| is_known.then_some(value);
        let sum = Sum { amount: known(1_000_000.0), value: known(500_000.0), count: known(3.0) };
        let last = is_known.then(|| Last { at: earlier(now, TimeDelta::days(35)), amount: Some(1_000.0), value: Some(500.0) });
        Self {
            sums: windows.iter().map(|_| sum).collect(),
            windows: windows.into(),
            last_burn: last,
            last_buyback: last,
            market_cap: known(20_000_000.0),
            max_supply: known(1_000.0),
            circulating_supply: known(100.0),
            shares: if is_known { BTreeMap::from([("portfolio".to_owned(), 25.0)]) } else { BTreeMap::new() },
            ..Self::default()
        }
    }

    /// What is in a window; none where no rule asks for it.
    #[must_use]
    pub fn sum(&self, window: Window) -> Option<Sum> {
        let index = self.windows.binary_search(&window).ok()?;
        self.sums.get(index).copied()
    }

    /// The latest burn or buyback; none for the other flows.
    #[must_use]
    pub fn last(&self, flow: Flow) -> Option<Last> {
        match flow {
            Flow::Burned => self.last_burn,
            Flow::BoughtBack => self.last_buyback,
            Flow::Ahead | Flow::Emitted => None,
        }
    }

    /// The windows with what is in them.
    pub fn sums(&self) -> impl Iterator<Item = (Window, Sum)> {
        self.windows.iter().copied().zip(self.sums.iter().copied())
    }
}

/// Percent that `part` is of `whole`.
fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0).then(|| part / whole * 100.0)
}

/// What is remembered of one token.
#[derive(Debug)]
struct Page {
    symbol: String,
    name: String,
    groups: Arc<[String]>,
    totals: Arc<Totals>,
    /// Which flows were known, in the order of [`Flow::ALL`].
    known: [bool; 4],
    /// When it was worked out.
    at: Timestamp,
    /// When it is to be worked out again.
    wake: Timestamp,
}

/// How long a token may be left alone while nothing is heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Not at all: a rule on it reads the time in such a way that it may turn at any instant.
    None,
    /// Until a sum changes.
    UntilChange,
    /// No rule looks at it.
    Longest,
}

/// The totals of one token, worked out and not yet remembered.
#[derive(Debug)]
pub struct Worked {
    id: TokenId,
    page: Page,
}

impl Worked {
    /// The totals.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.page.totals
    }
}

/// The totals of every token as last worked out, and when time alone will change them.
#[derive(Debug, Default)]
pub struct Book {
    windows: Arc<[Window]>,
    since: Vec<(Flow, TimeDelta)>,
    /// Whether any rule asks for a token's share of a group.
    has_shares: bool,
    /// Every watched token was worked out once: before that, the whole of a group is not known.
    is_complete: bool,
    pages: BTreeMap<TokenId, Page>,
    wakes: BTreeSet<(Timestamp, TokenId)>,
    /// Totals of groups since something last moved, by the key that was asked with.
    groups: BTreeMap<String, Option<Arc<Totals>>>,
}

impl Book {
    /// Begins anew for what rules ask for; everything is to be worked out again.
    pub fn reset(&mut self, windows: Arc<[Window]>, since: Vec<(Flow, TimeDelta)>, has_shares: bool) {
        *self = Self { windows, since, has_shares, ..Self::default() };
    }

    /// Every watched token was worked out: from now on groups are whole. Tokens whose share can be told only now are due again.
    pub fn complete(&mut self, now: Timestamp) {
        self.is_complete = true;
        self.groups.clear();
        if self.has_shares {
            let grouped = self.pages.iter().filter(|(_, page)| !page.groups.is_empty());
            for id in grouped.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                self.wake(&id, now);
            }
        }
    }

    /// Works out a token's totals at `now`. They are remembered once they are [kept](Self::keep), so that what could not be written
    /// is worked out again.
    #[must_use]
    pub fn work_out(&self, token: &Token, ledger: &Ledger, rest: Rest, now: Timestamp) -> Worked {
        let mut totals = Totals::of(token, ledger, &self.windows, now);
        if self.has_shares && self.is_complete {
            totals.shares = self.shares(token, totals.market_cap);
        }
        let longest = later(now, LONGEST_REST);
        let wake = match rest {
            Rest::None => now,
            Rest::UntilChange => ledger.next_change(&self.windows, &self.since, now).map_or(longest, |next| next.min(longest)),
            Rest::Longest => longest,
        };
        let (symbol, name) = (token.symbol().to_owned(), token.name().to_owned());
        let page =
            Page { symbol, name, groups: token.groups.clone(), totals: Arc::new(totals), known: ledger.known(), at: now, wake };
        Worked { id: token.id.clone(), page }
    }

    /// Remembers what was worked out.
    pub fn keep(&mut self, worked: Worked) {
        let Worked { id, page } = worked;
        self.groups.clear();
        let (at, wake, groups, market_cap) = (page.at, page.wake, page.groups.clone(), page.totals.market_cap);
        if let Some(before) = self.pages.insert(id.clone(), page) {
            self.wakes.remove(&(before.wake, id.clone()));
            if before.totals.market_cap != market_cap {
                self.stir(&groups, &id, at);
            }
        }
        self.wakes.insert((wake, id));
    }

    /// Has tokens of these groups looked at again: their share has another whole.
    fn stir(&mut self, groups: &[String], but: &TokenId, now: Timestamp) {
        if !self.has_shares || !self.is_complete || groups.is_empty() {
            return;
        }
        let others: Vec<TokenId> = self
            .pages
            .iter()
            .filter(|(id, page)| *id != but && page.groups.iter().any(|group| groups.contains(group)))
            .map(|(id, _)| id.clone())
            .collect();
        for id in others {
            self.wake(&id, now);
        }
    }

    /// Has a token looked at again at `at` or before.
    pub fn wake(&mut self, id: &TokenId, at: Timestamp) {
        if let Some(page) = self.pages.get_mut(id).filter(|page| page.wake > at) {
            self.wakes.remove(&(page.wake, id.clone()));
            page.wake = at;
            self.wakes.insert((at, id.clone()));
        }
    }

    /// Whether what is remembered of a token took this flow for known; none where nothing is remembered of it.
    #[must_use]
    pub fn knew(&self, id: &TokenId, flow: Flow) -> Option<bool> {
        self.pages.get(id)?.known.get(flow as usize).copied()
    }

    /// Whether anything is remembered of a token.
    #[must_use]
    pub fn has(&self, id: &TokenId) -> bool {
        self.pages.contains_key(id)
    }

    /// Whether every watched token was worked out once since what rules ask for last changed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Forgets a token that is not watched any more.
    pub fn forget(&mut self, id: &TokenId) {
        self.groups.clear();
        if let Some(page) = self.pages.remove(id) {
            self.wakes.remove(&(page.wake, id.clone()));
        }
    }

    /// The tokens whose totals are to be worked out again by `now`.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<TokenId> {
        self.wakes.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// Percent of the market cap of each of its groups, as far as all their tokens are known.
    fn shares(&self, token: &Token, market_cap: Option<f64>) -> BTreeMap<String, f64> {
        let mut shares = BTreeMap::new();
        for group in token.groups.iter() {
            let others = self.pages.iter().filter(|(id, page)| **id != token.id && page.groups.contains(group));
            let whole = others.map(|(_, page)| page.totals.market_cap).chain([market_cap]).sum::<Option<f64>>();
            if let Some(share) = share(market_cap, whole) {
                shares.insert(group.clone(), share);
            }
        }
        shares
    }

    /// The totals of a group, or of all tokens that `lets_in` lets in, which `key` stands for; none where that is nobody, or where
    /// not all of them are known yet.
    pub fn group(
        &mut self,
        key: &str,
        group: Option<&str>,
        lets_in: impl Fn(&TokenId, &[String]) -> bool,
    ) -> Option<Arc<Totals>> {
        if !self.is_complete {
            return None;
        }
        if let Some(known) = self.groups.get(key) {
            return known.clone();
        }
        let is_in = |id: &TokenId, groups: &[String]| match group {
            Some(group) => groups.iter().any(|of| of == group),
            None => lets_in(id, groups),
        };
        let members: Vec<Member> = self
            .pages
            .iter()
            .filter(|(id, page)| is_in(id, &page.groups))
            .map(|(id, page)| Member {
                id: id.clone(),
                symbol: page.symbol.clone(),
                name: page.name.clone(),
                totals: page.totals.clone(),
                share: None,
            })
            .collect();
        let totals = (!members.is_empty()).then(|| Arc::new(Totals::of_group(group, members, &self.windows)));
        self.groups.insert(key.to_owned(), totals.clone());
        totals
    }
}

/// Whether what a feed would tell of `resource` is known: a complete answer was read. What happened is unknown again while the feed
/// fails, since nothing says that nothing happened meanwhile; a schedule stays what it was. Where the token list says that there are
/// no burns or buybacks at all, none is known to be none.
#[must_use]
pub fn is_known(resource: Resource, feeds: &[(Endpoint, FeedState)], item: &wire::TokenItem) -> bool {
    let speaks = |endpoint: Endpoint| endpoint.resource() == Some(resource) && endpoint.is_per_token();
    let was_read =
        |state: &FeedState| state.baseline_at.is_some() && (resource == Resource::Unlock || state.failing_since.is_none());
    let mut own = feeds.iter().filter(|(endpoint, _)| speaks(*endpoint)).peekable();
    let is_absent = has_none(item, resource);
    if own.peek().is_none() && is_absent {
        return true;
    }
    own.any(|(_, state)| was_read(state) || (is_absent && state.baseline_at.is_none() && state.failing_since.is_none()))
}

/// Whether the token list says that a token has none of these records, so that nobody asks for them.
#[must_use]
pub fn has_none(item: &wire::TokenItem, resource: Resource) -> bool {
    match resource {
        Resource::Burn => item.has_burn.copied() == Some(false),
        Resource::Buyback => item.has_buyback.copied() == Some(false),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
