//! Investors and funding rounds.

use super::prelude::*;

wire! {
    /// An investor of the list.
    InvestorItem {
        investor_id: String = "investorId",
        investor_name: String = "investorName",
        /// One or more addresses joined by commas.
        website: String = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
    }
}

wire! {
    /// A funding round as an investor's detail tells it.
    FundingRound {
        token_id: String = "tokenId",
        round_name: String = "roundName",
        is_lead_investor: bool = "isLeadInvestor",
        funding_date: Timestamp = "fundingDate",
        /// USD; the name is spelled exactly so.
        total_amount_raised: f64 = "totalAmountRaisedinThatRound",
        /// USD.
        valuation: f64 = "valuation",
        /// USD.
        price_per_token: f64 = "pricePerToken",
        /// Not on the wire of this list: which investor's detail told it, kept with the record.
        investor_id: String = "investorId",
        /// Not on the wire of this list: the name of that investor.
        investor_name: String = "investorName",
    }
}

wire! {
    /// An investor with its rounds.
    InvestorDetail {
        investor_id: String = "investorId",
        investor_name: String = "investorName",
        website: String = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
        funding_rounds: Vec<FundingRound> = "fundingRounds",
    }
}

wire! {
    /// An investor named in a token's round.
    RoundInvestor {
        investor_id: String = "investorId",
        investor_name: String = "investorName",
        is_lead_investor: bool = "isLeadInvestor",
    }
}

wire! {
    /// A funding round as the token's page tells it.
    TokenFundingRound {
        funding_round: String = "fundingRound",
        funding_date: Timestamp = "fundingDate",
        raise_type: String = "raiseType",
        /// USD.
        amount_raised: f64 = "amountRaised",
        /// USD.
        valuation: f64 = "valuation",
        /// USD.
        price_per_token: f64 = "pricePerToken",
        source_url_list: Vec<String> = "sourceURLList",
        investors: Vec<RoundInvestor> = "investors",
        number_of_investors: i64 = "numberOfInvestors",
    }
}

wire! {
    /// Fundraising of a token.
    TokenFunding {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        listed_method: String = "listedMethod",
        /// USD.
        total_amount_raised: f64 = "totalAmountRaised",
        /// Tokens.
        unlocked_investor: f64 = "unlockedInvestor",
        /// Percent.
        investor_released_percentage: f64 = "investorReleasedPercentage",
        funding_rounds: Vec<TokenFundingRound> = "fundingRounds",
    }
}

wire! {
    /// `investors.json` of a data folder: the list, and what each investor's page tells.
    InvestorsFile {
        list: Vec<InvestorItem> = "list",
        details: Vec<InvestorDetail> = "details",
    }
}
