//! Imports the snapshot of a daemon.

use xxhash_rust::xxh3::Xxh3;

use super::{ImportError, ImportRun, ImportSummary, ImportedToken, contents, rows_of};
use crate::{ServiceError, edit::event_row};
use model::wire::{Allocation, AllocationsData, Burn, Buyback, Emission, FundingRound, TokenItem, UnlockEvent};
use model::{Endpoint, Resource, Timestamp};
use store::catalog::{Catalog, CatalogRecord};
use store::facts::{Coverage, DateRange, SupplyFacts as _};
use store::snapshot::{Snapshot, SnapshotView};

/// Replaces all data by the snapshot of a daemon, in one transaction.
pub fn import_daemon(
    catalog: &Catalog,
    snapshot: &Snapshot,
    now: Timestamp,
    progress: &mut dyn FnMut(&str, usize),
) -> Result<ImportSummary, ServiceError> {
    snapshot.read(|from| {
        catalog.write(|draft| {
            let before = contents(draft)?;
            draft.clear()?;
            let mut import = ImportRun::new(draft);
            let items = from.tokens()?;
            if items.is_empty() {
                import.problems.add("the daemon's database", "", "no tokens yet");
                return Err(ImportError::Invalid { problems: import.problems.listed, total: import.problems.total }.into());
            }
            if from.coverage(Endpoint::Investors, None)? == Coverage::NeverRead {
                draft.put_gap("", Endpoint::Investors.as_str())?;
            }
            let total = items.len();
            for item in items {
                let Some(id) = item.id.as_str().map(str::to_owned) else { continue };
                progress(&id, total);
                import.copy(from, &id, item)?;
            }
            for investor in from.investors()? {
                let Some(id) = investor.investor_id.as_str() else { continue };
                draft.put_header(Resource::Funding, id, &investor)?;
                let rounds: Vec<FundingRound> = from.records(Resource::Funding, id, DateRange::default())?;
                import.imported.investors += 1;
                import.imported.rounds += rounds.len();
                let rows = rows_of(&rounds, |round| round.funding_date.copied());
                let rows = rows.map(|row| CatalogRecord { about: row.body.token_id.as_str(), ..row });
                draft.put_records(Resource::Funding, id, rows)?;
            }
            import.finish(&before, now)
        })
    })
}

impl ImportRun<'_> {
    fn copy(&mut self, from: &SnapshotView<'_>, id: &str, item: TokenItem) -> Result<(), ServiceError> {
        let all = DateRange::default();
        let mut content = Xxh3::new();
        let mut hash = |text: serde_json::Result<String>| content.update(text.unwrap_or_default().as_bytes());
        hash(serde_json::to_string(&item));

        let events: Vec<UnlockEvent> = from.records(Resource::Unlock, id, all)?;
        hash(serde_json::to_string(&events));
        self.imported.events += events.len();
        self.draft.put_records(Resource::Unlock, id, events.iter().map(event_row))?;

        let days: Vec<Emission> = from.records(Resource::Emission, id, all)?;
        hash(serde_json::to_string(&days));
        self.imported.days += days.len();
        self.put(Resource::Emission, id, &days, |day| day.start_date.copied())?;

        let rows: Vec<Allocation> = from.records(Resource::Allocation, id, all)?;
        hash(serde_json::to_string(&rows));
        self.imported.allocations += rows.len();
        self.put(Resource::Allocation, id, &rows, |_| None)?;
        if let Some(header) = from.header::<AllocationsData>(Resource::Allocation, id)? {
            hash(serde_json::to_string(&header));
            self.draft.put_header(Resource::Allocation, id, &header)?;
        }

        let burns: Vec<Burn> = from.records(Resource::Burn, id, all)?;
        hash(serde_json::to_string(&burns));
        self.imported.burns += burns.len();
        self.put(Resource::Burn, id, &burns, |burn| burn.burn_date.copied())?;

        let buybacks: Vec<Buyback> = from.records(Resource::Buyback, id, all)?;
        hash(serde_json::to_string(&buybacks));
        self.imported.buybacks += buybacks.len();
        self.put(Resource::Buyback, id, &buybacks, |buyback| buyback.buyback_date.copied())?;

        let gaps = from.gaps(id, &events)?;
        content.update(gaps.join(" ").as_bytes());
        for gap in gaps {
            self.draft.put_gap(id, gap)?;
        }

        let updated = item.last_updated_date.copied();
        self.tokens.insert(id.to_owned(), ImportedToken { item, content, updated, latest_round: None, is_uncovered: false });
        Ok(())
    }
}
