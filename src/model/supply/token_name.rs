//! Names of tokens: finds the token that a person or program means by a slug, a ticker, or a name.

use std::collections::HashSet;

use super::TokenId;
use crate::{diagnostic::near_distance, phrase};

/// The maximum number of tokens in a suggestion.
const MAX_SUGGESTIONS: usize = 3;

/// The maximum number of candidates in the text of an error.
const MAX_CANDIDATES: usize = 10;

/// The names of a token in the token list. The slug is unique, ticker and name are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenNames {
    pub id: TokenId,
    /// Empty if unknown.
    pub symbol: String,
    /// Empty if unknown.
    pub name: String,
}

/// A text that does not name one token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenNameError {
    #[error("no token has the slug or ticker {text:?}{}", did_you_mean(suggestions))]
    Unknown {
        text: String,
        /// The slugs of tokens with a similar name, closest first.
        suggestions: Vec<TokenId>,
    },
    #[error("several tokens have the name {text:?}: use one of the slugs {}", listed(candidates))]
    Ambiguous { text: String, candidates: Vec<TokenId> },
}

impl TokenNameError {
    /// Returns the slugs that the text may mean.
    pub fn suggestions(&self) -> &[TokenId] {
        match self {
            Self::Unknown { suggestions, .. } => suggestions,
            Self::Ambiguous { candidates, .. } => candidates,
        }
    }
}

/// Finds the token that `text` names. An exact slug takes precedence over a slug in another case, that over a ticker, and that over a
/// name. `known` has all tokens, or at least those of which one of the names is `text`.
///
/// # Errors
///
/// Fails if no token has this name, or if several have it.
pub fn resolve_token(text: &str, known: &[TokenNames]) -> Result<TokenId, TokenNameError> {
    let wanted = text.trim();
    let lower = wanted.to_lowercase();
    let tests: [&dyn Fn(&TokenNames) -> bool; 4] = [
        &|token| token.id.as_str() == wanted,
        &|token| token.id.as_str().to_lowercase() == lower,
        &|token| token.symbol.to_lowercase() == lower,
        &|token| token.name.to_lowercase() == lower,
    ];
    for is_named in tests {
        let found: Vec<&TokenNames> = known.iter().filter(|token| !wanted.is_empty() && is_named(token)).collect();
        match found.as_slice() {
            [] => {}
            [token] => return Ok(token.id.clone()),
            several => {
                let candidates = several.iter().map(|token| token.id.clone()).collect();
                return Err(TokenNameError::Ambiguous { text: wanted.to_owned(), candidates });
            }
        }
    }
    Err(TokenNameError::Unknown { text: wanted.to_owned(), suggestions: suggestions(&lower, known) })
}

/// Returns the tokens with a name that is close to `lower`, closest first.
fn suggestions(lower: &str, known: &[TokenNames]) -> Vec<TokenId> {
    let names = known.iter().flat_map(|token| [(token.id.as_str(), token), (&token.symbol, token), (&token.name, token)]);
    let mut near: Vec<(usize, &TokenId)> = names
        .filter(|(name, _)| !name.is_empty())
        .filter_map(|(name, token)| Some((near_distance(lower, name)?, &token.id)))
        .collect();
    near.sort();
    let mut seen = HashSet::new();
    near.into_iter().filter(|(_, id)| seen.insert(*id)).map(|(_, id)| id.clone()).take(MAX_SUGGESTIONS).collect()
}

fn did_you_mean(suggestions: &[TokenId]) -> String {
    if suggestions.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = suggestions.iter().map(|id| phrase::name(id.as_str())).collect();
    format!(": did you mean {}?", phrase::choice(&shown))
}

