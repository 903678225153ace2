//! Who wants no digests any more, and the key that signs their links.

use serde::Serialize;

use crate::{ReceiverName, Timestamp, text::hex};

/// Somebody who wants no digests of a receiver any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OptOut {
    pub receiver: ReceiverName,
    /// Mail address in lower case, without a name.
    pub address: String,
    pub at: Timestamp,
    pub via: OptOutSource,
}

words! {
    /// How somebody said that they want no digests.
    OptOutSource {
        Link = "link",
        /// By the operator's hand.
        Hand = "hand",
    }
}

/// The key that signs the links in digests. It is made at random for this database, opens nothing else, and who can read it could
/// change what it protects anyway; it is not shown all the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkKey([u8; 32]);

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkKey(…)")
    }
}

impl LinkKey {
    /// A key of these bytes, which are to come from the system's generator.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, for signing.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The bytes as hex digits, for the database.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// The key of 64 hex digits.
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
