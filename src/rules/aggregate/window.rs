//! Time windows that rules read, and the sums over them.

use chrono::TimeDelta;

use model::{Resource, Timestamp, days};

/// A kind of token movement that windows sum up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// Future unlocks, cliff and linear.
    Ahead,
    /// Emission, as the source reports it for past days or weeks.
    Emitted,
    Burned,
    BoughtBack,
}

impl Flow {
    pub const ALL: [Flow; 4] = [Flow::Ahead, Flow::Emitted, Flow::Burned, Flow::BoughtBack];

    /// Returns the name in conditions and templates.
    pub fn as_str(self) -> &'static str {
        match self {
            Flow::Ahead => "ahead",
            Flow::Emitted => "emitted",
            Flow::Burned => "burned",
            Flow::BoughtBack => "boughtBack",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flow| flow.as_str() == word)
    }

    /// Returns the name of the latest entry in conditions and templates. `None` for flows that have no such name.
    pub(crate) fn latest_name(self) -> Option<&'static str> {
        match self {
            Flow::Ahead | Flow::Emitted => None,
            Flow::Burned => Some("lastBurn"),
            Flow::BoughtBack => Some("lastBuyback"),
        }
    }

    /// Returns the kind of records that the flow consists of.
    pub fn resource(self) -> Resource {
        match self {
            Flow::Ahead => Resource::Unlock,
            Flow::Emitted => Resource::Emission,
            Flow::Burned => Resource::Burn,
            Flow::BoughtBack => Resource::Buyback,
        }
    }
}

/// A time window that a rule reads, such as `burned("30d")`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    pub flow: Flow,
    /// From now into the future for [`Flow::Ahead`], from the past up to now for the others.
    pub span: TimeDelta,
}

/// The sum over a window. A field is `None` if it is unknown: the feed was never read, or an entry has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
    /// The number of unlock events, burns, buybacks, or reported days or weeks.
    pub count: Option<f64>,
    /// USD of imprecise unlocks that may happen in the window, because their month or week is not over, although their nominal
    /// date is outside it. Not included in the other fields.
    pub possible: Option<f64>,
    /// The cliff unlocks in the sum. Only for [`Flow::Ahead`].
    pub cliff: PartSum,
    /// The linear unlocks in the sum, without a count. Only for [`Flow::Ahead`]. Unknown if only cliff unlocks are known; the total
    /// is then that of the cliff unlocks.
    pub linear: PartSum,
}

/// A part of a [`Sum`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartSum {
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
    pub count: Option<f64>,
}

impl PartSum {
    pub(super) const ZERO: PartSum = PartSum { amount: Some(0.0), value: Some(0.0), count: Some(0.0) };

    /// Adds two sums. A field is unknown if it is unknown in either one.
    #[must_use]
    pub fn plus(self, other: PartSum) -> PartSum {
        PartSum {
            amount: added(self.amount, other.amount),
            value: added(self.value, other.value),
            count: added(self.count, other.count),
        }
    }
}

fn added(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

impl Sum {
    /// The sum over a window that is known to be empty.
    pub(super) const ZERO: Sum = Sum {
        amount: Some(0.0),
        value: Some(0.0),
        count: Some(0.0),
        possible: Some(0.0),
        cliff: PartSum::ZERO,
        linear: PartSum::ZERO,
    };

    /// Adds two sums. A field is unknown if it is unknown in either one.
    pub fn plus(self, other: Sum) -> Sum {
        Sum {
            amount: added(self.amount, other.amount),
            value: added(self.value, other.value),
            count: added(self.count, other.count),
            possible: added(self.possible, other.possible),
            cliff: self.cliff.plus(other.cliff),
            linear: self.linear.plus(other.linear),
        }
    }

    /// Returns the sum with the total of one part.
    pub(super) fn with_part(self, part: PartSum) -> Sum {
        Sum { amount: part.amount, value: part.value, count: part.count, ..self }
    }
}

/// The latest burn or buyback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatestEntry {
    pub at: Timestamp,
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
}

impl LatestEntry {
    pub fn days_since(&self, now: Timestamp) -> f64 {
        days(now - self.at)
    }
}
