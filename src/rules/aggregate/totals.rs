//! The sums over all windows that rules read, for a token or a group, at one instant.

use std::{collections::BTreeMap, sync::Arc};

use chrono::TimeDelta;

use model::{RateStep, Timestamp, Token, TokenId};

use super::entries::{FlowEntries, earlier, later};
use super::reads::AggregateReads;
use super::window::{Flow, LatestEntry, PartSum, Sum, Window};

/// A [`Sum`] in half the memory, because every token has several. NaN stands for an unknown value.
#[derive(Clone, Copy, Debug)]
struct PackedSum([f64; 9]);

impl From<Sum> for PackedSum {
    fn from(Sum { amount, value, count, possible, cliff, linear }: Sum) -> Self {
        let parts = [amount, value, count, possible, cliff.amount, cliff.value, cliff.count, linear.amount, linear.value];
        Self(parts.map(|of| of.unwrap_or(f64::NAN)))
    }
}

impl From<PackedSum> for Sum {
    fn from(PackedSum(parts): PackedSum) -> Self {
        let parts = parts.map(|of| Some(of).filter(|of| !of.is_nan()));
        let [amount, value, count, possible, cliff_amount, cliff_value, cliff_count, linear_amount, linear_value] = parts;
        let linear_count = linear_amount.or(linear_value).map(|_| 0.0);
        Self {
            amount,
            value,
            count,
            possible,
            cliff: PartSum { amount: cliff_amount, value: cliff_value, count: cliff_count },
            linear: PartSum { amount: linear_amount, value: linear_value, count: linear_count },
        }
    }
}

impl PartialEq for PackedSum {
    fn eq(&self, other: &Self) -> bool {
        Sum::from(*self) == Sum::from(*other)
    }
}

/// The sums over all windows that rules read, for a token or a group, at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    windows: Arc<[Window]>,
    sums: Box<[PackedSum]>,
    /// `None` if there is no burn, or if burns were never read.
    pub last_burn: Option<LatestEntry>,
    pub last_buyback: Option<LatestEntry>,
    /// USD. For a group, the sum over its tokens.
    pub market_cap: Option<f64>,
    /// Tokens. `None` for a group.
    pub max_supply: Option<f64>,
    /// Tokens. `None` for a group.
    pub circulating_supply: Option<f64>,
    /// The time of the prices of coming supply; for a group, of the oldest price among its tokens with coming supply. `None` if unknown.
    pub price_at: Option<Timestamp>,
    /// The instant until which linear unlocks are known completely; for a group, the earliest. `None` if they are known for the whole
    /// schedule.
    pub linear_until: Option<Timestamp>,
    /// `None` if no rule reads it.
    pub supply: Option<Box<SupplyNow>>,
    /// The token's percentage of the market cap of each of its groups, by group name. Empty for a group.
    pub shares: BTreeMap<String, f64>,
    /// The name of the group. `None` for a token, and for the selection of all watched tokens.
    pub group: Option<String>,
    /// The tokens of the group, sorted by slug. Empty for a token.
    pub members: Vec<Member>,
}

impl Totals {
    pub fn of(token: &Token, entries: &FlowEntries, reads: &AggregateReads, now: Timestamp) -> Self {
        Self {
            windows: reads.windows.clone(),
            sums: reads.windows.iter().map(|window| entries.sum(*window, now).into()).collect(),
            last_burn: entries.last(Flow::Burned, now),
            last_buyback: entries.last(Flow::BoughtBack, now),
            market_cap: token.item.market_cap.copied(),
            max_supply: token.item.max_supply.copied(),
            circulating_supply: token.item.circulating_supply.copied(),
            price_at: entries.price().and_then(|price| price.at),
            linear_until: entries.linear_until(),
            supply: reads.has_supply.then(|| Box::new(SupplyNow::of(entries, now))),
            ..Self::default()
        }
    }

    /// Returns whether supply with a value comes in one of `windows`.
    pub fn has_value_ahead(&self, windows: &[Window]) -> bool {
        let is_valued = |sum: Sum| sum.value.or(sum.cliff.value).or(sum.linear.value).is_some_and(|value| value > 0.0);
        let ahead = windows.iter().filter(|window| window.flow == Flow::Ahead);
        ahead.filter_map(|window| self.sum(*window)).any(is_valued)
    }

    /// Returns the totals of a group. A sum is unknown if it is unknown for one of the tokens.
    pub fn of_group(group: Option<&str>, members: Vec<Member>, reads: &AggregateReads) -> Self {
        let windows = &reads.windows;
        let market_cap = members.iter().try_fold(0.0, |sum, member| Some(sum + member.totals.market_cap?));
        let sums = windows
            .iter()
            .map(|window| members.iter().fold(Sum::ZERO, |sum, member| sum.plus(member.totals.sum(*window).unwrap_or_default())));
        let latest = |of: fn(&Totals) -> Option<LatestEntry>| {
            members.iter().filter_map(|member| of(&member.totals)).max_by_key(|last| last.at)
        };
        let priced = members.iter().map(|member| &member.totals).filter(|totals| totals.has_value_ahead(windows));
        let price_at = priced.filter_map(|totals| totals.price_at).min();
        let mut totals = Self {
            price_at,
            windows: windows.clone(),
            sums: sums.map(PackedSum::from).collect(),
            last_burn: latest(|totals| totals.last_burn),
            last_buyback: latest(|totals| totals.last_buyback),
            market_cap,
            linear_until: members.iter().filter_map(|member| member.totals.linear_until).min(),
            supply: reads.has_supply.then(|| Box::new(SupplyNow::of_group(&members))),
            group: group.map(str::to_owned),
            ..Self::default()
        };
        totals.members = members;
        for member in &mut totals.members {
            member.share = share(member.totals.market_cap, market_cap);
        }
        totals
    }

