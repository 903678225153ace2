//! The ledger of API credits: one row, changed in one transaction by a pure function.

use super::codec::{from_json, json, one};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::CreditState;

impl Store {
    /// Returns the credit state, or the default if none was stored.
    pub async fn credit(&self) -> Result<CreditState, StoreError> {
        self.read("read the quota", credit).await
    }

    /// Replaces the credit state with the result of `decide`. The transaction excludes other processes, and the result
    /// is durable.
    pub async fn decide_credit<T: Send + 'static>(
        &self,
        decide: impl FnOnce(CreditState) -> (CreditState, T) + Send + 'static,
    ) -> Result<T, StoreError> {
        self.act("write the quota", move |to| {
            let (state, response) = decide(credit(to)?);
            let state = json("the credit state", &state)?;
            to.prepare_cached(
                "INSERT INTO credit (one, state) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET state = excluded.state",
            )?
            .execute([state])?;
            Ok(response)
        })
        .await
    }
}

pub(super) fn credit(from: &Transaction<'_>) -> Result<CreditState, StoreFault> {
    let state = one(&mut *from.prepare_cached("SELECT state FROM credit")?, [], |row| {
        from_json("the state", "the quota", &row.get::<String>(0)?)
    })?;
    Ok(state.unwrap_or_default())
}
