//! Investors and funding rounds.

use super::prelude::*;

wire! {
    /// An investor of the list.
    InvestorItem {
        investor_id: Text = "investorId",
        investor_name: Text = "investorName",
        /// One or more addresses joined by commas.
        website: Text = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
    }
}

wire! {
    /// A funding round as an investor's detail tells it.
    FundingRound {
        token_id: Text = "tokenId",
        round_name: Text = "roundName",
        is_lead_investor: bool = "isLeadInvestor",
        funding_date: Timestamp = "fundingDate",
        /// USD; the name is spelled exactly so.
        total_amount_raised: f64 = "totalAmountRaisedinThatRound",
        /// USD.
        valuation: f64 = "valuation",
        /// USD.
        price_per_token: f64 = "pricePerToken",
        /// Not on the wire of this list: which investor's detail told it, kept with the record.
        investor_id: Text = "investorId",
        /// Not on the wire of this list: the name of that investor.
        investor_name: Text = "investorName",
    }
}

wire! {
    /// An investor with its rounds.
    InvestorDetail {
        investor_id: Text = "investorId",
        investor_name: Text = "investorName",
        website: Text = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
        funding_rounds: Vec<FundingRound> = "fundingRounds",
    }
}

wire! {
    /// An investor named in a token's round.
    RoundInvestor {
        investor_id: Text = "investorId",
        investor_name: Text = "investorName",
        is_lead_investor: bool = "isLeadInvestor",
    }
}

wire! {
    /// A funding round as the token's page tells it.
    TokenFundingRound {
        funding_round: Text = "fundingRound",
        funding_date: Timestamp = "fundingDate",
        raise_type: Text = "raiseType",
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
        token_id: Text = "tokenId",
        token_name: Text = "tokenName",
        token_symbol: Text = "tokenSymbol",
        listed_method: Text = "listedMethod",
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