    /// Returns made-up totals for a trial of templates: everything known, or nothing.
    pub(crate) fn sample(windows: &[Window], is_known: bool, now: Timestamp) -> Self {
        let mut windows = windows.to_vec();
        windows.sort_unstable();
        let known = |value: f64| is_known.then_some(value);
        let part = |amount: f64, value: f64| PartSum { amount: known(amount), value: known(value), count: known(3.0) };
        let sum = Sum {
            amount: known(1_000_000.0),
            value: known(500_000.0),
            count: known(3.0),
            possible: known(250_000.0),
            cliff: part(600_000.0, 300_000.0),
            linear: part(400_000.0, 200_000.0),
        };
        let last =
            is_known.then(|| LatestEntry { at: earlier(now, TimeDelta::days(35)), amount: Some(1_000.0), value: Some(500.0) });
        Self {
            sums: windows.iter().map(|_| sum.into()).collect(),
            windows: windows.into(),
            last_burn: last,
            last_buyback: last,
            market_cap: known(20_000_000.0),
            max_supply: known(1_000_000_000.0),
            circulating_supply: known(40_000_000.0),
            supply: is_known.then(|| Box::new(SupplyNow::sample(now))),
            shares: if is_known { BTreeMap::from([("portfolio".to_owned(), 25.0)]) } else { BTreeMap::new() },
            ..Self::default()
        }
    }

    /// Returns the sum over a window. `None` if no rule reads the window.
    pub fn sum(&self, window: Window) -> Option<Sum> {
        let index = self.windows.binary_search(&window).ok()?;
        self.sums.get(index).copied().map(Sum::from)
    }

    /// Returns whether the sum over a window contains everything: linear unlocks are known until its end.
    pub fn is_complete(&self, window: Window, now: Timestamp) -> bool {
        let linear = self.sum(window).unwrap_or_default().linear;
        let is_known = linear.amount.is_some() || linear.value.is_some();
        let end = later(now, window.span);
        window.flow != Flow::Ahead || (is_known && self.linear_until.is_none_or(|until| end <= until))
    }

    /// Returns the latest burn or buyback. `None` for the other flows.
    pub fn last(&self, flow: Flow) -> Option<LatestEntry> {
        match flow {
            Flow::Burned => self.last_burn,
            Flow::BoughtBack => self.last_buyback,
            Flow::Ahead | Flow::Emitted => None,
        }
    }

    pub fn sums(&self) -> impl Iterator<Item = (Window, Sum)> {
        self.windows.iter().copied().zip(self.sums.iter().copied().map(Sum::from))
    }
}

/// The daily linear release and the price of a token. Of a group, only the value is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SupplyNow {
    /// Tokens that unlock linearly per day. `None` if linear unlocks are not known.
    pub per_day: Option<f64>,
    /// Their USD value. `None` if linear unlocks or the price are not known.
    pub per_day_value: Option<f64>,
    pub next_rate: Option<NextRate>,
    /// The latest price in USD.
    pub price: Option<f64>,
    /// The time of the latest price.
    pub price_at: Option<Timestamp>,
}

/// The next known change of the daily linear release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextRate {
    pub at: Timestamp,
    /// Tokens per day from then on.
    pub per_day: f64,
}

impl SupplyNow {
    fn of(entries: &FlowEntries, now: Timestamp) -> Self {
        let (rate, price) = (entries.linear_rate(now), entries.price());
        let per_day = rate.map(|rate| rate.per_day);
        let value = |per_day: f64| if per_day == 0.0 { Some(0.0) } else { Some(per_day * price?.usd) };
        Self {
            per_day,
            per_day_value: per_day.and_then(value),
            next_rate: rate.and_then(|rate| Some(NextRate { at: rate.changes_at?, per_day: rate.then_per_day? })),
            price: price.map(|price| price.usd),
            price_at: price.and_then(|price| price.at),
        }
    }

    /// Returns the sum over a group. It is unknown if it is unknown for one of the tokens.
    fn of_group(members: &[Member]) -> Self {
        let value = |member: &Member| member.totals.supply.as_ref()?.per_day_value;
        Self { per_day_value: members.iter().map(value).sum(), ..Self::default() }
    }

    fn sample(now: Timestamp) -> Self {
        Self {
            per_day: Some(10_000.0),
            per_day_value: Some(5_000.0),
            next_rate: Some(NextRate { at: later(now, TimeDelta::days(7)), per_day: 20_000.0 }),
            price: Some(0.5),
            price_at: Some(earlier(now, TimeDelta::days(1))),
        }
    }

    /// Returns the daily release after the next change, divided by the one before it. Infinite if nothing unlocks linearly now.
    pub fn rate_change(&self) -> Option<f64> {
        RateStep { before: self.per_day?, after: self.next_rate?.per_day }.factor()
    }
}

/// A token of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub id: TokenId,
    pub symbol: Arc<str>,
    pub name: Arc<str>,
    pub totals: Arc<Totals>,
    /// The token's percentage of the group's market cap.
    pub share: Option<f64>,
}

/// Returns `part` as a percentage of `whole`.
pub(super) fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0).then(|| part / whole * 100.0)
}
