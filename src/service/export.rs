//! Exports the data as a folder that can be imported. Files have one list item per line, so that diffs are readable. The folder is
//! written under a temporary name and renamed when it is complete.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;

use crate::{
    ServiceError,
    data_folder::GAPS,
    import::{DataGap, names_a_file},
    route::DataSubject,
    version::shows,
};
use model::wire::{
    Allocation, AllocationsData, Burn, BurnData, Buyback, BuybackData, Described as _, Emission, FundingRound, InvestorDetail,
    Maybe, UnlockEvent,
};
use model::{Endpoint, Resource};
use store::facts::{Coverage, DateRange, SupplyFacts};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub tokens: usize,
    pub files: usize,
    /// The number of tokens that are not exported because their id is not a valid file name.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A folder that is being written, under its temporary name.
struct ExportFolder<'a> {
    partial: PathBuf,
    progress: &'a mut dyn FnMut(&str),
    exported: ExportSummary,
}

/// Exports everything to `folder`, which must not exist or be empty.
pub(super) fn export(
    facts: &impl SupplyFacts,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<ExportSummary, ServiceError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ServiceError::Write { path, source }
    };
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(ServiceError::NotEmpty { path: folder.to_owned() });
            }
            fs::remove_dir(folder).map_err(failed(folder))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(folder)(error)),
    }
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = folder.with_file_name(name);
    fs::create_dir(&partial).map_err(failed(&partial))?;
    let mut writing = ExportFolder { partial, progress, exported: ExportSummary::default() };
    match writing.fill(facts) {
        Ok(()) => {
            fs::rename(&writing.partial, folder).map_err(failed(folder))?;
            Ok(writing.exported)
        }
        Err(error) => {
            // Errors of the cleanup are ignored, since the first error matters.
            let _ = fs::remove_dir_all(&writing.partial);
            Err(error)
        }
    }
}

impl ExportFolder<'_> {
    fn fill(&mut self, facts: &impl SupplyFacts) -> Result<(), ServiceError> {
        let mut tokens = facts.tokens()?;
        let before = tokens.len();
        // A hostile id must not prevent the export of the other tokens, or make the folder impossible to import.
        tokens.retain(|token| token.id.as_str().is_some_and(names_a_file));
        self.exported.left_out = before - tokens.len();
        self.write("tokens.json", &list(&tokens))?;
        self.exported.tokens = tokens.len();
        let mut gaps = Vec::new();
        for id in tokens.iter().filter_map(|token| token.id.as_str()) {
            gaps.extend(self.token(facts, id)?);
        }
        if facts.coverage(Endpoint::Investors, None)? == Coverage::NeverRead {
            gaps.push(DataGap { token_id: None, missing: vec![Endpoint::Investors.as_str().to_owned()] });
        }
        if !gaps.is_empty() {
            self.write(GAPS, &list(&gaps))?;
        }
        let investors = facts.investors()?;
        if !investors.is_empty() {
            let mut details = Vec::new();
            for investor in &investors {
                let id = investor.investor_id.as_str().unwrap_or_default();
                let rounds: Vec<FundingRound> = facts.records(Resource::Funding, id, DateRange::default())?;
                if rounds.is_empty() {
                    continue;
                }
                let mut detail = InvestorDetail {
                    investor_id: investor.investor_id.clone(),
                    investor_name: investor.investor_name.clone(),
                    website: investor.website.clone(),
                    latest_funding_date: investor.latest_funding_date,
                    funding_rounds: rounds.into(),
                    ..Default::default()
                };
                detail.keep(&|object, field| shows(DataSubject::Investor, 5, object, field));
                details.push(detail);
            }
            self.write("investors.json", &format!("{{\n\"list\": {},\n\"details\": {}}}\n", list(&investors), list(&details)))?;
        }
        Ok(())
    }

    /// Writes the files of a token, and returns the gaps in its data.
    fn token(&mut self, facts: &impl SupplyFacts, id: &str) -> Result<Option<DataGap>, ServiceError> {
        let all = DateRange::default();
        let events: Vec<UnlockEvent> = facts.records(Resource::Unlock, id, all)?;
        if !events.is_empty() {
            self.write(&format!("unlock-events/{id}.json"), &list(&events))?;
        }
        let rows: Vec<Allocation> = facts.records(Resource::Allocation, id, all)?;
        if let Some(mut table) = facts.header::<AllocationsData>(Resource::Allocation, id)? {
            table.allocations = Maybe::Absent;
            self.write(&format!("allocations/{id}.json"), &object(&table, "allocations", &rows))?;
        }
        let days: Vec<Emission> = facts.records(Resource::Emission, id, all)?;
        if !days.is_empty() {
            self.write(&format!("daily-emission/{id}.json"), &list(&days))?;
        }
        let burns: Vec<Burn> = facts.records(Resource::Burn, id, all)?;
        let header: Option<BurnData> = facts.header(Resource::Burn, id)?;
        if header.is_some() || !burns.is_empty() {
            self.write(&format!("burn/{id}.json"), &object(&header.unwrap_or_default(), "burns", &burns))?;
        }
        let buybacks: Vec<Buyback> = facts.records(Resource::Buyback, id, all)?;
        let header: Option<BuybackData> = facts.header(Resource::Buyback, id)?;
        if header.is_some() || !buybacks.is_empty() {
            self.write(&format!("buyback/{id}.json"), &object(&header.unwrap_or_default(), "buybacks", &buybacks))?;
        }
        let missing: Vec<String> = facts.gaps(id, &events)?.into_iter().map(str::to_owned).collect();
        Ok((!missing.is_empty()).then(|| DataGap { token_id: Some(id.to_owned()), missing }))
    }

    fn write(&mut self, file: &str, text: &str) -> Result<(), ServiceError> {
        let path = self.partial.join(file);
        let failed = |source| ServiceError::Write { path: path.clone(), source };
        (self.progress)(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(&path, text).map_err(failed)?;
        self.exported.files += 1;
        Ok(())
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Values that were parsed from JSON can be written as JSON.
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// Writes a list with one item per line.
fn list<T: Serialize>(items: &[T]) -> String {
    let lines: Vec<String> = items.iter().map(json).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// Writes an object with a list as its last field.
fn object<T: Serialize>(header: &T, name: &str, rows: &[impl Serialize]) -> String {
    let text = json(header);
    // Removes only the outer braces, since the last field may be an object.
    let fields = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
    let comma = if fields.is_empty() { "" } else { ",\n" };
    format!("{{{fields}{comma}\"{name}\": {}}}\n", list(rows))
}
