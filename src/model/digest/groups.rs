//! The groups of `[watch.groups]` in a digest.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::ahead::{DigestAhead, TokenAhead};
use super::{AheadLine, LargestFirst, MAX_LINES, count};
use crate::{Token, UnlockSum};

/// The maximum number of tokens in the line of a group.
const MAX_GROUP_TOKENS: usize = 8;

/// The upcoming unlocks of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupLine {
    pub name: String,
    /// The total value in USD of the cliff and linear unlocks whose value is known. `None` if no value is known.
    pub value: Option<f64>,
    /// The number of cliff unlocks.
    pub events: u32,
    /// The value of the cliff unlocks in USD. `None` if no value is known.
    #[serde(default)]
    pub cliff_value: Option<f64>,
    /// The number of tokens that unlock linearly.
    #[serde(default)]
    pub linear_tokens: u32,
    /// The value of the linear unlocks in USD. `None` if no value is known.
    #[serde(default)]
    pub linear_value: Option<f64>,
    /// Symbol and USD of the tokens with upcoming unlocks, largest value first. `None` if no value is known.
    pub tokens: Vec<(String, Option<f64>)>,
    pub left_out: u32,
}

/// Returns the lines of the groups, largest value first.
pub(super) fn groups(unlocks: &DigestAhead, lines: &[AheadLine]) -> Vec<GroupLine> {
    let mut groups: BTreeMap<&str, GroupSum<'_>> = BTreeMap::new();
    let by_token: HashMap<&str, &Token> = unlocks.counted.rows.iter().map(|row| (row.token.id.as_str(), &row.token)).collect();
    for line in lines {
        let Some(token) = by_token.get(line.token.as_str()) else { continue };
        let mut cliff = UnlockSum::default();
        cliff.add(None, line.value.filter(|value| value.is_finite()));
        add_to_groups(&mut groups, token, cliff, UnlockSum::default());
    }
    for TokenAhead { token, cliff, linear } in &unlocks.by_token {
        add_to_groups(&mut groups, token, *cliff, *linear);
    }
    for vesting in &unlocks.linear.tokens {
        add_to_groups(&mut groups, &vesting.token, UnlockSum::default(), vesting.sum);
    }
    let mut groups: Vec<GroupLine> = groups.into_iter().map(|(name, sum)| sum.line(name)).collect();
    groups.sort_by_key(|line| LargestFirst(line.value));
    groups.truncate(MAX_LINES);
    groups
}

fn add_to_groups<'t>(groups: &mut BTreeMap<&'t str, GroupSum<'t>>, token: &'t Token, cliff: UnlockSum, linear: UnlockSum) {
    token.groups.iter().for_each(|group| groups.entry(group).or_default().add(token, cliff, linear));
}

/// The sums of a group's upcoming unlocks: symbol, cliff unlocks, and linear unlocks by slug.
#[derive(Default)]
struct GroupSum<'t> {
    by_token: BTreeMap<&'t str, (&'t str, UnlockSum, UnlockSum)>,
}

impl<'t> GroupSum<'t> {
    fn add(&mut self, token: &'t Token, cliff: UnlockSum, linear: UnlockSum) {
        let (_, cliffs, linears) =
            self.by_token.entry(token.id.as_str()).or_insert((token.symbol(), UnlockSum::default(), UnlockSum::default()));
        (*cliffs, *linears) = (cliffs.plus(cliff), linears.plus(linear));
    }

    fn line(self, name: &str) -> GroupLine {
        let (mut cliff, mut linear, mut linear_tokens) = (UnlockSum::default(), UnlockSum::default(), 0);
        let mut tokens: Vec<(&str, Option<f64>)> = Vec::new();
        for (symbol, cliffs, linears) in self.by_token.into_values() {
            (cliff, linear) = (cliff.plus(cliffs), linear.plus(linears));
            linear_tokens += u32::from(linears.count > 0);
            tokens.push((symbol, cliffs.plus(linears).known_value()));
        }
        tokens.sort_by(|a, b| LargestFirst(a.1).cmp(&LargestFirst(b.1)).then_with(|| a.0.cmp(b.0)));
        GroupLine {
            name: name.to_owned(),
            value: cliff.plus(linear).known_value(),
            events: u32::try_from(cliff.count).unwrap_or(u32::MAX),
            cliff_value: cliff.known_value(),
            linear_tokens,
            linear_value: linear.known_value(),
            left_out: count(tokens.len().saturating_sub(MAX_GROUP_TOKENS)),
            tokens: tokens.iter().take(MAX_GROUP_TOKENS).map(|(symbol, value)| ((*symbol).to_owned(), *value)).collect(),
        }
    }
}
