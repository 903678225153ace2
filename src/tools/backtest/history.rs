//! The history that a backtest replays: responses with their times, from a data folder, a folder of dated versions, or the
//! versions that the daemon recorded.

mod folder;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use chrono::TimeDelta;

use crate::simulate::Simulation;
use model::{Endpoint, FeedState, Payload, Record, RecordKey, Resource, Timestamp, Token, TokenId, TokenNames, VersionRow, wire};

/// An error while loading the history of a backtest.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Invalid {
        path: PathBuf,
        /// The line number, from 1. `None` if the file is not read line by line.
        line: Option<usize>,
        problem: String,
    },
    #[error("{} is not a history: expected a data folder (with tokens.json) or a folder of versions (with *.jsonl files)", .0.display())]
    Unknown(PathBuf),
}

/// The responses of a source over time.
#[derive(Debug, Default)]
pub struct History {
    /// The rows of the token list.
    tokens: Vec<wire::TokenItem>,
    /// Sorted by time.
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
    content: HistoryContent,
}

#[derive(Debug)]
enum HistoryContent {
    Response(Endpoint, Payload),
    /// All funding rounds that were public at that time.
    Rounds(Vec<wire::FundingRound>),
    /// All records of an endpoint up to that time.
    StateAt(Endpoint),
}

impl History {
    /// Adds a token's recorded versions: its records at each time at which the daemon saw a change, and the baseline of each of
    /// its `feeds`, even if it was empty.
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
            // Records from an endpoint about many tokens, seen before the token's own feed was read, belong to the baseline.
            let from = began(resource).map_or(from, |at| from.max(at));
            if began(resource).is_some() && from <= to && rows.iter().all(|row| row.at > from) {
                self.inputs.push(HistoryEvent {
                    at: from,
                    token: token.id.clone(),
                    content: content_of(resource, std::iter::empty(), false),
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
                    let content = content_of(resource, alive.values(), has_segments);
                    self.inputs.push(HistoryEvent { at: at.max(from), token: token.id.clone(), content });
                }
            }
        }
    }

    /// Sorts the recorded versions by time.
    pub fn sort(&mut self) {
        self.inputs.sort_by(|a, b| (a.at, &a.token).cmp(&(b.at, &b.token)));
    }

    /// Returns the number of tokens with any data.
    pub fn token_count(&self) -> usize {
        let mut ids: Vec<&str> = self.tokens.iter().filter_map(|item| item.id.as_str()).collect();
        ids.extend(self.inputs.iter().map(|input| input.token.as_str()));
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    }

    /// Returns the names of the tokens with any data.
    pub fn token_names(&self) -> Vec<TokenNames> {
        let text = |text: &wire::Maybe<wire::Text>| text.as_str().unwrap_or_default().to_owned();
        let of_item = |item: &wire::TokenItem| (TokenId::from(text(&item.id).as_str()), (text(&item.symbol), text(&item.name)));
        let mut names: BTreeMap<TokenId, (String, String)> =
            self.inputs.iter().map(|input| (input.token.clone(), Default::default())).collect();
        names.extend(self.tokens.iter().map(of_item));
        names.into_iter().map(|(id, (symbol, name))| TokenNames { id, symbol, name }).collect()
    }

    /// Returns the times of the first and the last response.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.inputs.first()?.at, self.inputs.last()?.at))
    }

    /// Replays the history up to `to`, or until `progress` breaks. `progress` is called regularly with the simulation.
    pub fn replay(
        &self,
        simulation: &mut Simulation<'_>,
        to: Timestamp,
        mut progress: impl FnMut(&mut Simulation<'_>) -> ControlFlow<()>,
    ) {
        for item in &self.tokens {
            simulation.token(item);
        }
        // Each daily emission is a poll of all days so far. That is slow, and rules rarely use it.
        let needs_emissions = simulation.rules().subscribes_to(Resource::Emission);
        for input in self.inputs.iter().take_while(|input| input.at <= to) {
            if matches!(input.content, HistoryContent::StateAt(Endpoint::DailyEmission)) && !needs_emissions {
                continue;
            }
            simulation.advance_before(input.at);
            match &input.content {
                HistoryContent::Response(endpoint, payload) => simulation.response(&input.token, *endpoint, payload.clone()),
                HistoryContent::Rounds(rounds) => simulation.rounds(&input.token, rounds),
                HistoryContent::StateAt(endpoint) => self.ingest_state_at(simulation, &input.token, *endpoint, input.at),
            }
            if progress(simulation).is_break() {
                return;
            }
        }
        // In steps, to report progress.
        while simulation.now() < to {
            let next = (simulation.now() + TimeDelta::days(7)).min(to);
            simulation.advance(next);
            if progress(simulation).is_break() {
                return;
            }
        }
    }

    fn ingest_state_at(&self, simulation: &mut Simulation<'_>, token: &TokenId, endpoint: Endpoint, at: Timestamp) {
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
                simulation.response(token, endpoint, Payload::Burns(payload));
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
                simulation.response(token, endpoint, Payload::Buybacks(payload));
            }
            Endpoint::DailyEmission => {
                let Some(days) = self.emissions.get(token) else { return };
                let days = days.iter().filter(|day| had(day.end_date.copied())).cloned().collect();
                simulation.response(token, endpoint, Payload::Emissions(days));
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

/// Makes a response from records. If `has_segments` is set, events without segments get an explicit null, because the daemon
/// requested segments from then on, even if none is left.
fn content_of<'a>(resource: Resource, records: impl Iterator<Item = &'a Record>, has_segments: bool) -> HistoryContent {
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
            HistoryContent::Response(Endpoint::UnlockEvents, Payload::UnlockEvents(events))
        }
        Resource::Emission => HistoryContent::Response(Endpoint::DailyEmission, Payload::Emissions(rows!(Emission))),
        Resource::Funding => HistoryContent::Rounds(rows!(Funding)),
        Resource::Burn => {
            let data = wire::BurnData { burns: rows!(Burn).into(), ..Default::default() };
            HistoryContent::Response(Endpoint::Burn, Payload::Burns(data))
        }
        Resource::Buyback => {
            let data = wire::BuybackData { buybacks: rows!(Buyback).into(), ..Default::default() };
            HistoryContent::Response(Endpoint::Buyback, Payload::Buybacks(data))
        }
        Resource::Allocation => {
            let data = wire::AllocationsData { allocations: rows!(Allocation).into(), ..Default::default() };
            HistoryContent::Response(Endpoint::Allocations, Payload::Allocations(data))
        }
    }
}
