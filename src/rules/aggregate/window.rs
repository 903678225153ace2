//! Windows of time that rules ask for, and what is in one.

use chrono::TimeDelta;

use model::{Resource, Timestamp, days};

/// What moves tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// Unlocks to come: cliffs, and the daily releases of linear segments.
    Ahead,
    /// Emission, as the source reports it for days or weeks that are over.
    Emitted,
    Burned,
    BoughtBack,
}

impl Flow {
    /// All of them.
    pub const ALL: [Flow; 4] = [Flow::Ahead, Flow::Emitted, Flow::Burned, Flow::BoughtBack];

    /// The word in conditions and templates.
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

    /// What the latest entry is called in conditions and templates, where that is asked: of what happens once.
    pub(crate) fn latest_word(self) -> Option<&'static str> {
        match self {
            Flow::Ahead | Flow::Emitted => None,
            Flow::Burned => Some("lastBurn"),
            Flow::BoughtBack => Some("lastBuyback"),
        }
    }

    /// The records that it is made of.
    pub fn resource(self) -> Resource {
        match self {
            Flow::Ahead => Resource::Unlock,
            Flow::Emitted => Resource::Emission,
            Flow::Burned => Resource::Burn,
            Flow::BoughtBack => Resource::Buyback,
        }
    }
}

/// A window that a rule asks for: `burned("30d")`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// Of what.
    pub flow: Flow,
    /// From now on for [`Flow::Ahead`], up to now for the others.
    pub span: TimeDelta,
}

/// What is in a window. A part is none where it is unknown: the feed was never read, or an entry does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
    /// Entries: unlock events, burns, buybacks, reported days or weeks.
    pub count: Option<f64>,
    /// USD of unlocks that may still come in the window because their month or week is not over, though their nominal date is in another:
    /// never part of the others.
    pub possible: Option<f64>,
}

impl Sum {
    /// Nothing, known to be nothing.
    pub(super) const ZERO: Sum = Sum { amount: Some(0.0), value: Some(0.0), count: Some(0.0), possible: Some(0.0) };

    /// Both together; unknown where one is.
    pub fn plus(self, other: Sum) -> Sum {
        let add = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Sum {
            amount: add(self.amount, other.amount),
            value: add(self.value, other.value),
            count: add(self.count, other.count),
            possible: add(self.possible, other.possible),
        }
    }
}

/// The latest burn or buyback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatestEntry {
    /// When.
    pub at: Timestamp,
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
}

impl LatestEntry {
    /// Days that have passed since.
    pub fn days_since(&self, now: Timestamp) -> f64 {
        days(now - self.at)
    }
}
