//! Earlier corrections of a token's schedule in conditions: `corrections("365d").count`.

use chrono::TimeDelta;

use crate::fields::NumberUnit;
use model::corrections::Corrections;

/// The name of the function.
pub const CORRECTIONS: &str = "corrections";

/// A field of the corrections in a time window that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrectionField {
    Count,
    ShiftDays,
}

impl CorrectionField {
    pub const ALL: [Self; 2] = [Self::Count, Self::ShiftDays];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::ShiftDays => "shiftDays",
        }
    }

    pub fn unit(self) -> NumberUnit {
        match self {
            Self::Count => NumberUnit::Count,
            Self::ShiftDays => NumberUnit::Days,
        }
    }

    /// Returns the description in the reference.
    pub fn about(self) -> &'static str {
        match self {
            Self::Count => "number of these corrections",
            Self::ShiftDays => "sum of the days by which they moved dates, positive for later; zero if none moved a date",
        }
    }

    /// Returns the name in messages.
    pub fn full_name(self) -> &'static str {
        match self {
            Self::Count => "corrections(…).count",
            Self::ShiftDays => "corrections(…).shiftDays",
        }
    }

    pub fn of(self, sum: Corrections) -> f64 {
        match self {
            Self::Count => f64::from(sum.count),
            Self::ShiftDays => sum.shift_days,
        }
    }
}

/// A field of the corrections within a time before now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrectionRef {
    pub span: TimeDelta,
    pub field: CorrectionField,
}
