//! Tokens and their allocation tables.

use super::prelude::*;

wire! {
    /// A token of `/token/list`. Its key is `id` here and `tokenId` everywhere else.
    TokenItem {
        /// Slug.
        id: Text = "id",
        name: Text = "name",
        /// Ticker; not unique.
        symbol: Text = "symbol",
        /// `INTERNAL`, `AI`, `EXTERNAL`, or what comes.
        listed_method: Text = "listedMethod",
        /// Tokens.
        circulating_supply: f64 = "circulatingSupply",
        /// USD.
        market_cap: f64 = "marketCap",
        /// Tokens.
        max_supply: f64 = "maxSupply",
        /// Tokens, without those to be determined.
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
        /// The only mark that something about the token changed.
        last_updated_date: Timestamp = "lastUpdatedDate",
    }
}

wire! {
    /// One row of the allocation table.
    Allocation {
        allocation_name: Text = "allocationName",
        /// `Scheduled`, `TBD`, or what comes.
        allocation_type: Text = "allocationType",
        standard_allocation_name: Text = "standardAllocationName",
        /// Tokens.
        allocation_unlocked_amount: f64 = "allocationUnlockedAmount",
        /// Tokens.
        allocation_locked_amount: f64 = "allocationLockedAmount",
        /// Tokens.
        allocation_amount: f64 = "allocationAmount",
        /// Percent.
        tracked_allocation_percentage: f64 = "trackedAllocationPercentage",
    }
}

wire! {
    /// Allocation table of a token. The payload names no token id.
    AllocationsData {
        name: Text = "name",
        symbol: Text = "symbol",
        listed_method: Text = "listedMethod",
        /// Tokens.
        max_supply: f64 = "maxSupply",
        last_updated_date: Timestamp = "lastUpdatedDate",
        total_unlocked_amount: f64 = "totalUnlockedAmount",
        total_locked_amount: f64 = "totalLockedAmount",
        total_untracked_amount: f64 = "totalUntrackedAmount",
        total_tbd_locked_amount: f64 = "totalTBDLockedAmount",
        allocations: Vec<Allocation> = "allocations",
    }
}

/// A row of `prices.json` in a data folder: what a token's values were made with.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceRow {
    /// The slug.
    pub token_id: String,
    /// USD.
    pub reference_price: Option<f64>,
    /// USD.
    pub market_cap: Option<f64>,
}
