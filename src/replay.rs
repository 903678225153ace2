//! The path of a cycle in memory, over a clock that is moved by hand: answers in, what is told out.
//!
//! A [`Replay`] knows tokens as the database would. [`Replay::answer`] takes an answer in through [`crate::intake`], and
//! [`Replay::advance`] lets time pass: whatever a rule, a lead time, a `for` or a proof of removal waits for happens at its own
//! minute, as the daemon's evaluation would see it, without looking at the minutes between. Diff, evaluation, routes and templates are
//! the real ones; only the database and the network are missing. Rule tests and backtests are made of this.
//!
//! A replay [with mail](Replay::with_mail) goes on to the messages that receivers would get: what is told is grouped, silenced, inhibited,
//! muted, told again and summed up as the dispatcher does it, and digests come at their time.
//!
//! Promise: the same answers at the same times tell the same, whatever the machine and whatever the time of day. Pure.

mod mailroom;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use chrono::TimeDelta;

use crate::{
    aggregate::{self, Book, Ledger, Rest, Totals, Worked},
    alert::{Alert, AlertBody, AlertState, Notice},
    api::{Answer, Fetched, Outcome, Payload, Request},
    budget::Why,
    change::Change,
    diff,
    digest::{self, Digest},
    evaluate::{self, Limits, TokenFacts, TokenTotals, Verdict},
    group, intake,
    plan::Ask,
    route::RouteTree,
    rules::{On, Pool, Rule, RuleSet},
    store::model::{ChangeRow, TokenSnapshot, UpcomingRow},
    supply::{
        ContentHash, Endpoint, FeedState, Interval, ReceiverName, Resource, RuleId, Timestamp, Token, TokenId, Tracked,
        span_of_days,
    },
    watch::Watch,
    wire,
};

use mailroom::Mailroom;
pub use mailroom::{Mail, Sent, Untold};

/// How often the daemon evaluates: everything that time brings is told at a full minute.
const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// What a tick judges, as the daemon does.
const TIMED: [Resource; 3] = [Resource::Unlock, Resource::Allocation, Resource::Emission];

/// How a replay goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Comparison of amounts, and proof of removals.
    pub diff: diff::Settings,
    /// When an answer that left something out, or was held, is asked for again.
    pub poll_every: TimeDelta,
    /// How often conditions that read the clock (`daysUntil`, `now`) are looked at. The daemon does so each minute.
    pub look_every: TimeDelta,
}

impl Default for Pace {
    fn default() -> Self {
        Self { diff: diff::Settings::default(), poll_every: TimeDelta::hours(6), look_every: TimeDelta::hours(1) }
    }
}

/// Tokens, alerts and the clock of a replay.
#[derive(Debug)]
pub struct Replay<'a> {
    rules: &'a RuleSet,
    routes: &'a RouteTree,
    watch: &'a Watch,
    pace: Pace,
    now: Timestamp,
    /// Lead times of all rules on unlocks, each once.
    leads: Vec<TimeDelta>,
    /// Days before a record's time (negative: after) at which conditions of rules on unlocks turn, each once.
    edges: Vec<f64>,
    /// The farthest that a condition which reads the clock looks ahead; none where there is no such condition.
    clock_horizon: Option<TimeDelta>,
    tokens: BTreeMap<TokenId, Known>,
    wakes: BTreeSet<(Timestamp, TokenId)>,
    repeats: BTreeSet<(Timestamp, TokenId, Endpoint)>,
    episodes: HashMap<(RuleId, String), u32>,
    /// What windows over tokens and groups hold, where a rule asks.
    book: Book,
    /// Open alerts that are about no token.
    of_groups: Vec<Alert>,
    /// When time alone may move one of them on.
    next_of_groups: Option<Timestamp>,
    /// Some token was summed up since groups were last judged.
    is_summed_anew: bool,
    /// What rules with a `limit` told at this instant: all answers of one instant are one cycle.
    limits: Limits,
    told: Vec<Arc<Notice>>,
    changes: Vec<(Timestamp, Change)>,
    /// What makes messages of what is told; none where only that matters.
    mailroom: Option<Mailroom>,
    /// What changed lately, for digests.
    lately: Vec<ChangeRow>,
    matches: BTreeMap<RuleId, u64>,
    template_errors: BTreeMap<RuleId, String>,
}

