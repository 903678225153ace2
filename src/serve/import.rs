//! Taking in a data folder: `tokens.json`, `prices.json`, `unlock-events/`, `allocations/`, `daily-emission/`, `burn/`, `buyback/` (one
//! file a token, named by its id, each holding the `data` payload of the interface), and `investors.json`.
//!
//! The database afterwards says what the folder says and nothing else; a file that is not there means that there are no such records,
//! unless `gaps.json` says that they are not known: a daemon's data has what it read, and not more.
//! A poll forgives an odd field and goes on; an import is somebody's own data, so every oddity is a problem, all are listed, and
//! nothing is taken in until none is left.

use std::{collections::BTreeMap, io, path::PathBuf};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::{
    ServiceError,
    ask::{MAX_SLUG, shown},
    edit::event_row,
    folder::{FOLDERS, GAPS, INVESTORS, PRICES, SourceFile, TOKENS},
};
use crate::{
    store::{
        catalog::{Catalog, Draft, Row},
        facts::{Facts as _, RATE_CHANGES, Standing, Window},
        snapshot::{Snapshot, SnapshotView},
    },
    supply::{Endpoint, Resource, Timestamp},
    wire::{
        Allocation, AllocationsData, Burn, BurnData, Buyback, BuybackData, Emission, FundingRound, InvestorDetail, InvestorItem,
        Maybe, TokenItem, UnlockEvent, gather_oddities,
    },
};

/// Problems that are listed; more are counted.
const MAX_PROBLEMS: usize = 100;
/// Fields of `tokens.json` that tell of the folder, not of the token: the token list has none of them.
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

/// Something wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Which file.
    pub file: String,
    /// Which record, such as `[3].cliffUnlocks.cliffAmount`; empty for the file as a whole.
    pub record: String,
    /// What is wrong.
    pub problem: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Problem { file, record, problem } = self;
        if record.is_empty() { write!(f, "{file}: {problem}") } else { write!(f, "{file}: {record}: {problem}") }
    }
}

/// What cannot be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of the list that was handed in cannot be read.
    #[error("cannot read the data")]
    Source(#[source] io::Error),
    /// The data is not what it should be; nothing was changed.
    #[error("nothing was imported: {total} problem{} in the data{}", if *total == 1 { "" } else { "s" }, lines(problems, *total))]
    Invalid {
        /// The first hundred.
        problems: Vec<Problem>,
        /// How many in all.
        total: usize,
    },
}

fn lines(problems: &[Problem], total: usize) -> String {
    let mut text: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    if total > problems.len() {
        text.push_str(&format!("\n  and {} more", total - problems.len()));
    }
    text
}

/// What was taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Tokens of the list.
    pub tokens: usize,
    /// Unlock events.
    pub events: usize,
    /// Rows of allocation tables.
    pub allocations: usize,
    /// Days of emission.
    pub days: usize,
    /// Burns.
    pub burns: usize,
    /// Buybacks.
    pub buybacks: usize,
    /// Investors.
    pub investors: usize,
    /// Funding rounds, counted once for each investor.
    pub rounds: usize,
    /// Tokens whose data differs from what was there.
    pub changed: usize,
}

/// A token while its files are read.
struct Gathered {
    item: TokenItem,
    content: Xxh3,
    updated: Option<Timestamp>,
    latest_round: Option<(Timestamp, Maybe<String>)>,
}

#[derive(Default)]
struct Problems {
    listed: Vec<Problem>,
    total: usize,
}

impl Problems {
    fn add(&mut self, file: &str, record: impl Into<String>, problem: impl Into<String>) {
        self.total += 1;
        if self.listed.len() < MAX_PROBLEMS {
            self.listed.push(Problem { file: file.to_owned(), record: record.into(), problem: problem.into() });
        }
    }

    /// Reads JSON; what is odd in it is a problem each.
    fn parse<T: DeserializeOwned>(&mut self, file: &SourceFile) -> Option<T> {
        let (result, oddities, total) = gather_oddities(|| serde_json::from_str(&file.text));
        self.total += total - oddities.len();
        for oddity in oddities {
            self.add(&file.path, oddity.path, oddity.problem.replace("; the field is ignored", ""));
        }
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(&file.path, "", error.to_string());
                None
            }
        }
    }
}

