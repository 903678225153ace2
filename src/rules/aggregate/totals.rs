//! The sums over all windows that rules ask for, of a token or of a group, at one instant.

use std::{collections::BTreeMap, sync::Arc};

use chrono::TimeDelta;

use model::{Timestamp, Token, TokenId};

use super::entries::{FlowEntries, earlier};
use super::window::{Flow, LatestEntry, Sum, Window};

/// A sum as it is kept, in half of the room: there are several of each token, at all times. What is unknown is no number.
#[derive(Clone, Copy, Debug)]
struct PackedSum {
    amount: f64,
    value: f64,
    count: f64,
    possible: f64,
}

impl From<Sum> for PackedSum {
    fn from(Sum { amount, value, count, possible }: Sum) -> Self {
        let packed = |of: Option<f64>| of.unwrap_or(f64::NAN);
        Self { amount: packed(amount), value: packed(value), count: packed(count), possible: packed(possible) }
    }
}

impl From<PackedSum> for Sum {
    fn from(PackedSum { amount, value, count, possible }: PackedSum) -> Self {
        let known = |of: f64| Some(of).filter(|of| !of.is_nan());
        Self { amount: known(amount), value: known(value), count: known(count), possible: known(possible) }
    }
}

impl PartialEq for PackedSum {
    fn eq(&self, other: &Self) -> bool {
        Sum::from(*self) == Sum::from(*other)
    }
}

/// The sums over all windows that rules ask for, of a token or of a group, at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    windows: Arc<[Window]>,
    sums: Box<[PackedSum]>,
    /// The latest burn; none where there is none, or where burns were never read.
    pub last_burn: Option<LatestEntry>,
    pub last_buyback: Option<LatestEntry>,
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
    pub fn of(token: &Token, entries: &FlowEntries, windows: &Arc<[Window]>, now: Timestamp) -> Self {
        Self {
            windows: windows.clone(),
            sums: windows.iter().map(|window| entries.sum(*window, now).into()).collect(),
            last_burn: entries.last(Flow::Burned, now),
            last_buyback: entries.last(Flow::BoughtBack, now),
            market_cap: token.item.market_cap.copied(),
            max_supply: token.item.max_supply.copied(),
            circulating_supply: token.item.circulating_supply.copied(),
            ..Self::default()
        }
    }

    /// The totals of a group. Where something of one token is unknown, so is the sum.
    pub fn of_group(group: Option<&str>, members: Vec<Member>, windows: &Arc<[Window]>) -> Self {
        let market_cap = members.iter().try_fold(0.0, |sum, member| Some(sum + member.totals.market_cap?));
        let sums = windows
            .iter()
            .map(|window| members.iter().fold(Sum::ZERO, |sum, member| sum.plus(member.totals.sum(*window).unwrap_or_default())));
        let latest = |of: fn(&Totals) -> Option<LatestEntry>| {
            members.iter().filter_map(|member| of(&member.totals)).max_by_key(|last| last.at)
        };
        let mut totals = Self {
            windows: windows.clone(),
            sums: sums.map(PackedSum::from).collect(),
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
        let sum = Sum { amount: known(1_000_000.0), value: known(500_000.0), count: known(3.0), possible: known(250_000.0) };
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
            shares: if is_known { BTreeMap::from([("portfolio".to_owned(), 25.0)]) } else { BTreeMap::new() },
            ..Self::default()
        }
    }

    /// What is in a window; none where no rule asks for it.
    pub fn sum(&self, window: Window) -> Option<Sum> {
        let index = self.windows.binary_search(&window).ok()?;
        self.sums.get(index).copied().map(Sum::from)
    }

    /// The latest burn or buyback; none for the other flows.
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

/// A token of a group, as the rules of a portfolio see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Slug.
    pub id: TokenId,
    pub symbol: Arc<str>,
    pub name: Arc<str>,
    pub totals: Arc<Totals>,
    /// Percent of the group's market cap.
    pub share: Option<f64>,
}

/// Percent that `part` is of `whole`.
pub(super) fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0).then(|| part / whole * 100.0)
}
