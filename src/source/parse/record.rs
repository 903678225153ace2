//! Checks whether records are usable and their shares plausible, for each kind of record.

use model::wire::{self, Lenient, Maybe};

pub(super) trait UsableRecord: Lenient {
    /// Returns why the record cannot be used, or `None` if it can.
    fn unusable(&self) -> Option<&'static str>;
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
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.id).then_some("a token without `id`")
    }
}

impl UsableRecord for wire::UpcomingItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.token_id).then_some("an event without `tokenId`")
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
    fn unusable(&self) -> Option<&'static str> {
        let has_parts = self.cliff_unlocks.get().is_some_and(|cliffs| !cliffs.allocation_breakdown.items().is_empty())
            || self.linear_unlocks.get().is_some_and(|linears| !linears.allocation_breakdown.items().is_empty());
        (self.unlock_date.get().is_none() && !has_parts).then_some("an event without `unlockDate` and without any allocation")
    }
    fn is_undated(&self) -> bool {
        self.unlock_date.get().is_none()
    }
    fn shares(&self, record_share: &mut dyn FnMut(&str, Option<f64>)) {
        record_share("cliffUnlocks.valueToMarketCap", self.value_to_market_cap());
    }
}

impl UsableRecord for wire::Emission {
    fn unusable(&self) -> Option<&'static str> {
        self.start_date.get().is_none().then_some("an emission without `startDate`")
    }
}

impl UsableRecord for wire::InvestorItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.investor_id).then_some("an investor without `investorId`")
    }
}

impl UsableRecord for wire::Burn {
    fn unusable(&self) -> Option<&'static str> {
        self.burn_date.get().is_none().then_some("a burn without `burnDate`")
    }
}

impl UsableRecord for wire::Buyback {
    fn unusable(&self) -> Option<&'static str> {
        self.buyback_date.get().is_none().then_some("a buyback without `buybackDate`")
    }
}

impl UsableRecord for wire::Allocation {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.allocation_name).then_some("an allocation without `allocationName`")
    }
}

impl UsableRecord for wire::FundingRound {
    fn unusable(&self) -> Option<&'static str> {
        (is_blank(&self.token_id) && is_blank(&self.round_name)).then_some("a round without `tokenId` and `roundName`")
    }
}

fn is_blank(text: &Maybe<wire::Text>) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}
