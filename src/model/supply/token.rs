//! Tokens of the token list.

use std::sync::Arc;

use super::id::TokenId;
use crate::Position;
use crate::wire::TokenItem;

/// A token of the token list, with its groups and its position from the config.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub id: TokenId,
    /// The item of the list. For a token that only the config names: the id, and name and symbol once a record has them.
    pub item: TokenItem,
    /// Names of the token's `[watch.groups]`, sorted.
    pub groups: Arc<[String]>,
    /// The position of the operator, from the config.
    pub position: Option<Position>,
}

impl Token {
    /// Returns a token of which only the id is known.
    #[must_use]
    pub fn unknown(id: TokenId) -> Self {
        let item = TokenItem { id: id.as_str().to_owned().into(), ..Default::default() };
        Self { id, item, groups: Arc::from([]), position: None }
    }

    /// Returns the name, or the slug without one.
    #[must_use]
    pub fn name(&self) -> &str {
        self.item.name.as_str().filter(|name| !name.is_empty()).unwrap_or(self.id.as_str())
    }

    /// Returns the symbol, or the slug without one.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.item.symbol.as_str().filter(|symbol| !symbol.is_empty()).unwrap_or(self.id.as_str())
    }

    /// Returns the market cap in USD.
    #[must_use]
    pub fn market_cap(&self) -> Option<f64> {
        self.item.market_cap.copied()
    }
}
