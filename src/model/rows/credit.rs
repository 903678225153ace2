//! Credits of the API: what was used in the current period, and what is reserved for running requests.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, wire};

/// The API's quota for the current period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CreditState {
    /// The highest count that the API reported in this period; `None` if it reported none.
    pub used: Option<u64>,
    /// The last limit that the API reported.
    pub limit: Option<u64>,
    /// The end of the period as the API last reported it, else the first day of the next month.
    pub reset_at: Option<Timestamp>,
    /// When the API last reported its quota.
    pub reported_at: Option<Timestamp>,
    /// The API's own time in its last report.
    pub api_time: Option<Timestamp>,
    /// Credits that we used in the period and know of.
    pub spent: u64,
    /// Credits that we may have used in addition: for unreadable responses, and for reservations of dead processes.
    pub doubtful: u64,
    /// The part of `spent` and `doubtful` that `used` may lack.
    pub uncounted: u64,
    /// The sum of all credits that were ever uncounted. Its value before a request shows which of them the response's count
    /// includes.
    pub uncounted_ever: u64,
    /// The start of the period that `spent` covers.
    pub period_start: Option<Timestamp>,
    /// Credits that we used on the UTC day `day`, including doubtful ones.
    pub spent_today: u64,
    /// Midnight of the UTC day that `spent_today` covers.
    pub day: Option<Timestamp>,
    /// Whether the API rejected a request because all credits are used, although its count said otherwise.
    pub exhausted: bool,
    /// The time of the next probe while `exhausted`.
    pub recheck_at: Option<Timestamp>,
    /// The check of the limit while the API's count has reached it; `None` otherwise.
    pub limit_probe: Option<LimitProbe>,
    /// A fingerprint of the API key of the last requests.
    pub key: Option<String>,
    /// The part of `spent` that the API's count does not include, such as requests with an earlier key.
    pub spent_elsewhere: u64,
    /// Whether our clock says that a new period began but the API has not confirmed it. One probe request goes first.
    pub unconfirmed: bool,
    /// The earliest start of a new period by our clock, after the API reported that the period had not ended.
    pub not_over_before: Option<Timestamp>,
    /// The time of the last update, by our clock.
    pub seen_at: Option<Timestamp>,
    /// Reservations, one for each running process.
    pub reserved: Vec<Reservation>,
    /// Previous periods, latest last. A clock that was wrong and is set back returns to one of them.
    pub earlier: Vec<PastPeriod>,
}

impl CreditState {
    /// Returns the credits used in the period, including doubtful ones.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.spent.saturating_add(self.doubtful)
    }

    /// Returns the reserved credits.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.reserved.iter().map(|one| one.credits).sum()
    }
}

/// When a request checks whether the API's limit was raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitProbe {
    /// The time of the next request.
    pub next_at: Timestamp,
    /// When the last one was granted.
    pub granted_at: Option<Timestamp>,
}

/// Credits that a process may spend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// A random number of the process.
    pub owner: u64,
    pub credits: u64,
    /// The time of the last change. An old reservation belongs to a dead process.
    pub at: Timestamp,
}

/// The counts of a previous period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastPeriod {
    pub start: Option<Timestamp>,
    pub reset_at: Option<Timestamp>,
    pub used: Option<u64>,
    pub spent: u64,
    pub doubtful: u64,
    pub uncounted: u64,
    /// See [`CreditState::spent_elsewhere`].
    #[serde(default)]
    pub spent_elsewhere: u64,
    pub unconfirmed: bool,
}

/// The cost of a request, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// Nothing: it was not sent, or it was rejected without cost.
    Free,
    /// Nothing: it was rejected because all credits are used.
    Refused,
    One,
    /// One credit or none: it was sent, but no readable response arrived.
    #[default]
    Perhaps,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettledRequest {
    pub charge: Charge,
    /// The quota in the response, if any.
    pub reported: Option<wire::Credit>,
    /// The API's own time in the response, if any.
    pub api_time: Option<Timestamp>,
    /// [`CreditState::uncounted_ever`] when the request was sent.
    pub uncounted_before: u64,
    /// When the request was sent, by our clock.
    pub sent_at: Option<Timestamp>,
    /// The fingerprint of the API key of the request. `None` without a key.
    pub key: Option<String>,
}
