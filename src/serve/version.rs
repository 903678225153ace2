//! What each version shows: the one table that the answers are shaped by, and the description of the service is made from.

use super::ask::What;

/// Whether an object of an answer has a field in a version. What the table does not name is in every version.
#[must_use]
pub fn shows(what: What, version: u8, object: &str, field: &str) -> bool {
    match (what, object, field) {
        (What::TokenList, "TokenItem", "listedMethod") => version >= 2,
        (What::TokenList, "TokenItem", "hasFundraising" | "latestFundraisingRound") => version >= 3,
        (What::TokenList, "TokenItem", "hasBurn" | "hasBuyback") => version >= 4,
        (What::TokenList, "TokenItem", "hasCommittedClaim") => version >= 5,

        (What::UnlockEvents, "UnlockEvent", "listedMethod") => version >= 2,
        (What::UnlockEvents, "UnlockEvent", "linearUnlocks") => version <= 3,
        // Of the event itself they are told in `upcoming` alone.
        (What::UnlockEvents, "UnlockEvent", "referencePrice" | "referencePriceUpdatedTime") => false,
        // The row around the event has them.
        (What::Upcoming, "UnlockEvent", "tokenName" | "tokenSymbol" | "listedMethod" | "dataSource" | "linearUnlocks") => false,
        (What::Upcoming, "CliffUnlocks", "totalCliffAmount" | "totalCliffValue") => version < 5,
        (What::Upcoming, "CliffUnlocks", "cliffAmount" | "cliffValue") => version >= 5,
        (_, "CliffUnlocks", "totalCliffAmount" | "totalCliffValue" | "referencePrice" | "referencePriceUpdatedTime") => false,
        (_, "CliffAllocation", "committedClaim") => version >= 5,

        (What::DailyEmission, "Emission", "listedMethod") => version >= 2,
        (What::DailyEmission, "Emission" | "EmissionAllocation", "committedClaim") => version >= 5,
        (What::WeeklyEmission, "Emission", "listedMethod") => version >= 3,
        (What::WeeklyEmission, "Emission", "standardAllocations") => version == 1,
        (_, "Emission", "standardAllocations") => false,
        (What::WeeklyEmission, "Emission" | "EmissionAllocation", "committedClaim") => false,

        (What::Allocations, "AllocationsData", "listedMethod") => version >= 2,
        (What::Buyback, "BuybackData", "totalBuybackValue") => version >= 5,
        // Kept with the record, not on the wire of an investor's own page.
        (_, "FundingRound", "investorId" | "investorName") => false,
        _ => true,
    }
}

/// The first version of an endpoint that covers tokens listed by a model (`listedMethod` `AI`), where older ones do not.
#[must_use]
pub fn covers_ai_since(what: What) -> u8 {
    match what {
        What::UnlockEvents => 3,
        What::DailyEmission | What::Allocations => 2,
        _ => 1,
    }
}
