//! The change of a token's daily linear release at one instant.

use super::ahead::LinearPiece;
use crate::time::Timestamp;

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

    #[test]
    fn step_compares_all_linear_unlocks_at_the_instant() {
        let day = 86_400_000;
        let piece =
            |start: i64, end: i64, amount: Option<f64>| LinearPiece::new(start * day, end * day, amount).expect("a piece");
        let pieces =
            [piece(0, 10, Some(100.0)), piece(5, 10, Some(100.0)), piece(10, 20, Some(150.0)), piece(30, 40, Some(10.0))];
        let step = |at: i64| RateStep::at(pieces, Timestamp::from_timestamp_millis(at * day).expect("a time"));
        assert_eq!(step(5), Some(RateStep { before: 10.0, after: 30.0 }));
        assert_eq!(step(10), Some(RateStep { before: 30.0, after: 15.0 }));
        assert_eq!(step(10).and_then(RateStep::factor), Some(0.5));
        assert_eq!(step(0).and_then(RateStep::factor), Some(f64::INFINITY));
        assert_eq!(step(20).and_then(RateStep::factor), Some(0.0));
        // The sum of no rates is minus zero.
        assert_eq!(RateStep { before: -0.0, after: 1.0 }.factor(), Some(f64::INFINITY));
        assert_eq!(RateStep { before: 0.0, after: -0.0 }.factor(), None);
        assert_eq!([step(7), step(25)], [None, None], "nothing begins or ends");
        let at = Timestamp::from_timestamp_millis(10 * day).expect("a time");
        assert_eq!(RateStep::at([piece(0, 10, Some(1.0)), piece(5, 15, None)], at), None);
    }
}
