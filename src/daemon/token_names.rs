//! Finds the tokens that API, pages, and commands name by slug or ticker.

use model::{Matcher, TOKEN_LABEL, TokenId, TokenNameError, resolve_token};
use store::{Store, StoreError};

/// Why no token was found.
#[derive(Debug, thiserror::Error)]
pub enum FindTokenError {
    /// The text does not name one token.
    #[error(transparent)]
    Name(#[from] TokenNameError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Finds a token by slug, ticker, or name.
///
/// # Errors
///
/// Fails if the text names no token or several, or if the database cannot be read.
pub async fn find_token(store: &Store, text: &str) -> Result<TokenId, FindTokenError> {
    let few = store.tokens_named(text).await?;
    match resolve_token(text, &few) {
        // The suggestions need all names.
        Err(TokenNameError::Unknown { .. }) => Ok(resolve_token(text, &store.token_names().await?)?),
        resolved => Ok(resolved?),
    }
}

/// Replaces the ticker in each matcher `token=…` or `token!=…` of a silence by the slug, which is the value of the label. Patterns stay.
///
/// An unknown token is accepted if an open alert has this label, or if no token is known yet.
///
/// # Errors
///
/// Fails if a matcher names no token or several, or if the database cannot be read.
pub async fn resolve_matchers(store: &Store, matchers: Vec<Matcher>) -> Result<Vec<Matcher>, FindTokenError> {
    let mut resolved = Vec::with_capacity(matchers.len());
    for matcher in matchers {
        let Some(text) = matcher.compared().filter(|text| matcher.label() == TOKEN_LABEL && !text.is_empty()) else {
            resolved.push(matcher);
            continue;
        };
        let text = text.to_owned();
        resolved.push(match find_token(store, &text).await {
            Ok(id) => matcher.with_compared(id.as_str()),
            Err(FindTokenError::Name(TokenNameError::Unknown { .. })) if is_possible_label(store, &text).await? => matcher,
            Err(error) => return Err(error),
        });
    }
    Ok(resolved)
}

async fn is_possible_label(store: &Store, text: &str) -> Result<bool, StoreError> {
    let is_label = |labels: &model::Labels| labels.get(TOKEN_LABEL).is_some_and(|value| value == text);
    Ok(store.open_labels().await?.iter().any(is_label) || store.token_names().await?.is_empty())
}
