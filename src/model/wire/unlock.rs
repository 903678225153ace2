//! Unlock schedules.

use super::prelude::*;

wire! {
    /// The project's announcement of an unlock, which can differ from the schedule.
    CommittedClaim {
        /// The amount in tokens.
        amount: f64 = "amount",
        /// The value in USD.
        value: f64 = "value",
        /// Seconds since 1970: the only time in the API that is not ISO 8601.
        timestamp: i64 = "timestamp",
    }
}

wire! {
    /// The share of a cliff unlock that goes to one allocation.
    CliffAllocation {
        unlock_date: Timestamp = "unlockDate",
        allocation_name: Text = "allocationName",
        standard_allocation_name: Text = "standardAllocationName",
        /// The amount in tokens.
        cliff_amount: f64 = "cliffAmount",
        /// The value in USD.
        cliff_value: f64 = "cliffValue",
        /// Price in USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        /// The precision of the date: `second`, `month`, and so on.
        unlock_precision: Text = "unlockPrecision",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

wire! {
    /// A cliff unlock: all tokens that unlock at one instant.
    CliffUnlocks {
        /// Amount in tokens: the sum over the breakdown.
        cliff_amount: f64 = "cliffAmount",
        /// The value in USD.
        cliff_value: f64 = "cliffValue",
        /// The amount in tokens. The name in the first version of `upcoming`.
        total_cliff_amount: f64 = "totalCliffAmount",
        /// The value in USD. The name in the first version of `upcoming`.
        total_cliff_value: f64 = "totalCliffValue",
        /// Percent of market cap; can exceed 100. Applies to the whole event.
        value_to_market_cap: f64 = "valueToMarketCap",
        /// Price in USD per token, in older versions.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        allocation_breakdown: Vec<CliffAllocation> = "allocationBreakdown",
    }
}

wire! {
    /// The linear unlock of one allocation.
    LinearAllocation {
        allocation_name: Text = "allocationName",
        standard_allocation_name: Text = "standardAllocationName",
        /// Amount in tokens over the whole duration.
        linear_amount: f64 = "linearAmount",
        /// The value in USD.
        linear_value: f64 = "linearValue",
        /// Price in USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        /// Amount in tokens per day.
        daily_amount: f64 = "dailyAmount",
        /// Value in USD per day.
        daily_value: f64 = "dailyValue",
        /// The duration in days.
        duration_of_rate: f64 = "durationOfRate",
        begin_date: Timestamp = "beginDate",
        end_date: Timestamp = "endDate",
        unlock_precision: Text = "unlockPrecision",
    }
}

wire! {
    /// Linear unlocks that start at one instant.
    LinearUnlocks {
        /// The amount in tokens.
        linear_amount: f64 = "linearAmount",
        /// The value in USD.
        linear_value: f64 = "linearValue",
        /// Amount in tokens per day.
        daily_amount: f64 = "dailyAmount",
        /// Value in USD per day.
        daily_value: f64 = "dailyValue",
        /// Price in USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        allocation_breakdown: Vec<LinearAllocation> = "allocationBreakdown",
    }
}

wire! {
    /// An unlock event: all unlocks at one instant, and linear unlocks that start then. The JSON does not name the token.
    UnlockEvent {
        unlock_date: Timestamp = "unlockDate",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        listed_method: Text = "listedMethod",
        /// The origin of the schedule.
        data_source: Text = "dataSource",
        /// Price in USD per token, in `upcoming`.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        linear_unlocks: LinearUnlocks = "linearUnlocks",
        cliff_unlocks: CliffUnlocks = "cliffUnlocks",
        latest_update_date: Timestamp = "latestUpdateDate",
    }
}

wire! {
    /// A row of `upcoming`: a token with its next event.
    UpcomingItem {
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        /// Market cap in USD.
        market_cap: f64 = "marketCap",
        /// Percent of max supply that is released.
        released_percentage: f64 = "releasedPercentage",
        listed_method: Text = "listedMethod",
        data_source: Text = "dataSource",
        upcoming_event: UnlockEvent = "upcomingEvent",
    }
}
