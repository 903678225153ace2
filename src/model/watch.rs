//! Which tokens are watched, and which groups hold them: globs over slugs. Pure.

use std::{collections::BTreeMap, sync::Arc};

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::{Token, TokenId, config};

/// `[watch]`, ready for matching.
#[derive(Clone, Debug)]
pub struct Watch {
    tokens: GlobSet,
    named: Vec<TokenId>,
    groups: BTreeMap<String, GlobSet>,
    /// Whether a pattern can only be filled from the token list.
    needs_list: bool,
}

/// A pattern that is no glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is no pattern for tokens: {why}")]
pub struct WatchError {
    /// Config path of the pattern, such as `watch.tokens[2]`.
    pub path: String,
    /// As written.
    pub pattern: String,
    pub why: String,
}

impl Watch {
    /// Reads the section. Fails with all patterns that are no globs.
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
        if errors.is_empty() { Ok(Self { tokens, named, groups, needs_list }) } else { Err(errors) }
    }

    pub fn covers(&self, token: &TokenId) -> bool {
        self.tokens.is_match(token.as_str())
    }

    /// Tokens that the config names outright: watched whether the list has them or not.
    pub fn named(&self) -> &[TokenId] {
        &self.named
    }

    /// Whether a pattern can only be filled from the token list.
    pub fn needs_list(&self) -> bool {
        self.needs_list
    }

    pub fn has_group(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    /// Names of all groups, sorted.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// Names of the groups that hold a token, sorted.
    pub fn groups_of(&self, token: &TokenId) -> Arc<[String]> {
        self.groups.iter().filter(|(_, set)| set.is_match(token.as_str())).map(|(name, _)| name.clone()).collect()
    }

    /// The token with its groups filled in.
    pub fn placed(&self, mut token: Token) -> Token {
        token.groups = self.groups_of(&token.id);
        token
    }
}

fn set(path: &str, patterns: &[String], errors: &mut Vec<WatchError>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for (index, pattern) in patterns.iter().enumerate() {
        match Glob::new(pattern) {
            Ok(glob) => {
                builder.add(glob);
            }
            Err(error) => errors.push(WatchError {
                path: format!("{path}[{index}]"),
                pattern: pattern.clone(),
                why: error.kind().to_string(),
            }),
        }
    }
    builder.build().unwrap_or_else(|error| {
        errors.push(WatchError { path: path.to_owned(), pattern: patterns.join(", "), why: error.to_string() });
        GlobSet::empty()
    })
}

#[cfg(test)]
mod tests;
