//! Daily and weekly emissions.

use super::{prelude::*, unlock::CommittedClaim};

wire! {
    /// The share of an emission that goes to one allocation.
    EmissionAllocation {
        allocation_name: Text = "allocationName",
        standard_allocation_name: Text = "standardAllocationName",
        /// The amount in tokens.
        unlock_amount: f64 = "unlockAmount",
        /// The value in USD.
        unlock_value: f64 = "unlockValue",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

wire! {
    /// The emission of one day or one week.
    Emission {
        /// The start of the day or week.
        start_date: Timestamp = "startDate",
        /// The start of the next day or week.
        end_date: Timestamp = "endDate",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        listed_method: Text = "listedMethod",
        /// The amount in tokens.
        unlock_amount: f64 = "unlockAmount",
        /// The value in USD.
        unlock_value: f64 = "unlockValue",
        /// Price in USD per token.
        reference_price: f64 = "referencePrice",
        allocations: Vec<NamedOr<EmissionAllocation>> = "allocations",
        /// Allocation names only, in the first version of weekly emissions.
        standard_allocations: Vec<String> = "standardAllocations",
        /// The amount in tokens.
        total_cumulative_unlocked_amount: f64 = "totalCumulativeUnlockedAmount",
        committed_claim: CommittedClaim = "committedClaim",
    }
}
