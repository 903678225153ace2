//! Imports the token list, the prices, and the data gaps.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::{ImportRun, ImportedToken};
use crate::ServiceError;
use crate::data_folder::{SourceFile, TOKENS};
use crate::query::MAX_SLUG;
use crate::refusal::redact;
use model::Endpoint;
use model::wire::{Maybe, PriceRow, ReadJson, TokenItem};
use store::facts::RATE_CHANGES;

/// Fields of `tokens.json` about the folder itself, which the token list of the API does not have.
const FOLDER_FIELDS: [&str; 10] = [
    "tokenId",
    "maxSupplySource",
    "chainToken",
    "coverage",
    "untrackedAllocations",
    "events",
    "firstUnlock",
    "lastUnlock",
    "resources",
    "sources",
];

/// Data that a folder does not cover.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataGap {
    /// `None` for data that does not belong to a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// Names of endpoints that were never polled, and `rate_changes`.
    pub missing: Vec<String>,
}

struct DataGaps(Vec<DataGap>);

/// The length limit of a file name in bytes, without `.json`.
const MAX_STEM_BYTES: usize = 250;

/// Returns whether an id is a valid file name that is safe to show in a terminal.
pub fn names_a_file(id: &str) -> bool {
    let is_short = id.chars().count() <= MAX_SLUG && id.len() <= MAX_STEM_BYTES;
    !id.is_empty() && is_short && !id.contains('/') && !id.chars().any(model::text::is_hostile)
}

impl ReadJson for DataGaps {
    fn read_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self)
    }
}

impl ImportRun<'_> {
    pub(super) fn token_list(&mut self, file: &SourceFile) {
        let Some(items) = self.problems.parse::<Maybe<Vec<TokenItem>>>(file) else {
            return;
        };
        for (index, mut item) in items.into_option().unwrap_or_default().into_iter().enumerate() {
            let record = format!("[{index}]");
            // A folder has the key `tokenId`. A saved token list of the API, which has `id`, is accepted too.
            let id =
                item.id.as_str().or_else(|| item.extra.get("tokenId").and_then(Value::as_str)).unwrap_or_default().to_owned();
            if !names_a_file(&id) {
                self.problems.add(
                    &file.path,
                    record,
                    format!("tokenId must be a slug of 1 to {MAX_SLUG} characters without a slash"),
                );
                continue;
            }
            let mut content = Xxh3::new();
            // A record that was parsed from JSON can be written as JSON.
            content.update(serde_json::to_string(&item).unwrap_or_default().as_bytes());
            let is_uncovered = item.id.is_absent() && item.extra.get("coverage").and_then(Value::as_str) == Some("none");
            // In a saved token list, fields with these names belong to the source.
            if item.id.is_absent() {
                for field in FOLDER_FIELDS {
                    item.extra.remove(field);
                }
            }
            if item.website_url.is_absent() {
                item.website_url = Maybe::Null;
            }
            let updated = item.last_updated_date.copied();
            item.id = id.clone().into();
            for amount in [
                &mut item.circulating_supply,
                &mut item.market_cap,
                &mut item.max_supply,
                &mut item.total_locked_amount,
                &mut item.tbd_locked_amount,
                &mut item.unlocked_amount,
                &mut item.untracked_amount,
            ] {
                if amount.is_absent() {
                    *amount = Maybe::Null;
                }
            }
            // The files of the token set these flags later.
            for flag in [
                &mut item.has_standard_allocation,
                &mut item.has_fundraising,
                &mut item.has_burn,
                &mut item.has_buyback,
                &mut item.has_committed_claim,
            ] {
                if flag.get().is_none() {
                    *flag = false.into();
                }
            }
            let gathered = ImportedToken { item, content, updated, latest_round: None, is_uncovered };
            if self.tokens.insert(id.clone(), gathered).is_some() {
                self.problems.add(&file.path, record, format!("duplicate token \"{id}\""));
            }
        }
    }

    pub(super) fn prices(&mut self, file: &SourceFile) {
        let Some(prices) = self.problems.parse::<Vec<PriceRow>>(file) else {
            return;
        };
        for (index, price) in prices.into_iter().enumerate() {
            let Some(token) = self.tokens.get_mut(&price.token_id) else {
                self.problems.add(&file.path, format!("[{index}]"), format!("token \"{}\" is not in {TOKENS}", price.token_id));
                continue;
            };
            token.content.update(format!("{:?} {:?}", price.reference_price, price.market_cap).as_bytes());
            token.item.market_cap = Maybe::or_null(price.market_cap);
            token.item.circulating_supply = Maybe::or_null(match (price.market_cap, price.reference_price) {
                (Some(cap), Some(price)) if price > 0.0 => Some(cap / price),
                _ => None,
            });
        }
    }

    pub(super) fn gaps(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        let gaps = self.problems.parse(file).map_or_else(Vec::new, |DataGaps(gaps)| gaps);
        for (index, gap) in gaps.iter().enumerate() {
            let record = format!("[{index}]");
            let owner = gap.token_id.as_deref().unwrap_or_default();
            match (self.tokens.get_mut(owner), &gap.token_id) {
                (Some(token), _) => token.content.update(gap.missing.join(" ").as_bytes()),
                (None, Some(_)) => {
                    self.problems.add(&file.path, record, format!("token \"{}\" is not in {TOKENS}", redact(owner)));
                    continue;
                }
                (None, None) => {}
            }
            for what in &gap.missing {
                if what == RATE_CHANGES || Endpoint::parse(what).is_some() {
                    self.draft.put_gap(owner, what)?;
                } else {
                    let known = Endpoint::ALL.map(Endpoint::as_str).join(", ");
                    let problem =
                        format!("unknown value \"{}\" in `missing`: expected one of {known}, {RATE_CHANGES}", redact(what));
                    self.problems.add(&file.path, record.clone(), problem);
                }
            }
        }
        Ok(())
    }
}
