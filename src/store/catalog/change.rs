//! A write transaction of an import or an edit.

use rusqlite::params;
use serde::Serialize;

use super::{CatalogError, CatalogView, error::doing};
use crate::sql::row_of;
use model::{Resource, Timestamp, wire};

/// A write transaction. Reads through it see its own changes.
#[derive(Debug)]
pub struct CatalogChange<'a>(pub(super) CatalogView<'a>);

impl<'a> std::ops::Deref for CatalogChange<'a> {
    type Target = CatalogView<'a>;
    fn deref(&self) -> &CatalogView<'a> {
        &self.0
    }
}

/// A record to store.
#[derive(Debug)]
pub struct CatalogRecord<'a, T> {
    pub date: Option<Timestamp>,
    /// Whether this is an unlock event with a cliff unlock.
    pub cliff: bool,
    /// The token that a funding round is about.
    pub about: Option<&'a str>,
    pub body: &'a T,
}

impl CatalogChange<'_> {
    /// Deletes all tokens and records, but no keys.
    pub fn clear(&self) -> Result<(), CatalogError> {
        for table in ["served_token", "served_header", "served_record", "served_gap"] {
            self.0.0.execute(&format!("DELETE FROM {table}"), []).map_err(doing("clear the data"))?;
        }
        Ok(())
    }

    /// Inserts or updates a token.
    pub fn put_token(&self, id: &str, item: &wire::TokenItem, content: &str) -> Result<(), CatalogError> {
        let item = body_of(item, || format!("token {id}"))?;
        self.0
            .0
            .prepare_cached(
                "INSERT INTO served_token (id, item, content) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET item = excluded.item, content = excluded.content",
            )
            .and_then(|mut statement| statement.execute(params![id, item, content]))
            .map_err(doing("write a token"))
    }

    /// Records that data of `owner` is unknown. `owner` is a token, or empty for data without a token. `what` is the
    /// name of an [`Endpoint`](model::supply::Endpoint), or [`RATE_CHANGES`](crate::facts::RATE_CHANGES).
    pub fn put_gap(&self, owner: &str, what: &str) -> Result<(), CatalogError> {
        self.0
            .0
            .prepare_cached("INSERT INTO served_gap (owner, what) VALUES (?1, ?2) ON CONFLICT (owner, what) DO NOTHING")
            .and_then(|mut statement| statement.execute([owner, what]))
            .map_err(doing("write a gap"))
    }

    /// Stores the payload fields that surround the records of `owner`.
    pub fn put_header<T: Serialize>(&self, resource: Resource, owner: &str, body: &T) -> Result<(), CatalogError> {
        let body = body_of(body, || format!("{resource} payload of {owner}"))?;
        self.0
            .0
            .prepare_cached(
                "INSERT INTO served_header (resource, owner, body) VALUES (?1, ?2, ?3)
                     ON CONFLICT (resource, owner) DO UPDATE SET body = excluded.body",
            )
            .and_then(|mut statement| statement.execute(params![resource.as_str(), owner, body]))
            .map_err(doing("write a payload"))
    }

    /// Replaces the records of `owner`.
    pub fn put_records<'r, T: Serialize + 'r>(
        &self,
        resource: Resource,
        owner: &str,
        rows: impl IntoIterator<Item = CatalogRecord<'r, T>>,
    ) -> Result<(), CatalogError> {
        let at = self.0.0;
        at.prepare_cached("DELETE FROM served_record WHERE resource = ?1 AND owner = ?2")
            .and_then(|mut statement| statement.execute([resource.as_str(), owner]))
            .map_err(doing("write records"))?;
        let rows = (0_i64..).zip(rows).map(|(ordinal, row)| {
            let body = body_of(row.body, || format!("{resource} record of {owner}"))?;
            let date = row.date.map(|date| date.timestamp());
            row_of(params![resource.as_str(), owner, ordinal, date, row.cliff, row.about, body]).map_err(doing("write records"))
        });
        let columns = ["resource", "owner", "ordinal", "date", "cliff", "about", "body"];
        at.insert_many("served_record", &columns, rows.collect::<Result<_, _>>()?).map_err(doing("write records"))
    }
}

fn body_of<T: Serialize>(value: &T, what: impl FnOnce() -> String) -> Result<String, CatalogError> {
    serde_json::to_string(value).map_err(|source| CatalogError::Damaged { what: what(), source })
}
