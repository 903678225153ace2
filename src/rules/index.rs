//! From what moves to the rules that may care: a burn is evaluated by the rules on burns, a new market cap by those that read it.

use std::{collections::HashMap, sync::Arc};

use model::{ChangeKind, Resource, Token, TokenId, wire::TokenItem};

use super::fields::{self, FieldDef};
use super::on::On;
use super::rule::Rule;

/// Where rules stand in their set, by what they listen to and by what they read.
#[derive(Debug, Default)]
pub struct Index {
    by_on: HashMap<On, Vec<usize>>,
    /// Rules on changes of a resource, of any kind or of one, in their order.
    by_change: HashMap<(Resource, ChangeKind), Vec<usize>>,
    /// Fields of the token list that a rule on states reads: a new value can turn it.
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
                // What happens once is evaluated when it happens: a value that moves later turns nothing.
                On::Record(Resource::Burn | Resource::Buyback | Resource::Funding) | On::Source => {}
                On::Record(_) | On::Token | On::Portfolio => index.note_fields(rule),
            }
        }
        index
    }

    fn note_fields(&mut self, rule: &Rule) {
        let dependencies = &rule.body.dependencies;
        for name in &dependencies.token_fields {
            self.note_field(name);
            // A token's supplies are worked out and shown together.
            if fields::TOTALS_OF_TOKEN.iter().any(|field| field.name == *name) {
                fields::TOTALS_OF_TOKEN.iter().for_each(|field| self.note_field(field.name));
            }
        }
        // A share is of market caps.
        if !dependencies.groups.is_empty() {
            self.note_field("marketCap");
        }
    }

    /// Notes a field under its name in the token list, or under the short one that rules on tokens and groups use.
    fn note_field(&mut self, name: &str) {
        let is_it = |field: &&FieldDef<Token>| field.name == name || field.name.strip_prefix("token.") == Some(name);
        if let Some(field) = fields::TOKEN.iter().find(is_it)
            && !self.token_fields.iter().any(|known| known.name == field.name)
        {
            self.token_fields.push(field);
        }
    }

    /// The rules that listen to exactly this.
    pub fn on(&self, on: On) -> &[usize] {
        self.by_on.get(&on).map_or(&[], Vec::as_slice)
    }

    /// The rules that hear this change, those on any kind of it included.
    pub fn hears(&self, resource: Resource, kind: ChangeKind) -> &[usize] {
        self.by_change.get(&(resource, kind)).map_or(&[], Vec::as_slice)
    }

    /// Whether a new row of the token list may turn a rule on states: a field that one reads has another value.
    pub fn is_moved(&self, before: &TokenItem, after: &TokenItem) -> bool {
        if self.token_fields.is_empty() {
            return false;
        }
        let token = |item: &TokenItem| Token {
            id: TokenId::from(item.id.as_str().unwrap_or_default()),
            item: item.clone(),
            groups: Arc::from([]),
        };
        let (before, after) = (token(before), token(after));
        self.token_fields.iter().any(|field| !field.read.is_same(&before, &after))
    }
}
