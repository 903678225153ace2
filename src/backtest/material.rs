//! What a backtest replays: answers with their times, from a data folder, from a folder of dated versions, or from the versions that
//! the daemon recorded.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    io::{self, BufRead as _, Read as _},
    path::{Path, PathBuf},
};

use chrono::TimeDelta;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    api::Payload,
    replay::Replay,
    store::model::VersionRow,
    supply::{Endpoint, FeedState, Record, RecordKey, Resource, Timestamp, Token, TokenId},
    wire,
};

/// Largest file that is read, bytes.
const MAX_FILE: u64 = 256 << 20;
/// Longest line of a file of versions, bytes.
const MAX_LINE: usize = 64 << 20;
/// How much of what happened before the start is known at the start. Older burns and buybacks tell nothing any more.
const PREHISTORY: TimeDelta = TimeDelta::days(370);
/// Things that happened are told by the source this often: as the daemon polls.
const POLL: TimeDelta = TimeDelta::hours(6);

/// Why there is nothing to replay.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Invalid {
        /// Which one.
        path: PathBuf,
        /// Which line, from 1, where a file is read line by line.
        line: Option<usize>,
        /// What is wrong.
        problem: String,
    },
    /// Neither kind of folder.
    #[error("{} is neither a data folder (with a tokens.json) nor a folder of versions (with *.jsonl files)", .0.display())]
    Unknown(PathBuf),
}

/// What a source said, and when.
#[derive(Debug, Default)]
pub struct Material {
    /// Rows of the token list.
    tokens: Vec<wire::TokenItem>,
    /// In the order of time.
    inputs: Vec<Input>,
    burns: HashMap<TokenId, wire::BurnData>,
    buybacks: HashMap<TokenId, wire::BuybackData>,
    emissions: HashMap<TokenId, Vec<wire::Emission>>,
    rounds: HashMap<TokenId, Vec<wire::FundingRound>>,
}

#[derive(Debug)]
struct Input {
    at: Timestamp,
    token: TokenId,
    said: Said,
}

#[derive(Debug)]
enum Said {
    /// A whole answer.
    Answer(Endpoint, Payload),
    /// All rounds that were public by then.
    Rounds(Vec<wire::FundingRound>),
    /// Everything of an endpoint that had happened by then.
    SoFar(Endpoint),
}

/// `prices.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Price {
    token_id: String,
    reference_price: Option<f64>,
    market_cap: Option<f64>,
}

/// `investors.json`.
#[derive(Deserialize)]
struct Investors {
    #[serde(default)]
    details: Vec<wire::InvestorDetail>,
}

/// A line of a file of versions.
#[derive(Deserialize)]
struct Version {
    at: Timestamp,
    data: Vec<wire::UnlockEvent>,
}

impl Material {
    /// Reads a data folder, or a folder of dated versions. A data folder says what is known now: schedules and allocation tables are
    /// taken for known at `from`; burns, buybacks, rounds and daily emission come one by one, as they happened.
    ///
    /// # Errors
    /// Where it is neither, or a file of it cannot be read.
    pub fn read(folder: &Path, from: Option<Timestamp>, to: Timestamp) -> Result<Self, MaterialError> {
        if folder.join("tokens.json").exists() {
            return Self::data_folder(folder, from.unwrap_or(to - TimeDelta::days(365)), to);
        }
        let versions = files(folder, "jsonl")?;
        if versions.is_empty() { Err(MaterialError::Unknown(folder.to_owned())) } else { Self::versions(versions, from) }
    }

