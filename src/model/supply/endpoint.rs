//! The endpoints of the source, and the resources whose records they return.

words! {
    /// The kind of a record: the first word of a rule's `on`.
    #[derive(PartialOrd, Ord)]
    Resource {
        Unlock = "unlock",
        Burn = "burn",
        Buyback = "buyback",
        /// The emission of a day or a week.
        Emission = "emission",
        /// A row of the allocation table.
        Allocation = "allocation",
        Funding = "funding",
    }
}

words! {
    /// An endpoint that the daemon polls on a schedule: a key of `[schedule]`, and the label `endpoint` of metrics.
    #[derive(PartialOrd, Ord)]
    Endpoint {
        /// All tokens with their flags and `lastUpdatedDate`.
        TokenList = "token_list",
        /// The next event of each token.
        Upcoming = "upcoming",
        /// The schedule of one token.
        UnlockEvents = "unlock_events",
        Burn = "burn",
        Buyback = "buyback",
        /// The allocation table of one token.
        Allocations = "allocations",
        /// The daily emission of one token.
        DailyEmission = "daily_emission",
        /// The weekly emission of one token, from the older base URL.
        WeeklyEmission = "weekly_emission",
        /// The investor list, and the details of investors with a new round.
        Investors = "investors",
    }
}

impl Endpoint {
    /// Returns whether it is polled separately for each token.
    #[must_use]
    pub fn is_per_token(self) -> bool {
        !matches!(self, Endpoint::TokenList | Endpoint::Upcoming | Endpoint::Investors)
    }

    /// Returns the resource of its records; `None` if it returns no records.
    #[must_use]
    pub fn resource(self) -> Option<Resource> {
        match self {
            Endpoint::TokenList => None,
            Endpoint::Upcoming | Endpoint::UnlockEvents => Some(Resource::Unlock),
            Endpoint::Burn => Some(Resource::Burn),
            Endpoint::Buyback => Some(Resource::Buyback),
            Endpoint::Allocations => Some(Resource::Allocation),
            Endpoint::DailyEmission | Endpoint::WeeklyEmission => Some(Resource::Emission),
            Endpoint::Investors => Some(Resource::Funding),
        }
    }
}
