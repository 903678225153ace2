//! Recipients who opted out of digests, and the key that signs unsubscribe links.

use rusqlite::params;

use super::audit::log_action;
use super::codec::{Millis, all, one, word};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{EventType, LinkKey, LoggedAction, OptOut, OptOutSource, ReceiverName, Timestamp};

impl Store {
    /// Returns the opt-outs of `receiver`, or of all receivers.
    pub async fn opt_outs(&self, receiver: Option<ReceiverName>) -> Result<Vec<OptOut>, StoreError> {
        self.read("read the opt-outs", move |from| opt_outs(from, receiver.as_ref())).await
    }

    /// Stores an opt-out. Returns whether it is new.
    pub async fn opt_out(&self, request: OptOut) -> Result<bool, StoreError> {
        self.act("store an opt-out", move |to| opt_out(to, &request)).await
    }

    /// Removes an opt-out. Returns whether there was one.
    pub async fn opt_in(&self, receiver: ReceiverName, address: String, now: Timestamp) -> Result<bool, StoreError> {
        self.act("remove an opt-out", move |to| opt_in(to, &receiver, &address, now)).await
    }

    /// Returns the key that signs digest links, or `None` before the first digest.
    pub async fn link_key(&self) -> Result<Option<LinkKey>, StoreError> {
        self.read("read the link key", link_key).await
    }

    /// Returns the key that signs digest links. Stores `fresh` if no key exists.
    pub async fn ensure_link_key(&self, fresh: LinkKey) -> Result<LinkKey, StoreError> {
        self.act("store the link key", move |to| ensure_link_key(to, fresh)).await
    }
}

/// The key of the `meta` row.
const LINK_KEY: &str = "link_key";

pub(super) fn opt_outs(from: &Transaction<'_>, receiver: Option<&ReceiverName>) -> Result<Vec<OptOut>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, address, at, via FROM opt_out WHERE receiver = ?1 OR ?1 IS NULL ORDER BY receiver, address",
    )?;
    all(&mut statement, [receiver.map(ReceiverName::as_str)], |row| {
        let address: String = row.get(1)?;
        let via: String = row.get(3)?;
        Ok(OptOut {
            receiver: ReceiverName::from(row.get::<String>(0)?),
            at: row.get::<Millis>(2)?.0,
            via: word("the way of the opt-out of", &address, &via, OptOutSource::parse)?,
            address,
        })
    })
}

fn opt_out(to: &Transaction<'_>, request: &OptOut) -> Result<bool, StoreFault> {
    let OptOut { receiver, address, at, via } = request;
    let mut statement =
        to.prepare_cached("INSERT INTO opt_out (receiver, address, at, via) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?;
    let is_new = statement.execute_counted(params![receiver.as_str(), address, Millis(*at), via.as_str()])? > 0;
    if is_new {
        let action = LoggedAction::new(receiver.as_str(), Some(address.clone()));
        log_action(to, EventType::DigestStopped, None, &action, *at)?;
    }
    Ok(is_new)
}

fn opt_in(to: &Transaction<'_>, receiver: &ReceiverName, address: &str, now: Timestamp) -> Result<bool, StoreFault> {
    let mut statement = to.prepare_cached("DELETE FROM opt_out WHERE receiver = ?1 AND address = ?2")?;
    let was_stopped = statement.execute_counted(params![receiver.as_str(), address])? > 0;
    if was_stopped {
        let action = LoggedAction::new(receiver.as_str(), Some(address.to_owned()));
        log_action(to, EventType::DigestResumed, None, &action, now)?;
    }
    Ok(was_stopped)
}

fn link_key(from: &Transaction<'_>) -> Result<Option<LinkKey>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    let text = one(&mut statement, [LINK_KEY], |row| Ok(row.get::<String>(0)?))?;
    text.map(|text| {
        LinkKey::from_hex(&text)
            .ok_or_else(|| StoreFault::BadRow { what: "the key of the digest links is not valid".to_owned(), source: None })
    })
    .transpose()
}

fn ensure_link_key(to: &Transaction<'_>, fresh: LinkKey) -> Result<LinkKey, StoreFault> {
    if let Some(known) = link_key(to)? {
        return Ok(known);
    }
    to.prepare_cached("INSERT INTO meta (key, value) VALUES (?1, ?2)")?.execute([LINK_KEY, &fresh.to_hex()])?;
    Ok(fresh)
}
