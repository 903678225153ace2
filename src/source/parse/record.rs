//! Which records of an answer can be used, and which of their shares are absurd: one table of both for each kind of record.

use model::wire::{self, Lenient, Maybe};

/// A record of a list: whether it can be told from others, and its numbers.
pub(super) trait UsableRecord: Lenient {
    /// Why it cannot be used, if it cannot.
    fn unusable(&self) -> Option<&'static str>;
    /// Whether it has no date although its kind has one, so that it would count as one whose date is to be determined.
    fn is_undated(&self) -> bool {
        false
    }
    /// Shares in percent, with their names.
    fn shares(&self, _: &mut dyn FnMut(&str, Option<f64>)) {}
}

pub(super) fn note_shares<T: UsableRecord>(record: &T) {
    record.shares(&mut |name, value| {
        if value.is_some_and(|value| value > ABSURD_PERCENT) {
            wire::note(|| format!("{name} is beyond all measure ({:e}); it is kept", value.unwrap_or_default()));
        }
    });
}

/// Percent beyond which a share is noted as absurd. Amounts that cannot be are unreadable: see [`Lenient`].
const ABSURD_PERCENT: f64 = 1e6;

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
    fn shares(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("releasedPercentage", self.released_percentage.copied());
        if let Some(event) = self.upcoming_event.get() {
            event.shares(tell);
        }
    }
}

impl UsableRecord for wire::UnlockEvent {
    /// An event without a date is one whose date is to be determined, as long as it says what would unlock.
    fn unusable(&self) -> Option<&'static str> {
        let has_parts = self.cliff_unlocks.get().is_some_and(|cliffs| !cliffs.allocation_breakdown.items().is_empty())
            || self.linear_unlocks.get().is_some_and(|linears| !linears.allocation_breakdown.items().is_empty());
        (self.unlock_date.get().is_none() && !has_parts).then_some("an event without `unlockDate` and without any allocation")
    }
    fn is_undated(&self) -> bool {
        self.unlock_date.get().is_none()
    }
    fn shares(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("cliffUnlocks.valueToMarketCap", self.value_to_market_cap());
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
