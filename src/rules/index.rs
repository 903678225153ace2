//! From what moves to the rules that may care: a burn is judged by the rules on burns, a new market cap by those that read it.

use std::collections::HashMap;

use crate::{change::ChangeKind, supply::Resource, wire::TokenItem};

use super::{On, Rule, fields};

/// Where rules stand in their set, by what they listen to and by what they read.
#[derive(Debug, Default)]
pub struct Index {
    by_on: HashMap<On, Vec<usize>>,
    /// Rules on changes of a resource, of any kind or of one, in their order.
    by_change: HashMap<(Resource, ChangeKind), Vec<usize>>,
    /// Fields of the token list that a rule on states reads: a new value can turn it.
    token_fields: Vec<&'static fields::Field<crate::supply::Token>>,
    /// Fields of the token list that rules on tokens and groups read under short names.
    reads_market_cap: bool,
    reads_supply: bool,
}

impl Index {
    pub(super) fn of(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (place, rule) in rules.iter().enumerate() {
            index.by_on.entry(rule.on).or_default().push(place);
            match rule.on {
                On::Change(resource, kind) => {
                    for kind in ChangeKind::ALL.into_iter().filter(|of| kind.is_none_or(|kind| kind == *of)) {
                        index.by_change.entry((resource, kind)).or_default().push(place);
                    }
                }
                // What happens once is judged when it happens: a value that moves later turns nothing.
                On::Record(Resource::Burn | Resource::Buyback | Resource::Funding) | On::Source => {}
                On::Record(_) | On::Token | On::Portfolio => index.reads(rule),
            }
        }
        index
    }

    fn reads(&mut self, rule: &Rule) {
        for name in &rule.body.reads.token_fields {
            match *name {
                "marketCap" => self.reads_market_cap = true,
                "maxSupply" | "circulatingSupply" => self.reads_supply = true,
                _ => {}
            }
            let known = fields::TOKEN.iter().find(|field| field.name == *name);
            if let Some(field) = known.filter(|field| !self.token_fields.iter().any(|known| known.name == field.name)) {
                self.token_fields.push(field);
            }
        }
        self.reads_market_cap |= !rule.body.reads.groups.is_empty();
    }

    /// The rules that listen to exactly this.
    #[must_use]
    pub fn on(&self, on: On) -> &[usize] {
        self.by_on.get(&on).map_or(&[], Vec::as_slice)
    }

    /// The rules that hear this change, those on any kind of it included.
    #[must_use]
    pub fn hears(&self, resource: Resource, kind: ChangeKind) -> &[usize] {
        self.by_change.get(&(resource, kind)).map_or(&[], Vec::as_slice)
    }

    /// Whether a new row of the token list may turn a rule on states: a field that one reads has another value.
    #[must_use]
    pub fn is_moved(&self, before: &TokenItem, after: &TokenItem) -> bool {
        if self.reads_market_cap && before.market_cap != after.market_cap {
            return true;
        }
        if self.reads_supply && (before.max_supply != after.max_supply || before.circulating_supply != after.circulating_supply) {
            return true;
        }
        if self.token_fields.is_empty() {
            return false;
        }
        let token = |item: &TokenItem| crate::supply::Token {
            id: crate::supply::TokenId::from(item.id.as_str().unwrap_or_default()),
            item: item.clone(),
            groups: std::sync::Arc::from([]),
        };
        let (before, after) = (token(before), token(after));
        self.token_fields.iter().any(|field| !field.read.is_same(&before, &after))
    }
}
