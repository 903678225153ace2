//! Positions: the amounts of tokens that the operator holds. They are confidential.
//!
//! [`PositionTable`] is the part of the config with names and amounts, [`Positions`] knows the token of each name. `Debug` of all types
//! hides the amounts, and nothing here is serialized.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Diagnostic, SourceText, TokenId, TokenNameError, TokenNames, resolve_token};

/// An amount of one token.
#[derive(Clone, Copy, PartialEq)]
pub struct Position(f64);

impl Position {
    /// Returns the position of an amount. `None` if it is negative or not finite.
    #[must_use]
    pub fn of(amount: f64) -> Option<Self> {
        (amount.is_finite() && amount >= 0.0).then_some(Self(amount))
    }

    /// Returns the amount in tokens.
    #[must_use]
    pub fn amount(self) -> f64 {
        self.0
    }

    /// Returns the value in USD.
    #[must_use]
    pub fn value(self, price_usd: f64) -> f64 {
        self.0 * price_usd
    }

    /// Returns the amount of an unlock divided by the position: 2 means twice the position. `None` for an empty position.
    #[must_use]
    pub fn unlock_multiple(self, unlock_amount: f64) -> Option<f64> {
        (self.0 > 0.0).then(|| unlock_amount / self.0)
    }

    /// Returns the position divided by the amount of an unlock. `None` for an unlock without an amount.
    #[must_use]
    pub fn share_of_unlock(self, unlock_amount: f64) -> Option<f64> {
        (unlock_amount > 0.0).then(|| self.0 / unlock_amount)
    }

    /// Returns the position in percent of the circulating supply.
    #[must_use]
    pub fn percent_of(self, circulating_supply: f64) -> Option<f64> {
        (circulating_supply > 0.0).then(|| self.0 / circulating_supply * 100.0)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Position(***)")
    }
}

/// A position as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedPosition {
    /// The slug, ticker, or name of the token.
    pub name: String,
    pub position: Position,
    /// The file with the name, and the location of the name. `None` if it is in no file.
    pub location: Option<(PathBuf, Range<usize>)>,
}

/// The positions of a config.
#[derive(Clone, Debug, Default)]
pub struct PositionTable {
    pub stated: Vec<StatedPosition>,
    /// The errors of the file with positions. The daemon starts in spite of them.
    pub problems: Vec<Diagnostic>,
    /// The texts of the files without amounts.
    pub sources: Vec<SourceText>,
}

impl PartialEq for PositionTable {
    fn eq(&self, other: &Self) -> bool {
        self.stated == other.stated && self.problems == other.problems
    }
}

impl<'de> Deserialize<'de> for PositionTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amounts = BTreeMap::<String, f64>::deserialize(deserializer)?;
        let stated = |(name, amount)| Some(StatedPosition { name, position: Position::of(amount)?, location: None });
        Ok(Self { stated: amounts.into_iter().filter_map(stated).collect(), ..Self::default() })
    }
}

impl Serialize for PositionTable {
    /// Writes an empty table, because positions are confidential.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(std::iter::empty::<(String, f64)>())
    }
}

/// The positions by token. Until [`Self::resolve`], each name counts as a slug.
#[derive(Debug, Default)]
pub struct Positions {
    stated: Vec<StatedPosition>,
    by_token: RwLock<Arc<BTreeMap<TokenId, Position>>>,
}

impl Positions {
    #[must_use]
    pub fn of(table: &PositionTable) -> Self {
        let positions = Self { stated: table.stated.clone(), by_token: RwLock::default() };
        positions.resolve(&[]);
        positions
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stated.is_empty()
    }

    /// Returns the position in a token. `None` if the config has none.
    #[must_use]
    pub fn of_token(&self, token: &TokenId) -> Option<Position> {
        if self.stated.is_empty() { None } else { self.current().get(token).copied() }
    }

    /// Finds the token of each name among all known tokens. Returns a problem for each name that is not the name of one token, or of a
    /// token with another position. Without known tokens, each name counts as a slug.
    pub fn resolve(&self, known: &[TokenNames]) -> ResolvedPositions {
        let mut by_token: BTreeMap<TokenId, Position> = BTreeMap::new();
        let mut problems = Vec::new();
        for stated in &self.stated {
            let found =
                if known.is_empty() { Ok(TokenId::from(stated.name.as_str())) } else { resolve_token(&stated.name, known) };
            match found {
                Ok(id) if by_token.contains_key(&id) => {
                    problems.push(stated.problem(format!("the position of {id} is given twice"), None));
                }
                Ok(id) => _ = by_token.insert(id, stated.position),
                Err(error) => problems.push(stated.unknown(&error)),
            }
        }
        let by_token = Arc::new(by_token);
        let has_changed = self.current() != by_token;
        *self.by_token.write().unwrap_or_else(PoisonError::into_inner) = by_token;
        ResolvedPositions { problems, has_changed }
    }

