//! API records for a data service: a token with a cliff, a burn, or a buyback.

use model::wire;
use serde_json::json;

/// A cliff with one allocation, at one dollar per token.
pub fn cliff(date: &str, allocation: &str, amount: f64, precision: &str) -> wire::UnlockEvent {
    serde_json::from_value(json!({
        "unlockDate": date, "tokenName": "Alpha", "tokenSymbol": "ALP", "listedMethod": "INTERNAL", "dataSource": "Whitepaper",
        "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": amount, "cliffValue": amount, "valueToMarketCap": amount / 1e6, "allocationBreakdown": [
            {"unlockDate": date, "allocationName": allocation, "standardAllocationName": "Founder / Team", "cliffAmount": amount,
             "cliffValue": amount, "referencePrice": 1.0, "referencePriceUpdatedTime": "2026-02-28T00:00:00Z", "unlockPrecision": precision}]},
        "latestUpdateDate": "2026-02-01T00:00:00Z"
    }))
    .expect("an event")
}

pub fn item(id: &str, symbol: &str) -> wire::TokenItem {
    serde_json::from_value(json!({
        "id": id, "name": symbol, "symbol": symbol, "listedMethod": "INTERNAL", "marketCap": 1e8, "maxSupply": 1e9,
        "hasBurn": true, "hasBuyback": true, "lastUpdatedDate": "2026-02-01T00:00:00Z"
    }))
    .expect("a token")
}

pub fn burn(date: &str, amount: f64) -> wire::Burn {
    serde_json::from_value(json!({"burnEventLabel": "Burn", "burnType": "PROGRAMMATIC", "burnDate": date, "amount": amount,
        "pricePerToken": 1.0, "value": amount, "metadata": {"burners": ["PROJECT"], "burnReasons": ["GOVERNANCE"]}}))
    .expect("a burn")
}

pub fn buyback(date: &str, amount: f64) -> wire::Buyback {
    serde_json::from_value(json!({"buybackEventLabel": "Buyback", "buybackType": "TREASURY_BUYBACK", "buybackDate": date,
        "tokenAmount": amount, "value": amount, "spentAmount": null, "spentUnit": "", "resolution": "period_net", "basis": "estimated"}))
    .expect("a buyback")
}
