//! The list of upcoming unlocks, cliff and linear: its query and its rows.

use serde::{Deserialize, Serialize};

use super::query::UpcomingFilter;
use super::snapshot::UpcomingRow;
use crate::{CliffPiece, Inclusion, Precision, RecordKey, ReferencePrice, SumWindow, Timestamp, Token, TokenId, Tracked};

words! {
    /// The type of an unlock.
    UnlockKind {
        Cliff = "cliff",
        Linear = "linear",
    }
}

/// Selects upcoming unlocks for a list, by date: a cliff unlock by its earliest time, a linear unlock by its start, or by the start of
/// the window if it runs then. At one instant, cliff unlocks come first.
#[derive(Clone, Debug, PartialEq)]
pub struct UnlockListFilter {
    /// A linear unlock is selected if it runs in the window. `limit` applies after `after`.
    pub unlocks: UpcomingFilter,
    /// `None` selects both types.
    pub kind: Option<UnlockKind>,
    /// The minimum value in USD; for a linear unlock, of its share in the window.
    pub min_value: Option<f64>,
    /// The last unlock before the page. `None` for the first page.
    pub after: Option<UnlockCursor>,
}

/// The position of an unlock in the list, which it keeps until its own dates change. The unlock need not exist any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlockCursor {
    /// The instant by which the list is sorted, in milliseconds since 1970.
    pub sort_at: i64,
    pub token: TokenId,
    pub unlock: UnlockPosition,
}

/// The position of an unlock among the unlocks of a token at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnlockPosition {
    Cliff(RecordKey),
    Linear(LinearPosition),
}

/// The position of a linear unlock among the linear unlocks of a token, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinearPosition {
    /// In milliseconds since 1970.
    pub starts_at: i64,
    pub ends_at: i64,
    /// Whether only daily emission ahead shows it.
    pub is_ahead: bool,
    /// Empty if the source does not name it.
    pub allocation: String,
    /// Counts equal unlocks, from 0.
    pub number: u32,
}

impl UpcomingFilter {
    /// Returns the window of the filter. It never ends if the filter has no end.
    #[must_use]
    pub fn window(&self) -> SumWindow {
        SumWindow { at: self.from, until: self.until.unwrap_or(Timestamp::MAX_UTC) }
    }
}

/// A row of the list of upcoming unlocks.
#[derive(Clone, Debug, PartialEq)]
pub enum ListedUnlock {
    Cliff(UpcomingRow),
    Linear(LinearRow),
}

impl ListedUnlock {
    #[must_use]
    pub fn token(&self) -> &Token {
        match self {
            Self::Cliff(row) => &row.token,
            Self::Linear(row) => &row.token,
        }
    }

    pub fn token_mut(&mut self) -> &mut Token {
        match self {
            Self::Cliff(row) => &mut row.token,
            Self::Linear(row) => &mut row.token,
        }
    }

    /// Returns the event of the unlock. `None` for a linear unlock that only daily emission ahead shows.
    #[must_use]
    pub fn event(&self) -> Option<&Tracked> {
        match self {
            Self::Cliff(row) => Some(&row.tracked),
            Self::Linear(row) => row.event.as_ref(),
        }
    }

    /// Returns the position of the unlock in the list. `None` if the record of a cliff unlock is damaged.
    #[must_use]
    pub fn cursor(&self, window: SumWindow) -> Option<UnlockCursor> {
        let unlock = match self {
            Self::Cliff(row) => UnlockPosition::Cliff(row.tracked.key.clone()),
            Self::Linear(row) => UnlockPosition::Linear(row.position.clone()),
        };
        let sort_at = self.sort_at(window)?.timestamp_millis();
        Some(UnlockCursor { sort_at, token: self.token().id.clone(), unlock })
    }

    /// Returns the instant by which the list is sorted.
    #[must_use]
    pub fn sort_at(&self, window: SumWindow) -> Option<Timestamp> {
        match self {
            Self::Cliff(row) => row.tracked.record.interval().map(|interval| interval.start),
            Self::Linear(row) => Some(row.starts_at.max(window.at)),
        }
    }
}

impl UpcomingRow {
    /// Returns whether sums of the window include the cliff unlock. An unlock with an inexact date can be listed although they do not.
    #[must_use]
    pub fn is_counted(&self, window: SumWindow) -> bool {
        let piece = self.tracked.record.unlock().and_then(CliffPiece::of);
        piece.and_then(|piece| piece.inclusion(window)) == Some(Inclusion::Counted)
    }
}

/// A linear unlock in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRow {
    /// The caller fills in its groups from the config.
    pub token: Token,
    /// The time at which the token's schedule was last read completely.
    pub read_at: Option<Timestamp>,
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
    /// Whether it ends at its end. `false` if nothing is known about the time from then on.
    pub is_end_known: bool,
    pub precision: Precision,
    /// The name of the allocation; empty if the source does not name it.
    pub allocation: String,
    /// The event with its first segment. `None` if only daily emission ahead shows the unlock.
    pub event: Option<Tracked>,
    /// Tokens per day. `None` if unknown.
    pub per_day: Option<f64>,
    /// The tokens that unlock in the window. `None` if unknown.
    pub amount: Option<f64>,
    /// The latest price of the token.
    pub price: Option<ReferencePrice>,
    pub position: LinearPosition,
}

impl LinearRow {
    /// Returns the USD of an amount of the token. `None` if amount or price are unknown.
    #[must_use]
    pub fn value_of(&self, amount: Option<f64>) -> Option<f64> {
        Some(amount? * self.price?.usd)
    }
}

/// A start, an end, or a rate change of a token's linear unlocks for calendars, with its last modification.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearCalendarRow {
    /// The caller fills in its groups from the config.
    pub token: Token,
    /// Identifies the entry within the token. It stays the same when the date or the rate changes.
    pub key: String,
    pub at: Timestamp,
    pub precision: Precision,
    /// The line for people, such as `ARB: vesting of Team ends`.
    pub summary: String,
    /// The allocations that cause it, as text. `None` if none is named.
    pub allocations: Option<String>,
    /// The first event that causes it. `None` if only daily emission ahead shows it, or if it was not retained.
    pub event: Option<Tracked>,
    /// The value in USD of the linear unlocks in the window; for a start or end, of that unlock.
    pub value: Option<f64>,
    /// The time of the last change of the token's schedule, because other events can change the rates of this date. Of a removed
    /// event, the time of the removal.
    pub modified_at: Timestamp,
    /// Whether the schedule ever changed.
    pub was_modified: bool,
    pub is_removed: bool,
}
