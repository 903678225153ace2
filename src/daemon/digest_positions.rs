//! Adds positions to a digest when it is sent. The database, and so pages and API, have the digest without them.

use std::borrow::Cow;

use engine::digest_schedule::DigestPlan;
use model::{DueDelivery, Notification, PositionLine, ReceiverName, TokenSupply, Watch, text::error_chain};
use store::{Store, StoreError};

/// The positions, and the digests that have them.
#[derive(Clone, Debug, Default)]
pub struct DigestPositions {
    /// `None` if no digest has positions.
    watch: Option<Watch>,
    plans: Vec<DigestPlan>,
}

impl DigestPositions {
    #[must_use]
    pub fn of(watch: &Watch, plans: &[DigestPlan]) -> Self {
        let plans: Vec<DigestPlan> = plans.iter().filter(|plan| plan.has_positions).cloned().collect();
        Self { watch: (!plans.is_empty() && !watch.positions().is_empty()).then(|| watch.clone()), plans }
    }

    /// Returns the delivery with the positions of its receiver in each digest. Without them if the database cannot be read.
    pub async fn add<'d>(&self, store: &Store, receiver: &ReceiverName, delivery: &'d DueDelivery) -> Cow<'d, DueDelivery> {
        let plan = self.plans.iter().find(|plan| plan.receiver == *receiver);
        let (Some(watch), Some(plan)) = (&self.watch, plan) else { return Cow::Borrowed(delivery) };
        if !delivery.notifications.iter().any(Notification::is_digest) {
            return Cow::Borrowed(delivery);
        }
        let mut with_positions = delivery.clone();
        for notification in &mut with_positions.notifications {
            match add_positions(store, watch, plan, notification).await {
                Ok(Some(added)) => *notification = added,
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%receiver, error = error_chain(&error), "cannot read the positions of a digest; it is sent without them");
                }
            }
        }
        Cow::Owned(with_positions)
    }
}

/// Returns a digest with positions in its tokens. `None` for other notifications, and without positions.
///
/// # Errors
///
/// Fails if the database cannot be read.
pub async fn add_positions(
    store: &Store,
    watch: &Watch,
    plan: &DigestPlan,
    notification: &Notification,
) -> Result<Option<Notification>, StoreError> {
    let Some(period) = notification.digest_period().filter(|_| plan.has_positions) else { return Ok(None) };
    let narrowed = plan.narrowed(watch);
    let covers = |id: &_| narrowed.as_ref().unwrap_or(watch).covers(id);
    let held: Vec<_> =
        watch.positions().by_token().iter().filter(|(id, _)| covers(id)).map(|(id, of)| (id.clone(), *of)).collect();
    let tickers = store.tickers(held.iter().map(|(id, _)| id.clone()).collect()).await?;
    let mut lines = Vec::with_capacity(held.len());
    for (id, position) in held {
        let supply = store.token_supply(id.clone(), period.at, vec![period]).await?.unwrap_or_else(|| TokenSupply::unread(1));
        let symbol = tickers.get(&id).map_or(id.as_str(), String::as_str);
        lines.push(PositionLine::of(&id, symbol, position, &supply));
    }
    Ok(if lines.is_empty() { None } else { notification.with_positions(lines) })
}
