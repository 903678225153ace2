//! A set of tokens given by slugs and globs.

use std::collections::HashSet;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::TokenId;

/// Selects tokens. Most patterns are slugs or `*`, which are compared without a glob: pages match all tokens with each group.
#[derive(Clone, Debug, Default)]
pub(super) struct SlugSet {
    has_all: bool,
    slugs: HashSet<TokenId>,
    /// `None` without other patterns.
    globs: Option<GlobSet>,
}

impl SlugSet {
    pub(super) fn contains(&self, token: &TokenId) -> bool {
        let matches_glob = || self.globs.as_ref().is_some_and(|globs| globs.is_match(token.as_str()));
        self.has_all || self.slugs.contains(token) || matches_glob()
    }
}

#[derive(Debug)]
pub(super) struct SlugSetBuilder {
    set: SlugSet,
    globs: GlobSetBuilder,
    has_globs: bool,
}

impl SlugSetBuilder {
    pub(super) fn new() -> Self {
        Self { set: SlugSet::default(), globs: GlobSetBuilder::new(), has_globs: false }
    }

    /// Adds a slug or a glob.
    ///
    /// # Errors
    /// If the pattern is not a valid glob.
    pub(super) fn add(&mut self, pattern: &str) -> Result<(), globset::Error> {
        if pattern == "*" {
            self.set.has_all = true;
        } else if is_slug(pattern) {
            self.set.slugs.insert(TokenId::from(pattern));
        } else {
            self.globs.add(Glob::new(pattern)?);
            self.has_globs = true;
        }
        Ok(())
    }

    /// Returns the set of all added patterns.
    ///
    /// # Errors
    /// If the patterns are too large together.
    pub(super) fn build(self) -> Result<SlugSet, globset::Error> {
        let Self { set, globs, has_globs } = self;
        let globs = if has_globs { Some(globs.build()?) } else { None };
        Ok(SlugSet { globs, ..set })
    }
}

/// Returns whether a pattern matches only itself.
fn is_slug(pattern: &str) -> bool {
    pattern.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn set_selects_what_its_globs_select(
            patterns in prop::collection::vec("[ab*?é._-]{0,4}|\\[[ab!]{1,2}\\]b|\\{a,b\\}[ab]?|[*]|a\\\\b", 0..4),
            slugs in prop::collection::vec("[abAé._/-]{0,4}", 1..20),
        ) {
            let (mut set, mut globs) = (SlugSetBuilder::new(), GlobSetBuilder::new());
            for pattern in &patterns {
                let glob = Glob::new(pattern);
                prop_assert_eq!(set.add(pattern).is_ok(), glob.is_ok(), "{}", pattern);
                if let Ok(glob) = glob {
                    globs.add(glob);
                }
            }
            let (set, globs) = (set.build().expect("valid"), globs.build().expect("valid"));
            for slug in slugs.iter().chain(&patterns) {
                prop_assert_eq!(set.contains(&slug.as_str().into()), globs.is_match(slug), "{:?} {}", patterns, slug);
            }
        }
    }
}
