//! Access keys for programs that use the HTTP API. Only their hashes are stored.

use rusqlite::params;

use super::codec::{Millis, all, one, word};
use super::error::StoreFault;
use super::sql::{Row, Transaction};
use super::{Store, StoreError};
use model::{AccessKey, AccessRole};

impl Store {
    /// Adds a key with the SHA-256 hash of its text. Returns `false` if the name is taken.
    pub async fn add_access_key(&self, key: AccessKey, hash: [u8; 32]) -> Result<bool, StoreError> {
        self.act("add an access key", move |to| {
            let sql =
                "INSERT INTO access_key (name, role, hash, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO NOTHING";
            let values = params![key.name, key.role.as_str(), hash.as_slice(), Millis(key.created_at)];
            Ok(to.prepare_cached(sql)?.execute_counted(values)? > 0)
        })
        .await
    }

    /// Returns all keys, by name.
    pub async fn access_keys(&self) -> Result<Vec<AccessKey>, StoreError> {
        let sql = "SELECT name, role, created_at FROM access_key ORDER BY name";
        self.read("read the access keys", move |from| all(&mut *from.prepare_cached(sql)?, [], access_key)).await
    }

    /// Deletes a key. Returns whether it existed.
    pub async fn revoke_access_key(&self, name: String) -> Result<bool, StoreError> {
        self.act("revoke an access key", move |to| revoke(to, &name)).await
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

fn revoke(to: &Transaction<'_>, name: &str) -> Result<bool, StoreFault> {
    Ok(to.prepare_cached("DELETE FROM access_key WHERE name = ?1")?.execute_counted([name])? > 0)
}
