//! Loads a history from a data folder, or from a folder of dated versions.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{History, HistoryContent, HistoryError, HistoryEvent};
use model::file_kind::open_regular;
use model::wire::{self, PriceRow, ReadJson};
use model::{Endpoint, Payload, Timestamp, TokenId};

/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 256 << 20;
/// The maximum length of a line in a file of versions, in bytes.
const MAX_LINE: usize = 64 << 20;
/// The time before the start for which records are loaded. Older burns and buybacks have no effect.
const HISTORY_BEFORE_START: TimeDelta = TimeDelta::days(370);
/// The interval between polls.
const POLL_INTERVAL: TimeDelta = TimeDelta::hours(6);

/// A line of a file of versions.
#[derive(Deserialize)]
struct ScheduleVersion<'a> {
    at: Timestamp,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl History {
    /// Reads a data folder or a folder of dated versions. A data folder contains only current data: schedules and allocations are treated
    /// as known at `from` (default: 365 days before `to`), while burns, buybacks, rounds, and daily emissions arrive at their dates.
    ///
    /// # Errors
    ///
    /// If `folder` is neither, or if a file cannot be read.
    pub fn read(folder: &Path, from: Option<Timestamp>, to: Timestamp) -> Result<Self, HistoryError> {
        if folder.join("tokens.json").exists() {
            return Self::data_folder(folder, from.unwrap_or(to - TimeDelta::days(365)), to);
        }
        let versions = files(folder, "jsonl")?;
        if versions.is_empty() { Err(HistoryError::Unknown(folder.to_owned())) } else { Self::versions(versions, from) }
    }

    fn data_folder(folder: &Path, from: Timestamp, to: Timestamp) -> Result<Self, HistoryError> {
        let mut history = History { tokens: json(&folder.join("tokens.json"))?, ..History::default() };
        history.add_prices(folder)?;
        for path in files(&folder.join("unlock-events"), "json")? {
            let events: Vec<wire::UnlockEvent> = json(&path)?;
            history.add_content(from, &path, HistoryContent::Response(Endpoint::UnlockEvents, Payload::UnlockEvents(events)));
        }
        for path in files(&folder.join("allocations"), "json")? {
            let data: wire::AllocationsData = json(&path)?;
            history.add_content(from, &path, HistoryContent::Response(Endpoint::Allocations, Payload::Allocations(data)));
        }
        let since = from - HISTORY_BEFORE_START;
        let is_recent = |at: Option<Timestamp>| at.is_some_and(|at| since <= at && at <= to);
        for path in files(&folder.join("burn"), "json")? {
            let mut data: wire::BurnData = json(&path)?;
            let rows = retain_rows(&mut data.burns, |burn| burn.burn_date.copied(), is_recent);
            history.add_polls_of_file(from, &path, Endpoint::Burn, rows);
            history.burns.insert(token_of(&path), data);
        }
        for path in files(&folder.join("buyback"), "json")? {
            let mut data: wire::BuybackData = json(&path)?;
            let rows = retain_rows(&mut data.buybacks, |buyback| buyback.buyback_date.copied(), is_recent);
            history.add_polls_of_file(from, &path, Endpoint::Buyback, rows);
            history.buybacks.insert(token_of(&path), data);
        }
        for path in files(&folder.join("daily-emission"), "json")? {
            let mut days: Vec<wire::Emission> = json(&path)?;
            days.retain(|day| is_recent(day.end_date.copied()));
            history.add_polls_of_file(
                from,
                &path,
                Endpoint::DailyEmission,
                days.iter().filter_map(|day| day.end_date.copied()).collect(),
            );
            history.emissions.insert(token_of(&path), days);
        }
        history.read_rounds(folder, from, is_recent)?;
        history.sort();
        Ok(history)
    }

    /// Fills in market cap and circulating supply from `prices.json` if the token list lacks them.
    fn add_prices(&mut self, folder: &Path) -> Result<(), HistoryError> {
        let mut prices: HashMap<String, PriceRow> = HashMap::new();
        if let Some(list) = json_if_there::<Vec<PriceRow>>(&folder.join("prices.json"))? {
            prices.extend(list.into_iter().map(|price| (price.token_id.clone(), price)));
        }
        for item in &mut self.tokens {
            // Data folders call the slug `tokenId`, also in the token list.
            if let (true, Some(id)) = (item.id.is_absent(), item.extra.get("tokenId").and_then(Value::as_str)) {
                item.id = id.to_owned().into();
            }
            let Some(price) = item.id.as_str().and_then(|id| prices.get(id)) else { continue };
            if let (true, Some(cap)) = (item.market_cap.is_absent(), price.market_cap) {
                item.market_cap = cap.into();
            }
            if let (true, Some(cap), Some(price)) =
                (item.circulating_supply.is_absent(), price.market_cap, price.reference_price.filter(|price| *price > 0.0))
            {
                item.circulating_supply = (cap / price).into();
            }
        }
        Ok(())
    }

    /// Reads the funding rounds of listed tokens from `investors.json`, each public at its date.
    fn read_rounds(
        &mut self,
        folder: &Path,
        from: Timestamp,
        is_recent: impl Fn(Option<Timestamp>) -> bool,
    ) -> Result<(), HistoryError> {
        let Some(investors) = json_if_there::<wire::InvestorsFile>(&folder.join("investors.json"))? else { return Ok(()) };
        let listed: HashSet<String> = self.tokens.iter().filter_map(|item| item.id.as_str().map(str::to_owned)).collect();
        for investor in investors.details.into_option().unwrap_or_default() {
            for round in investor.funding_rounds.items() {
                let Some(token) = round.token_id.as_str().map(TokenId::from) else { continue };
                if !listed.contains(token.as_str()) {
                    continue;
                }
                let round = wire::FundingRound {
                    investor_id: investor.investor_id.clone(),
                    investor_name: investor.investor_name.clone(),
                    ..round.clone()
                };
                self.rounds.entry(token).or_default().push(round);
            }
        }
        let dates: Vec<(TokenId, Vec<Timestamp>)> = self
            .rounds
            .iter()
            .map(|(token, rounds)| {
                let dates = rounds.iter().filter_map(|round| round.funding_date.copied());
                (token.clone(), dates.filter(|at| is_recent(Some(*at))).collect())
            })
            .collect();
        for (token, dates) in dates {
            self.add_polls(from, token, Endpoint::Investors, dates);
        }
        Ok(())
    }

    fn versions(paths: Vec<PathBuf>, from: Option<Timestamp>) -> Result<Self, HistoryError> {
        let mut history = History::default();
        for path in paths {
            let failed = |source| HistoryError::Read { path: path.clone(), source };
            let mut reader = io::BufReader::new(open_regular(&path).map_err(failed)?);
            let mut last_before = None;
            let mut number = 0;
            loop {
                let mut line = Vec::new();
                let length =
                    io::Read::by_ref(&mut reader).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).map_err(failed)?;
                number += 1;
                let invalid = |problem: String| HistoryError::Invalid { path: path.clone(), line: Some(number), problem };
                if length == 0 {
                    break;
                }
                if length > MAX_LINE {
                    return Err(invalid(format!("the line exceeds {MAX_LINE} bytes")));
                }
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let version: ScheduleVersion<'_> = serde_json::from_slice(&line).map_err(|error| invalid(error.to_string()))?;
                let events = Vec::read_json(version.data.get()).map_err(|error| invalid(error.to_string()))?;
                let response = HistoryContent::Response(Endpoint::UnlockEvents, Payload::UnlockEvents(events));
                // The last version before the start is the one that was known at the start.
                if from.is_some_and(|from| version.at <= from) {
                    last_before = Some(response);
                } else {
                    history.add_content(version.at, &path, response);
                }
            }
            if let (Some(response), Some(from)) = (last_before, from) {
                history.add_content(from, &path, response);
            }
        }
        history.sort();
        Ok(history)
    }

    fn add_content(&mut self, at: Timestamp, path: &Path, content: HistoryContent) {
        self.inputs.push(HistoryEvent { at, token: token_of(path), content });
    }

    fn add_polls_of_file(&mut self, from: Timestamp, path: &Path, endpoint: Endpoint, at: Vec<Timestamp>) {
        self.add_polls(from, token_of(path), endpoint, at);
    }

    /// Adds the state at the start, and each poll that finds new records.
    fn add_polls(&mut self, from: Timestamp, token: TokenId, endpoint: Endpoint, at: Vec<Timestamp>) {
        let mut polls: Vec<Timestamp> = at.into_iter().filter(|at| *at > from).map(|at| poll_after(at, from)).collect();
        polls.push(from);
        polls.sort_unstable();
        polls.dedup();
        self.inputs.extend(polls.into_iter().map(|at| HistoryEvent {
            at,
            token: token.clone(),
            content: HistoryContent::StateAt(endpoint),
        }));
    }
}