/// Puts `files` in place of all data, in one transaction.
pub(super) fn import(
    catalog: &Catalog,
    files: impl IntoIterator<Item = io::Result<SourceFile>>,
    now: Timestamp,
    mut progress: impl FnMut(&str),
) -> Result<Imported, ServiceError> {
    catalog.write(|draft| {
        let before = contents(draft)?;
        draft.clear()?;
        let mut import = Import { draft, tokens: BTreeMap::new(), problems: Problems::default(), imported: Imported::default() };
        for file in files {
            let file = file.map_err(ImportError::Source)?;
            progress(&file.path);
            import.take(&file)?;
        }
        if import.tokens.is_empty() && import.problems.total == 0 {
            import.problems.add(TOKENS, "", "there is no token");
        }
        if import.problems.total > 0 {
            return Err(ImportError::Invalid { problems: import.problems.listed, total: import.problems.total }.into());
        }
        import.finish(&before, now)
    })
}

/// What each token was imported from, and its mark of change.
fn contents(draft: &Draft<'_>) -> Result<Contents, ServiceError> {
    let mut contents = Contents::new();
    for token in draft.tokens()? {
        if let Some(id) = token.id.as_str() {
            let content = draft.token_content(id)?.unwrap_or_default();
            contents.insert(id.to_owned(), (content, token.last_updated_date.copied()));
        }
    }
    Ok(contents)
}

type Contents = BTreeMap<String, (String, Option<Timestamp>)>;

/// Puts the snapshot of a daemon in place of all data, in one transaction.
pub(super) fn import_daemon(
    catalog: &Catalog,
    snapshot: &Snapshot,
    now: Timestamp,
    mut progress: impl FnMut(&str, usize),
) -> Result<Imported, ServiceError> {
    snapshot.read(|from| {
        catalog.write(|draft| {
            let before = contents(draft)?;
            draft.clear()?;
            let mut import =
                Import { draft, tokens: BTreeMap::new(), problems: Problems::default(), imported: Imported::default() };
            let items = from.tokens()?;
            if items.is_empty() {
                import.problems.add("the daemon's database", "", "it has no tokens yet");
                return Err(ImportError::Invalid { problems: import.problems.listed, total: import.problems.total }.into());
            }
            if from.standing(Endpoint::Investors, None)? == Standing::NeverRead {
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
                let rounds: Vec<FundingRound> = from.records(Resource::Funding, id, Window::default())?;
                import.imported.investors += 1;
                import.imported.rounds += rounds.len();
                let rows = rows_of(&rounds, |round| round.funding_date.copied());
                let rows = rows.map(|row| Row { about: row.body.token_id.as_str(), ..row });
                draft.put_records(Resource::Funding, id, rows)?;
            }
            import.finish(&before, now)
        })
    })
}

struct Import<'a> {
    draft: &'a Draft<'a>,
    tokens: BTreeMap<String, Gathered>,
    problems: Problems,
    imported: Imported,
}

/// `prices.json`: what a token's values were made with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Price {
    token_id: String,
    reference_price: Option<f64>,
    market_cap: Option<f64>,
}

/// What a folder does not know.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Gap {
    /// Of which token; of none where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// Words of endpoints that nobody asked, and `rate_changes`.
    pub missing: Vec<String>,
}

/// `investors.json`.
#[derive(Deserialize)]
struct Investors {
    list: Maybe<Vec<InvestorItem>>,
    details: Maybe<Vec<InvestorDetail>>,
}

