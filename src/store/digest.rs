//! Upcoming cliff and linear unlocks and firing alerts for digests. All are ranked from indexes; only those shown are read completely.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::ahead::{IndexedUnlock, Sizes, each_in_window, upcoming_rows};
use super::codec::{all, counted, list, one, time};
use super::error::StoreFault;
use super::linear::{IndexedLinear, TokenLinear, each_linear, priced_token};
use super::page_facts::{self, TokenSupplyRow};
use super::rows::{ALERT_COLUMNS, alert};
use super::sql::Transaction;
use super::{Store, StoreError, schedule};
use model::{
    Alert, AlertId, DigestAhead, DigestAheadFilter, DigestOrder, DigestSelection, FirstOf, Inclusion, KnownSupply, LargestFirst,
    PriceAges, RecordKey, ReferencePrice, Resource, SumWindow, SupplyAhead, SupplyCoverage, Timestamp, Token, TokenAhead,
    TokenId, TokenVesting, Tracked, UnlockSum, ValuedAlert, Watch,
    alert::SOURCE_TROUBLE,
    digest::SupplyGaps,
    wire::{Maybe, Text},
};

impl Store {
    /// Returns the most valuable unlocks of the watched tokens in the digest's days, and the sums of all others. `watch` supplies the
    /// groups of each token.
    pub async fn digest_ahead(&self, filter: DigestAheadFilter, watch: Watch) -> Result<DigestAhead, StoreError> {
        self.read("read the unlocks of a digest", move |from| digest_ahead(from, &filter, &watch)).await
    }

    /// Returns the firing alerts of the highest-ranked events, at most `limit` events; see [`model::Precedence`]. With `only`, those about
    /// its tokens.
    pub async fn digest_fires(&self, limit: usize, only: Option<Watch>) -> Result<Vec<ValuedAlert>, StoreError> {
        self.read("read the firing alerts of a digest", move |from| digest_fires(from, limit, only.as_ref())).await
    }

    /// Returns the known tokens of a watch, with the number of firing alerts about each.
    pub async fn tokens_with_firing_alerts(&self, watch: Watch) -> Result<Vec<(TokenId, u64)>, StoreError> {
        self.read("count the firing alerts of tokens", move |from| tokens_with_firing_alerts(from, &watch)).await
    }
}

/// An unlock, ordered by size (largest first), then start, then slug.
#[derive(Clone, Copy, Debug)]
struct RankedUnlock {
    size: LargestFirst,
    starts_at: i64,
    rank: usize,
    no: i64,
    token: usize,
    /// USD.
    value: Option<f64>,
}

impl PartialEq for RankedUnlock {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RankedUnlock {}

impl PartialOrd for RankedUnlock {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedUnlock {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |of: &Self| (of.size, of.starts_at, of.rank, of.no);
        place(self).cmp(&place(other))
    }
}

/// Facts about tokens, by token number.
#[derive(Default)]
struct TokenRanks {
    /// The position of each watched token in the order of slugs. `None` for other tokens, which the database may still know.
    ranks: Vec<Option<usize>>,
    /// The tokens that belong to a group.
    grouped: HashMap<usize, TokenId>,
    gaps: SupplyGaps,
}

impl TokenRanks {
    fn read(from: &Transaction<'_>, watch: &Watch, begin: Timestamp, until: Timestamp) -> Result<Self, StoreFault> {
        let mut known = Self::default();
        let mut rank = 0;
        page_facts::each_supply(from, begin, until, |TokenSupplyRow { no, id, supply }| {
            let no = usize::try_from(*no).unwrap_or_default();
            let id = TokenId::from(id.as_str());
            if !watch.covers(&id) {
                return;
            }
            if known.ranks.len() <= no {
                known.ranks.resize(no + 1, None);
            }
            if let Some(of) = known.ranks.get_mut(no) {
                *of = Some(rank);
            }
            rank += 1;
            let coverage = supply.as_ref().map(|supply| (supply.known, supply.linear_until));
            let (of_token, linear_until) = coverage.unwrap_or((KnownSupply::None, None));
            known.gaps.add(SupplyCoverage { known: of_token, linear_until });
            if !watch.groups_of(&id).is_empty() {
                known.grouped.insert(no, id);
            }
        })?;
        Ok(known)
    }

