//! Positions in a digest, compared with the coming unlocks. They are added when a digest is sent to a receiver whose config asks for them,
//! and are never stored.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Digest, LargestFirst, MAX_LINES};
use crate::{KnownSupply, Notification, NotificationKind, Position, TokenId, TokenSupply, phrase};

/// A position, with the cliff and linear unlocks of its token in the period of the digest.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PositionLine {
    /// The slug of the token.
    pub token: String,
    pub symbol: String,
    /// The tokens of the position.
    pub amount: f64,
    /// USD at the latest price. `None` without a price.
    pub value: Option<f64>,
    /// The tokens that unlock in the period. `None` if unknown.
    pub unlock_amount: Option<f64>,
    /// USD of these tokens. `None` if unknown.
    pub unlock_value: Option<f64>,
    /// `unlock_amount` divided by `amount`. `None` if unknown, and for an empty position.
    pub unlock_multiple: Option<f64>,
}

impl fmt::Debug for PositionLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PositionLine").field("token", &self.token).finish_non_exhaustive()
    }
}

impl PositionLine {
    /// `supply` has one window, the period of the digest.
    #[must_use]
    pub fn of(token: &TokenId, symbol: &str, position: Position, supply: &TokenSupply) -> Self {
        let total =
            supply.windows.first().map(|ahead| if supply.known == KnownSupply::All { ahead.total() } else { ahead.cliff });
        let unlocks = total.filter(|_| supply.known != KnownSupply::None);
        let unlock_amount = unlocks.and_then(|sum| sum.known_amount());
        Self {
            token: token.as_str().to_owned(),
            symbol: symbol.to_owned(),
            amount: position.amount(),
            value: supply.price.map(|price| position.value(price.usd)),
            unlock_amount,
            unlock_value: unlocks.and_then(|sum| sum.known_value()),
            unlock_multiple: unlock_amount.and_then(|amount| position.unlock_multiple(amount)),
        }
    }
}

impl Notification {
    /// Returns the digest with positions, largest value first. `None` for other notifications, and for a record that cannot be read.
    #[must_use]
    pub fn with_positions(&self, mut positions: Vec<PositionLine>) -> Option<Self> {
        let mut digest: Digest = serde_json::from_value(self.body.record.clone().filter(|_| self.is_digest())?).ok()?;
        positions.sort_by_key(|line| LargestFirst(line.value));
        digest.positions_left_out = u32::try_from(positions.len().saturating_sub(MAX_LINES)).unwrap_or(u32::MAX);
        positions.truncate(MAX_LINES);
        digest.positions = positions;
        let mut notification = self.clone();
        let is_test = self.kind == NotificationKind::Test;
        let text = if is_test { phrase::digest::test_text(&digest) } else { phrase::digest::text(&digest) };
        notification.body.annotations.insert("description".to_owned(), text);
        notification.body.record = serde_json::to_value(&digest).ok();
        Some(notification)
    }

    /// Returns the period of a digest. `None` for other notifications.
    #[must_use]
    pub fn digest_period(&self) -> Option<crate::SumWindow> {
        let digest: Digest = serde_json::from_value(self.body.record.clone().filter(|_| self.is_digest())?).ok()?;
        Some(crate::SumWindow { at: digest.at, until: digest.until })
    }
}
