//! The ledger of credits: one row, changed by pure decisions, each in a transaction of its own.

use super::codec::{from_json, json, one};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::CreditState;

impl Store {
    /// Quota as last written; the default where it never was.
    pub async fn credit(&self) -> Result<CreditState, StoreError> {
        self.read("read the quota", credit).await
    }

    /// Changes the quota as `decide` says. No other process can change it meanwhile, and what was answered is on the disk.
    pub async fn decide_credit<T: Send + 'static>(
        &self,
        decide: impl FnOnce(CreditState) -> (CreditState, T) + Send + 'static,
    ) -> Result<T, StoreError> {
        self.act("write the quota", move |to| {
            let (state, answer) = decide(credit(to)?);
            let state = json("the credit state", &state)?;
            to.prepare_cached(
                "INSERT INTO credit (one, state) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET state = excluded.state",
            )?
            .execute([state])?;
            Ok(answer)
        })
        .await
    }
}

pub(super) fn credit(from: &Transaction<'_>) -> Result<CreditState, StoreFault> {
    let state = one(&mut *from.prepare_cached("SELECT state FROM credit")?, [], |row| {
        from_json("the state", "the quota", &row.get::<_, String>(0)?)
    })?;
    Ok(state.unwrap_or_default())
}
