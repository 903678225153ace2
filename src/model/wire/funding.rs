//! Investors and funding rounds.

use super::prelude::*;

wire! {
    /// An investor in the list.
    InvestorItem {
        investor_id: Text = "investorId",
        investor_name: Text = "investorName",
        /// One or more addresses, separated by commas.
        website: Text = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
    }
}

wire! {
    /// A funding round in the details of an investor.
    FundingRound {
        token_id: Text = "tokenId",
        round_name: Text = "roundName",
        is_lead_investor: bool = "isLeadInvestor",
        funding_date: Timestamp = "fundingDate",
        /// The amount in USD. The API spells the name like this.
        total_amount_raised: f64 = "totalAmountRaisedinThatRound",
        /// The valuation in USD.
        valuation: f64 = "valuation",
        /// Price in USD per token.
        price_per_token: f64 = "pricePerToken",
        /// The investor whose details include the round. Not in the API's JSON; we store it with the record.
        investor_id: Text = "investorId",
        /// The name of that investor. Not in the API's JSON.
        investor_name: Text = "investorName",
    }
}

wire! {
    /// An investor with its funding rounds.
    InvestorDetail {
        investor_id: Text = "investorId",
        investor_name: Text = "investorName",
        website: Text = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
        funding_rounds: Vec<FundingRound> = "fundingRounds",
    }
}

wire! {
    /// An investor of a token's funding round.
    RoundInvestor {
        investor_id: Text = "investorId",
        investor_name: Text = "investorName",
        is_lead_investor: bool = "isLeadInvestor",
    }
}

wire! {
    /// A funding round on a token's page.
    TokenFundingRound {
        funding_round: Text = "fundingRound",
        funding_date: Timestamp = "fundingDate",
        raise_type: Text = "raiseType",
        /// The amount in USD.
        amount_raised: f64 = "amountRaised",
        /// The valuation in USD.
        valuation: f64 = "valuation",
        /// Price in USD per token.
        price_per_token: f64 = "pricePerToken",
        source_url_list: Vec<String> = "sourceURLList",
        investors: Vec<RoundInvestor> = "investors",
        number_of_investors: i64 = "numberOfInvestors",
    }
}

wire! {
    /// The funding of a token.
    TokenFunding {
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        listed_method: Text = "listedMethod",
        /// The amount in USD.
        total_amount_raised: f64 = "totalAmountRaised",
        /// The amount in tokens.
        unlocked_investor: f64 = "unlockedInvestor",
        /// Percent of the investors' tokens that are released.
        investor_released_percentage: f64 = "investorReleasedPercentage",
        funding_rounds: Vec<TokenFundingRound> = "fundingRounds",
    }
}

wire! {
    /// `investors.json` of a data folder: the list, and the details of each investor.
    InvestorsFile {
        list: Vec<InvestorItem> = "list",
        details: Vec<InvestorDetail> = "details",
    }
}
