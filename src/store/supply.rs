//! Coming supply: the sums of [`model::SupplyAhead`], read from indexes without unpacking schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ahead::{AheadQuery, Sizes, each_ahead};
use super::codec::{one, one_of};
use super::commit::SupplyRow;
use super::error::StoreFault;
use super::page_facts::{self, TokenSupplyRow};
use super::sql::{PendingQuery, Transaction};
use super::{Store, StoreError};
use model::{
    KnownSupply, LinearPiece, LinearRate, SumWindow, SupplyAhead, SupplyTotals, Timestamp, TokenId, TokenSupply, TotalsCoverage,
    Watch,
};

impl Store {
    /// Returns the coming supply of a token at `at`. `None` if the token is not known.
    pub async fn token_supply(
        &self,
        id: TokenId,
        at: Timestamp,
        windows: Vec<SumWindow>,
    ) -> Result<Option<TokenSupply>, StoreError> {
        self.read("read the coming supply of a token", move |from| {
            let mut no = from.prepare_cached("SELECT no FROM token WHERE id = ?1")?;
            let no: Option<i64> = one(&mut no, [id.as_str()], |row| Ok(row.get(0)?))?;
            no.map(|no| token_supply(from, no, at, &windows)).transpose()
        })
        .await
    }

    /// Returns the coming supply at `at` of all watched tokens and of each group. Prices older than `stale_before` count as stale.
    pub async fn supply_totals(
        &self,
        at: Timestamp,
        windows: Vec<SumWindow>,
        watch: Watch,
        stale_before: Timestamp,
    ) -> Result<(SupplyTotals, BTreeMap<String, SupplyTotals>), StoreError> {
        self.read("read the coming supply", move |from| supply_totals(from, at, &windows, &watch, stale_before)).await
    }
}

fn end_of(windows: &[SumWindow], at: Timestamp) -> Timestamp {
    windows.iter().map(|window| window.until).max().unwrap_or(at)
}

/// Returns the coming supply of the token with this number.
fn token_supply(from: &Transaction<'_>, no: i64, at: Timestamp, windows: &[SumWindow]) -> Result<TokenSupply, StoreFault> {
    SupplyQuery::send(from, no, at, windows)?.read(at, windows)
}

/// The pending lookup of a token's coming supply. Several lookups that are sent in a row cost one round trip.
pub(super) struct SupplyQuery<'a> {
    no: i64,
    supply: PendingQuery<'a>,
    ahead: AheadQuery<'a>,
}

impl<'a> SupplyQuery<'a> {
    pub(super) fn send(from: &Transaction<'a>, no: i64, at: Timestamp, windows: &[SumWindow]) -> Result<Self, StoreFault> {
        let sql = format!("SELECT {} FROM token_supply s WHERE s.token_no = ?1", SupplyRow::COLUMNS);
        let supply = from.prepare_cached(&sql)?.send_query([no])?;
        let ahead = AheadQuery::send(from, no, at.timestamp_millis(), end_of(windows, at).timestamp_millis())?;
        Ok(Self { no, supply, ahead })
    }

    /// Returns the supply at `at` in the same windows.
    pub(super) fn read(self, at: Timestamp, windows: &[SumWindow]) -> Result<TokenSupply, StoreFault> {
        let row = one_of(self.supply.rows()?, |row| SupplyRow::read(row, 0, &self.no.to_string()))?.unwrap_or_default();
        let pieces: Vec<LinearPiece> = row.pieces().collect();
        let mut sums = vec![SupplyAhead::default(); windows.len()];
        for unlock in self.ahead.read()? {
            if unlock.is_cliff {
                sums.iter_mut().zip(windows).for_each(|(sum, window)| sum.add_cliff(&unlock.piece(), *window));
            }
        }
        add_linear(&mut sums, windows, &pieces, row.price.map(|price| price.usd));
        let (known, linear_until, price) = (row.known, row.linear_until, row.price);
        Ok(TokenSupply { known, linear_until, price, windows: sums, rate: LinearRate::at(&pieces, at, linear_until) })
    }
}

fn add_linear(sums: &mut [SupplyAhead], windows: &[SumWindow], pieces: &[LinearPiece], price: Option<f64>) {
    for piece in pieces {
        sums.iter_mut().zip(windows).for_each(|(sum, window)| sum.add_linear(piece, price, *window));
    }
}

/// The totals to which the unlocks of each token are added, by token number. The first total is that of all watched tokens.
#[derive(Default)]
struct Memberships(Vec<Option<Arc<[usize]>>>);

