//! Reads the corrections of schedules for rules and pages. [`model::corrections`] decides which changes are corrections.

use rusqlite::params;

use super::codec::{Millis, all, all_of, list};
use super::error::StoreFault;
use super::sql::{PendingQuery, Row, Transaction};
use super::{Store, StoreError};
use model::{
    ChangeKind, Timestamp, TokenId,
    corrections::{CORRECTIONS, CorrectionsByToken, PastCorrection},
};

impl Store {
    /// Returns the corrections of the schedules of `tokens` that were detected after `since`.
    pub async fn corrections(&self, tokens: Vec<TokenId>, since: Timestamp) -> Result<CorrectionsByToken, StoreError> {
        self.read("read the corrections of schedules", move |from| corrections(from, tokens, since)).await
    }

    /// Returns the tokens, by slug, whose schedule has a correction that was detected in one of `windows` (start exclusive, end inclusive).
    pub async fn tokens_with_corrections(&self, windows: Vec<(Timestamp, Timestamp)>) -> Result<Vec<TokenId>, StoreError> {
        self.read("read the tokens with corrections", move |from| tokens_with_corrections(from, &windows)).await
    }
}

/// Selects the corrections of a token in an index range.
pub(super) const OF_TOKEN: &str = "SELECT c.at, CAST(c.body ->> 'shiftDays' AS DOUBLE PRECISION) FROM change c
     WHERE c.token_no = (SELECT no FROM token WHERE id = ?1) AND c.at > ?2 AND c.resource = 'unlock'
         AND c.kind IN (SELECT value FROM json_each(?3)) ORDER BY c.at, c.no";

/// Selects the tokens with corrections in a time range.
pub(super) const IN_RANGE: &str = "SELECT DISTINCT t.id FROM change c JOIN token t ON t.no = c.token_no
     WHERE c.at > ?1 AND c.at <= ?2 AND c.resource = 'unlock' AND c.kind IN (SELECT value FROM json_each(?3))";

fn corrections(from: &Transaction<'_>, tokens: Vec<TokenId>, since: Timestamp) -> Result<CorrectionsByToken, StoreFault> {
    let kinds = list(CORRECTIONS.map(ChangeKind::as_str));
    let mut statement = from.prepare_cached(OF_TOKEN)?;
    let queried = tokens.into_iter().map(|id| Ok((statement.send_query(params![id.as_str(), Millis(since), kinds])?, id)));
    let queried: Vec<(PendingQuery<'_>, TokenId)> = queried.collect::<Result<_, StoreFault>>()?;
    let mut by_token = CorrectionsByToken::new();
    for (rows, id) in queried {
        let corrections = all_of(rows.rows()?, correction)?;
        if !corrections.is_empty() {
            by_token.insert(id, corrections);
        }
    }
    Ok(by_token)
}

fn correction(row: &Row<'_>) -> Result<PastCorrection, StoreFault> {
    Ok(PastCorrection { at: row.get::<Millis>(0)?.0, shift_days: row.get(1)? })
}

fn tokens_with_corrections(from: &Transaction<'_>, windows: &[(Timestamp, Timestamp)]) -> Result<Vec<TokenId>, StoreFault> {
    let kinds = list(CORRECTIONS.map(ChangeKind::as_str));
    let mut statement = from.prepare_cached(IN_RANGE)?;
    let mut ids = Vec::new();
    for (after, until) in windows {
        let found =
            all(&mut statement, params![Millis(*after), Millis(*until), kinds], |row| Ok(TokenId::from(row.get::<String>(0)?)))?;
        ids.extend(found);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}
