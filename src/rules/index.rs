//! An index from changed data to the rules that may react: a burn concerns rules on burns, a new market cap rules that read it.

use std::{collections::HashMap, sync::Arc};

use model::{ChangeKind, Resource, Token, TokenId, wire::TokenItem};

use super::aggregate::Flow;
use super::fields::{self, FieldDef};
use super::on::On;
use super::rule::Rule;

/// The positions of rules in their set, by `on` and by the fields that they read.
#[derive(Debug, Default)]
pub struct Index {
    by_on: HashMap<On, Vec<usize>>,
    /// The rules on changes of a resource, of one kind or any, in the order of the set.
    by_change: HashMap<(Resource, ChangeKind), Vec<usize>>,
    /// The fields of the token list that rules on states read. A new value can change the result of such a rule.
    token_fields: Vec<&'static FieldDef<Token>>,
}

impl Index {
    pub(crate) fn of(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (place, rule) in rules.iter().enumerate() {
            index.by_on.entry(rule.on).or_default().push(place);
            match rule.on {
                On::Change(resource, kind) => {
                    for kind in ChangeKind::ALL.into_iter().filter(|of| kind.is_none_or(|kind| kind == *of)) {
                        index.by_change.entry((resource, kind)).or_default().push(place);
                    }
                }
                // One-time events are evaluated when they become known: a later value does not change the result.
                On::Record(Resource::Burn | Resource::Buyback | Resource::Funding) | On::Source => {}
                On::Record(_) | On::Token | On::Portfolio => index.add_fields(rule),
            }
        }
        index
    }

    fn add_fields(&mut self, rule: &Rule) {
        let dependencies = &rule.body.dependencies;
        for name in &dependencies.token_fields {
            self.add_field(name);
            // Messages show all supply fields of a token together.
            if fields::TOTALS_OF_TOKEN.iter().any(|field| field.name == *name) {
                fields::TOTALS_OF_TOKEN.iter().for_each(|field| self.add_field(field.name));
            }
        }
        let has_summary = rule.body.annotations.iter().any(|(name, _)| name == "summary");
        let shows_share = !has_summary && dependencies.windows.iter().any(|window| window.flow == Flow::Ahead);
        // A token's share of a group, and the share of market cap in the built-in text, are computed from market caps.
        if shows_share || !dependencies.groups.is_empty() {
            self.add_field("marketCap");
        }
    }

    /// Adds a field by its name in the token list, or by the short name that rules on tokens and groups use.
    fn add_field(&mut self, name: &str) {
        let is_it = |field: &&FieldDef<Token>| field.name == name || field.name.strip_prefix("token.") == Some(name);
        if let Some(field) = fields::TOKEN.iter().find(is_it)
            && !self.token_fields.iter().any(|known| known.name == field.name)
        {
            self.token_fields.push(field);
        }
    }

    /// Returns the positions of the rules with exactly this `on`.
    pub fn on(&self, on: On) -> &[usize] {
        self.by_on.get(&on).map_or(&[], Vec::as_slice)
    }

    /// Returns the positions of the rules that subscribe to this change, including those on any kind.
    pub fn subscribes_to(&self, resource: Resource, kind: ChangeKind) -> &[usize] {
        self.by_change.get(&(resource, kind)).map_or(&[], Vec::as_slice)
    }

    /// Returns `true` if a new row of the token list changes a field that a rule on states reads.
    pub fn changes_read_field(&self, before: &TokenItem, after: &TokenItem) -> bool {
        if self.token_fields.is_empty() {
            return false;
        }
        let token = |item: &TokenItem| Token {
            id: TokenId::from(item.id.as_str().unwrap_or_default()),
            item: item.clone(),
            groups: Arc::from([]),
            position: None,
        };
        let (before, after) = (token(before), token(after));
        self.token_fields.iter().any(|field| !field.read.is_same(&before, &after))
    }
}