fn listed(candidates: &[TokenId]) -> String {
    let shown: Vec<String> = candidates.iter().take(MAX_CANDIDATES).map(|id| phrase::name(id.as_str())).collect();
    match candidates.len().saturating_sub(MAX_CANDIDATES) {
        0 => shown.join(", "),
        rest => format!("{}, and {rest} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(id: &str, symbol: &str, name: &str) -> TokenNames {
        TokenNames { id: TokenId::from(id), symbol: symbol.to_owned(), name: name.to_owned() }
    }

    fn known() -> Vec<TokenNames> {
        vec![
            token("sky", "SKY", "Sky"),
            token("skycoin", "SKY", "Skycoin"),
            token("arbitrum", "ARB", "Arbitrum One"),
            token("lend-a", "LEND", "Lend A"),
            token("lend-b", "lend", "Lend B"),
            token("no-names", "", ""),
        ]
    }

    #[test]
    fn slug_takes_precedence_over_ticker_and_name() {
        let resolve = |text| resolve_token(text, &known()).map(|id| id.as_str().to_owned());
        for (text, expected) in
            [("sky", "sky"), ("SKY", "sky"), (" arb ", "arbitrum"), ("Arbitrum One", "arbitrum"), ("skycoin", "skycoin")]
        {
            assert_eq!(resolve(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn ambiguous_ticker_lists_the_candidates() {
        let error = resolve_token("LEND", &known()).expect_err("two tokens");
        assert_eq!(error.to_string(), "several tokens have the name \"LEND\": use one of the slugs lend-a, lend-b");
        assert_eq!(error.suggestions(), ["lend-a", "lend-b"].map(TokenId::from));
        let many: Vec<TokenNames> = (0..13).map(|number| token(&format!("t{number}"), "TT", "")).collect();
        assert!(resolve_token("tt", &many).expect_err("many").to_string().ends_with("t9, and 3 more"));
    }

    #[test]
    fn unknown_name_suggests_similar_ones() {
        let error = |text| resolve_token(text, &known()).expect_err("unknown").to_string();
        assert_eq!(error("arbitrm"), "no token has the slug or ticker \"arbitrm\": did you mean arbitrum?");
        assert_eq!(error("skycoim"), "no token has the slug or ticker \"skycoim\": did you mean skycoin?");
        assert_eq!(error("lend-c"), "no token has the slug or ticker \"lend-c\": did you mean lend-a or lend-b?");
        assert_eq!(error("zzzzzzzz"), "no token has the slug or ticker \"zzzzzzzz\"");
        assert_eq!(error(""), "no token has the slug or ticker \"\"", "an empty text is not the missing ticker of a token");
    }

    proptest! {
        /// Compares with a definition by sets, for random worlds of few names, in which most tickers are ambiguous.
        #[test]
        fn each_text_has_one_meaning_or_an_error(
            world in prop::collection::btree_map("[a-cA-C]{1,2}", ("[a-c]{0,2}", "[A-C]{0,2}"), 0..8),
            text in "[a-cA-C]{1,2}",
        ) {
            let known: Vec<TokenNames> = world.iter().map(|(id, (symbol, name))| token(id, symbol, name)).collect();
            let having = |is_same: &dyn Fn(&str, &str, &str) -> bool| {
                let rows = world.iter().filter(|(id, (symbol, name))| is_same(id, symbol, name));
                rows.map(|(id, _)| TokenId::from(id.as_str())).collect::<Vec<_>>()
            };
            let levels = [
                having(&|id, _, _| id == text),
                having(&|id, _, _| id.eq_ignore_ascii_case(&text)),
                having(&|_, symbol, _| symbol.eq_ignore_ascii_case(&text)),
                having(&|_, _, name| name.eq_ignore_ascii_case(&text)),
            ];
            match (levels.into_iter().find(|level| !level.is_empty()), resolve_token(&text, &known)) {
                (None, Err(TokenNameError::Unknown { suggestions, .. })) => {
                    prop_assert!(suggestions.len() <= MAX_SUGGESTIONS && suggestions.iter().all(|id| world.contains_key(id.as_str())));
                }
                (Some(level), Ok(id)) => prop_assert_eq!(level, vec![id]),
                (Some(level), Err(TokenNameError::Ambiguous { candidates, .. })) => {
                    prop_assert!(level.len() > 1);
                    prop_assert_eq!(level, candidates);
                }
                (level, found) => prop_assert!(false, "{level:?} {found:?}"),
            }
        }
    }
}
