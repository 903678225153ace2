//! Ids: texts and numbers with a meaning.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Declares an id: a text with a meaning.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// Slug of a token, as the token list names it.
    TokenId
}
text_id! {
    /// Key of a record within its token and resource. An unlock event keeps its key when it moves.
    RecordKey
}
text_id! {
    /// A rule: its `id` where it has one, else its `alert` name.
    RuleId
}
text_id! {
    /// An alert: derived from rule, subject and episode, so that the same fact written twice is one row.
    AlertId
}
text_id! {
    /// A notification: derived from the alert and its transition.
    NotificationId
}
text_id! {
    /// Name of a receiver in the config.
    ReceiverName
}

/// A row of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub i64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