/// Returns the time of the first poll at or after `at`, with polls starting at `from`.
fn poll_after(at: Timestamp, from: Timestamp) -> Timestamp {
    let over = (at - from).num_seconds().rem_euclid(POLL_INTERVAL.num_seconds());
    if over == 0 { at } else { at + POLL_INTERVAL - TimeDelta::seconds(over) }
}

/// Retains the rows for which `fits` returns `true`, and returns their times.
fn retain_rows<T>(
    rows: &mut wire::Maybe<Vec<T>>,
    at: impl Fn(&T) -> Option<Timestamp>,
    fits: impl Fn(Option<Timestamp>) -> bool,
) -> Vec<Timestamp> {
    let Some(rows) = rows.get_mut() else { return Vec::new() };
    rows.retain(|row| fits(at(row)));
    rows.iter().filter_map(at).collect()
}

/// Returns the slug in a file name.
fn token_of(path: &Path) -> TokenId {
    TokenId::from(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default())
}

/// Returns the paths of a folder's files with this extension, sorted, without subfolders. A missing folder has no `json` files; for other
/// extensions it is an error.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, HistoryError> {
    let failed = |source| HistoryError::Read { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A missing folder means that there are no such records.
        Err(error) if error.kind() == io::ErrorKind::NotFound && extension == "json" => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|own| own == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn json<T: ReadJson>(path: &Path) -> Result<T, HistoryError> {
    let failed = |source| HistoryError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    open_regular(path).map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    let invalid = |problem| HistoryError::Invalid { path: path.to_owned(), line: None, problem };
    if bytes.len() as u64 > MAX_FILE {
        return Err(invalid(format!("the file exceeds {MAX_FILE} bytes")));
    }
    T::read_json(&model::text::utf8(bytes).map_err(invalid)?).map_err(|error| invalid(error.to_string()))
}

fn json_if_there<T: ReadJson>(path: &Path) -> Result<Option<T>, HistoryError> {
    if path.exists() { json(path).map(Some) } else { Ok(None) }
}
