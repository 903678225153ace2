//! A token as the list has it.

use std::sync::Arc;

use super::id::TokenId;
use crate::wire::TokenItem;

/// A token as the list has it, with the groups that the config puts it in.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Slug.
    pub id: TokenId,
    /// What the list says; for a token that only the config names, just the id (and name and symbol, once a record named them).
    pub item: TokenItem,
    /// Names of `[watch.groups]` that hold it, sorted.
    pub groups: Arc<[String]>,
}

impl Token {
    /// A token of which nothing but the id is known.
    #[must_use]
    pub fn unknown(id: TokenId) -> Self {
        let item = TokenItem { id: id.as_str().to_owned().into(), ..Default::default() };
        Self { id, item, groups: Arc::from([]) }
    }

    /// Its name; the slug where no name is known.
    #[must_use]
    pub fn name(&self) -> &str {
        self.item.name.as_str().filter(|name| !name.is_empty()).unwrap_or(self.id.as_str())
    }

    /// Its ticker; the slug where no ticker is known.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.item.symbol.as_str().filter(|symbol| !symbol.is_empty()).unwrap_or(self.id.as_str())
    }

    /// Market cap, USD.
    #[must_use]
    pub fn market_cap(&self) -> Option<f64> {
        self.item.market_cap.copied()
    }
}
