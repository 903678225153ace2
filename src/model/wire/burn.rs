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
        burn_event_label: Text = "burnEventLabel",
        burn_type: Text = "burnType",
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
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
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
        buyback_event_label: Text = "buybackEventLabel",
        buyback_type: Text = "buybackType",
        buyback_date: Timestamp = "buybackDate",
        /// Tokens bought.
        token_amount: f64 = "tokenAmount",
        /// USD.
        value: f64 = "value",
        /// In `spentUnit`.
        spent_amount: f64 = "spentAmount",
        /// May be an empty text.
        spent_unit: Text = "spentUnit",
        target_address: Text = "targetAddress",
        buyer_address: Text = "buyerAddress",
        resolution: Text = "resolution",
        basis: Text = "basis",
    }
}

wire! {
    /// Buybacks of a token; totals cover the window that was asked for.
    BuybackData {
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        /// Tokens.
        total_buyback_amount: f64 = "totalBuybackAmount",
        /// USD; from the fifth version on.
        total_buyback_value: f64 = "totalBuybackValue",
        buybacks: Vec<Buyback> = "buybacks",
    }
}
