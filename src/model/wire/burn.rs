//! Burns and buybacks.

use super::prelude::*;

wire! {
    /// Burners and reasons of a burn.
    BurnMetadata {
        burners: Vec<String> = "burners",
        burn_reasons: Vec<String> = "burnReasons",
    }
}

wire! {
    /// One burn. The API gives it no id.
    Burn {
        burn_event_label: Text = "burnEventLabel",
        burn_type: Text = "burnType",
        burn_date: Timestamp = "burnDate",
        /// The amount in tokens.
        amount: f64 = "amount",
        /// Price in USD per token.
        price_per_token: f64 = "pricePerToken",
        /// The value in USD.
        value: f64 = "value",
        metadata: BurnMetadata = "metadata",
    }
}

wire! {
    /// Burns of a token. The totals cover the requested period.
    BurnData {
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        /// The amount in tokens.
        total_burn_amount: f64 = "totalBurnAmount",
        /// The value in USD.
        total_burn_value: f64 = "totalBurnValue",
        burns: Vec<Burn> = "burns",
    }
}

wire! {
    /// One buyback. The API gives it no id.
    Buyback {
        buyback_event_label: Text = "buybackEventLabel",
        buyback_type: Text = "buybackType",
        buyback_date: Timestamp = "buybackDate",
        /// The amount in tokens.
        token_amount: f64 = "tokenAmount",
        /// The value in USD.
        value: f64 = "value",
        /// Amount in `spentUnit`.
        spent_amount: f64 = "spentAmount",
        /// The asset that was spent; can be empty.
        spent_unit: Text = "spentUnit",
        target_address: Text = "targetAddress",
        buyer_address: Text = "buyerAddress",
        resolution: Text = "resolution",
        basis: Text = "basis",
    }
}

wire! {
    /// Buybacks of a token. The totals cover the requested period.
    BuybackData {
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        /// The amount in tokens.
        total_buyback_amount: f64 = "totalBuybackAmount",
        /// Value in USD, from the fifth API version on.
        total_buyback_value: f64 = "totalBuybackValue",
        buybacks: Vec<Buyback> = "buybacks",
    }
}