impl Import<'_> {
    /// Copies what a daemon knows of a token.
    fn copy(&mut self, from: &SnapshotView<'_>, id: &str, item: TokenItem) -> Result<(), ServiceError> {
        let all = Window::default();
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
        self.tokens.insert(id.to_owned(), Gathered { item, content, updated, latest_round: None });
        Ok(())
    }

    fn take(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        match file.path.as_str() {
            TOKENS => self.token_list(file),
            PRICES => self.prices(file),
            INVESTORS => return self.investors(file),
            GAPS => return self.gaps(file),
            path => {
                let parts = path.split_once('/').and_then(|(folder, name)| Some((folder, name.strip_suffix(".json")?)));
                let Some((folder, id)) = parts else {
                    self.problems.add(path, "", "nobody knows what belongs into this file");
                    return Ok(());
                };
                if !self.tokens.contains_key(id) {
                    self.problems.add(path, "", format!("the token is not in {TOKENS}"));
                    return Ok(());
                }
                let (folder, id) = (folder.to_owned(), id.to_owned());
                self.token_file(&folder, &id, file)?;
            }
        }
        Ok(())
    }

    fn token_list(&mut self, file: &SourceFile) {
        let Some(items) = self.problems.parse::<Maybe<Vec<TokenItem>>>(file) else {
            return;
        };
        for (index, mut item) in items.into_option().unwrap_or_default().into_iter().enumerate() {
            let record = format!("[{index}]");
            // The folder's key is `tokenId`, as everywhere but in the token list; a saved token list is understood as well.
            let id =
                item.id.as_str().or_else(|| item.extra.get("tokenId").and_then(Value::as_str)).unwrap_or_default().to_owned();
            if id.is_empty() || id.chars().count() > MAX_SLUG || id.contains('/') || id.chars().any(char::is_control) {
                self.problems.add(
                    &file.path,
                    record,
                    format!("tokenId must be a slug of 1 to {MAX_SLUG} characters without a slash"),
                );
                continue;
            }
            let mut content = Xxh3::new();
            // Writing a record that was read from JSON cannot fail; were it to, the hash would only be less telling.
            content.update(serde_json::to_string(&item).unwrap_or_default().as_bytes());
            for field in FOLDER_FIELDS {
                item.extra.remove(field);
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
            // What a saved list says stands until a file says more.
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
            let gathered = Gathered { item, content, updated, latest_round: None };
            if self.tokens.insert(id.clone(), gathered).is_some() {
                self.problems.add(&file.path, record, format!("token \"{id}\" is there twice"));
            }
        }
    }

    fn prices(&mut self, file: &SourceFile) {
        let Some(prices) = self.problems.parse::<Vec<Price>>(file) else {
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

    fn token_file(&mut self, folder: &str, id: &str, file: &SourceFile) -> Result<(), ServiceError> {
        if let Some(token) = self.tokens.get_mut(id) {
            token.content.update(folder.as_bytes());
            token.content.update(file.text.as_bytes());
        }
        match folder {
            "unlock-events" => self.unlock_events(id, file),
            "allocations" => self.allocations(id, file),
            "daily-emission" => {
                let days = self.rows::<Emission>(file, "startDate", |day| day.start_date.copied());
                for (index, day) in days.iter().enumerate() {
                    let record = format!("[{index}]");
                    self.counted(file, &record, &[("unlockAmount", day.unlock_amount)]);
                    self.ordered(file, &record, ("startDate", day.start_date), ("endDate", day.end_date));
                }
                self.imported.days += days.len();
                self.put(Resource::Emission, id, &days, |day| day.start_date.copied())
            }
            "burn" => {
                let Some(mut data) = self.problems.parse::<BurnData>(file) else {
                    return Ok(());
                };
                let burns = std::mem::take(&mut data.burns).into_option().unwrap_or_default();
                self.dated(file, "burns", "burnDate", &burns, |burn| burn.burn_date.copied());
                for (index, burn) in burns.iter().enumerate() {
                    self.counted(file, &format!("burns[{index}]"), &[("amount", burn.amount), ("value", burn.value)]);
                }
                self.imported.burns += burns.len();
                self.flag(id, |item| item.has_burn = (!burns.is_empty()).into());
                self.draft.put_header(Resource::Burn, id, &data)?;
                self.put(Resource::Burn, id, &burns, |burn: &Burn| burn.burn_date.copied())
            }
            "buyback" => {
                let Some(mut data) = self.problems.parse::<BuybackData>(file) else {
                    return Ok(());
                };
                let buybacks = std::mem::take(&mut data.buybacks).into_option().unwrap_or_default();
                self.dated(file, "buybacks", "buybackDate", &buybacks, |buyback| buyback.buyback_date.copied());
                for (index, row) in buybacks.iter().enumerate() {
                    let amounts = [("tokenAmount", row.token_amount), ("value", row.value), ("spentAmount", row.spent_amount)];
                    self.counted(file, &format!("buybacks[{index}]"), &amounts);
                }
                self.imported.buybacks += buybacks.len();
                self.flag(id, |item| item.has_buyback = (!buybacks.is_empty()).into());
                self.draft.put_header(Resource::Buyback, id, &data)?;
                self.put(Resource::Buyback, id, &buybacks, |buyback: &Buyback| buyback.buyback_date.copied())
            }
            _ => {
                self.problems.add(&file.path, "", format!("unknown folder: there are {}", FOLDERS.join(", ")));
                Ok(())
            }
        }
    }

    fn unlock_events(&mut self, id: &str, file: &SourceFile) -> Result<(), ServiceError> {
        let mut events = self.rows::<UnlockEvent>(file, "unlockDate", |event| event.unlock_date.copied());
        self.imported.events += events.len();
        for (index, event) in events.iter().enumerate() {
            self.event(file, index, event);
        }
        // A list that tells of linear unlocks at all tells of none where it leaves them out.
        if events.iter().any(|event| !event.linear_unlocks.is_absent()) {
            for event in &mut events {
                if event.linear_unlocks.is_absent() {
                    event.linear_unlocks = Maybe::Null;
                }
            }
        }
        let newest = events.iter().filter_map(|event| event.latest_update_date.copied()).max();
        let claimed = events
            .iter()
            .flat_map(|event| event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()))
            .any(|item| item.committed_claim.get().is_some());
        if let Some(token) = self.tokens.get_mut(id) {
            token.updated = token.updated.max(newest);
            token.item.has_committed_claim = claimed.into();
        }
        Ok(self.draft.put_records(Resource::Unlock, id, events.iter().map(event_row))?)
    }

    fn allocations(&mut self, id: &str, file: &SourceFile) -> Result<(), ServiceError> {
        let Some(mut data) = self.problems.parse::<AllocationsData>(file) else {
            return Ok(());
        };
        let rows = std::mem::take(&mut data.allocations).into_option().unwrap_or_default();
        for (index, row) in rows.iter().enumerate() {
            let amounts = [
                ("allocationAmount", row.allocation_amount),
                ("allocationUnlockedAmount", row.allocation_unlocked_amount),
                ("allocationLockedAmount", row.allocation_locked_amount),
            ];
            self.counted(file, &format!("allocations[{index}]"), &amounts);
        }
        self.imported.allocations += rows.len();
        if let Some(token) = self.tokens.get_mut(id) {
            token.updated = token.updated.max(data.last_updated_date.copied());
            let item = &mut token.item;
            item.total_locked_amount = Maybe::or_null(data.total_locked_amount.copied());
            item.tbd_locked_amount = Maybe::or_null(data.total_tbd_locked_amount.copied());
            item.unlocked_amount = Maybe::or_null(data.total_unlocked_amount.copied());
            item.untracked_amount = Maybe::or_null(data.total_untracked_amount.copied());
            item.has_standard_allocation = rows.iter().any(|row| row.standard_allocation_name.get().is_some()).into();
        }
        self.draft.put_header(Resource::Allocation, id, &data)?;
        self.put(Resource::Allocation, id, &rows, |_: &Allocation| None)
    }

    fn gaps(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        let gaps = self.problems.parse::<Vec<Gap>>(file).unwrap_or_default();
        for (index, gap) in gaps.iter().enumerate() {
            let record = format!("[{index}]");
            let owner = gap.token_id.as_deref().unwrap_or_default();
            match (self.tokens.get_mut(owner), &gap.token_id) {
                (Some(token), _) => token.content.update(gap.missing.join(" ").as_bytes()),
                (None, Some(_)) => {
                    self.problems.add(&file.path, record, format!("token \"{}\" is not in {TOKENS}", shown(owner)));
                    continue;
                }
                (None, None) => {}
            }
            for what in &gap.missing {
                if what == RATE_CHANGES || Endpoint::parse(what).is_some() {
                    self.draft.put_gap(owner, what)?;
                } else {
                    let known = Endpoint::ALL.map(Endpoint::as_str).join(", ");
                    let problem = format!("missing has \"{}\": there are {known}, {RATE_CHANGES}", shown(what));
                    self.problems.add(&file.path, record.clone(), problem);
                }
            }
        }
        Ok(())
    }

    fn investors(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        let Some(investors) = self.problems.parse::<Investors>(file) else {
            return Ok(());
        };
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
            self.dated(file, &record, "fundingDate", &rounds, |round| round.funding_date.copied());
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
            let rows =
                rows_of(&rounds, |round| round.funding_date.copied()).map(|row| Row { about: row.body.token_id.as_str(), ..row });
            self.draft.put_records(Resource::Funding, &id, rows)?;
        }
        self.imported.investors = items.len();
        for (id, item) in &items {
            self.draft.put_header(Resource::Funding, id, item)?;
        }
        Ok(())
    }

    /// Checks what types do not say of an unlock event.
    fn event(&mut self, file: &SourceFile, index: usize, event: &UnlockEvent) {
        if let Some(cliffs) = event.cliff_unlocks.get() {
            let record = format!("[{index}].cliffUnlocks");
            self.counted(file, &record, &[("cliffAmount", cliffs.cliff_amount), ("cliffValue", cliffs.cliff_value)]);
            for (index, item) in cliffs.allocation_breakdown.items().iter().enumerate() {
                self.counted(file, &format!("{record}.allocationBreakdown[{index}]"), &[("cliffAmount", item.cliff_amount)]);
            }
        }
        if let Some(linears) = event.linear_unlocks.get() {
            let record = format!("[{index}].linearUnlocks");
            self.counted(file, &record, &[("linearAmount", linears.linear_amount)]);
            for (index, item) in linears.allocation_breakdown.items().iter().enumerate() {
                let record = format!("{record}.allocationBreakdown[{index}]");
                self.counted(file, &record, &[("linearAmount", item.linear_amount), ("dailyAmount", item.daily_amount)]);
                self.ordered(file, &record, ("beginDate", item.begin_date), ("endDate", item.end_date));
            }
        }
    }

    /// Amounts are never negative.
    fn counted(&mut self, file: &SourceFile, record: &str, amounts: &[(&str, Maybe<f64>)]) {
        for (name, amount) in amounts {
            if amount.copied().is_some_and(|amount| amount < 0.0) {
                self.problems.add(&file.path, record, format!("{name} is negative"));
            }
        }
    }

    /// What ends does so after it began.
    fn ordered(&mut self, file: &SourceFile, record: &str, begin: (&str, Maybe<Timestamp>), end: (&str, Maybe<Timestamp>)) {
        if let (Some(from), Some(until)) = (begin.1.copied(), end.1.copied())
            && until < from
        {
            self.problems.add(&file.path, record, format!("{} lies before {}", end.0, begin.0));
        }
    }

    /// A file that is a list, checked for the field that makes a record.
    fn rows<T>(&mut self, file: &SourceFile, key: &str, date: fn(&T) -> Option<Timestamp>) -> Vec<T>
    where
        Maybe<Vec<T>>: DeserializeOwned,
    {
        let rows = self.problems.parse::<Maybe<Vec<T>>>(file).and_then(Maybe::into_option).unwrap_or_default();
        self.dated(file, "", key, &rows, date);
        rows
    }

    fn dated<T>(&mut self, file: &SourceFile, list: &str, key: &str, rows: &[T], date: fn(&T) -> Option<Timestamp>) {
        for (index, row) in rows.iter().enumerate() {
            if date(row).is_none() {
                self.problems.add(&file.path, format!("{list}[{index}]"), format!("{key} is missing"));
            }
        }
    }

    fn put<T: Serialize>(
        &self,
        resource: Resource,
        id: &str,
        rows: &[T],
        date: fn(&T) -> Option<Timestamp>,
    ) -> Result<(), ServiceError> {
        Ok(self.draft.put_records(resource, id, rows_of(rows, date))?)
    }

    fn flag(&mut self, id: &str, change: impl FnOnce(&mut TokenItem)) {
        if let Some(token) = self.tokens.get_mut(id) {
            change(&mut token.item);
        }
    }

    fn finish(mut self, before: &Contents, now: Timestamp) -> Result<Imported, ServiceError> {
        for (id, mut token) in std::mem::take(&mut self.tokens) {
            let content = format!("{:032x}", token.content.digest128());
            let told = token.updated.unwrap_or(now);
            let updated = match before.get(&id) {
                Some((same, updated)) if *same == content => updated.unwrap_or(told),
                // Other data must show a later mark than before, or nobody who polls would look again.
                Some((_, Some(updated))) if told <= *updated => {
                    self.imported.changed += 1;
                    now.max(*updated + TimeDelta::seconds(1))
                }
                _ => {
                    self.imported.changed += 1;
                    told
                }
            };
            token.item.last_updated_date = updated.into();
            if let Some((_, name)) = token.latest_round {
                token.item.latest_fundraising_round = name;
            }
            self.draft.put_token(&id, &token.item, &content)?;
            self.imported.tokens += 1;
        }
        self.imported.changed += before.keys().filter(|id| matches!(self.draft.token(id), Ok(None))).count();
        Ok(self.imported)
    }
}

fn rows_of<T>(rows: &[T], date: fn(&T) -> Option<Timestamp>) -> impl Iterator<Item = Row<'_, T>> {
    rows.iter().map(move |row| Row { date: date(row), cliff: false, about: None, body: row })
}
