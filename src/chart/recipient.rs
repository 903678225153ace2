//! Recipients of unlocks: their shares, and texts about them.

pub use model::Recipient;
use model::wire::UnlockEvent;

/// Returns the recipients of the cliff unlocks of an event with their fractions of the total, largest first. Ignores allocations
/// without an amount.
pub fn shares(event: &UnlockEvent) -> Vec<(Recipient, f64)> {
    let allocations = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let mut sums = [0.0; Recipient::ALL.len()];
    for allocation in allocations {
        let amount = allocation.cliff_amount.copied().filter(|amount| amount.is_finite() && *amount > 0.0).unwrap_or_default();
        let of = Recipient::parse(allocation.standard_allocation_name.as_str());
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

/// Returns the first recipient of `shares`, which is the largest. [`Recipient::Other`] if there are none.
pub fn largest(shares: &[(Recipient, f64)]) -> Recipient {
    shares.first().map_or(Recipient::Other, |(recipient, _)| *recipient)
}

/// The shares as text: `Team 60%, Reserve 40%`, or `Team` if there is only one.
pub fn label(shares: &[(Recipient, f64)]) -> String {
    match shares {
        [(only, _)] => only.name().to_owned(),
        several => {
            let part = |(recipient, share): &(Recipient, f64)| format!("{} {:.0}%", recipient.name(), share * 100.0);
            several.iter().map(part).collect::<Vec<_>>().join(", ")
        }
    }
}
