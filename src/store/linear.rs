//! Linear unlocks with their allocations. An index in `token_supply` shows which tokens have some; only schedules that are shown are
//! unpacked.

use super::codec::{Millis, from_json, list, one, time};
use super::commit::SupplyRow;
use super::error::StoreFault;
use super::page_facts;
use super::rows::{FEED_COLUMNS, feed_state, token};
use super::schedule;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{
    FeedState, LinearAhead, LinearEnd, LinearPiece, LinearUnlock, ReferencePrice, SumWindow, Timestamp, Token, TokenId, Tracked,
};

/// The linear unlocks of a token that run in a window, in the order of [`TokenLinear::unlocks`].
pub(super) struct IndexedLinear {
    /// The slug of the token.
    pub(super) id: String,
    pub(super) token_no: i64,
    pub(super) price: Option<ReferencePrice>,
    /// The end of the known linear supply. `None` if the whole schedule is known.
    pub(super) linear_until: Option<Timestamp>,
    /// Each with its position among the unlocks that have not ended at the start of the window.
    pub(super) pieces: Vec<(usize, LinearPiece)>,
}

/// Visits the tokens with linear unlocks that run in a window, by slug. `None` selects all tokens.
pub(super) fn each_linear(
    from: &Transaction<'_>,
    tokens: Option<&[TokenId]>,
    window: SumWindow,
    mut visit: impl FnMut(IndexedLinear),
) -> Result<(), StoreFault> {
    let mut visit_row = |token_no: i64, id: &str, supply: &SupplyRow| {
        let begin = window.at.timestamp_millis();
        let ahead = supply.pieces().filter(|piece| piece.ends_at > begin).enumerate();
        let pieces: Vec<(usize, LinearPiece)> = ahead.filter(|(_, piece)| piece.share_in(window).is_some()).collect();
        if !pieces.is_empty() {
            visit(IndexedLinear { token_no, id: id.to_owned(), price: supply.price, linear_until: supply.linear_until, pieces });
        }
    };
    let Some(tokens) = tokens else {
        return page_facts::each_supply(from, window.at, window.until, |row| {
            if let Some(supply) = &row.supply {
                visit_row(row.no, &row.id, supply);
            }
        });
    };
    let sql = format!(
        "SELECT t.no, t.id, {} FROM token_supply s JOIN token t ON t.no = s.token_no
         WHERE t.id IN (SELECT value FROM json_each(?1)) ORDER BY t.id",
        SupplyRow::COLUMNS
    );
    let mut statement = from.prepare_cached(&sql)?;
    let mut rows = statement.query([list(tokens.iter().map(TokenId::as_str))])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(1)?;
        let supply = SupplyRow::read(&row, 2, &id)?;
        visit_row(row.get(0)?, &id, &supply);
    }
    Ok(())
}

impl Store {
    /// Returns the tokens with an end of a linear unlock whose date can start in one of the windows (start exclusive, end inclusive).
    pub async fn tokens_with_ends(&self, windows: Vec<(Timestamp, Timestamp)>) -> Result<Vec<TokenId>, StoreError> {
        self.read("read the ends of linear unlocks", move |from| tokens_with_ends(from, &windows)).await
    }
}

fn tokens_with_ends(from: &Transaction<'_>, windows: &[(Timestamp, Timestamp)]) -> Result<Vec<TokenId>, StoreFault> {
    let columns = SupplyRow::COLUMNS;
    let sql = format!("SELECT t.id, {columns} FROM token_supply s JOIN token t ON t.no = s.token_no ORDER BY t.id");
    let mut statement = from.prepare_cached(&sql)?;
    let (mut rows, mut found) = (statement.query([])?, Vec::new());
    let is_in_window = |start: Timestamp| windows.iter().any(|(after, until)| *after < start && start <= *until);
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let supply = SupplyRow::read(&row, 1, &id)?;
        let ends = supply.pieces_of_schedule().filter_map(|piece| Timestamp::from_timestamp_millis(piece.ends_at));
        if ends.flat_map(LinearEnd::possible_starts).any(is_in_window) {
            found.push(TokenId::from(id));
        }
    }
    Ok(found)
}

/// Returns a token, the first and the last time of a complete read of its schedule, and its price. `None` if the number is unknown.
pub(super) fn priced_token(from: &Transaction<'_>, token_no: i64) -> Result<Option<PricedToken>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT t.id, t.item, t.name, t.symbol, f.baseline_at, f.read_at, s.price, s.price_at FROM token t
         LEFT JOIN feed f ON f.token_no = t.no AND f.endpoint = 'unlock_events'
         LEFT JOIN token_supply s ON s.token_no = t.no WHERE t.no = ?1",
    )?;
    one(&mut statement, [token_no], |row| {
        let (usd, at): (Option<f64>, Option<Millis>) = (row.get(6)?, row.get(7)?);
        let price = usd.map(|usd| ReferencePrice { usd, at: time(at) });
        Ok((token(row, 0)?, ReadTimes { first: time(row.get(4)?), last: time(row.get(5)?) }, price))
    })
}

pub(super) type PricedToken = (Token, ReadTimes, Option<ReferencePrice>);

/// The times of complete reads of a schedule. `None` before the first one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTimes {
    pub(super) first: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
}

/// Reads the state and the header of a token's feed of unlock events. `of` names the token in errors.
pub(super) fn schedule_feed(
    from: &Transaction<'_>,
    token_no: i64,
    of: &str,
) -> Result<(Option<FeedState>, Option<serde_json::Value>), StoreFault> {
    let sql = format!("SELECT f.header, {FEED_COLUMNS} FROM feed f WHERE f.token_no = ?1 AND f.endpoint = 'unlock_events'");
    let mut statement = from.prepare_cached(&sql)?;
    let feed = one(&mut statement, [token_no], |row| Ok((row.get::<Option<String>>(0)?, feed_state(row, 1, of)?)))?;
    let (header, state) = feed.unzip();
    let header = header.flatten().map(|text| from_json("the header of a feed", of, &text)).transpose()?;
    Ok((state, header))
}

/// The facts about the linear unlocks of a token.
pub(super) struct TokenLinear {
    pub(super) events: Vec<Tracked>,
    pub(super) ahead: Option<LinearAhead>,
}

impl TokenLinear {
    /// Reads the facts about a token. `of` names the token in errors.
    pub(super) fn read(from: &Transaction<'_>, token_no: i64, of: &str) -> Result<Self, StoreFault> {
        let (state, header) = schedule_feed(from, token_no, of)?;
        let ahead = LinearAhead::of_feed(state.as_ref(), header.as_ref());
        Ok(Self { events: schedule::of_token(from, token_no, of)?, ahead })
    }

    /// Returns all linear unlocks: those of the schedule, then those of daily emission ahead, each by start, end, and allocation.
    pub(super) fn unlocks(&self) -> Vec<LinearUnlock<'_>> {
        let events = self.events.iter().filter_map(|tracked| Some((tracked.key.as_str(), tracked.record.unlock()?)));
        let mut unlocks = LinearUnlock::of_schedule(events);
        unlocks.extend(self.ahead.iter().flat_map(LinearUnlock::of_emission));
        unlocks
    }
}
