//! Recipients who unsubscribed from digests, and the key that signs unsubscribe links.

use serde::Serialize;

use crate::{ReceiverName, Timestamp, text::hex};

/// A recipient who unsubscribed from the digests of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OptOut {
    pub receiver: ReceiverName,
    /// The mail address in lowercase, without a display name.
    pub address: String,
    pub at: Timestamp,
    pub via: OptOutSource,
}

words! {
    /// The way in which a recipient unsubscribed.
    OptOutSource {
        Link = "link",
        /// By an operator.
        Hand = "hand",
    }
}

/// The key that signs unsubscribe links in digests. Generated at random for this database. `Debug` hides it, although a reader of the
/// database could edit the rows that it protects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkKey([u8; 32]);

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkKey(…)")
    }
}

impl LinkKey {
    /// Returns a key from random bytes of the system's generator.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// Parses 64 hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}
