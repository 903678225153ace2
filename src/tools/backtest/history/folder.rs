//! Histories from files: a data folder, or a folder of dated versions.

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

/// Largest file that is read, bytes.
const MAX_FILE: u64 = 256 << 20;
/// Longest line of a file of versions, bytes.
const MAX_LINE: usize = 64 << 20;
/// How much of what happened before the start is known at the start. Older burns and buybacks tell nothing any more.
const PREHISTORY: TimeDelta = TimeDelta::days(370);
/// Things that happened are told by the source this often: as the daemon polls.
const POLL: TimeDelta = TimeDelta::hours(6);

/// A line of a file of versions.
#[derive(Deserialize)]
struct ScheduleVersion<'a> {
    at: Timestamp,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl History {
    /// Reads a data folder, or a folder of dated versions. A data folder says what is known now: schedules and allocation tables are
    /// taken for known at `from`; burns, buybacks, rounds and daily emission come one by one, as they happened.
    /// Fails where it is neither, or a file of it cannot be read.
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
            history.say(from, &path, HistoryContent::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(events)));
        }
        for path in files(&folder.join("allocations"), "json")? {
            let data: wire::AllocationsData = json(&path)?;
            history.say(from, &path, HistoryContent::Answer(Endpoint::Allocations, Payload::Allocations(data)));
        }
        let since = from - PREHISTORY;
        let is_recent = |at: Option<Timestamp>| at.is_some_and(|at| since <= at && at <= to);
        for path in files(&folder.join("burn"), "json")? {
            let mut data: wire::BurnData = json(&path)?;
            let rows = keep(&mut data.burns, |burn| burn.burn_date.copied(), is_recent);
            history.happen(from, &path, Endpoint::Burn, rows);
            history.burns.insert(token_of(&path), data);
        }
        for path in files(&folder.join("buyback"), "json")? {
            let mut data: wire::BuybackData = json(&path)?;
            let rows = keep(&mut data.buybacks, |buyback| buyback.buyback_date.copied(), is_recent);
            history.happen(from, &path, Endpoint::Buyback, rows);
            history.buybacks.insert(token_of(&path), data);
        }
        for path in files(&folder.join("daily-emission"), "json")? {
            let mut days: Vec<wire::Emission> = json(&path)?;
            days.retain(|day| is_recent(day.end_date.copied()));
            history.happen(from, &path, Endpoint::DailyEmission, days.iter().filter_map(|day| day.end_date.copied()).collect());
            history.emissions.insert(token_of(&path), days);
        }
        history.read_rounds(folder, from, is_recent)?;
        history.sort();
        Ok(history)
    }

    /// Market cap and circulating supply from `prices.json`, where the token list does not say them.
    fn add_prices(&mut self, folder: &Path) -> Result<(), HistoryError> {
        let mut prices: HashMap<String, PriceRow> = HashMap::new();
        if let Some(list) = json_if_there::<Vec<PriceRow>>(&folder.join("prices.json"))? {
            prices.extend(list.into_iter().map(|price| (price.token_id.clone(), price)));
        }
        for item in &mut self.tokens {
            // In a folder the slug is called `tokenId`, as everywhere but in the token list.
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

    /// The rounds of listed tokens from `investors.json`, as each became public.
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
            self.happen_to(from, token, Endpoint::Investors, dates);
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
                    return Err(invalid(format!("the line is longer than {MAX_LINE} bytes")));
                }
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let version: ScheduleVersion<'_> = serde_json::from_slice(&line).map_err(|error| invalid(error.to_string()))?;
                let events = Vec::read_json(version.data.get()).map_err(|error| invalid(error.to_string()))?;
                let answer = HistoryContent::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(events));
                // Of what was published before the start only the last version counts: it is what was known then.
                if from.is_some_and(|from| version.at <= from) {
                    last_before = Some(answer);
                } else {
                    history.say(version.at, &path, answer);
                }
            }
            if let (Some(answer), Some(from)) = (last_before, from) {
                history.say(from, &path, answer);
            }
        }
        history.sort();
        Ok(history)
    }

    fn say(&mut self, at: Timestamp, path: &Path, said: HistoryContent) {
        self.inputs.push(HistoryEvent { at, token: token_of(path), said });
    }

    fn happen(&mut self, from: Timestamp, path: &Path, endpoint: Endpoint, at: Vec<Timestamp>) {
        self.happen_to(from, token_of(path), endpoint, at);
    }

    /// The state at the start, and each poll by which something more had happened.
    fn happen_to(&mut self, from: Timestamp, token: TokenId, endpoint: Endpoint, at: Vec<Timestamp>) {
        let mut polls: Vec<Timestamp> = at.into_iter().filter(|at| *at > from).map(|at| poll_after(at, from)).collect();
        polls.push(from);
        polls.sort_unstable();
        polls.dedup();
        self.inputs.extend(polls.into_iter().map(|at| HistoryEvent {
            at,
            token: token.clone(),
            said: HistoryContent::SoFar(endpoint),
        }));
    }
}

/// The first poll at or after an instant, where polls begin at `from`.
fn poll_after(at: Timestamp, from: Timestamp) -> Timestamp {
    let over = (at - from).num_seconds().rem_euclid(POLL.num_seconds());
    if over == 0 { at } else { at + POLL - TimeDelta::seconds(over) }
}

/// Keeps the rows of a list that fit, and gives their times.
fn keep<T>(
    rows: &mut wire::Maybe<Vec<T>>,
    at: impl Fn(&T) -> Option<Timestamp>,
    fits: impl Fn(Option<Timestamp>) -> bool,
) -> Vec<Timestamp> {
    let Some(rows) = rows.get_mut() else { return Vec::new() };
    rows.retain(|row| fits(at(row)));
    rows.iter().filter_map(at).collect()
}

/// The slug that a file is named by.
fn token_of(path: &Path) -> TokenId {
    TokenId::from(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default())
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, HistoryError> {
    let failed = |source| HistoryError::Read { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A folder that is not there means that there are no such records.
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
        return Err(invalid(format!("it is larger than {MAX_FILE} bytes")));
    }
    T::read_json(&model::text::utf8(bytes).map_err(invalid)?).map_err(|error| invalid(error.to_string()))
}

fn json_if_there<T: ReadJson>(path: &Path) -> Result<Option<T>, HistoryError> {
    if path.exists() { json(path).map(Some) } else { Ok(None) }
}
