//! The table of fields per version, for responses and for the OpenAPI description.

use crate::route::DataSubject;

/// Returns whether a version has a field. Fields that are not in this table are in every version.
pub fn shows(subject: DataSubject, version: u8, object: &str, field: &str) -> bool {
    match (subject, object, field) {
        (DataSubject::TokenList, "TokenItem", "listedMethod") => version >= 2,
        (DataSubject::TokenList, "TokenItem", "hasFundraising" | "latestFundraisingRound") => version >= 3,
        (DataSubject::TokenList, "TokenItem", "hasBurn" | "hasBuyback") => version >= 4,
        (DataSubject::TokenList, "TokenItem", "hasCommittedClaim") => version >= 5,

        (DataSubject::UnlockEvents, "UnlockEvent", "listedMethod") => version >= 2,
        (DataSubject::UnlockEvents, "UnlockEvent", "linearUnlocks") => version <= 3,
        // Only `upcoming` has these fields in the event itself.
        (DataSubject::UnlockEvents, "UnlockEvent", "referencePrice" | "referencePriceUpdatedTime") => false,
        // The row that contains the event has these fields.
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
        // Stored with the record, but not part of an investor's response.
        (_, "FundingRound", "investorId" | "investorName") => false,
        _ => true,
    }
}

/// Returns the first version that covers tokens with the listed method `AI`.
pub fn covers_ai_since(subject: DataSubject) -> u8 {
    match subject {
        DataSubject::UnlockEvents => 3,
        DataSubject::DailyEmission | DataSubject::Allocations => 2,
        _ => 1,
    }
}