/// What is known of one token.
#[derive(Debug)]
struct Known {
    snapshot: TokenSnapshot,
    wake: Option<Timestamp>,
    /// When time alone may change what is to be told of its records, as of when they were last judged.
    next_turn: Option<Timestamp>,
    /// When time alone changes what its windows hold.
    next_sum: Option<Timestamp>,
    /// Its dated entries, as long as its records stay what they are.
    ledger: Option<Ledger>,
    /// The last answers that are not yet believed in full, to be given again.
    answers: HashMap<Endpoint, Payload>,
}

/// A token to be judged, with what happened to it.
struct Judged {
    token: TokenId,
    records: Option<Vec<Tracked>>,
    resources: Vec<Resource>,
    changes: Vec<Change>,
    added: Vec<Tracked>,
}

impl<'a> Replay<'a> {
    /// A replay that knows nothing yet, at `start`.
    #[must_use]
    pub fn new(rules: &'a RuleSet, routes: &'a RouteTree, watch: &'a Watch, pace: Pace, start: Timestamp) -> Self {
        let on_unlocks = || rules.rules.iter().filter(|rule| rule.on == On::Record(Resource::Unlock));
        let mut leads: Vec<TimeDelta> = on_unlocks().flat_map(|rule| rule.within.iter().map(|lead| lead.span)).collect();
        leads.sort_unstable();
        leads.dedup();
        let clock_horizon = on_unlocks()
            .filter(|rule| rule.is_clock_dependent)
            .map(|rule| rule.within.iter().map(|lead| lead.span).max().unwrap_or(TimeDelta::MAX))
            .max();
        let mut edges: Vec<f64> = on_unlocks().flat_map(|rule| rule.edges.iter().copied()).collect();
        edges.sort_unstable_by(f64::total_cmp);
        edges.dedup();
        let mut book = Book::default();
        let has_shares = rules.rules.iter().any(|rule| !rule.shares().is_empty());
        book.reset(rules.windows.clone(), rules.since.clone(), has_shares);
        Self {
            rules,
            routes,
            watch,
            pace,
            now: start,
            leads,
            edges,
            clock_horizon,
            tokens: BTreeMap::new(),
            wakes: BTreeSet::new(),
            repeats: BTreeSet::new(),
            episodes: HashMap::new(),
            book,
            of_groups: Vec::new(),
            next_of_groups: None,
            is_summed_anew: true,
            limits: Limits::default(),
            told: Vec::new(),
            changes: Vec::new(),
            mailroom: None,
            lately: Vec::new(),
            matches: BTreeMap::new(),
            template_errors: BTreeMap::new(),
        }
    }

    /// Has it make messages of what is told: see [`take_sent`](Self::take_sent).
    #[must_use]
    pub fn with_mail(mut self, mail: Mail) -> Self {
        self.mailroom = Some(Mailroom::new(mail, self.now));
        self
    }

