//! What a rule lets in, from its keys: `tokens`, `listed_methods`, `allocations`, and the groups that `portfolio` looks at as one.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use toml::{Spanned, de::DeTable};

use crate::{condition::Dependencies, filters::Filters, rule::Pool};
use model::closest;

use super::{RuleReader, values::PlacedText};

/// Entries of one filter, and characters of one pattern.
pub(super) const MAX_PATTERNS: usize = 1_000;

const MAX_PATTERN: usize = 256;

impl RuleReader<'_> {
    pub fn filters(&mut self, table: &DeTable<'_>) -> Filters {
        let mut groups = Vec::new();
        let mut patterns = Vec::new();
        let tokens = self.texts(table, "tokens", false);
        let names_nothing = tokens.as_ref().is_some_and(Vec::is_empty);
        let mut written = Vec::new();
        for text in tokens.into_iter().flatten() {
            written.push((text.value.clone(), text.span.clone()));
            let Some(group) = text.value.strip_prefix('@') else {
                patterns.push(text);
                continue;
            };
            if self.around.groups.contains_key(group) {
                groups.push(group.to_owned());
                continue;
            }
            let known: Vec<&str> = self.around.groups.keys().map(String::as_str).collect();
            let help = match closest(group, known.iter().copied()) {
                Some(near) => format!("did you mean \"@{near}\"?"),
                None if known.is_empty() => "the configuration has no `[watch]` `groups`".into(),
                None => format!("known are {}", known.iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join(", ")),
            };
            self.refuse(text.span, format!("there is no group `{group}`"), help);
        }
        if names_nothing && let Some(value) = table.get("tokens") {
            self.refuse(value.span(), "`tokens` lets nothing in", "leave it out for every watched token");
        }
        Filters {
            tokens: self.globs("tokens", patterns),
            written,
            groups,
            listed_methods: self.glob_key(table, "listed_methods"),
            allocations: self.glob_key(table, "allocations"),
        }
    }

    /// What a rule on `portfolio` looks at as one: the groups that it names, else each group there is, else all watched tokens.
    pub fn pools(&mut self, table: &DeTable<'_>, filters: &Filters) -> Vec<Pool> {
        if filters.tokens.is_some()
            && !filters.groups.is_empty()
            && let Some(value) = table.get("tokens")
        {
            self.refuse(
                value.span(),
                "a rule on `portfolio` names groups or patterns, not both",
                "each group makes an alert of its own; patterns make one over all tokens that they match: write two rules",
            );
        }
        if filters.tokens.is_some() {
            return vec![Pool::Watched];
        }
        let named: Vec<&String> =
            if filters.groups.is_empty() { self.around.groups.keys().collect() } else { filters.groups.iter().collect() };
        let mut pools: Vec<Pool> = named.into_iter().cloned().map(Pool::Group).collect();
        pools.sort();
        pools.dedup();
        if pools.is_empty() { vec![Pool::Watched] } else { pools }
    }

    /// Groups that `share` names and the configuration does not.
    pub fn known_groups(&mut self, table: &DeTable<'_>, dependencies: &Dependencies) {
        for group in dependencies.groups.iter().filter(|group| !self.around.groups.contains_key(*group)) {
            let known: Vec<&str> = self.around.groups.keys().map(String::as_str).collect();
            let help = match closest(group, known.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if known.is_empty() => "the configuration has no `[watch]` `groups`".into(),
                None => format!("known are {}", known.join(", ")),
            };
            let quoted = format!("\"{}\"", group.escape_default());
            let place = ["when", "clear_when"].iter().find_map(|key| {
                let text = self.as_text(table.get(*key)?)?;
                let at = text.value.find(quoted.as_str())?;
                Some(text.place(at..at + quoted.len()))
            });
            let span = place.or_else(|| table.get("when").map(Spanned::span)).unwrap_or_default();
            self.refuse(span, format!("there is no group `{group}`"), help);
        }
    }

    pub fn glob_key(&mut self, table: &DeTable<'_>, key: &str) -> Option<GlobSet> {
        let patterns = self.texts(table, key, false)?;
        if patterns.is_empty() {
            let value = table.get(key)?;
            self.refuse(value.span(), format!("`{key}` lets nothing in"), "leave it out to let everything in");
        }
        self.globs(key, patterns)
    }

    pub fn globs(&mut self, key: &str, patterns: Vec<PlacedText>) -> Option<GlobSet> {
        if patterns.is_empty() {
            return None;
        }
        let mut set = GlobSetBuilder::new();
        for text in patterns {
            if text.value.is_empty() || text.value.chars().count() > MAX_PATTERN {
                self.refuse(
                    text.span,
                    format!("a pattern of `{key}` has 1 to {MAX_PATTERN} characters"),
                    "write it like \"apt*\"",
                );
                continue;
            }
            match glob(&text.value) {
                Ok(glob) => _ = set.add(glob),
                Err(error) => self.refuse(
                    text.span,
                    format!("this pattern cannot be used: {}", error.kind()),
                    "`*` stands for anything, `?` for one character, `[ab]` for one of them",
                ),
            }
        }
        match set.build() {
            Ok(set) => Some(set),
            Err(error) => {
                self.problem(None, format!("the patterns of `{key}` cannot be used together: {}", error.kind()));
                None
            }
        }
    }
}

/// A pattern over names, whatever their case; `*` crosses every character.
fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).case_insensitive(true).literal_separator(false).backslash_escape(true).build()
}