    /// Returns the position of a token. `None` if it is not watched.
    fn rank(&self, token: usize) -> Option<usize> {
        self.ranks.get(token).copied().flatten()
    }
}

/// The running sums of a digest.
struct AheadTally {
    known: TokenRanks,
    selection: DigestSelection,
    counted: FirstOf<RankedUnlock>,
    possible: FirstOf<RankedUnlock>,
    /// The tokens that unlock linearly: by value, slug, and token number.
    vesting: FirstOf<(LargestFirst, usize, i64)>,
    ahead: DigestAhead,
    /// The cliff and linear unlocks of tokens in a group that are not listed.
    by_token: BTreeMap<usize, (UnlockSum, UnlockSum)>,
    /// The tokens with counted or linear unlocks.
    priced: HashSet<i64>,
}

impl AheadTally {
    fn add(&mut self, row: IndexedUnlock, is_counted: bool) {
        if !row.is_cliff {
            return;
        }
        let Some(token) = row.token_no.and_then(|no| usize::try_from(no).ok()) else { return };
        let Some(rank) = self.known.rank(token) else { return };
        if is_counted {
            self.priced.extend(row.token_no);
        }
        let size = self.selection.size(row.value, row.share);
        let ranked = RankedUnlock { size, starts_at: row.starts_at, rank, no: row.no, token, value: row.value };
        let (first, part) = match is_counted {
            true => (&mut self.counted, &mut self.ahead.counted),
            false => (&mut self.possible, &mut self.ahead.possible),
        };
        let unlisted = if self.selection.lists(row.value) { first.push(ranked) } else { Some(ranked) };
        let Some(RankedUnlock { value, token, .. }) = unlisted else { return };
        part.add_unlisted(value);
        if is_counted && self.known.grouped.contains_key(&token) {
            self.by_token.entry(token).or_default().0.add(None, value);
        }
    }

    fn add_linear(&mut self, of: &IndexedLinear, window: SumWindow) {
        let token = usize::try_from(of.token_no).unwrap_or(usize::MAX);
        let Some(rank) = self.known.rank(token) else { return };
        let mut sum = SupplyAhead::default();
        let price = of.price.map(|price| price.usd);
        of.pieces.iter().for_each(|(_, piece)| sum.add_linear(piece, price, window));
        self.ahead.linear.add(&sum.linear);
        self.priced.insert(of.token_no);
        // The sums of all tokens are remembered, because a listed token can be displaced by a later one.
        if self.known.grouped.contains_key(&token) {
            self.by_token.entry(token).or_default().1 = sum.linear;
        }
        let value = sum.linear.known_value();
        if !self.selection.lists(value) || self.vesting.push((LargestFirst(value), rank, of.token_no)).is_some() {
            self.ahead.linear.more += 1;
        }
    }
}

fn digest_ahead(from: &Transaction<'_>, filter: &DigestAheadFilter, watch: &Watch) -> Result<DigestAhead, StoreFault> {
    let from = &from.keeping_facts();
    let selection = filter.selection;
    let sizes = if selection.order == DigestOrder::Share { Sizes::Both } else { Sizes::Value };
    let mut tally = AheadTally {
        known: TokenRanks::read(from, watch, filter.from, filter.window.until)?,
        selection,
        counted: FirstOf::new(selection.limit),
        possible: FirstOf::new(selection.limit),
        vesting: FirstOf::new(selection.limit),
        ahead: DigestAhead::default(),
        by_token: BTreeMap::new(),
        priced: HashSet::new(),
    };
    each_in_window(from, filter.from, filter.window, sizes, |row, inclusion| {
        tally.add(row, inclusion == Inclusion::Counted);
    })?;
    each_linear(from, None, filter.window, |of| tally.add_linear(&of, filter.window))?;
    let AheadTally { known, counted, possible, vesting, mut ahead, mut by_token, priced, .. } = tally;
    for (part, first) in [(&mut ahead.counted, counted), (&mut ahead.possible, possible)] {
        let rows = upcoming_rows(from, first.into_sorted().into_iter().map(|of| of.no))?;
        part.rows = rows.into_iter().map(|(_, row)| model::UpcomingRow { token: watch.placed(row.token), ..row }).collect();
    }
    for (.., token_no) in vesting.into_sorted() {
        let Some((mut token, _, price)) = priced_token(from, token_no)? else { continue };
        token = watch.placed(token);
        let linear = TokenLinear::read(from, token_no, token.id.as_str())?;
        ahead.linear.tokens.extend(TokenVesting::of(token, &linear.unlocks(), price, filter.window));
        if let Some((_, linear)) = usize::try_from(token_no).ok().and_then(|no| by_token.get_mut(&no)) {
            *linear = UnlockSum::default();
        }
    }
    by_token.retain(|_, (cliff, linear)| cliff.count + linear.count > 0);
    let mut symbol = from.prepare_cached("SELECT symbol FROM token WHERE no = ?1")?;
    for (no, (cliff, linear)) in by_token {
        let Some(id) = known.grouped.get(&no) else { continue };
        let mut token = Token::unknown(id.clone());
        token.item.symbol =
            Maybe::or_absent(one(&mut symbol, [no as i64], |row| Ok(row.get::<Option<String>>(0)?.map(Text::from)))?.flatten());
        ahead.by_token.push(TokenAhead { token: watch.placed(token), cliff, linear });
    }
    ahead.gaps = known.gaps;
    add_prices(from, &priced, filter.stale_before, &mut ahead.prices)?;
    Ok(ahead)
}

/// Adds the prices of some tokens.
fn add_prices(
    from: &Transaction<'_>,
    tokens: &HashSet<i64>,
    stale_before: Timestamp,
    to: &mut PriceAges,
) -> Result<(), StoreFault> {
    let mut statement = from.prepare_cached("SELECT token_no, price, price_at FROM token_supply WHERE price IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if tokens.contains(&row.get(0)?) {
            to.add(ReferencePrice { usd: row.get(1)?, at: time(row.get(2)?) }, stale_before);
        }
    }
    Ok(())
}

