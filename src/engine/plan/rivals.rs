//! The credits that polls of other endpoints need in a time span. Pure.
//!
//! Credits go to the polls with the highest priority, so at a price of `v` per credit, a feed is polled whenever its priority reaches
//! `v`. The priority of a feed grows with the square of its age: it is `V` at the present age `a`, thus `v` at the age `τ = a·√(v/V)`. In
//! a span of `D` days, a feed with `V > v` is polled once now and `⌊D/τ⌋` times later, and another one `⌊(a + D)/τ⌋` times, but at most
//! once in each slot of its endpoint.

/// A poll of another endpoint that competes for the credits of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    /// The benefit of the poll per credit.
    pub(super) priority: f64,
    pub(super) cost: f64,
    /// Days since the feed was last polled.
    pub(super) age: f64,
    /// The number of slots of its endpoint in the span.
    pub(super) slots: f64,
}

impl Rival {
    /// Returns the number of polls in `days` at which the priority is above `price`.
    fn polls_above(&self, price: f64, days: f64) -> f64 {
        let is_due = self.priority > price;
        if !self.priority.is_finite() || self.priority <= 0.0 || self.age <= 0.0 {
            return if is_due { 1.0 } else { 0.0 };
        }
        let interval = self.age * (price.max(0.0) / self.priority).sqrt();
        let polls = if is_due { 1.0 + (days / interval).floor() } else { ((self.age + days) / interval).floor() };
        polls.min(self.slots)
    }
}

/// Returns the credits that rivals with a priority above `price` need in a span of `days`.
pub(super) fn cost_above(rivals: &[Rival], price: f64, days: f64) -> f64 {
    rivals.iter().map(|rival| rival.cost * rival.polls_above(price, days)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls each feed whenever its priority reaches the price, in small steps, and counts the credits.
    fn counted(rivals: &[Rival], price: f64, days: f64) -> f64 {
        const STEPS: u32 = 2_000;
        let mut cost = 0.0;
        for rival in rivals {
            let mut age = rival.age;
            let mut slots = rival.slots;
            for _ in 0..=STEPS {
                if rival.priority * (age / rival.age).powi(2) > price && slots > 0.0 {
                    (cost, age, slots) = (cost + rival.cost, 0.0, slots - 1.0);
                }
                age += days / f64::from(STEPS);
            }
        }
        cost
    }

    #[test]
    fn cost_is_what_polls_at_this_price_cost() {
        // Sequences that fill their ranges evenly.
        let rival = |n: u32| {
            let of = |ratio: f64| (f64::from(n) * ratio).fract();
            let (priority, age) = (2.0 * of(0.618_034), 0.1 + 10.0 * of(0.754_878));
            Rival { priority, cost: f64::from(1 + n % 2), age, slots: f64::from(1 + n % 7) }
        };
        let rivals: Vec<Rival> = (1..300).map(rival).collect();
        for days in [0.04, 1.0, 7.0, 30.0] {
            for price in [0.1, 0.5, 1.0, 1.9] {
                let (expected, actual) = (counted(&rivals, price, days), cost_above(&rivals, price, days));
                assert!((expected - actual).abs() < 3.0 + 0.02 * expected, "{days} days at {price}: {expected} and {actual}");
            }
        }
    }

    #[test]
    fn only_rivals_above_the_price_count_in_a_short_span() {
        let rival = |priority| Rival { priority, cost: 1.0, age: 5.0, slots: 1.0 };
        let rivals = [rival(1.0), rival(3.0), rival(f64::INFINITY)];
        let costs = [0.0, 0.5, 1.1, 2.0, 4.0, f64::INFINITY].map(|price| cost_above(&rivals, price, 0.0));
        assert_eq!(costs, [3.0, 3.0, 2.0, 2.0, 1.0, 0.0]);
    }
}
