//! What each version shows: the one table that the answers are shaped by, and the description of the service is made from.

use crate::route::DataSubject;

/// Whether an object of an answer has a field in a version. What the table does not name is in every version.
pub fn shows(subject: DataSubject, version: u8, object: &str, field: &str) -> bool {
    match (subject, object, field) {
        (DataSubject::TokenList, "TokenItem", "listedMethod") => version >= 2,
        (DataSubject::TokenList, "TokenItem", "hasFundraising" | "latestFundraisingRound") => version >= 3,
        (DataSubject::TokenList, "TokenItem", "hasBurn" | "hasBuyback") => version >= 4,
        (DataSubject::TokenList, "TokenItem", "hasCommittedClaim") => version >= 5,

        (DataSubject::UnlockEvents, "UnlockEvent", "listedMethod") => version >= 2,
        (DataSubject::UnlockEvents, "UnlockEvent", "linearUnlocks") => version <= 3,
        // Of the event itself they are told in `upcoming` alone.
        (DataSubject::UnlockEvents, "UnlockEvent", "referencePrice" | "referencePriceUpdatedTime") => false,
        // The row around the event has them.
        (DataSubject::Upcoming, "UnlockEvent", "tokenName" | "tokenSymbol" | "listedMethod" | "dataSource" | "linearUnlocks") => {
            false
        }
        (DataSubject::Upcoming, "CliffUnlocks", "totalCliffAmount" | "totalCliffValue") => version < 5,
        (DataSubject::Upcoming, "CliffUnlocks", "cliffAmount" | "cliffValue") => version >= 5,
        (_, "CliffUnlocks", "totalCliffAmount" | "totalCliffValue" | "referencePrice" | "referencePriceUpdatedTime") => false,
        (_, "CliffAllocation", "committedClaim") => version >= 5,

        (DataSubject::DailyEmission, "Emission", "listedMethod") => version >= 2,
        (DataSubject::DailyEmission, "Emission" | "EmissionAllocation", "committedClaim") => version >= 5,
        (DataSubject::WeeklyEmission, "Emission", "listedMethod") => version >= 3,
        (DataSubject::WeeklyEmission, "Emission", "standardAllocations") => version == 1,
        (_, "Emission", "standardAllocations") => false,
        (DataSubject::WeeklyEmission, "Emission" | "EmissionAllocation", "committedClaim") => false,

        (DataSubject::Allocations, "AllocationsData", "listedMethod") => version >= 2,
        (DataSubject::Buyback, "BuybackData", "totalBuybackValue") => version >= 5,
        // Kept with the record, not on the wire of an investor's own page.
        (_, "FundingRound", "investorId" | "investorName") => false,
        _ => true,
    }
}

/// The first version of an endpoint that covers tokens listed by a model (`listedMethod` `AI`), where older ones do not.
pub fn covers_ai_since(subject: DataSubject) -> u8 {
    match subject {
        DataSubject::UnlockEvents => 3,
        DataSubject::DailyEmission | DataSubject::Allocations => 2,
        _ => 1,
    }
}
