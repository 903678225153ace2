//! Who wants no digests any more, and the key that signs the links by which they say so.

use rusqlite::{Transaction, params};

use super::{
    codec::{Millis, all, one, word},
    error::Fault,
    model::{LinkKey, OptOut, Via},
};
use crate::supply::ReceiverName;

/// The row of `meta` that holds the key.
const LINK_KEY: &str = "link_key";

pub(super) fn opt_outs(from: &Transaction<'_>, receiver: Option<&ReceiverName>) -> Result<Vec<OptOut>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, address, at, via FROM opt_out WHERE ?1 IS NULL OR receiver = ?1 ORDER BY receiver, address",
    )?;
    all(&mut statement, [receiver.map(ReceiverName::as_str)], |row| {
        let address: String = row.get(1)?;
        let via: String = row.get(3)?;
        Ok(OptOut {
            receiver: ReceiverName::from(row.get::<_, String>(0)?),
            at: row.get::<_, Millis>(2)?.0,
            via: word("the way of the opt-out of", &address, &via, Via::parse)?,
            address,
        })
    })
}

/// Answers whether it is new.
pub(super) fn opt_out(to: &Transaction<'_>, wish: &OptOut) -> Result<bool, Fault> {
    let OptOut { receiver, address, at, via } = wish;
    let mut statement =
        to.prepare_cached("INSERT INTO opt_out (receiver, address, at, via) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?;
    Ok(statement.execute(params![receiver.as_str(), address, Millis(*at), via.as_str()])? > 0)
}

/// Answers whether there was one.
pub(super) fn opt_in(to: &Transaction<'_>, receiver: &ReceiverName, address: &str) -> Result<bool, Fault> {
    let mut statement = to.prepare_cached("DELETE FROM opt_out WHERE receiver = ?1 AND address = ?2")?;
    Ok(statement.execute(params![receiver.as_str(), address])? > 0)
}

pub(super) fn link_key(from: &Transaction<'_>) -> Result<Option<LinkKey>, Fault> {
    let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    let text = one(&mut statement, [LINK_KEY], |row| Ok(row.get::<_, String>(0)?))?;
    text.map(|text| {
        LinkKey::from_hex(&text)
            .ok_or_else(|| Fault::BadRow { what: "the key of the links in digests cannot be read".to_owned(), source: None })
    })
    .transpose()
}

/// The key that is there; else `fresh`, from now on.
pub(super) fn keep_link_key(to: &Transaction<'_>, fresh: LinkKey) -> Result<LinkKey, Fault> {
    if let Some(known) = link_key(to)? {
        return Ok(known);
    }
    to.prepare_cached("INSERT INTO meta (key, value) VALUES (?1, ?2)")?.execute([LINK_KEY, &fresh.to_hex()])?;
    Ok(fresh)
}