/// The event that several alerts share. An alert without a record is its own event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum FiringSubject {
    Record(i64, String, String),
    Alert(String),
}

/// Selects the firing alerts of one severity, except incidents, each with the value (USD) and start of its unlock.
pub(super) const FIRING: &str =
    "SELECT a.id, a.token_no, a.resource, a.key, r.value * coalesce(d.value, 1.0), r.starts_at FROM alert a
    LEFT JOIN record r ON r.token_no = a.token_no AND r.resource = 'unlock' AND a.resource = 'unlock' AND r.key = a.key
    LEFT JOIN drift d ON d.token_no = r.token_no WHERE a.state = 'firing' AND a.severity = ?1 AND a.rule <> ?2";

pub(super) const UNLOCK: &str = "SELECT no FROM record WHERE token_no = ?1 AND resource = 'unlock' AND key = ?2";

fn tokens_with_firing_alerts(from: &Transaction<'_>, watch: &Watch) -> Result<Vec<(TokenId, u64)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT t.id, (SELECT count(*) FROM alert a WHERE a.token_no = t.no AND a.state = 'firing') FROM token t ORDER BY t.id",
    )?;
    let read = |row: &super::sql::Row<'_>| Ok((TokenId::from(row.get::<String>(0)?), counted(row.get(1)?)));
    Ok(all(&mut statement, [], read)?.into_iter().filter(|(id, _)| watch.covers(id)).collect())
}

/// Returns the numbers of the known tokens of a watch.
fn numbers_of(from: &Transaction<'_>, watch: &Watch) -> Result<HashSet<i64>, StoreFault> {
    let read = |row: &super::sql::Row<'_>| Ok((row.get::<i64>(0)?, TokenId::from(row.get::<String>(1)?)));
    let tokens = all(&mut *from.prepare_cached("SELECT no, id FROM token")?, [], read)?;
    Ok(tokens.into_iter().filter(|(_, id)| watch.covers(id)).map(|(no, _)| no).collect())
}

fn digest_fires(from: &Transaction<'_>, limit: usize, only: Option<&Watch>) -> Result<Vec<ValuedAlert>, StoreFault> {
    let only = only.map(|watch| numbers_of(from, watch)).transpose()?;
    let mut chosen: HashSet<FiringSubject> = HashSet::new();
    // Lower severities are needed only if the higher ones do not fill the limit.
    for severity in [3_i64, 2, 1] {
        let mut events: HashMap<FiringSubject, (LargestFirst, i64, String)> = HashMap::new();
        let mut statement = from.prepare_cached(FIRING)?;
        let mut rows = statement.query((severity, SOURCE_TROUBLE))?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            let token: Option<i64> = row.get(1)?;
            if only.as_ref().is_some_and(|only| token.is_none_or(|token| !only.contains(&token))) {
                continue;
            }
            let event = firing_event(&id, token, row.get(2)?, row.get(3)?);
            let place = (LargestFirst(row.get(4)?), row.get::<Option<i64>>(5)?.unwrap_or(i64::MAX), id);
            if chosen.contains(&event) {
                continue;
            }
            let known = events.entry(event).or_insert_with(|| place.clone());
            *known = place.min(known.clone());
        }
        let mut first = FirstOf::new(limit.saturating_sub(chosen.len()));
        for (event, place) in events {
            first.push((place, event));
        }
        chosen.extend(first.into_sorted().into_iter().map(|(_, event)| event));
        if chosen.len() >= limit {
            break;
        }
    }
    alerts_of(from, &chosen)
}