    /// The rules by which it judges.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        self.rules
    }

    /// The time that it has come to.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What was told since this was last asked, in order.
    pub fn take_told(&mut self) -> Vec<Arc<Notice>> {
        std::mem::take(&mut self.told)
    }

    /// The messages that were made since this was last asked, in order; nothing without mail.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        self.mailroom.as_mut().map(Mailroom::take_sent).unwrap_or_default()
    }

    /// What was to be told and reached nobody so far: held back, or waiting.
    #[must_use]
    pub fn untold(&self) -> Vec<Untold> {
        self.mailroom.as_ref().map(Mailroom::untold).unwrap_or_default()
    }

    /// What the diff told since this was last asked, with the time of each.
    pub fn take_changes(&mut self) -> Vec<(Timestamp, Change)> {
        std::mem::take(&mut self.changes)
    }

    /// Alerts that are pending or firing.
    pub fn open(&self) -> impl Iterator<Item = &Alert> {
        self.tokens.values().flat_map(|known| &known.snapshot.alerts)
    }

    /// How many evaluations each rule held in.
    #[must_use]
    pub fn matches(&self) -> &BTreeMap<RuleId, u64> {
        &self.matches
    }

    /// Rules with a template that failed, with the first error of each.
    #[must_use]
    pub fn template_errors(&self) -> &BTreeMap<RuleId, String> {
        &self.template_errors
    }

    /// A row of the token list.
    pub fn token(&mut self, item: &wire::TokenItem) {
        let Some(id) = item.id.as_str().map(TokenId::from) else { return };
        if !self.watch.covers(&id) {
            return;
        }
        let is_new = !self.tokens.contains_key(&id);
        let token = self.watch.placed(Token { item: item.clone(), ..Token::unknown(id.clone()) });
        let settings = self.pace.diff;
        let known = self.known(&id);
        let before = std::mem::replace(&mut known.snapshot.token, token);
        let (from, to) = (before.item.max_supply.copied(), item.max_supply.copied());
        if let Some(change) = diff::max_supply_change(&id, from, to, &settings).filter(|_| !is_new) {
            self.happened(std::slice::from_ref(&change));
            let (records, resources) = (Some(Vec::new()), Vec::new());
            self.judge(vec![Judged { token: id, records, resources, changes: vec![change], added: Vec::new() }]);
        }
    }

    /// A complete answer of an endpoint about a token. The first one is the baseline and tells no change.
    pub fn answer(&mut self, token: &TokenId, endpoint: Endpoint, payload: Payload) {
        if !self.watch.covers(token) {
            return;
        }
        let (now, pace, watch) = (self.now, self.pace, self.watch);
        let known = self.known(token);
        let (ask, fetched) = asked(token, endpoint, payload, now);
        let taken = intake::take_in(&known.snapshot, &ask, &fetched, &pace.diff, now);
        let resource = endpoint.resource();
        let awaits_proof = !taken.update.state.missing.is_empty() || taken.is_held;
        if let (Some((name, symbol)), true) = (taken.named, known.snapshot.token.item.name.is_absent()) {
            known.snapshot.token.item.name = name.into();
            known.snapshot.token.item.symbol = symbol.into();
            known.snapshot.token = watch.placed(known.snapshot.token.clone());
        }
        put(&mut known.snapshot.feeds, endpoint, taken.update.state);
        if let Some(header) = taken.update.header {
            put(&mut known.snapshot.headers, endpoint, header);
        }
        match fetched.outcome {
            Outcome::Fresh(answer) if awaits_proof => {
                known.answers.insert(endpoint, answer.payload);
                self.repeats.insert((now + pace.poll_every, token.clone(), endpoint));
            }
            _ => {
                known.answers.remove(&endpoint);
                self.repeats.retain(|(_, of, by)| of != token || *by != endpoint);
            }
        }
        if taken.failure.is_some() {
            return;
        }
        let records = self.keep(token, resource, taken.after);
        self.happened(&taken.changes);
        let resources = resource.into_iter().collect();
        self.judge(vec![Judged {
            token: token.clone(),
            records: Some(records),
            resources,
            changes: taken.changes,
            added: taken.added,
        }]);
    }

    /// All funding rounds of a token that are public by now. The first list is the baseline.
    pub fn rounds(&mut self, token: &TokenId, rounds: &[wire::FundingRound]) {
        if !self.watch.covers(token) {
            return;
        }
        let (now, settings) = (self.now, self.pace.diff);
        let known = self.known(token);
        let is_baseline = known.snapshot.feed(Endpoint::Investors).is_none();
        let before: Vec<Tracked> = known.snapshot.records_of(Resource::Funding).cloned().collect();
        let mut found = if is_baseline {
            diff::Diff { put: diff::baseline_funding(rounds), ..Default::default() }
        } else {
            diff::diff_funding(token, &before, &[], rounds, &settings, &diff::Window::ALL)
        };
        // As in the daemon: a page about one investor proves nothing by what it leaves out.
        found.removed.clear();
        let is_new = |put: &&crate::store::model::Put| !is_baseline && before.iter().all(|known| known.key != put.key);
        let added: Vec<Tracked> =
            found.put.iter().filter(is_new).map(|put| Tracked { key: put.key.clone(), record: put.record.clone() }).collect();
        put(
            &mut known.snapshot.feeds,
            Endpoint::Investors,
            FeedState { baseline_at: Some(now), read_at: Some(now), tried_at: Some(now), ..Default::default() },
        );
        let records = self.keep(token, Some(Resource::Funding), diff::apply(&before, &found));
        self.happened(&found.changes);
        let resources = vec![Resource::Funding];
        self.judge(vec![Judged { token: token.clone(), records: Some(records), resources, changes: found.changes, added }]);
    }

    /// Lets time pass up to `until`, inclusive: what falls due on the way happens at its own minute.
    pub fn advance(&mut self, until: Timestamp) {
        self.advance_to(until, true);
    }

    /// Lets time pass up to `until`, exclusive: what falls due at that very instant waits for an answer that comes with it.
    pub fn advance_before(&mut self, until: Timestamp) {
        self.advance_to(until, false);
    }

    fn advance_to(&mut self, until: Timestamp, is_inclusive: bool) {
        let is_in = |at: Timestamp| at < until || is_inclusive && at == until;
        if self.now < until {
            self.close();
        }
        loop {
            let wake = self.wakes.first().map(|(at, _)| *at).filter(|at| is_in(*at));
            let repeat = self.repeats.first().map(|(at, ..)| *at).filter(|at| is_in(*at));
            let mail = self.mailroom.as_ref().and_then(Mailroom::next_at).filter(|at| is_in(*at));
            let groups = self.next_of_groups.filter(|at| is_in(*at));
            let Some(next) = [wake, repeat, mail, groups].into_iter().flatten().min() else { break };
            self.now = self.now.max(next);
            if wake != Some(next) && repeat != Some(next) {
                self.close();
                continue;
            }
            if repeat == Some(next) {
                let Some((_, token, endpoint)) = self.repeats.pop_first() else { break };
                let again = self.tokens.get_mut(&token).and_then(|known| known.answers.remove(&endpoint));
                if let Some(payload) = again {
                    self.answer(&token, endpoint, payload);
                    self.close();
                }
                continue;
            }
            let mut due = Vec::new();
            while self.wakes.first().is_some_and(|(at, _)| *at <= next) {
                let Some((_, token)) = self.wakes.pop_first() else { break };
                let Some(known) = self.tokens.get_mut(&token) else { continue };
                known.wake = None;
                // Where no more than its windows moved, its records are left alone.
                let is_turn = known.next_turn.is_some_and(|at| at <= next)
                    || known.snapshot.alerts.iter().any(|alert| alert.recheck_at.is_some_and(|at| at <= next));
                let (records, resources) = if is_turn { (None, TIMED.to_vec()) } else { (Some(Vec::new()), Vec::new()) };
                due.push(Judged { token, records, resources, changes: Vec::new(), added: Vec::new() });
            }
            self.judge(due);
            self.close();
        }
        if is_inclusive {
            self.close();
        }
        self.now = self.now.max(until);
    }

    fn known(&mut self, id: &TokenId) -> &mut Known {
        let watch = self.watch;
        self.tokens.entry(id.clone()).or_insert_with(|| Known {
            snapshot: TokenSnapshot {
                token: watch.placed(Token::unknown(id.clone())),
                feeds: Vec::new(),
                headers: Vec::new(),
                records: Vec::new(),
                alerts: Vec::new(),
            },
            wake: None,
            next_turn: None,
            next_sum: None,
            ledger: None,
            answers: HashMap::new(),
        })
    }

    /// Puts the records of a resource in place of those that were there, and gives them back.
    fn keep(&mut self, token: &TokenId, resource: Option<Resource>, after: Vec<Tracked>) -> Vec<Tracked> {
        let known = self.known(token);
        known.ledger = None;
        if resource == Some(Resource::Unlock) {
            known.next_turn = None;
        }
        known.snapshot.records.retain(|tracked| Some(tracked.record.resource()) != resource);
        known.snapshot.records.extend(after.iter().cloned());
        after
    }

    fn happened(&mut self, changes: &[Change]) {
        let now = self.now;
        self.changes.extend(changes.iter().map(|change| (now, change.clone())));
        if self.mailroom.as_ref().is_some_and(Mailroom::has_digests) {
            self.lately.extend(changes.iter().filter_map(|change| {
                let (token, resource) = (change.token.clone()?, change.resource?);
                let symbol = self.tokens.get(&token).map(|known| known.snapshot.token.symbol().to_owned());
                Some(ChangeRow { id: 0, at: now, token, symbol, resource, key: change.key.clone(), change: change.clone() })
            }));
        }
    }

    /// Judges tokens together, as one evaluation of the daemon does, and notes when each is to be looked at again.
    fn judge(&mut self, batch: Vec<Judged>) {
        if self.rules.has_aggregates() {
            batch.iter().for_each(|judged| self.write_ledger(&judged.token));
        }
        let polled: Vec<Vec<(Resource, Timestamp)>> = batch.iter().map(|judged| self.polled_at(&judged.token)).collect();
        let facts: Vec<TokenFacts<'_>> = batch
            .iter()
            .zip(&polled)
            .filter_map(|(judged, polled_at)| {
                let known = self.tokens.get(&judged.token)?;
                Some(TokenFacts {
                    token: &known.snapshot.token,
                    is_watched: true,
                    records: judged.records.as_deref().unwrap_or(&known.snapshot.records),
                    resources: &judged.resources,
                    changes: &judged.changes,
                    added: &judged.added,
                    alerts: &known.snapshot.alerts,
                    polled_at,
                })
            })
            .collect();
        let context = evaluate::Context { rules: self.rules, routes: self.routes, now: self.now };
        let worked: Vec<(Worked, Option<Timestamp>)> = if self.rules.has_aggregates() {
            batch.iter().filter_map(|judged| self.work_out(&judged.token)).collect()
        } else {
            Vec::new()
        };
        let wholes: Vec<TokenTotals<'_>> = facts
            .iter()
            .zip(&worked)
            .map(|(facts, (worked, _))| TokenTotals {
                token: facts.token,
                is_watched: true,
                totals: worked.totals(),
                alerts: facts.alerts,
                polled_at: facts.polled_at,
            })
            .collect();
        let draft = evaluate::evaluate(&facts, &context, &mut self.limits);
        let draft = if wholes.is_empty() { draft } else { draft.join(evaluate::tokens(&wholes, &context, &mut self.limits)) };
        let ids: Vec<TokenId> = facts.iter().map(|facts| facts.token.id.clone()).collect();
        drop((facts, wholes));
        let latest: Vec<u32> =
            draft.openings().into_iter().map(|opening| self.episodes.get(&opening).copied().unwrap_or(0)).collect();
        self.take_in(draft.number(&latest));
        for (id, (worked, next)) in ids.iter().zip(worked) {
            self.book.keep(worked);
            self.is_summed_anew = true;
            if let Some(known) = self.tokens.get_mut(id) {
                known.next_sum = next;
            }
        }
        for judged in &batch {
            // A turn that is due stays due until the unlocks are looked at.
            if judged.resources.contains(&Resource::Unlock)
                && let Some(known) = self.tokens.get_mut(&judged.token)
            {
                known.next_turn = None;
            }
            self.set_wake(&judged.token);
        }
    }

    /// Puts down the dated entries of a token, unless they stand there.
    fn write_ledger(&mut self, id: &TokenId) {
        let Some(known) = self.tokens.get_mut(id).filter(|known| known.ledger.is_none()) else { return };
        let TokenSnapshot { token, feeds, records, .. } = &known.snapshot;
        known.ledger = Some(Ledger::of(records, |resource| aggregate::is_known(resource, feeds, &token.item)));
    }

    /// What the windows of a token hold now, and when time alone changes that.
    fn work_out(&self, id: &TokenId) -> Option<(Worked, Option<Timestamp>)> {
        let known = self.tokens.get(id)?;
        let (token, ledger) = (&known.snapshot.token, known.ledger.as_ref()?);
        let concerned = || self.rules.on(On::Token).chain(self.rules.on(On::Portfolio)).filter(|rule| rule.lets_in(token));
        let rest = match (concerned().next().is_some(), concerned().any(|rule| rule.is_clock_dependent)) {
            (false, _) => Rest::Longest,
            (true, false) => Rest::UntilChange,
            (true, true) => Rest::None,
        };
        let next = match rest {
            Rest::Longest => None,
            Rest::UntilChange => ledger.next_change(&self.rules.windows, &self.rules.since, self.now),
            Rest::None => Some(self.now + self.pace.look_every.max(MINUTE)),
        };
        Some((self.book.work_out(token, ledger, rest, self.now), next))
    }

    /// Judges groups as a whole, from what is known of their tokens.
    fn judge_groups(&mut self) {
        if self.rules.on(On::Portfolio).next().is_none() && self.of_groups.is_empty() {
            return;
        }
        if !self.is_summed_anew && self.next_of_groups.is_none_or(|at| at > self.now) {
            return;
        }
        self.is_summed_anew = false;
        if !self.book.is_complete() {
            self.book.complete(self.now);
        }
        let book = &mut self.book;
        let mut of = |rule: &Rule, pool: &Pool| -> Option<Arc<Totals>> {
            match pool {
                Pool::Group(name) => book.group(&format!("@{name}"), Some(name), |_, _| false),
                Pool::Watched => book.group(rule.id.as_str(), None, |id, groups| rule.lets_in_named(id, groups)),
            }
        };
        let context = evaluate::Context { rules: self.rules, routes: self.routes, now: self.now };
        let draft = evaluate::portfolios(&mut of, &self.of_groups, &[], &context, &mut self.limits);
        let latest: Vec<u32> =
            draft.openings().into_iter().map(|opening| self.episodes.get(&opening).copied().unwrap_or(0)).collect();
        self.take_in(draft.number(&latest));
        let look = self.now + self.pace.look_every.max(MINUTE);
        let later = |at: Timestamp| minute(if at > self.now { at } else { look });
        let reads_clock = self.rules.on(On::Portfolio).any(|rule| rule.is_clock_dependent).then_some(look);
        self.next_of_groups = self.of_groups.iter().filter_map(|alert| alert.recheck_at).chain(reads_clock).map(later).min();
    }

    /// Ends the cycle of this instant: what limits left out is told.
    fn close(&mut self) {
        self.judge_groups();
        let summaries = std::mem::take(&mut self.limits).summaries(self.now);
        self.take_in(summaries.number(&[]));
        self.dispatch();
    }

    /// Makes messages of what waits, as one pass of the dispatcher does: digests, what is told again, then everything else.
    fn dispatch(&mut self) {
        let Some(mut mailroom) = self.mailroom.take() else { return };
        let now = self.now;
        for (receiver, schedule, since, at) in mailroom.digests_due(now) {
            let digest = self.digest(&mailroom, &receiver, &schedule, since, at);
            mailroom.post(&Arc::new(digest.notice(&receiver, now)), self.routes, now);
        }
        for (receiver, key, alerts) in mailroom.repeats_due(now) {
            let mut next = None;
            for last in alerts {
                let leaf = self.routes.leaf(&last.body.labels, &receiver);
                let repeat = leaf.grouping().repeat;
                next = next.or_else(|| now.checked_add_signed(repeat?));
                if repeat.is_none() || !self.routes.knows(&receiver) || mailroom.is_silenced(&last.body.labels, now) {
                    continue;
                }
                let (due, retold) = self.retold(&last).unwrap_or_default();
                let notice = group::repeat(&last, due, retold, &receiver, &key, now);
                mailroom.post(&Arc::new(notice), self.routes, now);
            }
            mailroom.repeated(receiver, key, next);
        }
        mailroom.dispatch(self.routes, now);
        self.mailroom = Some(mailroom);
    }

    /// When the record of an alert is due, and what is told again of it as it reads now.
    fn retold(&self, last: &Notice) -> Option<(Option<Interval>, Option<AlertBody>)> {
        let known = self.tokens.get(last.body.token.as_ref()?.id.as_str())?;
        let alert = known.snapshot.alerts.iter().find(|alert| alert.id == last.alert)?;
        let resource = alert.resource?;
        let polled_at = self.polled_at(&known.snapshot.token.id);
        let facts = TokenFacts {
            token: &known.snapshot.token,
            is_watched: true,
            records: &known.snapshot.records,
            resources: &[resource],
            changes: &[],
            added: &[],
            alerts: &[],
            polled_at: &polled_at,
        };
        let context = evaluate::Context { rules: self.rules, routes: self.routes, now: self.now };
        Some((alert.due, evaluate::retell(alert, &facts, &context)))
    }

    fn digest(
        &mut self,
        mailroom: &Mailroom,
        receiver: &ReceiverName,
        schedule: &digest::Schedule,
        since: Timestamp,
        at: Timestamp,
    ) -> Digest {
        let now = self.now;
        let until = at.checked_add_signed(schedule.ahead).unwrap_or(at);
        let mut upcoming: Vec<(Timestamp, UpcomingRow)> = Vec::new();
        for known in self.tokens.values() {
            for tracked in known.snapshot.records_of(Resource::Unlock) {
                let Some(interval) = tracked.record.interval().filter(|of| now < of.end && of.start <= until) else { continue };
                let read_at = known.snapshot.feed(Endpoint::UnlockEvents).and_then(|feed| feed.read_at);
                let token = known.snapshot.token.clone();
                upcoming.push((interval.start, UpcomingRow { token, tracked: tracked.clone(), read_at }));
            }
        }
        upcoming.sort_by_key(|(start, _)| *start);
        let upcoming: Vec<UpcomingRow> = upcoming.into_iter().map(|(_, row)| row).collect();
        // Every receiver has its own last slot; nothing looks back farther than the longest of them.
        self.lately.retain(|row| row.at >= now - digest::LOOK_BACK);
        let changes: Vec<ChangeRow> = self.lately.iter().rev().filter(|row| row.at >= since).cloned().collect();
        let fates = mailroom.held_back(receiver, since);
        let firing = mailroom.firing_count();
        let silences = mailroom.silences(at);
        let (upcoming, changes, fates, silences) = (&upcoming, &changes, &fates, &silences);
        Digest::of(&digest::Material {
            since,
            at,
            ahead: schedule.ahead,
            upcoming,
            changes,
            fates,
            silences,
            firing,
            trouble: &[],
        })
    }

    fn take_in(&mut self, verdict: Verdict) {
        for alert in verdict.alerts {
            let episode = self.episodes.entry((alert.rule.clone(), alert.subject.clone())).or_default();
            *episode = (*episode).max(alert.episode);
            if let Some(mailroom) = &mut self.mailroom {
                mailroom.learn(&alert, self.routes);
            }
            let alerts = match &alert.token {
                Some(token) => self.tokens.get_mut(token).map(|known| &mut known.snapshot.alerts),
                None => Some(&mut self.of_groups),
            };
            let Some(alerts) = alerts else { continue };
            alerts.retain(|open| open.id != alert.id);
            if matches!(alert.state, AlertState::Pending | AlertState::Firing) {
                alerts.push(alert);
            }
        }
        for notice in verdict.notices {
            let notice = Arc::new(notice);
            if let Some(mailroom) = &mut self.mailroom {
                mailroom.post(&notice, self.routes, self.now);
            }
            self.told.push(notice);
        }
        for (rule, _) in verdict.rule_matches {
            *self.matches.entry(rule).or_default() += 1;
        }
        for (rule, error) in verdict.template_errors {
            self.template_errors.entry(rule).or_insert(error);
        }
    }

    fn polled_at(&self, token: &TokenId) -> Vec<(Resource, Timestamp)> {
        let Some(known) = self.tokens.get(token) else { return Vec::new() };
        let feeds = known.snapshot.feeds.iter();
        feeds.filter_map(|(endpoint, state)| Some((endpoint.resource()?, state.read_at?))).collect()
    }

    fn set_wake(&mut self, token: &TokenId) {
        let now = self.now;
        let Some(known) = self.tokens.get(token) else { return };
        let turn = known.next_turn.or_else(|| self.next_turn(known));
        let look = now + self.pace.look_every.max(MINUTE);
        let alerts = known.snapshot.alerts.iter().filter_map(|alert| alert.recheck_at);
        let waits = alerts.chain(known.next_sum).map(|at| if at > now { at } else { look });
        let (before, next) = (known.wake, waits.chain(turn.map(|at| at.max(now))).min().map(minute));
        if let Some(known) = self.tokens.get_mut(token) {
            known.next_turn = turn;
        }
        // A tick that is due at this very instant comes after the answers of it.
        if before == next || before.is_some_and(|before| before <= now) {
            return;
        }
        if let Some(before) = before {
            self.wakes.remove(&(before, token.clone()));
        }
        if let Some(next) = next {
            self.wakes.insert((next, token.clone()));
        }
        if let Some(known) = self.tokens.get_mut(token) {
            known.wake = next;
        }
    }

    /// The next instant at which the passing of time may change what is to be told of a token's records.
    fn next_turn(&self, known: &Known) -> Option<Timestamp> {
        let now = self.now;
        let look = now + self.pace.look_every.max(MINUTE);
        let mut next: Option<Timestamp> = None;
        let mut consider = |at: Timestamp| {
            if at > now && next.is_none_or(|next| at < next) {
                next = Some(at);
            }
        };
        for tracked in known.snapshot.records_of(Resource::Unlock) {
            let Some(interval) = tracked.record.interval() else { continue };
            let is_ahead = !interval.has_passed(now);
            if is_ahead {
                self.leads.iter().filter_map(|lead| interval.start.checked_sub_signed(*lead)).for_each(&mut consider);
                // Before its horizon comes up, a condition on the clock need not be asked.
                if let Some(horizon) = self.clock_horizon {
                    consider(interval.start.checked_sub_signed(horizon).map_or(look, |seen| seen.max(look)));
                }
            }
            for days in &self.edges {
                let from = if *days > 0.0 { interval.start } else { interval.end };
                let turn = span_of_days(*days).and_then(|span| from.checked_sub_signed(span));
                // `<` turns just after `<=` does.
                for at in turn.into_iter().flat_map(|at| [Some(at), at.checked_add_signed(TimeDelta::seconds(1))]).flatten() {
                    consider(at);
                }
            }
        }
        next
    }
}