impl Memberships {
    fn set(&mut self, no: i64, totals: Arc<[usize]>) {
        let Ok(no) = usize::try_from(no) else { return };
        if self.0.len() <= no {
            self.0.resize(no + 1, None);
        }
        if let Some(entry) = self.0.get_mut(no) {
            *entry = Some(totals);
        }
    }

    fn of(&self, no: Option<i64>) -> &[usize] {
        no.and_then(|no| self.0.get(usize::try_from(no).ok()?)?.as_deref()).unwrap_or_default()
    }
}

pub(super) fn supply_totals(
    from: &Transaction<'_>,
    at: Timestamp,
    windows: &[SumWindow],
    watch: &Watch,
    stale_before: Timestamp,
) -> Result<(SupplyTotals, BTreeMap<String, SupplyTotals>), StoreFault> {
    let from = &from.keeping_facts();
    let groups: Vec<&str> = watch.groups().collect();
    let of_all: Arc<[usize]> = Arc::new([0]);
    let mut totals = vec![SupplyTotals::empty(windows.len()); groups.len() + 1];
    let mut members = Memberships::default();
    page_facts::each_supply(from, at, end_of(windows, at), |TokenSupplyRow { no, id, supply }| {
        let id = TokenId::from(id.as_str());
        if !watch.covers(&id) {
            return;
        }
        let of_groups = if groups.is_empty() { Arc::default() } else { watch.groups_of(&id) };
        let indices = match of_groups.is_empty() {
            true => of_all.clone(),
            false => {
                let of_groups = groups.iter().enumerate().filter(|(_, group)| of_groups.iter().any(|of| of == *group));
                std::iter::once(0).chain(of_groups.map(|(index, _)| index + 1)).collect()
            }
        };
        let unread = SupplyRow::default();
        let supply = supply.as_ref().unwrap_or(&unread);
        let pieces: Vec<LinearPiece> = supply.pieces().collect();
        let usd = supply.price.map(|price| price.usd);
        let mut sums = vec![SupplyAhead::default(); windows.len()];
        add_linear(&mut sums, windows, &pieces, usd);
        let per_day = usd.map_or(0.0, |usd| usd * running_per_day(&pieces, at));
        for index in indices.iter() {
            let Some(total) = totals.get_mut(*index) else { continue };
            total.linear_per_day_value += per_day;
            add_coverage(&mut total.coverage, supply, stale_before);
            if !pieces.is_empty() {
                total.windows.iter_mut().zip(&sums).for_each(|(to, sum)| *to = to.plus(*sum));
            }
        }
        members.set(*no, indices);
    })?;
    // Most unlocks touch few of the windows, and a comparison of numbers is faster than one of times.
    let bounds: Vec<(i64, i64)> =
        windows.iter().map(|window| (window.at.timestamp_millis(), window.until.timestamp_millis())).collect();
    each_ahead(from, at, end_of(windows, at), Sizes::Value, |unlock| {
        if !unlock.is_cliff {
            return;
        }
        let (begin, end) = (unlock.starts_at.min(unlock.nominal_at), unlock.ends_at.max(unlock.nominal_at));
        let touched = || windows.iter().zip(&bounds).enumerate().filter(|(_, (_, (at, until)))| begin <= *until && end >= *at);
        for index in members.of(unlock.token_no) {
            let Some(total) = totals.get_mut(*index) else { continue };
            for (place, (window, _)) in touched() {
                if let Some(sum) = total.windows.get_mut(place) {
                    sum.add_cliff(&unlock.piece(), *window);
                }
            }
        }
    })?;
    let mut totals = totals.into_iter();
    let watched = totals.next().unwrap_or_default();
    Ok((watched, groups.into_iter().map(str::to_owned).zip(totals).collect()))
}

fn running_per_day(pieces: &[LinearPiece], at: Timestamp) -> f64 {
    let at = at.timestamp_millis();
    pieces.iter().filter(|piece| piece.runs_at(at)).filter_map(LinearPiece::per_day).sum()
}

fn add_coverage(coverage: &mut TotalsCoverage, supply: &SupplyRow, stale_before: Timestamp) {
    coverage.tokens += 1;
    coverage.unread += u64::from(supply.known == KnownSupply::None);
    coverage.cliffs_only += u64::from(supply.known == KnownSupply::Cliffs);
    let price_at = supply.price.and_then(|price| price.at);
    coverage.stale_prices += u64::from(price_at.is_some_and(|at| at < stale_before));
    coverage.without_price += u64::from(supply.price.is_none() && supply.known != KnownSupply::None);
    let earliest = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
    coverage.linear_until = earliest(coverage.linear_until, supply.linear_until);
    coverage.oldest_price = earliest(coverage.oldest_price, price_at);
}