fn firing_event(id: &str, token: Option<i64>, resource: Option<String>, key: Option<String>) -> FiringSubject {
    match (token, resource, key) {
        (Some(token), Some(resource), Some(key)) => FiringSubject::Record(token, resource, key),
        _ => FiringSubject::Alert(id.to_owned()),
    }
}

/// Returns all firing alerts about these events, with the value of each.
fn alerts_of(from: &Transaction<'_>, events: &HashSet<FiringSubject>) -> Result<Vec<ValuedAlert>, StoreFault> {
    let tokens: HashSet<i64> = events
        .iter()
        .filter_map(|event| match event {
            FiringSubject::Record(token, ..) => Some(*token),
            FiringSubject::Alert(_) => None,
        })
        .collect();
    let alone = events.iter().filter_map(|event| match event {
        FiringSubject::Alert(id) => Some(id.as_str()),
        FiringSubject::Record(..) => None,
    });
    let head = format!(
        "SELECT {ALERT_COLUMNS}, a.token_no FROM alert a LEFT JOIN token t ON t.no = a.token_no WHERE a.state = 'firing'"
    );
    let read = |row: &super::sql::Row<'_>| Ok((alert(row)?, row.get::<Option<i64>>(super::rows::ALERT_COLUMN_COUNT)?));
    let sql = format!(
        "{head} AND a.state IN ('pending', 'firing') AND a.token_no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))"
    );
    let tokens = serde_json::Value::from(tokens.into_iter().collect::<Vec<_>>()).to_string();
    let mut found: Vec<(Alert, Option<i64>)> = all(&mut *from.prepare_cached(&sql)?, [tokens], read)?;
    let word = |resource: Option<Resource>| resource.map(|resource| resource.as_str().to_owned());
    let key = |key: &Option<RecordKey>| key.as_ref().map(|key| key.as_str().to_owned());
    found.retain(|(of, token)| {
        of.rule.as_str() != SOURCE_TROUBLE
            && events.contains(&firing_event(of.id.as_str(), *token, word(of.resource), key(&of.key)))
    });
    let sql = format!("{head} AND a.id IN (SELECT value FROM json_each(?1))");
    let known: HashSet<AlertId> = found.iter().map(|(alert, _)| alert.id.clone()).collect();
    let others = all(&mut *from.prepare_cached(&sql)?, [list(alone)], read)?;
    found.extend(others.into_iter().filter(|(alert, _)| !known.contains(&alert.id)));
    valued(from, found)
}

/// Adds the value of its unlock to each alert.
fn valued(from: &Transaction<'_>, alerts: Vec<(Alert, Option<i64>)>) -> Result<Vec<ValuedAlert>, StoreFault> {
    let unlock = |of: &Alert| of.key.as_ref().filter(|_| of.resource == Some(Resource::Unlock)).cloned();
    let queried: HashSet<(i64, RecordKey)> = alerts.iter().filter_map(|(of, token)| Some(((*token)?, unlock(of)?))).collect();
    // Unlocks that were removed meanwhile have no value.
    let mut is_there = from.prepare_cached(UNLOCK)?;
    let mut rows = Vec::new();
    for (token, key) in queried {
        if one(&mut is_there, (token, key.as_str()), |row| Ok(row.get::<i64>(0)?))?.is_some() {
            rows.push((token, key.as_str().to_owned(), (token, key)));
        }
    }
    let read = schedule::events(from, rows)?;
    let value = |tracked: Tracked| tracked.record.unlock().and_then(|event| event.cliff_value());
    let values: HashMap<(i64, RecordKey), f64> =
        read.into_iter().filter_map(|(of, tracked)| Some((of, value(tracked)?))).collect();
    let value = |of: &Alert, token: Option<i64>| values.get(&(token?, unlock(of)?)).copied();
    Ok(alerts.into_iter().map(|(of, token)| ValuedAlert { value: value(&of, token), alert: of }).collect())
}
