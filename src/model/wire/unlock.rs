//! Unlock schedules.

use super::prelude::*;

wire! {
    /// What a project announced for an unlock, against what the schedule says.
    CommittedClaim {
        /// Tokens.
        amount: f64 = "amount",
        /// USD.
        value: f64 = "value",
        /// Unix seconds: the only time in the API that is not ISO 8601.
        timestamp: i64 = "timestamp",
    }
}

wire! {
    /// One recipient's part of a cliff.
    CliffAllocation {
        unlock_date: Timestamp = "unlockDate",
        allocation_name: Text = "allocationName",
        standard_allocation_name: Text = "standardAllocationName",
        /// Tokens.
        cliff_amount: f64 = "cliffAmount",
        /// USD.
        cliff_value: f64 = "cliffValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        /// `second`, `month`, …: how exact the date is.
        unlock_precision: Text = "unlockPrecision",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

wire! {
    /// What unlocks at one instant.
    CliffUnlocks {
        /// Tokens: the sum over the breakdown.
        cliff_amount: f64 = "cliffAmount",
        /// USD.
        cliff_value: f64 = "cliffValue",
        /// Tokens, under the name that the first version of `upcoming` uses.
        total_cliff_amount: f64 = "totalCliffAmount",
        /// USD, under the name that the first version of `upcoming` uses.
        total_cliff_value: f64 = "totalCliffValue",
        /// Percent of the market cap; can exceed 100. It belongs to the event, not to each allocation.
        value_to_market_cap: f64 = "valueToMarketCap",
        /// USD per token, in older versions.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        allocation_breakdown: Vec<CliffAllocation> = "allocationBreakdown",
    }
}

wire! {
    /// One recipient's linear segment.
    LinearAllocation {
        allocation_name: Text = "allocationName",
        standard_allocation_name: Text = "standardAllocationName",
        /// Tokens over the whole segment.
        linear_amount: f64 = "linearAmount",
        /// USD.
        linear_value: f64 = "linearValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        /// Tokens a day.
        daily_amount: f64 = "dailyAmount",
        /// USD a day.
        daily_value: f64 = "dailyValue",
        /// Days.
        duration_of_rate: f64 = "durationOfRate",
        begin_date: Timestamp = "beginDate",
        end_date: Timestamp = "endDate",
        unlock_precision: Text = "unlockPrecision",
    }
}

wire! {
    /// Linear segments that begin at one instant.
    LinearUnlocks {
        /// Tokens.
        linear_amount: f64 = "linearAmount",
        /// USD.
        linear_value: f64 = "linearValue",
        /// Tokens a day.
        daily_amount: f64 = "dailyAmount",
        /// USD a day.
        daily_value: f64 = "dailyValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        allocation_breakdown: Vec<LinearAllocation> = "allocationBreakdown",
    }
}

wire! {
    /// An unlock event: what unlocks, or begins to, at one instant. A row names no token: whoever asked keeps it.
    UnlockEvent {
        unlock_date: Timestamp = "unlockDate",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        listed_method: Text = "listedMethod",
        /// Origin of the schedule.
        data_source: Text = "dataSource",
        /// USD per token, in `upcoming`.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        linear_unlocks: LinearUnlocks = "linearUnlocks",
        cliff_unlocks: CliffUnlocks = "cliffUnlocks",
        latest_update_date: Timestamp = "latestUpdateDate",
    }
}

wire! {
    /// A row of `upcoming`: one token with its next event only.
    UpcomingItem {
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        /// USD.
        market_cap: f64 = "marketCap",
        /// Percent.
        released_percentage: f64 = "releasedPercentage",
        listed_method: Text = "listedMethod",
        data_source: Text = "dataSource",
        upcoming_event: UnlockEvent = "upcomingEvent",
    }
}
