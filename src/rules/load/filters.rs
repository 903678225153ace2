//! Reads the keys that select the subjects of a rule: `tokens`, `listed_methods`, `allocations`, and the groups of `portfolio`.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use toml::{Spanned, de::DeTable};

use crate::{
    condition::Dependencies,
    filters::{Filters, Patterns},
    rule::Pool,
};
use model::closest;

use super::{RuleReader, values::LocatedText};

/// The maximum number of patterns of one filter.
pub(super) const MAX_PATTERNS: usize = 1_000;

/// The maximum length of a pattern, in characters.
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
                None if known.is_empty() => "the configuration defines no `[watch.groups]`".into(),
                None => format!("known groups: {}", known.iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join(", ")),
            };
            self.reject(text.span, format!("unknown group `{group}`"), help);
        }
        if names_nothing && let Some(value) = table.get("tokens") {
            self.reject(value.span(), "`tokens` is empty, so the rule never matches", "remove it to select every watched token");
        }
        Filters {
            tokens: self.globs("tokens", patterns),
            written,
            groups,
            listed_methods: self.glob_key(table, "listed_methods"),
            allocations: self.glob_key(table, "allocations"),
        }
    }

    /// Returns the groups that a rule on `portfolio` evaluates: the groups in `tokens`, else all groups, else all watched tokens.
    pub fn pools(&mut self, table: &DeTable<'_>, filters: &Filters) -> Vec<Pool> {
        if filters.tokens.is_some()
            && !filters.groups.is_empty()
            && let Some(value) = table.get("tokens")
        {
            self.reject(
                value.span(),
                "a rule on `portfolio` cannot combine groups and patterns",
                "write two rules: each group has its own alert, while patterns share one alert for all matching tokens",
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

    /// Reports groups that `share` names but the configuration does not define.
    pub fn known_groups(&mut self, table: &DeTable<'_>, dependencies: &Dependencies) {
        for group in dependencies.groups.iter().filter(|group| !self.around.groups.contains_key(*group)) {
            let known: Vec<&str> = self.around.groups.keys().map(String::as_str).collect();
            let help = match closest(group, known.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if known.is_empty() => "the configuration defines no `[watch.groups]`".into(),
                None => format!("known groups: {}", known.join(", ")),
            };
            let quoted = format!("\"{}\"", group.escape_default());
            let place = ["when", "clear_when"].iter().find_map(|key| {
                let text = self.as_text(table.get(*key)?)?;
                let at = text.value.find(quoted.as_str())?;
                Some(text.locate(at..at + quoted.len()))
            });
            let span = place.or_else(|| table.get("when").map(Spanned::span)).unwrap_or_default();
            self.reject(span, format!("unknown group `{group}`"), help);
        }
    }

    pub fn glob_key(&mut self, table: &DeTable<'_>, key: &str) -> Option<Patterns> {
        let patterns = self.texts(table, key, false)?;
        if patterns.is_empty() {
            let value = table.get(key)?;
            self.reject(value.span(), format!("`{key}` is empty, so the rule never matches"), "remove it to select everything");
        }
        let written = patterns.iter().map(|pattern| pattern.value.clone()).collect();
        Some(Patterns { set: self.globs(key, patterns)?, written })
    }

    pub fn globs(&mut self, key: &str, patterns: Vec<LocatedText>) -> Option<GlobSet> {
        if patterns.is_empty() {
            return None;
        }
        let mut set = GlobSetBuilder::new();
        for text in patterns {
            if text.value.is_empty() || text.value.chars().count() > MAX_PATTERN {
                self.reject(
                    text.span,
                    format!("a pattern in `{key}` must have 1 to {MAX_PATTERN} characters"),
                    "example: \"apt*\"",
                );
                continue;
            }
            match glob(&text.value) {
                Ok(glob) => _ = set.add(glob),
                Err(error) => self.reject(
                    text.span,
                    format!("invalid pattern: {}", error.kind()),
                    "`*` matches any text, `?` one character, and `[ab]` one of the listed characters",
                ),
            }
        }
        match set.build() {
            Ok(set) => Some(set),
            Err(error) => {
                self.problem(None, format!("cannot combine the patterns in `{key}`: {}", error.kind()));
                None
            }
        }
    }
}

/// Compiles a case-insensitive pattern in which `*` matches any text, including `/`.
fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).case_insensitive(true).literal_separator(false).backslash_escape(true).build()
}
