//! Which records of an answer can be used, and which of their numbers are absurd: one table of both for each kind of record.

use model::wire::{self, Lenient, Maybe};

/// A record of a list: whether it can be told from others, and its numbers.
pub(super) trait UsableRecord: Lenient {
    /// Why it cannot be used, if it cannot.
    fn unusable(&self) -> Option<&'static str>;
    /// Whether it has no date although its kind has one, so that it would count as one whose date is to be determined.
    fn is_undated(&self) -> bool {
        false
    }
    /// Numbers that should be neither negative nor absurd, with their names.
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>));
}

pub(super) fn note_amounts<T: UsableRecord>(record: &T) {
    record.amounts(&mut |name, value| {
        let Some(value) = value else { return };
        let most = if name.ends_with("ToMarketCap") || name.ends_with("ercentage") { ABSURD_PERCENT } else { ABSURD };
        if value < 0.0 {
            wire::note(|| format!("{name} is negative ({value}); it is kept"));
        } else if value > most {
            wire::note(|| format!("{name} is beyond all measure ({value:e}); it is kept"));
        }
    });
}

/// Tokens, USD or percent beyond which a number is noted as absurd.
const ABSURD: f64 = 1e30;

/// Percent of the market cap beyond which a ratio is noted as absurd.
const ABSURD_PERCENT: f64 = 1e6;

impl UsableRecord for wire::TokenItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.id).then_some("a token without `id`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("circulatingSupply", self.circulating_supply.copied());
        tell("marketCap", self.market_cap.copied());
        tell("maxSupply", self.max_supply.copied());
        tell("totalLockedAmount", self.total_locked_amount.copied());
        tell("tbdLockedAmount", self.tbd_locked_amount.copied());
        tell("unlockedAmount", self.unlocked_amount.copied());
    }
}

impl UsableRecord for wire::UpcomingItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.token_id).then_some("an event without `tokenId`")
    }
    fn is_undated(&self) -> bool {
        self.upcoming_event.get().is_some_and(UsableRecord::is_undated)
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("marketCap", self.market_cap.copied());
        tell("releasedPercentage", self.released_percentage.copied());
        if let Some(event) = self.upcoming_event.get() {
            event.amounts(tell);
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
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        if let Some(cliffs) = self.cliff_unlocks.get() {
            tell("cliffUnlocks.cliffAmount", cliffs.cliff_amount.copied());
            tell("cliffUnlocks.cliffValue", cliffs.cliff_value.copied());
            tell("cliffUnlocks.totalCliffAmount", cliffs.total_cliff_amount.copied());
            tell("cliffUnlocks.totalCliffValue", cliffs.total_cliff_value.copied());
            tell("cliffUnlocks.valueToMarketCap", cliffs.value_to_market_cap.copied());
            for (index, part) in cliffs.allocation_breakdown.items().iter().enumerate() {
                if part.cliff_amount.copied().is_some_and(is_odd) || part.cliff_value.copied().is_some_and(is_odd) {
                    tell(&format!("cliffUnlocks.allocationBreakdown[{index}].cliffAmount"), part.cliff_amount.copied());
                    tell(&format!("cliffUnlocks.allocationBreakdown[{index}].cliffValue"), part.cliff_value.copied());
                }
            }
        }
        if let Some(linears) = self.linear_unlocks.get() {
            tell("linearUnlocks.linearAmount", linears.linear_amount.copied());
            tell("linearUnlocks.linearValue", linears.linear_value.copied());
            for (index, part) in linears.allocation_breakdown.items().iter().enumerate() {
                if part.linear_amount.copied().is_some_and(is_odd) {
                    tell(&format!("linearUnlocks.allocationBreakdown[{index}].linearAmount"), part.linear_amount.copied());
                }
            }
        }
    }
}

impl UsableRecord for wire::Emission {
    fn unusable(&self) -> Option<&'static str> {
        self.start_date.get().is_none().then_some("an emission without `startDate`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("unlockAmount", self.unlock_amount.copied());
        tell("unlockValue", self.unlock_value.copied());
    }
}

impl UsableRecord for wire::InvestorItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.investor_id).then_some("an investor without `investorId`")
    }
    fn amounts(&self, _: &mut dyn FnMut(&str, Option<f64>)) {}
}

impl UsableRecord for wire::Burn {
    fn unusable(&self) -> Option<&'static str> {
        self.burn_date.get().is_none().then_some("a burn without `burnDate`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("amount", self.amount.copied());
        tell("value", self.value.copied());
    }
}

impl UsableRecord for wire::Buyback {
    fn unusable(&self) -> Option<&'static str> {
        self.buyback_date.get().is_none().then_some("a buyback without `buybackDate`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("tokenAmount", self.token_amount.copied());
        tell("value", self.value.copied());
    }
}

impl UsableRecord for wire::Allocation {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.allocation_name).then_some("an allocation without `allocationName`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("allocationAmount", self.allocation_amount.copied());
        tell("allocationUnlockedAmount", self.allocation_unlocked_amount.copied());
        tell("allocationLockedAmount", self.allocation_locked_amount.copied());
    }
}

impl UsableRecord for wire::FundingRound {
    fn unusable(&self) -> Option<&'static str> {
        (is_blank(&self.token_id) && is_blank(&self.round_name)).then_some("a round without `tokenId` and `roundName`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("totalAmountRaisedinThatRound", self.total_amount_raised.copied());
        tell("valuation", self.valuation.copied());
    }
}

fn is_blank(text: &Maybe<String>) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

fn is_odd(value: f64) -> bool {
    !(0.0..=ABSURD).contains(&value)
}