    fn data_folder(folder: &Path, from: Timestamp, to: Timestamp) -> Result<Self, MaterialError> {
        let mut material = Material { tokens: json(&folder.join("tokens.json"))?, ..Material::default() };
        let mut prices: HashMap<String, Price> = HashMap::new();
        if let Some(list) = json_if_there::<Vec<Price>>(&folder.join("prices.json"))? {
            prices.extend(list.into_iter().map(|price| (price.token_id.clone(), price)));
        }
        for item in &mut material.tokens {
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
        for path in files(&folder.join("unlock-events"), "json")? {
            let events: Vec<wire::UnlockEvent> = json(&path)?;
            material.say(from, &path, Said::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(events)));
        }
        for path in files(&folder.join("allocations"), "json")? {
            let data: wire::AllocationsData = json(&path)?;
            material.say(from, &path, Said::Answer(Endpoint::Allocations, Payload::Allocations(data)));
        }
        let since = from - PREHISTORY;
        let is_recent = |at: Option<Timestamp>| at.is_some_and(|at| since <= at && at <= to);
        for path in files(&folder.join("burn"), "json")? {
            let mut data: wire::BurnData = json(&path)?;
            let rows = keep(&mut data.burns, |burn| burn.burn_date.copied(), is_recent);
            material.happen(from, &path, Endpoint::Burn, rows);
            material.burns.insert(token_of(&path), data);
        }
        for path in files(&folder.join("buyback"), "json")? {
            let mut data: wire::BuybackData = json(&path)?;
            let rows = keep(&mut data.buybacks, |buyback| buyback.buyback_date.copied(), is_recent);
            material.happen(from, &path, Endpoint::Buyback, rows);
            material.buybacks.insert(token_of(&path), data);
        }
        for path in files(&folder.join("daily-emission"), "json")? {
            let mut days: Vec<wire::Emission> = json(&path)?;
            days.retain(|day| is_recent(day.end_date.copied()));
            material.happen(from, &path, Endpoint::DailyEmission, days.iter().filter_map(|day| day.end_date.copied()).collect());
            material.emissions.insert(token_of(&path), days);
        }
        if let Some(investors) = json_if_there::<Investors>(&folder.join("investors.json"))? {
            let listed: HashSet<String> = material.tokens.iter().filter_map(|item| item.id.as_str().map(str::to_owned)).collect();
            for investor in investors.details {
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
                    material.rounds.entry(token).or_default().push(round);
                }
            }
            let dates: Vec<(TokenId, Vec<Timestamp>)> = material
                .rounds
                .iter()
                .map(|(token, rounds)| {
                    let dates = rounds.iter().filter_map(|round| round.funding_date.copied());
                    (token.clone(), dates.filter(|at| is_recent(Some(*at))).collect())
                })
                .collect();
            for (token, dates) in dates {
                material.happen_to(from, token, Endpoint::Investors, dates);
            }
        }
        material.sort();
        Ok(material)
    }

    fn versions(paths: Vec<PathBuf>, from: Option<Timestamp>) -> Result<Self, MaterialError> {
        let mut material = Material::default();
        for path in paths {
            let failed = |source| MaterialError::Read { path: path.clone(), source };
            let mut reader = io::BufReader::new(fs::File::open(&path).map_err(failed)?);
            let mut last_before: Option<Version> = None;
            let mut number = 0;
            loop {
                let mut line = Vec::new();
                let length =
                    io::Read::by_ref(&mut reader).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).map_err(failed)?;
                number += 1;
                let invalid = |problem: String| MaterialError::Invalid { path: path.clone(), line: Some(number), problem };
                if length == 0 {
                    break;
                }
                if length > MAX_LINE {
                    return Err(invalid(format!("the line is longer than {MAX_LINE} bytes")));
                }
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let version: Version = serde_json::from_slice(&line).map_err(|error| invalid(error.to_string()))?;
                // Of what was published before the start only the last version counts: it is what was known then.
                if from.is_some_and(|from| version.at <= from) {
                    last_before = Some(version);
                } else {
                    material.say(version.at, &path, Said::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(version.data)));
                }
            }
            if let (Some(version), Some(from)) = (last_before, from) {
                material.say(from, &path, Said::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(version.data)));
            }
        }
        material.sort();
        Ok(material)
    }

    /// Adds a token's recorded versions: at each instant at which the daemon saw something else, its records as they stood then, and
    /// for each of its `feeds` the first answer, the baseline, also where there was nothing in it.
    pub fn record(
        &mut self,
        token: &Token,
        feeds: &[(Endpoint, FeedState)],
        rows: Vec<VersionRow>,
        from: Timestamp,
        to: Timestamp,
    ) {
        self.tokens.push(token.item.clone());
        let mut by_resource: BTreeMap<Resource, Vec<VersionRow>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.at <= to) {
            by_resource.entry(row.resource).or_default().push(row);
        }
        let began = |resource: Resource| {
            let own = feeds.iter().filter(|(endpoint, _)| endpoint.is_per_token() && endpoint.resource() == Some(resource));
            own.filter_map(|(_, feed)| feed.baseline_at).min()
        };
        for resource in Resource::ALL {
            let mut rows = by_resource.remove(&resource).unwrap_or_default();
            // What a page about many tokens brought before the token's own feed was read is no more than part of the baseline.
            let from = began(resource).map_or(from, |at| from.max(at));
            if began(resource).is_some() && from <= to && rows.iter().all(|row| row.at > from) {
                self.inputs.push(Input { at: from, token: token.id.clone(), said: said(resource, std::iter::empty()) });
            }
            rows.sort_by_key(|row| row.at);
            let mut alive: BTreeMap<RecordKey, Record> = BTreeMap::new();
            let mut rows = rows.into_iter().peekable();
            while let Some(row) = rows.next() {
                let at = row.at;
                match row.record {
                    Some(record) => _ = alive.insert(row.key, record),
                    None => _ = alive.remove(&row.key),
                }
                let is_last_of_instant = rows.peek().is_none_or(|next| next.at > at);
                let is_last_before = rows.peek().is_none_or(|next| next.at > from);
                if is_last_of_instant && (at > from || is_last_before) {
                    let said = said(resource, alive.values());
                    self.inputs.push(Input { at: at.max(from), token: token.id.clone(), said });
                }
            }
        }
    }

    /// Puts recorded versions into the order of time.
    pub fn sort(&mut self) {
        self.inputs.sort_by(|a, b| (a.at, &a.token).cmp(&(b.at, &b.token)));
    }

    /// Tokens of which something is known.
    #[must_use]
    pub fn token_count(&self) -> usize {
        let mut ids: Vec<&str> = self.tokens.iter().filter_map(|item| item.id.as_str()).collect();
        ids.extend(self.inputs.iter().map(|input| input.token.as_str()));
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    }

    /// When the first and the last thing was said.
    #[must_use]
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.inputs.first()?.at, self.inputs.last()?.at))
    }

    /// Plays all of it up to `to`; `heard` is told the time now and then, and what there is to take.
    pub fn play(&self, replay: &mut Replay<'_>, to: Timestamp, mut heard: impl FnMut(&mut Replay<'_>)) {
        for item in &self.tokens {
            replay.token(item);
        }
        // Every day of every token is a poll of all days so far: nothing else takes as long, and mostly nobody hears of it.
        let plays_emissions = replay.rules().hears_emissions();
        for input in self.inputs.iter().take_while(|input| input.at <= to) {
            if matches!(input.said, Said::SoFar(Endpoint::DailyEmission)) && !plays_emissions {
                continue;
            }
            replay.advance_before(input.at);
            match &input.said {
                Said::Answer(endpoint, payload) => replay.answer(&input.token, *endpoint, payload.clone()),
                Said::Rounds(rounds) => replay.rounds(&input.token, rounds),
                Said::SoFar(endpoint) => self.so_far(replay, &input.token, *endpoint, input.at),
            }
            heard(replay);
        }
        // In steps, so that whoever watches sees it move.
        while replay.now() < to {
            let next = (replay.now() + TimeDelta::days(7)).min(to);
            replay.advance(next);
            heard(replay);
        }
    }

    fn so_far(&self, replay: &mut Replay<'_>, token: &TokenId, endpoint: Endpoint, at: Timestamp) {
        let had = |when: Option<Timestamp>| when.is_some_and(|when| when <= at);
        match endpoint {
            Endpoint::Burn => {
                let Some(data) = self.burns.get(token) else { return };
                let burns: Vec<_> = data.burns.items().iter().filter(|burn| had(burn.burn_date.copied())).cloned().collect();
                let payload = wire::BurnData {
                    burns: burns.into(),
                    token_name: data.token_name.clone(),
                    token_symbol: data.token_symbol.clone(),
                    ..Default::default()
                };
                replay.answer(token, endpoint, Payload::Burns(payload));
            }
            Endpoint::Buyback => {
                let Some(data) = self.buybacks.get(token) else { return };
                let rows: Vec<_> = data.buybacks.items().iter().filter(|row| had(row.buyback_date.copied())).cloned().collect();
                let payload = wire::BuybackData {
                    buybacks: rows.into(),
                    token_name: data.token_name.clone(),
                    token_symbol: data.token_symbol.clone(),
                    ..Default::default()
                };
                replay.answer(token, endpoint, Payload::Buybacks(payload));
            }
            Endpoint::DailyEmission => {
                let Some(days) = self.emissions.get(token) else { return };
                let days = days.iter().filter(|day| had(day.end_date.copied())).cloned().collect();
                replay.answer(token, endpoint, Payload::Emissions(days));
            }
            Endpoint::Investors => {
                let Some(rounds) = self.rounds.get(token) else { return };
                let rounds: Vec<_> = rounds.iter().filter(|round| had(round.funding_date.copied())).cloned().collect();
                replay.rounds(token, &rounds);
            }
            _ => {}
        }
    }

    fn say(&mut self, at: Timestamp, path: &Path, said: Said) {
        self.inputs.push(Input { at, token: token_of(path), said });
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
        self.inputs.extend(polls.into_iter().map(|at| Input { at, token: token.clone(), said: Said::SoFar(endpoint) }));
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

/// Records as an answer about them.
fn said<'a>(resource: Resource, records: impl Iterator<Item = &'a Record>) -> Said {
    macro_rules! rows {
        ($variant:ident) => {
            records
                .filter_map(|record| if let Record::$variant(row) = record { Some((**row).clone()) } else { None })
                .collect::<Vec<_>>()
        };
    }
    match resource {
        Resource::Unlock => Said::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(rows!(Unlock))),
        Resource::Emission => Said::Answer(Endpoint::DailyEmission, Payload::Emissions(rows!(Emission))),
        Resource::Funding => Said::Rounds(rows!(Funding)),
        Resource::Burn => {
            let data = wire::BurnData { burns: rows!(Burn).into(), ..Default::default() };
            Said::Answer(Endpoint::Burn, Payload::Burns(data))
        }
        Resource::Buyback => {
            let data = wire::BuybackData { buybacks: rows!(Buyback).into(), ..Default::default() };
            Said::Answer(Endpoint::Buyback, Payload::Buybacks(data))
        }
        Resource::Allocation => {
            let data = wire::AllocationsData { allocations: rows!(Allocation).into(), ..Default::default() };
            Said::Answer(Endpoint::Allocations, Payload::Allocations(data))
        }
    }
}

/// The slug that a file is named by.
fn token_of(path: &Path) -> TokenId {
    TokenId::from(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default())
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, MaterialError> {
    let failed = |source| MaterialError::Read { path: folder.to_owned(), source };
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

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, MaterialError> {
    let failed = |source| MaterialError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    let invalid = |problem| MaterialError::Invalid { path: path.to_owned(), line: None, problem };
    if bytes.len() as u64 > MAX_FILE {
        return Err(invalid(format!("it is larger than {MAX_FILE} bytes")));
    }
    serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))
}

fn json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, MaterialError> {
    if path.exists() { json(path).map(Some) } else { Ok(None) }
}
