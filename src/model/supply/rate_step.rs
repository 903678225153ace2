//! The change of a token's daily linear release at one instant.

use super::ahead::LinearPiece;
use super::rate_changes::is_notable;
use crate::time::{SumWindow, Timestamp};

/// The factor by which a release rises or falls in a large step.
const LARGE_FACTOR: f64 = 2.0;

/// The daily linear release just before an instant, and from then on, in tokens per day.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateStep {
    pub before: f64,
    pub after: f64,
}

impl RateStep {
    /// Returns the step at `at`. `None` if no linear unlock begins or ends then, or if the amount of one that runs is unknown.
    #[must_use]
    pub fn at(pieces: impl IntoIterator<Item = LinearPiece>, at: Timestamp) -> Option<Self> {
        let at = at.timestamp_millis();
        let (mut step, mut is_step) = (Self::default(), false);
        for piece in pieces {
            let (ran, runs) = (piece.starts_at < at && at <= piece.ends_at, piece.runs_at(at));
            if !ran && !runs {
                continue;
            }
            let per_day = piece.per_day()?;
            step.before += if ran { per_day } else { 0.0 };
            step.after += if runs { per_day } else { 0.0 };
            is_step |= ran != runs;
        }
        is_step.then_some(step)
    }

    /// Returns the notable steps after the start of `window`, up to and including its end, each with its instant, in order.
    #[must_use]
    pub fn all(pieces: &[LinearPiece], window: SumWindow) -> Vec<(Timestamp, Self)> {
        let mut edges: Vec<i64> = pieces.iter().flat_map(|piece| [piece.starts_at, piece.ends_at]).collect();
        edges.retain(|at| window.at.timestamp_millis() < *at && *at <= window.until.timestamp_millis());
        edges.sort_unstable();
        edges.dedup();
        let step = |at: i64| {
            let at = Timestamp::from_timestamp_millis(at)?;
            Self::at(pieces.iter().copied(), at).filter(|step| is_notable(step.before, step.after)).map(|step| (at, step))
        };
        edges.into_iter().filter_map(step).collect()
    }

    /// Returns whether the release at least doubles, or falls to a half or less.
    #[must_use]
    pub fn is_large(self) -> bool {
        self.factor().is_some_and(|factor| factor >= LARGE_FACTOR || factor <= LARGE_FACTOR.recip())
    }

    /// Returns the release after the step, divided by the release before it. Infinite if nothing was released before. `None` if nothing is
    /// released on either side.
    #[must_use]
    pub fn factor(self) -> Option<f64> {
        if self.before > 0.0 { Some(self.after / self.before) } else { (self.after > 0.0).then_some(f64::INFINITY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn day_millis() -> i64 {
        86_400_000
    }

    #[test]
    fn step_compares_all_linear_unlocks_at_the_instant() {
        let day = day_millis();
        let piece =
            |start: i64, end: i64, amount: Option<f64>| LinearPiece::new(start * day, end * day, amount).expect("a piece");
        let pieces =
            [piece(0, 10, Some(100.0)), piece(5, 10, Some(100.0)), piece(10, 20, Some(150.0)), piece(30, 40, Some(10.0))];
        let step = |at: i64| RateStep::at(pieces, Timestamp::from_timestamp_millis(at * day).expect("a time"));
        assert_eq!(step(5), Some(RateStep { before: 10.0, after: 30.0 }));
        assert_eq!(step(10), Some(RateStep { before: 30.0, after: 15.0 }));
        assert_eq!(step(10).and_then(RateStep::factor), Some(0.5));
        assert_eq!([5, 10, 20].map(|at| step(at).map(RateStep::is_large)), [Some(true); 3]);
        assert!(!RateStep { before: 10.0, after: 19.0 }.is_large() && !RateStep { before: 10.0, after: 6.0 }.is_large());
        assert_eq!(step(0).and_then(RateStep::factor), Some(f64::INFINITY));
        assert_eq!(step(20).and_then(RateStep::factor), Some(0.0));
        let window = |from: i64, until: i64| {
            let time = |day: i64| Timestamp::from_timestamp_millis(day * day_millis()).expect("a time");
            SumWindow { at: time(from), until: time(until) }
        };
        let days: Vec<i64> =
            RateStep::all(&pieces, window(0, 20)).iter().map(|(at, _)| at.timestamp_millis() / day_millis()).collect();
        assert_eq!(days, [5, 10, 20]);
        // The sum of no rates is minus zero.
        assert_eq!(RateStep { before: -0.0, after: 1.0 }.factor(), Some(f64::INFINITY));
        assert_eq!(RateStep { before: 0.0, after: -0.0 }.factor(), None);
        assert_eq!([step(7), step(25)], [None, None], "nothing begins or ends");
        let at = Timestamp::from_timestamp_millis(10 * day).expect("a time");
        assert_eq!(RateStep::at([piece(0, 10, Some(1.0)), piece(5, 15, None)], at), None);
    }
}
