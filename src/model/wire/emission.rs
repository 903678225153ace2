//! Emission by day and week.

use super::{prelude::*, unlock::CommittedClaim};

wire! {
    /// One recipient's part of a day's or week's emission.
    EmissionAllocation {
        allocation_name: Text = "allocationName",
        standard_allocation_name: Text = "standardAllocationName",
        /// Tokens.
        unlock_amount: f64 = "unlockAmount",
        /// USD.
        unlock_value: f64 = "unlockValue",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

wire! {
    /// Emission of one day or one week.
    Emission {
        /// Start of the day or week.
        start_date: Timestamp = "startDate",
        /// Start of the next one.
        end_date: Timestamp = "endDate",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        listed_method: Text = "listedMethod",
        /// Tokens.
        unlock_amount: f64 = "unlockAmount",
        /// USD.
        unlock_value: f64 = "unlockValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        allocations: Vec<NamedOr<EmissionAllocation>> = "allocations",
        /// Names alone, in the first version of weekly emission.
        standard_allocations: Vec<String> = "standardAllocations",
        /// Tokens.
        total_cumulative_unlocked_amount: f64 = "totalCumulativeUnlockedAmount",
        committed_claim: CommittedClaim = "committedClaim",
    }
}
