//! Who receives tokens: the categories that the source assigns to allocations.

use crate::wire::UnlockEvent;

/// The category of an allocation (`standardAllocationName`). The source can add categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipient {
    Team,
    Private,
    Public,
    Community,
    Reserve,
    Liquidity,
    /// A mixed allocation, an unknown category, or none.
    Other,
}

impl Recipient {
    /// All recipients, in the order of legends.
    pub const ALL: [Recipient; 7] = [
        Recipient::Team,
        Recipient::Private,
        Recipient::Public,
        Recipient::Community,
        Recipient::Reserve,
        Recipient::Liquidity,
        Recipient::Other,
    ];

    /// Parses a `standardAllocationName`, ignoring case.
    #[must_use]
    pub fn parse(standard: Option<&str>) -> Self {
        const SHORT: [(&str, Recipient); 2] = [("founder/team", Recipient::Team), ("team", Recipient::Team)];
        let Some(text) = standard.map(str::trim) else { return Recipient::Other };
        let is_it = |of: &Recipient| of.categories().iter().any(|category| category.eq_ignore_ascii_case(text));
        let short = || SHORT.iter().find(|(short, _)| short.eq_ignore_ascii_case(text)).map(|(_, of)| *of);
        Self::ALL.into_iter().find(is_it).or_else(short).unwrap_or(Recipient::Other)
    }

    /// Returns the spellings of the source, the usual one first.
    #[must_use]
    pub const fn categories(self) -> &'static [&'static str] {
        match self {
            Recipient::Team => &["Founder / Team"],
            Recipient::Private => &["Private Investors"],
            Recipient::Public => &["Public Investors"],
            Recipient::Community => &["Community"],
            Recipient::Reserve => &["Reserve", "Reserved"],
            Recipient::Liquidity => &["Liquidity"],
            Recipient::Other => &["Other", "Others"],
        }
    }

    /// Returns all spellings of the source, with the recipient of each.
    pub fn all_categories() -> impl Iterator<Item = (&'static str, Recipient)> + Clone {
        Self::ALL.into_iter().flat_map(|of| of.categories().iter().map(move |category| (*category, of)))
    }

    /// Returns who belongs to the category, as the source defines it.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Recipient::Team => "founders, team, advisors, core contributors, and future employees",
            Recipient::Private => "investors before the public sale: strategic and venture investors, angels",
            Recipient::Public => "buyers in a public sale: ICO, IEO, IDO, or launchpad",
            Recipient::Community => "airdrops, rewards, staking, and liquidity mining",
            Recipient::Reserve => "foundation, treasury, ecosystem, marketing, and grants",
            Recipient::Liquidity => "liquidity on exchanges",
            Recipient::Other => "mixed allocations",
        }
    }

    /// Returns whether the recipients are insiders: founders, team, and private investors.
    #[must_use]
    pub const fn is_insider(self) -> bool {
        matches!(self, Recipient::Team | Recipient::Private)
    }

    /// Returns the name in charts and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Recipient::Team => "Team",
            Recipient::Private => "Private investors",
            Recipient::Public => "Public investors",
            Recipient::Community => "Community",
            Recipient::Reserve => "Reserve",
            Recipient::Liquidity => "Liquidity",
            Recipient::Other => "Other",
        }
    }

    /// Returns the class that sets the color in stylesheets.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Recipient::Team => "k-team",
            Recipient::Private => "k-private",
            Recipient::Public => "k-public",
            Recipient::Community => "k-community",
            Recipient::Reserve => "k-reserve",
            Recipient::Liquidity => "k-liquidity",
            Recipient::Other => "k-other",
        }
    }

    /// Returns the fraction of an event's tokens, from 0 to 1, that goes to the recipients for which `is_it` returns `true`. Counts the
    /// cliff unlock, or the linear unlocks if there is no cliff unlock. `None` if the event has no breakdown, or if the amount or the
    /// category of a part is unknown.
    pub fn share_of(event: &UnlockEvent, is_it: impl Fn(Self) -> bool) -> Option<f64> {
        let cliffs = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let linears = event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items());
        let cliffs = cliffs.iter().map(|part| (part.standard_allocation_name.as_str(), part.cliff_amount.copied()));
        let linears = linears.iter().map(|part| (part.standard_allocation_name.as_str(), part.linear_amount.copied()));
        let sum = |parts: &mut dyn Iterator<Item = (Option<&str>, Option<f64>)>| {
            let (mut own, mut whole) = (0.0, 0.0);
            for (category, amount) in parts {
                let amount = amount.filter(|amount| amount.is_finite() && *amount >= 0.0)?;
                whole += amount;
                own += if is_it(Self::parse(Some(category?))) { amount } else { 0.0 };
            }
            Some((own, whole))
        };
        let mut cliffs = cliffs.peekable();
        let (own, whole) = if cliffs.peek().is_some() { sum(&mut cliffs) } else { sum(&mut { linears }) }?;
        (whole > 0.0).then(|| own / whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_source_has_a_recipient() {
        for (category, recipient) in Recipient::all_categories() {
            assert_eq!(Recipient::parse(Some(category)), recipient);
            assert_eq!(Recipient::parse(Some(&category.to_uppercase())), recipient);
        }
        assert_eq!(Recipient::parse(Some("Founder/Team ")), Recipient::Team);
        assert_eq!([Recipient::parse(Some("Insiders")), Recipient::parse(None)], [Recipient::Other; 2]);
    }

    #[test]
    fn share_is_known_only_with_every_amount_and_category() {
        let share = |parts: &str| {
            let event = serde_json::from_str(&format!("{{{parts}}}")).expect("an event");
            Recipient::share_of(&event, Recipient::is_insider)
        };
        let cliffs = |parts: &str| share(&format!(r#""cliffUnlocks":{{"allocationBreakdown":[{parts}]}}"#));
        let (team, community) = (
            r#"{"standardAllocationName":"Founder / Team","cliffAmount":60}"#,
            r#"{"standardAllocationName":"Community","cliffAmount":140}"#,
        );
        assert_eq!(cliffs(&format!("{team},{community}")), Some(0.3));
        assert_eq!(cliffs(&format!(r#"{team},{{"cliffAmount":5}}"#)), None);
        assert_eq!(cliffs(&format!(r#"{team},{{"standardAllocationName":"Community"}}"#)), None);
        assert_eq!(cliffs(""), None);
        let linear =
            r#""linearUnlocks":{"allocationBreakdown":[{"standardAllocationName":"Private Investors","linearAmount":7}]}"#;
        assert_eq!(share(linear), Some(1.0));
        let both = format!(r#""cliffUnlocks":{{"allocationBreakdown":[{community}]}},{linear}"#);
        assert_eq!(share(&both), Some(0.0), "the parts of the cliff count");
    }
}
