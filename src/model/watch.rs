//! Selects the watched tokens and their groups by globs over slugs, and finds the positions in them.

use std::{collections::BTreeMap, sync::Arc};

use self::slug_set::{SlugSet, SlugSetBuilder};
use crate::{Positions, Token, TokenId, config};

mod slug_set;

/// The compiled section `[watch]`.
#[derive(Clone, Debug)]
pub struct Watch {
    tokens: SlugSet,
    named: Vec<TokenId>,
    groups: BTreeMap<String, SlugSet>,
    /// Whether a pattern needs the token list to find its tokens.
    needs_list: bool,
    /// Narrows the tokens to those that any of these sets matches. Empty for all.
    narrowed_to: Vec<SlugSet>,
    /// The positions of the config. Clones share their tokens, once a token list has explained the tickers.
    positions: Arc<Positions>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a valid token pattern: {why}")]
pub struct WatchError {
    /// The config path of the pattern, such as `watch.tokens[2]`.
    pub path: String,
    pub pattern: String,
    pub why: String,
}

impl Watch {
    /// Compiles the section.
    ///
    /// # Errors
    /// With all patterns that are not valid globs.
    pub fn build(section: &config::WatchSettings) -> Result<Self, Vec<WatchError>> {
        let mut errors = Vec::new();
        let mut groups = BTreeMap::new();
        for (name, patterns) in &section.groups {
            groups.insert(name.clone(), set(&format!("watch.groups.{name}"), patterns, &mut errors));
        }
        let tokens = set("watch.tokens", &section.tokens, &mut errors);
        let is_plain = |pattern: &&String| !pattern.contains(['*', '?', '[', '{', '!']);
        let named = section.tokens.iter().filter(is_plain).map(|slug| TokenId::from(slug.as_str())).collect::<Vec<_>>();
        let needs_list = named.len() < section.tokens.len();
        let positions = Arc::new(Positions::of(&section.positions));
        if errors.is_empty() {
            Ok(Self { tokens, named, groups, needs_list, narrowed_to: Vec::new(), positions })
        } else {
            Err(errors)
        }
    }

    pub fn covers(&self, token: &TokenId) -> bool {
        let is_selected = || self.narrowed_to.iter().any(|set| set.contains(token));
        self.tokens.contains(token) && (self.narrowed_to.is_empty() || is_selected())
    }

    /// Returns the watch of the tokens that `patterns` select: slugs, globs, and groups (`@portfolio`). Without patterns, all tokens.
    ///
    /// # Errors
    /// With the first pattern that is not a valid glob or names an unknown group: its index, the problem, and the help text.
    pub fn narrowed(&self, patterns: &[String]) -> Result<Self, (usize, String, Option<String>)> {
        let mut sets = Vec::new();
        let mut own = SlugSetBuilder::new();
        for (index, pattern) in patterns.iter().enumerate() {
            match pattern.strip_prefix('@') {
                Some(name) => {
                    let unknown = || (index, format!("the group \"@{name}\" is not in [watch.groups]"), self.group_help(name));
                    sets.push(self.groups.get(name).ok_or_else(unknown)?.clone());
                }
                None => {
                    let invalid = |error: globset::Error| {
                        (index, format!("{pattern:?} is not a valid token pattern: {}", error.kind()), None)
                    };
                    own.add(pattern).map_err(invalid)?;
                }
            }
        }
        if sets.len() < patterns.len() {
            let invalid = |error: globset::Error| (0, format!("the patterns are not valid: {}", error.kind()), None);
            sets.push(own.build().map_err(invalid)?);
        }
        Ok(Self { narrowed_to: sets, ..self.clone() })
    }

    fn group_help(&self, name: &str) -> Option<String> {
        let near = crate::closest(name, self.groups.keys().map(String::as_str))?;
        Some(format!("did you mean \"@{near}\"?"))
    }

    /// Returns the tokens that the config names without a glob. They are watched even if the token list lacks them.
    pub fn named(&self) -> &[TokenId] {
        &self.named
    }

    /// Returns whether a pattern needs the token list to find its tokens.
    pub fn needs_list(&self) -> bool {
        self.needs_list
    }

    pub fn has_group(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    /// Returns the names of all groups, sorted.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// Returns the names of a token's groups, sorted.
    pub fn groups_of(&self, token: &TokenId) -> Arc<[String]> {
        self.groups.iter().filter(|(_, set)| set.contains(token)).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the token with its groups and its position.
    pub fn placed(&self, mut token: Token) -> Token {
        self.place(&mut token);
        token
    }

    /// Sets the groups and the position of a token.
    pub fn place(&self, token: &mut Token) {
        token.groups = self.groups_of(&token.id);
        token.position = self.positions.of_token(&token.id);
    }

    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Returns the watch without positions, for readers who must not see them.
    #[must_use]
    pub fn without_positions(&self) -> Self {
        Self { positions: Arc::default(), ..self.clone() }
    }
}

fn set(path: &str, patterns: &[String], errors: &mut Vec<WatchError>) -> SlugSet {
    let mut builder = SlugSetBuilder::new();
    for (index, pattern) in patterns.iter().enumerate() {
        if let Err(error) = builder.add(pattern) {
            errors.push(WatchError { path: format!("{path}[{index}]"), pattern: pattern.clone(), why: error.kind().to_string() });
        }
    }
    builder.build().unwrap_or_else(|error| {
        errors.push(WatchError { path: path.to_owned(), pattern: patterns.join(", "), why: error.to_string() });
        SlugSet::default()
    })
}

#[cfg(test)]
mod tests;
