//! The ledger of credits: what was spent of the API's current period, and what is reserved for requests under way.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, wire};

/// Quota of the API's current period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CreditState {
    /// The highest count that the API told in this period; none where it never told one.
    pub used: Option<u64>,
    /// As the API last reported.
    pub limit: Option<u64>,
    /// When the period ends, as the API last reported; else the first of the next month.
    pub reset_at: Option<Timestamp>,
    /// When the API last reported.
    pub reported_at: Option<Timestamp>,
    /// The API's own time when it last told it.
    pub told_at: Option<Timestamp>,
    /// What this program spent in the period.
    pub spent: u64,
    /// What it may have spent beside: on answers that could not be read, on requests of which a process that is gone left no word.
    pub doubtful: u64,
    /// Of both, what `used` may lack.
    pub uncounted: u64,
    /// All that ever was uncounted: how much of it was so before a request was sent tells what its answer counts.
    pub uncounted_ever: u64,
    /// When the period in which `spent` counts began.
    pub period_start: Option<Timestamp>,
    /// What this program spent on the UTC day of `day`, doubtful credits included.
    pub spent_today: u64,
    /// The UTC day of `spent_today`, as its midnight.
    pub day: Option<Timestamp>,
    /// The API refused for want of credits although it had told of some that were left.
    pub exhausted: bool,
    /// While exhausted: when it is asked whether that is over.
    pub look_again_at: Option<Timestamp>,
    /// By our clock a new period has begun, and the API has not said so yet: it is asked one thing first.
    pub unconfirmed: bool,
    /// The API said that a period was not over when our clock said so: by our clock it is not before this.
    pub not_over_before: Option<Timestamp>,
    /// When our clock was last looked at.
    pub seen_at: Option<Timestamp>,
    /// Reserved, one row for each process that asks.
    pub reserved: Vec<Reservation>,
    /// Periods before this one, the last one last: a clock that was wrong takes up where it stood.
    pub earlier: Vec<PastPeriod>,
}

impl CreditState {
    /// What this program spent in the period, doubtful credits included.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.spent.saturating_add(self.doubtful)
    }

    /// Credits that are reserved.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.reserved.iter().map(|one| one.credits).sum()
    }
}

/// Credits that a process may spend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// Whose: a number by chance.
    pub owner: u64,
    pub credits: u64,
    /// When it was last changed. One that was not for long was left behind.
    pub at: Timestamp,
}

/// What is kept of a period that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastPeriod {
    pub start: Option<Timestamp>,
    pub reset_at: Option<Timestamp>,
    pub used: Option<u64>,
    pub spent: u64,
    pub doubtful: u64,
    pub uncounted: u64,
    /// As [`CreditState::unconfirmed`].
    pub unconfirmed: bool,
}

/// What a request cost, as far as can be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// Nothing: it was never sent, or was refused.
    Free,
    /// Refused for want of credits.
    Refused,
    /// One credit.
    One,
    /// One credit or none: it was sent, and no answer came that could be read.
    #[default]
    Perhaps,
}

/// A request that is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettledRequest {
    pub charge: Charge,
    /// Quota, where the answer told it.
    pub reported: Option<wire::Credit>,
    /// The API's own time, where the answer told it.
    pub told_at: Option<Timestamp>,
    /// [`CreditState::uncounted_ever`] when it was sent.
    pub uncounted_before: u64,
}
