//! A read snapshot of the data service's database.

use rusqlite::params;
use serde::de::DeserializeOwned;

use super::{CatalogError, error::doing};
use crate::facts::{Coverage, DateRange, FactsError, RATE_CHANGES, SupplyFacts};
use crate::sql::{Params, SqlResult, Transaction};
use model::{Endpoint, Resource, Timestamp, wire};

/// One consistent snapshot of the data.
#[derive(Debug)]
pub struct CatalogView<'a>(pub(super) Transaction<'a>);

fn parse<T: DeserializeOwned>(body: &str, what: impl FnOnce() -> String) -> Result<T, CatalogError> {
    serde_json::from_str(body).map_err(|source| CatalogError::Damaged { what: what(), source })
}

impl CatalogView<'_> {
    /// Returns a number that increases with every change of the data.
    pub fn generation(&self) -> Result<i64, CatalogError> {
        self.number("SELECT generation FROM served_state").map_err(doing("read the generation"))
    }

    /// Returns whether any key exists, including revoked keys.
    pub fn has_keys(&self) -> Result<bool, CatalogError> {
        let keys = self.number("SELECT count(*) FROM (SELECT 1 FROM api_key LIMIT 1) k").map_err(doing("look for keys"))?;
        Ok(keys > 0)
    }

    fn number(&self, sql: &str) -> SqlResult<i64> {
        self.0.prepare_cached(sql)?.query_row([], |row| row.get(0))
    }

    /// Returns the hash of the content that a token was imported from.
    pub fn token_content(&self, id: &str) -> Result<Option<String>, CatalogError> {
        self.0
            .prepare_cached("SELECT content FROM served_token WHERE id = ?1")
            .and_then(|mut statement| statement.query_optional([id], |row| row.get(0)))
            .map_err(doing("read a token"))
    }

    fn is_gap(&self, owner: &str, what: &str) -> Result<bool, CatalogError> {
        self.0
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM served_gap WHERE owner = ?1 AND what = ?2)")
            .and_then(|mut statement| statement.query_row([owner, what], |row| row.get(0)))
            .map_err(doing("look for a gap"))
    }

    fn bodies<T: DeserializeOwned>(
        &self,
        sql: &str,
        values: impl Params,
        reading: &'static str,
        what: impl Fn() -> String,
    ) -> Result<Vec<T>, CatalogError> {
        let mut statement = self.0.prepare_cached(sql).map_err(doing(reading))?;
        let mut rows = statement.query(values).map_err(doing(reading))?;
        let mut bodies = Vec::new();
        while let Some(row) = rows.next().map_err(doing(reading))? {
            let value = row.get_ref(0).map_err(doing(reading))?;
            let body = value.as_str().map_err(|error| doing(reading)(rusqlite::Error::from(error)))?;
            bodies.push(parse(body, &what)?);
        }
        Ok(bodies)
    }
}

impl SupplyFacts for CatalogView<'_> {
    fn coverage(&self, endpoint: Endpoint, token: Option<&str>) -> Result<Coverage, FactsError> {
        let is_gap = self.is_gap(token.unwrap_or_default(), endpoint.as_str())?;
        Ok(if is_gap { Coverage::NeverRead } else { Coverage::Own })
    }

    fn shows_rate_changes(&self, token: &str, _: &[wire::UnlockEvent]) -> Result<bool, FactsError> {
        Ok(!self.is_gap(token, RATE_CHANGES)?)
    }

    fn token(&self, id: &str) -> Result<Option<wire::TokenItem>, FactsError> {
        let body: Option<String> = self
            .0
            .prepare_cached("SELECT item FROM served_token WHERE id = ?1")
            .and_then(|mut statement| statement.query_optional([id], |row| row.get(0)))
            .map_err(doing("read a token"))?;
        Ok(body.map(|body| parse(&body, || format!("token {id}"))).transpose()?)
    }

    fn tokens(&self) -> Result<Vec<wire::TokenItem>, FactsError> {
        Ok(self.bodies("SELECT item FROM served_token ORDER BY id", [], "list the tokens", || "token".into())?)
    }

    fn header<T: DeserializeOwned>(&self, resource: Resource, owner: &str) -> Result<Option<T>, FactsError> {
        let body: Option<String> = self
            .0
            .prepare_cached("SELECT body FROM served_header WHERE resource = ?1 AND owner = ?2")
            .and_then(|mut statement| statement.query_optional([resource.as_str(), owner], |row| row.get(0)))
            .map_err(doing("read a payload"))?;
        Ok(body.map(|body| parse(&body, || format!("{resource} payload of {owner}"))).transpose()?)
    }

    fn investors(&self) -> Result<Vec<wire::InvestorItem>, FactsError> {
        let sql = "SELECT body FROM served_header WHERE resource = ?1 ORDER BY owner";
        Ok(self.bodies(sql, [Resource::Funding.as_str()], "list the investors", || "investor".into())?)
    }

    fn records<T: DeserializeOwned>(&self, resource: Resource, owner: &str, range: DateRange) -> Result<Vec<T>, FactsError> {
        Ok(self.bodies(
            "SELECT body FROM served_record WHERE resource = ?1 AND owner = ?2
                 AND (date >= ?3 OR ?3 IS NULL) AND (date < ?4 OR ?4 IS NULL) ORDER BY date NULLS FIRST, ordinal",
            params![resource.as_str(), owner, seconds(range.from), seconds(range.until)],
            "read records",
            || format!("{resource} record of {owner}"),
        )?)
    }

    fn first_cliff<T>(
        &self,
        token: &str,
        range: DateRange,
        mut wanted: impl FnMut(wire::UnlockEvent) -> Option<T>,
    ) -> Result<Option<T>, FactsError> {
        let reading = || doing("look for the next event");
        let mut statement = self
            .0
            .prepare_cached(
                "SELECT body FROM served_record WHERE resource = 'unlock' AND owner = ?1 AND cliff = 1
                     AND (date >= ?2 OR ?2 IS NULL) AND (date < ?3 OR ?3 IS NULL) ORDER BY date NULLS FIRST, ordinal",
            )
            .map_err(reading())?;
        let mut rows = statement.query(params![token, seconds(range.from), seconds(range.until)]).map_err(reading())?;
        while let Some(row) = rows.next().map_err(reading())? {
            let body: String = row.get(0).map_err(reading())?;
            if let Some(found) = wanted(parse(&body, || format!("unlock record of {token}"))?) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn rounds_about(&self, token: &str) -> Result<Vec<wire::FundingRound>, FactsError> {
        Ok(self.bodies(
            "SELECT body FROM served_record WHERE about = ?1 AND resource = 'funding' ORDER BY date DESC NULLS LAST, owner, ordinal",
            [token],
            "read funding rounds",
            || format!("funding round of {token}"),
        )?)
    }
}

fn seconds(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.timestamp())
}
