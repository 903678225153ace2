//! Tokens and their allocation tables.

use super::prelude::*;

wire! {
    /// A token of `/token/list`. Its key is `id` here and `tokenId` in all other responses.
    TokenItem {
        id: Text = "id",
        name: Text = "name",
        /// The ticker; not unique.
        symbol: Text = "symbol",
        /// `INTERNAL`, `AI`, `EXTERNAL`, or an unknown value.
        listed_method: Text = "listedMethod",
        /// The amount in tokens.
        circulating_supply: f64 = "circulatingSupply",
        /// Market cap in USD.
        market_cap: f64 = "marketCap",
        /// The amount in tokens.
        max_supply: f64 = "maxSupply",
        /// Amount in tokens, without unlocks whose date is to be determined.
        total_locked_amount: f64 = "totalLockedAmount",
        tbd_locked_amount: f64 = "tbdLockedAmount",
        unlocked_amount: f64 = "unlockedAmount",
        untracked_amount: f64 = "untrackedAmount",
        has_standard_allocation: bool = "hasStandardAllocation",
        has_fundraising: bool = "hasFundraising",
        latest_fundraising_round: Text = "latestFundraisingRound",
        has_burn: bool = "hasBurn",
        has_buyback: bool = "hasBuyback",
        has_committed_claim: bool = "hasCommittedClaim",
        website_url: Text = "websiteUrl",
        /// Changes whenever something about the token changed. The API has no other sign of a change.
        last_updated_date: Timestamp = "lastUpdatedDate",
    }
}

wire! {
    /// One row of the allocation table.
    Allocation {
        allocation_name: Text = "allocationName",
        /// `Scheduled`, `TBD`, or an unknown value.
        allocation_type: Text = "allocationType",
        standard_allocation_name: Text = "standardAllocationName",
        /// The amount in tokens.
        allocation_unlocked_amount: f64 = "allocationUnlockedAmount",
        /// The amount in tokens.
        allocation_locked_amount: f64 = "allocationLockedAmount",
        /// The amount in tokens.
        allocation_amount: f64 = "allocationAmount",
        /// Percent of the tracked supply.
        tracked_allocation_percentage: f64 = "trackedAllocationPercentage",
    }
}

wire! {
    /// The allocation table of a token. The response has no token id.
    AllocationsData {
        name: Text = "name",
        symbol: Text = "symbol",
        listed_method: Text = "listedMethod",
        /// The amount in tokens.
        max_supply: f64 = "maxSupply",
        last_updated_date: Timestamp = "lastUpdatedDate",
        total_unlocked_amount: f64 = "totalUnlockedAmount",
        total_locked_amount: f64 = "totalLockedAmount",
        total_untracked_amount: f64 = "totalUntrackedAmount",
        total_tbd_locked_amount: f64 = "totalTBDLockedAmount",
        allocations: Vec<Allocation> = "allocations",
    }
}

/// A row of `prices.json` in a data folder: the price that a token's values are based on.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceRow {
    pub token_id: String,
    /// Price in USD per token.
    pub reference_price: Option<f64>,
    /// Market cap in USD.
    pub market_cap: Option<f64>,
}
