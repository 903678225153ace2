//! What a backtest replays: answers with their times, from a data folder, from a folder of dated versions, or from the versions that
//! the daemon recorded.

mod folder;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use chrono::TimeDelta;

use crate::simulate::Simulation;
use model::{Endpoint, FeedState, Payload, Record, RecordKey, Resource, Timestamp, Token, TokenId, VersionRow, wire};

/// Why there is nothing to simulation.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        source: io::Error,
    },
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Invalid {
        /// Which one.
        path: PathBuf,
        /// Which line, from 1, where a file is read line by line.
        line: Option<usize>,
        problem: String,
    },
    #[error("{} is neither a data folder (with a tokens.json) nor a folder of versions (with *.jsonl files)", .0.display())]
    Unknown(PathBuf),
}

/// What a source said, and when.
#[derive(Debug, Default)]
pub struct History {
    /// Rows of the token list.
    tokens: Vec<wire::TokenItem>,
    /// In the order of time.
    inputs: Vec<HistoryEvent>,
    burns: HashMap<TokenId, wire::BurnData>,
    buybacks: HashMap<TokenId, wire::BuybackData>,
    emissions: HashMap<TokenId, Vec<wire::Emission>>,
    rounds: HashMap<TokenId, Vec<wire::FundingRound>>,
}

#[derive(Debug)]
struct HistoryEvent {
    at: Timestamp,
    token: TokenId,
    said: HistoryContent,
}

#[derive(Debug)]
enum HistoryContent {
    Answer(Endpoint, Payload),
    /// All rounds that were public by then.
    Rounds(Vec<wire::FundingRound>),
    /// Everything of an endpoint that had happened by then.
    SoFar(Endpoint),
}

impl History {
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
                self.inputs.push(HistoryEvent {
                    at: from,
                    token: token.id.clone(),
                    said: said(resource, std::iter::empty(), false),
                });
            }
            rows.sort_by_key(|row| row.at);
            let mut alive: BTreeMap<RecordKey, Record> = BTreeMap::new();
            let mut has_segments = false;
            let mut rows = rows.into_iter().peekable();
            while let Some(row) = rows.next() {
                let at = row.at;
                match row.record {
                    Some(record) => {
                        has_segments |= matches!(&record, Record::Unlock(event) if event.linear_unlocks.get().is_some());
                        alive.insert(row.key, record);
                    }
                    None => _ = alive.remove(&row.key),
                }
                let is_last_of_instant = rows.peek().is_none_or(|next| next.at > at);
                let is_last_before = rows.peek().is_none_or(|next| next.at > from);
                if is_last_of_instant && (at > from || is_last_before) {
                    let said = said(resource, alive.values(), has_segments);
                    self.inputs.push(HistoryEvent { at: at.max(from), token: token.id.clone(), said });
                }
            }
        }
    }

    /// Puts recorded versions into the order of time.
    pub fn sort(&mut self) {
        self.inputs.sort_by(|a, b| (a.at, &a.token).cmp(&(b.at, &b.token)));
    }

    /// Tokens of which something is known.
    pub fn token_count(&self) -> usize {
        let mut ids: Vec<&str> = self.tokens.iter().filter_map(|item| item.id.as_str()).collect();
        ids.extend(self.inputs.iter().map(|input| input.token.as_str()));
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    }

    /// When the first and the last thing was said.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.inputs.first()?.at, self.inputs.last()?.at))
    }

    /// Plays all of it up to `to`, or until `heard` says that it is enough: it is told the time now and then, and what there is to take.
    pub fn play(
        &self,
        simulation: &mut Simulation<'_>,
        to: Timestamp,
        mut heard: impl FnMut(&mut Simulation<'_>) -> ControlFlow<()>,
    ) {
        for item in &self.tokens {
            simulation.token(item);
        }
        // Every day of every token is a poll of all days so far: nothing else takes as long, and mostly nobody hears of it.
        let plays_emissions = simulation.rules().hears(Resource::Emission);
        for input in self.inputs.iter().take_while(|input| input.at <= to) {
            if matches!(input.said, HistoryContent::SoFar(Endpoint::DailyEmission)) && !plays_emissions {
                continue;
            }
            simulation.advance_before(input.at);
            match &input.said {
                HistoryContent::Answer(endpoint, payload) => simulation.answer(&input.token, *endpoint, payload.clone()),
                HistoryContent::Rounds(rounds) => simulation.rounds(&input.token, rounds),
                HistoryContent::SoFar(endpoint) => self.so_far(simulation, &input.token, *endpoint, input.at),
            }
            if heard(simulation).is_break() {
                return;
            }
        }
        // In steps, so that whoever watches sees it move.
        while simulation.now() < to {
            let next = (simulation.now() + TimeDelta::days(7)).min(to);
            simulation.advance(next);
            if heard(simulation).is_break() {
                return;
            }
        }
    }

    fn so_far(&self, simulation: &mut Simulation<'_>, token: &TokenId, endpoint: Endpoint, at: Timestamp) {
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
                simulation.answer(token, endpoint, Payload::Burns(payload));
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
                simulation.answer(token, endpoint, Payload::Buybacks(payload));
            }
            Endpoint::DailyEmission => {
                let Some(days) = self.emissions.get(token) else { return };
                let days = days.iter().filter(|day| had(day.end_date.copied())).cloned().collect();
                simulation.answer(token, endpoint, Payload::Emissions(days));
            }
            Endpoint::Investors => {
                let Some(rounds) = self.rounds.get(token) else { return };
                let rounds: Vec<_> = rounds.iter().filter(|round| had(round.funding_date.copied())).cloned().collect();
                simulation.rounds(token, &rounds);
            }
            _ => {}
        }
    }
}

/// Records as an answer about them. Where there were segments once, it says of each event whether it has any: what the daemon recorded
/// speaks of them from then on, also where the last one is gone.
fn said<'a>(resource: Resource, records: impl Iterator<Item = &'a Record>, has_segments: bool) -> HistoryContent {
    macro_rules! rows {
        ($variant:ident) => {
            records
                .filter_map(|record| if let Record::$variant(row) = record { Some((**row).clone()) } else { None })
                .collect::<Vec<_>>()
        };
    }
    match resource {
        Resource::Unlock => {
            let mut events: Vec<wire::UnlockEvent> = rows!(Unlock);
            for event in events.iter_mut().filter(|event| has_segments && event.linear_unlocks.is_absent()) {
                event.linear_unlocks = wire::Maybe::Null;
            }
            HistoryContent::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(events))
        }
        Resource::Emission => HistoryContent::Answer(Endpoint::DailyEmission, Payload::Emissions(rows!(Emission))),
        Resource::Funding => HistoryContent::Rounds(rows!(Funding)),
        Resource::Burn => {
            let data = wire::BurnData { burns: rows!(Burn).into(), ..Default::default() };
            HistoryContent::Answer(Endpoint::Burn, Payload::Burns(data))
        }
        Resource::Buyback => {
            let data = wire::BuybackData { buybacks: rows!(Buyback).into(), ..Default::default() };
            HistoryContent::Answer(Endpoint::Buyback, Payload::Buybacks(data))
        }
        Resource::Allocation => {
            let data = wire::AllocationsData { allocations: rows!(Allocation).into(), ..Default::default() };
            HistoryContent::Answer(Endpoint::Allocations, Payload::Allocations(data))
        }
    }
}
