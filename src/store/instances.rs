//! The config and rules of the instances that share a database, for comparison. One row of `meta`, since there are few instances.

use super::codec::{from_json, json};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::lease::{InstanceSetup, report_setup};

impl Store {
    /// Stores the report of this instance, and returns the current reports of all instances. A standby may do this too.
    pub async fn report_setup(&self, own: InstanceSetup) -> Result<Vec<InstanceSetup>, StoreError> {
        self.act("compare the instances", move |to| exchange(to, own)).await
    }
}

fn exchange(to: &Transaction<'_>, own: InstanceSetup) -> Result<Vec<InstanceSetup>, StoreFault> {
    let mut setups: Vec<InstanceSetup> = {
        let mut statement = to.prepare_cached("SELECT value FROM meta WHERE key = 'instances'")?;
        let mut rows = statement.query([])?;
        match rows.next()? {
            Some(row) => from_json("the instances of the database", "instances", &row.get::<String>(0)?)?,
            None => Vec::new(),
        }
    };
    report_setup(&mut setups, own);
    let text = json("the instances of the database", &setups)?;
    let sql = "INSERT INTO meta (key, value) VALUES ('instances', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    to.prepare_cached(sql)?.execute([text])?;
    Ok(setups)
}
