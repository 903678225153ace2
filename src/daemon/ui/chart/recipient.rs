//! Who receives what unlocks: the source's standard allocation names, which are the same for every token.

use model::wire::CliffAllocation;

/// Who receives. Each has a colour in the sheet: `k-team` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipient {
    Team,
    Private,
    Public,
    Community,
    Reserve,
    Liquidity,
    /// A name that nobody has seen, or none.
    Other,
}

impl Recipient {
    /// All, in the order of the legend.
    pub const ALL: [Recipient; 7] = [
        Recipient::Team,
        Recipient::Private,
        Recipient::Public,
        Recipient::Community,
        Recipient::Reserve,
        Recipient::Liquidity,
        Recipient::Other,
    ];

    /// Reads `standardAllocationName`.
    pub fn of(standard: Option<&str>) -> Self {
        match standard.map(|name| name.trim().to_ascii_lowercase()).as_deref() {
            Some("founder / team" | "founder/team" | "team") => Recipient::Team,
            Some("private investors") => Recipient::Private,
            Some("public investors") => Recipient::Public,
            Some("community") => Recipient::Community,
            Some("reserve") => Recipient::Reserve,
            Some("liquidity") => Recipient::Liquidity,
            _ => Recipient::Other,
        }
    }

    /// Its name for people: the source's, shortened.
    pub fn name(self) -> &'static str {
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

    /// Its colour in the sheet.
    pub fn class(self) -> &'static str {
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
}

/// Who receives a cliff, each with its part of one, the largest first; parts without an amount are left out.
pub fn shares(parts: &[CliffAllocation]) -> Vec<(Recipient, f64)> {
    let mut sums = [0.0; Recipient::ALL.len()];
    for part in parts {
        let amount = part.cliff_amount.copied().filter(|amount| amount.is_finite() && *amount > 0.0).unwrap_or_default();
        let of = Recipient::of(part.standard_allocation_name.as_str());
        for (sum, _) in sums.iter_mut().zip(Recipient::ALL).filter(|(_, recipient)| *recipient == of) {
            *sum += amount;
        }
    }
    let total: f64 = sums.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return Vec::new();
    }
    let mut shares: Vec<(Recipient, f64)> = Recipient::ALL.into_iter().zip(sums).filter(|(_, sum)| *sum > 0.0).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares.into_iter().map(|(recipient, sum)| (recipient, sum / total)).collect()
}
