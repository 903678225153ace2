//! Burns and buybacks.

use super::prelude::*;

wire! {
    /// Who burned, and why.
    BurnMetadata {
        burners: Vec<String> = "burners",
        burn_reasons: Vec<String> = "burnReasons",
    }
}

wire! {
    /// One burn. It has no id.
    Burn {
        burn_event_label: String = "burnEventLabel",
        burn_type: String = "burnType",
        burn_date: Timestamp = "burnDate",
        /// Tokens.
        amount: f64 = "amount",
        /// USD per token.
        price_per_token: f64 = "pricePerToken",
        /// USD.
        value: f64 = "value",
        metadata: BurnMetadata = "metadata",
    }
}

wire! {
    /// Burns of a token; totals cover the window that was asked for.
    BurnData {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        /// Tokens.
        total_burn_amount: f64 = "totalBurnAmount",
        /// USD.
        total_burn_value: f64 = "totalBurnValue",
        burns: Vec<Burn> = "burns",
    }
}

wire! {
    /// One buyback. It has no id.
    Buyback {
        buyback_event_label: String = "buybackEventLabel",
        buyback_type: String = "buybackType",
        buyback_date: Timestamp = "buybackDate",
        /// Tokens bought.
        token_amount: f64 = "tokenAmount",
        /// USD.
        value: f64 = "value",
        /// In `spentUnit`.
        spent_amount: f64 = "spentAmount",
        /// May be an empty text.
        spent_unit: String = "spentUnit",
        target_address: String = "targetAddress",
        buyer_address: String = "buyerAddress",
        resolution: String = "resolution",
        basis: String = "basis",
    }
}

wire! {
    /// Buybacks of a token; totals cover the window that was asked for.
    BuybackData {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        /// Tokens.
        total_buyback_amount: f64 = "totalBuybackAmount",
        /// USD; from the fifth version on.
        total_buyback_value: f64 = "totalBuybackValue",
        buybacks: Vec<Buyback> = "buybacks",
    }
}
