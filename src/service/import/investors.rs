//! `investors.json`: investors and their funding rounds.

use std::collections::BTreeMap;

use super::{ImportRun, rows_of};
use crate::{ServiceError, data_folder::SourceFile};
use model::Resource;
use model::wire::{FundingRound, InvestorItem, InvestorsFile};
use store::catalog::CatalogRecord;

impl ImportRun<'_> {
    pub(super) fn investors(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        let Some(investors) = self.problems.parse::<InvestorsFile>(file) else {
            return Ok(());
        };
        if investors.list.is_absent() || investors.details.is_absent() {
            self.problems.add(&file.path, "", "`list` or `details` is missing");
        }
        let mut items: BTreeMap<String, InvestorItem> = BTreeMap::new();
        for (index, item) in investors.list.into_option().unwrap_or_default().into_iter().enumerate() {
            match item.investor_id.as_str().filter(|id| !id.is_empty()) {
                Some(id) => drop(items.insert(id.to_owned(), item)),
                None => self.problems.add(&file.path, format!("list[{index}]"), "investorId is missing"),
            }
        }
        for (index, detail) in investors.details.into_option().unwrap_or_default().into_iter().enumerate() {
            let Some(id) = detail.investor_id.as_str().filter(|id| !id.is_empty()).map(str::to_owned) else {
                self.problems.add(&file.path, format!("details[{index}]"), "investorId is missing");
                continue;
            };
            let mut rounds: Vec<FundingRound> = detail.funding_rounds.into_option().unwrap_or_default();
            let record = format!("details[{index}].fundingRounds");
            self.problems.check_dates(file, &record, "fundingDate", &rounds, |round| round.funding_date.copied());
            for round in &mut rounds {
                round.investor_id = id.clone().into();
                round.investor_name = detail.investor_name.clone();
                let (Some(token), Some(at)) = (round.token_id.as_str(), round.funding_date.copied()) else {
                    continue;
                };
                if let Some(token) = self.tokens.get_mut(token) {
                    token.item.has_fundraising = true.into();
                    if token.latest_round.as_ref().is_none_or(|(latest, _)| *latest < at) {
                        token.latest_round = Some((at, round.round_name.clone()));
                    }
                }
            }
            self.imported.rounds += rounds.len();
            items.entry(id.clone()).or_insert_with(|| InvestorItem {
                investor_id: detail.investor_id,
                investor_name: detail.investor_name,
                website: detail.website,
                latest_funding_date: detail.latest_funding_date,
                ..Default::default()
            });
            let rows = rows_of(&rounds, |round| round.funding_date.copied())
                .map(|row| CatalogRecord { about: row.body.token_id.as_str(), ..row });
            self.draft.put_records(Resource::Funding, &id, rows)?;
        }
        self.imported.investors = items.len();
        for (id, item) in &items {
            self.draft.put_header(Resource::Funding, id, item)?;
        }
        Ok(())
    }
}
