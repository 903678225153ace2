//! The filters of a rule: tokens by name or group, listing methods, and recipients.

use std::ops::Range;

use globset::GlobSet;

use model::{Record, TokenId};

use super::fields::{self, ListItem};
use super::scope::Scope;

/// The filters of a rule. An empty filter selects everything.
#[derive(Debug, Default)]
pub struct Filters {
    pub tokens: Option<GlobSet>,
    /// The items of `tokens` as written in the file, groups with their `@`, each with its span.
    pub written: Vec<(String, Range<usize>)>,
    pub groups: Vec<String>,
    pub listed_methods: Option<Patterns>,
    pub allocations: Option<Patterns>,
}

/// Patterns of names, and their texts in the file.
#[derive(Debug)]
pub struct Patterns {
    pub set: GlobSet,
    pub written: Vec<String>,
}

impl Filters {
    /// Returns `true` if the token or one of its groups is selected.
    pub fn selects_token(&self, token: &TokenId, groups: &[String]) -> bool {
        if self.tokens.is_none() && self.groups.is_empty() {
            return true;
        }
        let by_name = self.tokens.as_ref().is_some_and(|globs| globs.is_match(token.as_str()));
        by_name || groups.iter().any(|group| self.groups.contains(group))
    }

    pub fn matches(&self, scope: &Scope<'_>) -> bool {
        if (self.tokens.is_some() || !self.groups.is_empty())
            && !scope.token.is_some_and(|token| self.selects_token(&token.id, &token.groups))
        {
            return false;
        }
        if let Some(patterns) = &self.listed_methods {
            let own = match scope.record_in_view() {
                Some(Record::Unlock(event)) => event.listed_method.as_str(),
                Some(Record::Emission(emission)) => emission.listed_method.as_str(),
                _ => None,
            };
            let method = own.or_else(|| scope.token.and_then(|token| token.item.listed_method.as_str()));
            if !method.is_some_and(|method| patterns.set.is_match(method)) {
                return false;
            }
        }
        self.allocations.as_ref().is_none_or(|patterns| {
            let mut found = false;
            let mut visit = |item: ListItem<'_>| {
                let names = [fields::item_name(item), fields::item_category(item)];
                found = names.into_iter().flatten().any(|name| patterns.set.is_match(name));
                !found
            };
            // A change names the affected recipients; their categories are in the record. If it names none, all recipients count.
            let concerned = scope.change.map_or(&[][..], |change| &change.allocations);
            if concerned.iter().all(|item| visit(ListItem::Change(item)))
                && let Some(record) = scope.record_in_view()
            {
                fields::each_recipient(record, &mut |item| {
                    let name = fields::item_name(item);
                    let counts = concerned.is_empty() || concerned.iter().any(|item| Some(item.name.as_str()) == name);
                    !counts || visit(item)
                });
            }
            found
        })
    }
}