    /// Returns the positions of all tokens that are known by now.
    #[must_use]
    pub fn by_token(&self) -> Arc<BTreeMap<TokenId, Position>> {
        self.current()
    }

    fn current(&self) -> Arc<BTreeMap<TokenId, Position>> {
        self.by_token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The result of [`Positions::resolve`].
#[derive(Debug)]
pub struct ResolvedPositions {
    pub problems: Vec<Diagnostic>,
    /// Whether a token has another position than before.
    pub has_changed: bool,
}

impl StatedPosition {
    fn unknown(&self, error: &TokenNameError) -> Diagnostic {
        let text = error.to_string();
        match text.split_once(": ") {
            Some((message, help)) => self.problem(message.to_owned(), Some(help.to_owned())),
            None => self.problem(text, None),
        }
    }

    fn problem(&self, message: String, help: Option<String>) -> Diagnostic {
        let (file, span) = match &self.location {
            Some((file, span)) => (file.clone(), Some(span.clone())),
            None => (PathBuf::from("environment"), None),
        };
        Diagnostic { help, ..Diagnostic::error(file, span, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(id: &str, symbol: &str) -> TokenNames {
        TokenNames { id: TokenId::from(id), symbol: symbol.to_owned(), name: String::new() }
    }

    fn positions(stated: &[(&str, f64)]) -> Positions {
        let stated = stated.iter().map(|(name, amount)| StatedPosition {
            name: (*name).to_owned(),
            position: Position::of(*amount).expect("an amount"),
            location: Some((PathBuf::from("book.csv"), 0..name.len())),
        });
        Positions::of(&PositionTable { stated: stated.collect(), ..PositionTable::default() })
    }

    #[test]
    fn slugs_and_tickers_find_their_tokens() {
        let positions = positions(&[("arbitrum", 10.0), ("APT", 5.0)]);
        let amount = |id: &str| positions.of_token(&TokenId::from(id)).map(Position::amount);
        assert_eq!((amount("arbitrum"), amount("aptos")), (Some(10.0), None), "slugs are known without a token list");
        let resolved = positions.resolve(&[names("arbitrum", "ARB"), names("aptos", "APT")]);
        assert!(resolved.has_changed && resolved.problems.is_empty(), "{resolved:?}");
        assert_eq!((amount("arbitrum"), amount("aptos")), (Some(10.0), Some(5.0)));
    }

    #[test]
    fn unknown_ambiguous_and_repeated_names_are_problems() {
        let known = [names("arbitrum", "ARB"), names("lend-a", "LEND"), names("lend-b", "LEND")];
        let problems = positions(&[("arbitrm", 1.0), ("LEND", 1.0), ("ARB", 1.0), ("arbitrum", 1.0)]).resolve(&known).problems;
        let texts: Vec<String> = problems
            .iter()
            .map(|problem| format!("{} ({})", problem.message, problem.help.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(
            texts,
            [
                "no token has the slug or ticker \"arbitrm\" (did you mean arbitrum?)",
                "several tokens have the name \"LEND\" (use one of the slugs lend-a, lend-b)",
                "the position of arbitrum is given twice ()",
            ]
        );
        assert_eq!(problems[0].span, Some(0..7));
    }

    #[test]
    fn debug_and_json_hide_amounts() {
        let stated = StatedPosition { name: "arbitrum".to_owned(), position: Position(123_456.0), location: None };
        let table = PositionTable { stated: vec![stated], ..PositionTable::default() };
        let shown = format!("{table:?} {:?} {}", Positions::of(&table), serde_json::to_string(&table).expect("JSON"));
        assert!(!shown.contains("123456"), "{shown}");
    }

    #[test]
    fn sizes_of_a_position_follow_from_its_amount() {
        let position = Position::of(200.0).expect("an amount");
        assert_eq!(position.value(1.5), 300.0);
        assert_eq!(position.unlock_multiple(1000.0), Some(5.0));
        assert_eq!(position.share_of_unlock(1000.0), Some(0.2));
        assert_eq!(position.percent_of(20_000.0), Some(1.0));
        let empty = Position::of(0.0).expect("an amount");
        assert_eq!((empty.unlock_multiple(1.0), position.share_of_unlock(0.0), position.percent_of(0.0)), (None, None, None));
        assert_eq!((Position::of(-1.0), Position::of(f64::NAN)), (None, None));
    }
}
