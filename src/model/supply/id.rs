//! Ids of tokens, records, rules, alerts, notifications, receivers, and deliveries.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Declares a type for an id that is a text.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
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
    /// A token's slug in the token list.
    TokenId
}
text_id! {
    /// The key of a record within its token and resource. An unlock event keeps its key when it is rescheduled.
    RecordKey
}
text_id! {
    /// A rule's `id`, or its `alert` name without one.
    RuleId
}
text_id! {
    /// Derived from rule, subject, and episode, so that storing the same alert twice leaves one row.
    AlertId
}
text_id! {
    /// Derived from the alert and its transition.
    NotificationId
}
text_id! {
    /// The name of a receiver in the config.
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
