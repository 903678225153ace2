//! What the daemon asks for, and what kinds of records there are.

words! {
    /// What a record is: the first word of a rule's `on`.
    #[derive(PartialOrd, Ord)]
    Resource {
        /// An unlock event.
        Unlock = "unlock",
        /// A burn.
        Burn = "burn",
        /// A buyback.
        Buyback = "buyback",
        /// The emission of a day or a week.
        Emission = "emission",
        /// A row of the allocation table.
        Allocation = "allocation",
        /// A funding round.
        Funding = "funding",
    }
}

words! {
    /// What the daemon asks for on a schedule: the keys of `[schedule]` and the label `endpoint` of the metrics.
    #[derive(PartialOrd, Ord)]
    Endpoint {
        /// All tokens with their flags and `lastUpdatedDate`.
        TokenList = "token_list",
        /// The next event of each token.
        Upcoming = "upcoming",
        /// The schedule of one token.
        UnlockEvents = "unlock_events",
        /// Burns of one token.
        Burn = "burn",
        /// Buybacks of one token.
        Buyback = "buyback",
        /// Allocation table of one token.
        Allocations = "allocations",
        /// Daily emission of one token.
        DailyEmission = "daily_emission",
        /// Weekly emission of one token, from the older base address.
        WeeklyEmission = "weekly_emission",
        /// The investor list, and the detail of those whose latest round is new.
        Investors = "investors",
    }
}

impl Endpoint {
    /// Whether it is asked once for each token.
    #[must_use]
    pub fn is_per_token(self) -> bool {
        !matches!(self, Endpoint::TokenList | Endpoint::Upcoming | Endpoint::Investors)
    }

    /// The records it brings, where it brings records.
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
