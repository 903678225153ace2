//! Access keys for programs that use the HTTP API. Only their hashes are stored.

use rusqlite::params;

use super::audit::log_action;
use super::codec::{Millis, all, one, word};
use super::error::StoreFault;
use super::sql::{Row, Transaction};
use super::{Store, StoreError};
use model::{AccessKey, AccessRole, EventType, LoggedAction, Timestamp};

impl Store {
    /// Adds a key with the SHA-256 hash of its text. Returns `false` if the name is taken.
    pub async fn add_access_key(&self, key: AccessKey, hash: [u8; 32]) -> Result<bool, StoreError> {
        self.act("add an access key", move |to| {
            let sql =
                "INSERT INTO access_key (name, role, hash, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO NOTHING";
            let values = params![key.name, key.role.as_str(), hash.as_slice(), Millis(key.created_at)];
            let is_new = to.prepare_cached(sql)?.execute_counted(values)? > 0;
            if is_new {
                let action = LoggedAction::new(key.name, Some(key.role.to_string()));
                log_action(to, EventType::AccessKeyAdded, None, &action, key.created_at)?;
            }
            Ok(is_new)
        })
        .await
    }

    /// Returns all keys, by name.
    pub async fn access_keys(&self) -> Result<Vec<AccessKey>, StoreError> {
        let sql = "SELECT name, role, created_at FROM access_key ORDER BY name";
        self.read("read the access keys", move |from| all(&mut *from.prepare_cached(sql)?, [], access_key)).await
    }

    /// Deletes a key. Returns whether it existed.
    pub async fn revoke_access_key(&self, name: String, now: Timestamp) -> Result<bool, StoreError> {
        self.act("revoke an access key", move |to| revoke(to, &name, now)).await
    }

    /// Returns the key with this name, and its hash. `None` if it does not exist or was revoked.
    pub async fn access_key_named(&self, name: String) -> Result<Option<(AccessKey, [u8; 32])>, StoreError> {
        let sql = "SELECT name, role, created_at, hash FROM access_key WHERE name = ?1";
        self.read("read an access key", move |from| {
            let found = one(&mut *from.prepare_cached(sql)?, [&name], |row| Ok((access_key(row)?, row.get::<Vec<u8>>(3)?)))?;
            Ok(found.and_then(|(key, hash)| Some((key, hash.try_into().ok()?))))
        })
        .await
    }

    /// Returns whether any key exists.
    pub async fn has_access_keys(&self) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM access_key LIMIT 1";
        self.read("read the access keys", move |from| Ok(one(&mut *from.prepare_cached(sql)?, [], |_| Ok(()))?.is_some())).await
    }

    /// Returns the key with this hash. `None` if it does not exist or was revoked.
    pub async fn access_key_with(&self, hash: [u8; 32]) -> Result<Option<AccessKey>, StoreError> {
        let sql = "SELECT name, role, created_at FROM access_key WHERE hash = ?1";
        self.read("read an access key", move |from| one(&mut *from.prepare_cached(sql)?, [hash.as_slice()], access_key)).await
    }
}

fn access_key(row: &Row<'_>) -> Result<AccessKey, StoreFault> {
    let name: String = row.get(0)?;
    let role = word("the role of the access key", &name, &row.get::<String>(1)?, AccessRole::parse)?;
    Ok(AccessKey { role, created_at: row.get::<Millis>(2)?.0, name })
}

fn revoke(to: &Transaction<'_>, name: &str, now: Timestamp) -> Result<bool, StoreFault> {
    let existed = to.prepare_cached("DELETE FROM access_key WHERE name = ?1")?.execute_counted([name])? > 0;
    if existed {
        log_action(to, EventType::AccessKeyRevoked, None, &LoggedAction::new(name, None), now)?;
    }
    Ok(existed)
}
