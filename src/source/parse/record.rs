//! Checks whether records are usable and their shares plausible, for each kind of record.

use std::borrow::Cow;

use crate::{redact, route::MAX_SLUG};
use model::wire::{self, Lenient, Maybe};

/// The maximum size in bytes of a name that identifies a record. PostgreSQL cannot index a text of more than 2,704 bytes.
const MAX_NAME: usize = 500;

pub(super) trait UsableRecord: Lenient {
    /// Returns why the record cannot be used, or `None` if it can.
    fn unusable(&self) -> Option<Cow<'static, str>>;
    /// Returns whether the record has no date, so that its date would be to be determined.
    fn is_undated(&self) -> bool {
        false
    }
    /// Passes name and value of each share, in percent.
    fn shares(&self, _: &mut dyn FnMut(&str, Option<f64>)) {}
}

pub(super) fn note_shares<T: UsableRecord>(record: &T) {
    record.shares(&mut |name, value| {
        if value.is_some_and(|value| value > MAX_PLAUSIBLE_PERCENT) {
            wire::note(|| format!("{name} is implausibly large ({:e}); the value is kept", value.unwrap_or_default()));
        }
    });
}

/// The share in percent above which a warning is recorded. See [`Lenient`] for impossible amounts.
const MAX_PLAUSIBLE_PERCENT: f64 = 1e6;

impl UsableRecord for wire::TokenItem {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        if is_blank(&self.id) { Some("a token without `id`".into()) } else { too_long("id", &self.id, MAX_SLUG) }
    }
}

impl UsableRecord for wire::UpcomingItem {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        if is_blank(&self.token_id) {
            return Some("an event without `tokenId`".into());
        }
        too_long("tokenId", &self.token_id, MAX_SLUG)
    }
    fn is_undated(&self) -> bool {
        self.upcoming_event.get().is_some_and(UsableRecord::is_undated)
    }
    fn shares(&self, record_share: &mut dyn FnMut(&str, Option<f64>)) {
        record_share("releasedPercentage", self.released_percentage.copied());
        if let Some(event) = self.upcoming_event.get() {
            event.shares(record_share);
        }
    }
}

impl UsableRecord for wire::UnlockEvent {
    /// An event without a date has a date to be determined, if it has allocations.
    fn unusable(&self) -> Option<Cow<'static, str>> {
        let has_parts = self.cliff_unlocks.get().is_some_and(|cliffs| !cliffs.allocation_breakdown.items().is_empty())
            || self.linear_unlocks.get().is_some_and(|linears| !linears.allocation_breakdown.items().is_empty());
        (self.unlock_date.get().is_none() && !has_parts)
            .then_some("an event without `unlockDate` and without any allocation".into())
    }
    fn is_undated(&self) -> bool {
        self.unlock_date.get().is_none()
    }
    fn shares(&self, record_share: &mut dyn FnMut(&str, Option<f64>)) {
        record_share("cliffUnlocks.valueToMarketCap", self.value_to_market_cap());
    }
}

impl UsableRecord for wire::Emission {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        self.start_date.get().is_none().then_some("an emission without `startDate`".into())
    }
}

impl UsableRecord for wire::InvestorItem {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        if is_blank(&self.investor_id) {
            return Some("an investor without `investorId`".into());
        }
        too_long("investorId", &self.investor_id, MAX_SLUG)
    }
}

impl UsableRecord for wire::Burn {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        self.burn_date.get().is_none().then_some("a burn without `burnDate`".into())
    }
}

impl UsableRecord for wire::Buyback {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        self.buyback_date.get().is_none().then_some("a buyback without `buybackDate`".into())
    }
}

impl UsableRecord for wire::Allocation {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        if is_blank(&self.allocation_name) {
            return Some("an allocation without `allocationName`".into());
        }
        too_long("allocationName", &self.allocation_name, MAX_NAME)
    }
}

impl UsableRecord for wire::FundingRound {
    fn unusable(&self) -> Option<Cow<'static, str>> {
        if is_blank(&self.token_id) && is_blank(&self.round_name) {
            return Some("a round without `tokenId` and `roundName`".into());
        }
        too_long("tokenId", &self.token_id, MAX_SLUG)
            .or_else(|| too_long("investorId", &self.investor_id, MAX_SLUG))
            .or_else(|| too_long("roundName", &self.round_name, MAX_NAME))
    }
}

fn is_blank(text: &Maybe<wire::Text>) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

/// Returns the problem of a text that is too long to identify a record.
fn too_long(field: &str, text: &Maybe<wire::Text>, max_bytes: usize) -> Option<Cow<'static, str>> {
    let text = text.as_str().filter(|text| text.len() > max_bytes)?;
    let (begin, bytes) = (redact::excerpt(text), text.len());
    Some(format!("`{field}` \"{begin}\" has {bytes} bytes, at most {max_bytes} are allowed").into())
}
