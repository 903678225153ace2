//! The token list, and tokens that are not on it.

use std::collections::HashSet;

use rusqlite::params;

use super::CommitWriter;
use crate::codec::{Millis, all, json, millis, one_of};
use crate::error::StoreFault;
use model::{Commit, FeedUpdate, Record, TokenId};

/// The columns of a token that the writer needs.
#[derive(Clone, Copy)]
pub(super) struct TokenRow {
    pub(super) no: i64,
    /// Whether only the slug is known. A record can then supply the name.
    pub(super) is_nameless: bool,
}

impl CommitWriter<'_> {
    /// Returns the row of a token. Inserts it if needed.
    pub(super) fn token(&mut self, id: &TokenId) -> Result<TokenRow, StoreFault> {
        if !self.tokens.contains_key(id) {
            self.load_tokens([id.clone()])?;
        }
        self.tokens.get(id).copied().ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
    }

    /// Loads the rows of tokens in one batch. Inserts the missing ones.
    pub(super) fn load_tokens(&mut self, ids: impl IntoIterator<Item = TokenId>) -> Result<(), StoreFault> {
        let mut seen = HashSet::new();
        let unmet = ids.into_iter().filter(|id| !self.tokens.contains_key(id) && seen.insert(id.clone()));
        let sql = "SELECT no, item IS NULL AND name IS NULL AND symbol IS NULL FROM token WHERE id = ?1";
        let queried = unmet.map(|id| Ok((self.to.prepare_cached(sql)?.send_query([id.as_str()])?, id)));
        let queried = queried.collect::<Result<Vec<_>, StoreFault>>()?;
        let mut unknown = Vec::new();
        for (row, id) in queried {
            match one_of(row.rows()?, |row| Ok(TokenRow { no: row.get(0)?, is_nameless: row.get(1)? }))? {
                Some(row) => drop(self.tokens.insert(id, row)),
                None => unknown.push(id),
            }
        }
        let sql = "INSERT INTO token (id, first_seen) VALUES (?1, ?2) RETURNING no";
        let made = unknown
            .into_iter()
            .map(|id| Ok((self.to.prepare_cached(sql)?.send_query(params![id.as_str(), Millis(self.at)])?, id)));
        for (no, id) in made.collect::<Result<Vec<_>, StoreFault>>()? {
            self.tokens.insert(id, TokenRow { no: no.row(|row| row.get(0))?, is_nameless: true });
        }
        Ok(())
    }

    pub(super) fn token_no(&mut self, id: Option<&TokenId>) -> Result<Option<i64>, StoreFault> {
        id.map(|id| self.token(id).map(|row| row.no)).transpose()
    }

    pub(super) fn token_list(&mut self, commit: &Commit) -> Result<(), StoreFault> {
        let mut named = HashSet::with_capacity(commit.tokens.len() + commit.listed.len());
        for item in &commit.tokens {
            // Skip items without a slug; parsing the response has reported them.
            let Some(id) = item.id.as_str().filter(|id| !id.is_empty()) else {
                continue;
            };
            let no = self.token(&TokenId::from(id))?.no;
            named.insert(no);
            self.tokens.insert(TokenId::from(id), TokenRow { no, is_nameless: false });
            let text = json("an item of the token list", item)?;
            self.to
                .prepare_cached(
                    "UPDATE token SET item = ?2, name = ?3, symbol = ?4, last_updated = ?5, has_burn = ?6, has_buyback = ?7
                     WHERE no = ?1 AND item IS DISTINCT FROM ?2",
                )?
                .execute(params![
                    no,
                    text,
                    indexed(item.name.as_str()),
                    indexed(item.symbol.as_str()),
                    millis(item.last_updated_date.copied()),
                    item.has_burn.copied(),
                    item.has_buyback.copied(),
                ])?;
        }
        if !commit.token_list_complete {
            return Ok(());
        }
        for id in &commit.listed {
            named.insert(self.token(id)?.no);
        }
        // An empty list does not prove that all tokens were withdrawn.
        if named.is_empty() {
            return Ok(());
        }
        let known = all(&mut *self.to.prepare_cached("SELECT no, listed FROM token")?, [], |row| {
            Ok((row.get::<i64>(0)?, row.get::<bool>(1)?))
        })?;
        for (no, was_listed) in known {
            let is_listed = named.contains(&no);
            if is_listed != was_listed {
                self.to.prepare_cached("UPDATE token SET listed = ?2, unlisted_at = ?3 WHERE no = ?1")?.execute(params![
                    no,
                    is_listed,
                    (!is_listed).then_some(Millis(self.at))
                ])?;
            }
        }
        Ok(())
    }

    /// Stores the name of an unlisted token, from its records or the response header.
    pub(super) fn name(&mut self, no: i64, id: &TokenId, update: &FeedUpdate) -> Result<(), StoreFault> {
        let of_record = update.put.iter().find_map(|put| match &put.record {
            Record::Unlock(event) => both(event.token_name.as_str(), event.token_symbol.as_str()),
            Record::Emission(emission) => both(emission.token_name.as_str(), emission.token_symbol.as_str()),
            _ => None,
        });
        let of_header = || {
            let header = update.header.as_ref()?;
            let text = |names: [&str; 2]| names.iter().find_map(|name| header.get(*name)?.as_str());
            both(text(["tokenName", "name"]), text(["tokenSymbol", "symbol"]))
        };
        if let Some((name, symbol)) = of_record.or_else(of_header) {
            self.to.prepare_cached("UPDATE token SET name = ?2, symbol = ?3 WHERE no = ?1")?.execute(params![
                no,
                indexed(name),
                indexed(symbol)
            ])?;
            self.tokens.insert(id.clone(), TokenRow { no, is_nameless: false });
        }
        Ok(())
    }
}

/// The maximum size in bytes of a name and of a ticker in the columns that an index contains. An index entry of PostgreSQL has at most
/// 2,704 bytes. The item has the whole text.
const MAX_INDEXED: usize = 500;

/// Cuts a text for a column that an index contains.
fn indexed(text: Option<&str>) -> Option<&str> {
    text.map(|text| text.get(..text.floor_char_boundary(MAX_INDEXED)).unwrap_or(text))
}

fn both<'t>(name: Option<&'t str>, symbol: Option<&'t str>) -> Option<(Option<&'t str>, Option<&'t str>)> {
    let filled = |text: Option<&'t str>| text.filter(|text| !text.is_empty());
    let (name, symbol) = (filled(name), filled(symbol));
    (name.is_some() || symbol.is_some()).then_some((name, symbol))
}