/// The full minute at or after an instant.
fn minute(at: Timestamp) -> Timestamp {
    let over = at.timestamp_millis().rem_euclid(MINUTE.num_milliseconds());
    if over == 0 { at } else { at.checked_add_signed(MINUTE - TimeDelta::milliseconds(over)).unwrap_or(at) }
}

fn put<T>(list: &mut Vec<(Endpoint, T)>, endpoint: Endpoint, value: T) {
    match list.iter_mut().find(|(of, _)| *of == endpoint) {
        Some((_, there)) => *there = value,
        None => list.push((endpoint, value)),
    }
}

/// A request and its answer, as the client would have them.
fn asked(token: &TokenId, endpoint: Endpoint, payload: Payload, now: Timestamp) -> (Ask, Fetched) {
    let request = Request::Token { endpoint, token: token.clone(), start: chrono::NaiveDate::MIN, end: chrono::NaiveDate::MAX };
    let ask = Ask { request: request.clone(), known: None, why: Why::Changed, cost: 1, mark: Some(now) };
    let answer = Answer { payload, hash: ContentHash(0), oddities: Vec::new(), oddities_total: 0, dropped: 0 };
    let fetched = Fetched {
        request,
        outcome: Outcome::Fresh(answer),
        credits: 1,
        requests: 1,
        credit: None,
        bytes: 0,
        took: std::time::Duration::ZERO,
        status: Some(200),
        version: None,
    };
    (ask, fetched)
}
