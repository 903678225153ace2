//! `explain RULE [TOKEN|EVENT]`: why an alert was told, or was not.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{
    AlreadyTold, Context, Exit, Format, UsageError,
    fates::Files,
    parse_span,
    print::{self, Cell, Column, Listing},
    upcoming::find,
    width,
};
use crate::{
    aggregate::{self, Book, Ledger, Rest, Totals},
    alert::{Alert, AlertState, SOURCE_TROUBLE},
    change::Change,
    config::{Config, Span},
    diagnostic::{self, Severity, closest, harmless},
    digest::Schedule,
    explain::{Answer, Question, Step, explain, nothing, unheard},
    format,
    replay::Mail,
    route::{Firing, RouteTree, Sections},
    rules::{self, On, Pool, Rule, RuleSet, SourceFacts},
    store::{
        Access, Store,
        model::{AlertFilter, ChangeFilter, ChangeRow, TokenSnapshot},
    },
    supply::{Endpoint, FeedState, ReceiverName, Resource, RuleId, Timestamp, Token, TokenId, Tracked},
    watch::Watch,
    wire,
};

/// Alerts of one rule and token that are looked at.
const MAX_ALERTS: u32 = 5_000;
/// Events of one rule that an overview shows.
const MAX_SHOWN: usize = 20;
/// Tokens that are read at once to add them up.
const BATCH: usize = 256;
/// Troubles with the source that are looked at: those that last, and the latest that are over.
const MAX_TROUBLES: usize = 5;

/// Show why an alert was told, or was not, clause by clause.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The rule: its `alert` name or its `id`
    #[arg(value_name = "RULE", required_unless_present_any = ["why_not", "idle"])]
    rule: Option<String>,
    /// A token (slug or symbol), an event of it (`arbitrum@2026-03-16`, `unlock/arbitrum/KEY`), a group, or the id of an alert
    #[arg(value_name = "TOKEN|EVENT")]
    about: Option<String>,
    /// All rules, for one token or event
    #[arg(long, value_name = "TOKEN|EVENT", conflicts_with_all = ["rule", "idle"])]
    why_not: Option<String>,
    /// Rules that matched nothing for so long, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = parse_span, conflicts_with = "rule")]
    idle: Option<Span>,
}

/// What people point at.
#[derive(Clone, Debug, Default)]
struct Target {
    token: Option<TokenId>,
    resource: Option<Resource>,
    key: Option<String>,
    day: Option<Timestamp>,
    /// The alert named by its id.
    alert: Option<Alert>,
    /// A group of `[watch.groups]`.
    group: Option<String>,
}

/// Everything that questions need.
struct Desk {
    store: Store,
    watch: Watch,
    routes: RouteTree,
    rules: RuleSet,
    groups: Vec<String>,
    digests: Vec<(ReceiverName, Schedule)>,
    files: Files,
    firing: Vec<Firing>,
    now: Timestamp,
}

/// What one question is about.
#[derive(Default)]
struct About<'a> {
    token: Option<&'a Token>,
    feeds: Vec<(Endpoint, FeedState)>,
    record: Option<&'a Tracked>,
    change: Option<&'a ChangeRow>,
    totals: Option<&'a Totals>,
    source: Option<&'a SourceFacts>,
}

pub(super) async fn run(asked: &Explain, context: &Context) -> anyhow::Result<Exit> {
    if context.format == Format::Csv && asked.idle.is_none() {
        return Err(UsageError("an explanation is a tree: it is printed as table or json".to_owned()).into());
    }
    let (config, loaded) = context.load()?;
    let rules = rules_of(&config, &loaded.base_dir, context)?;
    let routes = RouteTree::of(&Sections::from(&config))
        .map_err(|problems| anyhow::anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let watch = Watch::build(&config.watch)
        .map_err(|errors| anyhow::anyhow!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let store = context.open(&config, Access::Read).await?;
    let now = context.clock.now();
    let mail = Mail::of(&config);
    let files = Files::read(&store, &routes, mail.max_per_hour, now).await?;
    let firing = store.open_alerts().await?.into_iter().filter(|alert| alert.state == AlertState::Firing);
    let firing = firing.map(|alert| Firing { id: alert.id, labels: alert.labels }).collect();
    let groups = config.watch.groups.keys().cloned().collect();
    let desk = Desk { store, watch, routes, rules, groups, digests: mail.digests, files, firing, now };
    if let Some(span) = asked.idle {
        return desk.idle(span, context).await;
    }
    if let Some(about) = &asked.why_not {
        let target = desk.target(about).await?;
        return desk.why_not(&target, context).await;
    }
    let name = asked.rule.as_deref().unwrap_or_default();
    let rule = desk.rule(name)?;
    match &asked.about {
        Some(about) => {
            let target = desk.target(about).await?;
            let answers = desk.answers(rule, &target).await?;
            show(&answers, context)
        }
        None => desk.overview(rule, context).await,
    }
}

fn rules_of(config: &Config, base_dir: &std::path::Path, context: &Context) -> anyhow::Result<RuleSet> {
    let files = rules::read_files(&config.rules.paths, base_dir);
    let receivers: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let around = rules::Surroundings { receivers: &receivers, groups: &config.watch.groups, now: context.clock.now() };
    let loaded = rules::load(&files.files, &around);
    let mut errors: Vec<_> = files.diagnostics.into_iter().chain(loaded.diagnostics).collect();
    errors.retain(|problem| problem.severity == Severity::Error);
    if errors.is_empty() {
        return Ok(loaded.set);
    }
    anstream::eprint!("{}", diagnostic::render(&errors, &loaded.sources, context.color));
    Err(AlreadyTold.into())
}

impl Desk {
    fn rule(&self, name: &str) -> anyhow::Result<&Rule> {
        let is_called = |rule: &&Rule| rule.name == name || rule.id.as_str() == name;
        if let Some(rule) = self.rules.rules.iter().find(is_called) {
            return Ok(rule);
        }
        let names = || self.rules.rules.iter().map(|rule| rule.name.as_str());
        let within = || names().find(|known| known.to_lowercase().contains(&name.to_lowercase()));
        let help = closest(name, names()).or_else(within).map_or_else(
            || format!("the rules are {}", names().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean {near:?}?"),
        );
        Err(UsageError(format!("no rule that is enabled is called {name:?}: {help}")).into())
    }

    /// Reads what people write for a token, an event or an alert.
    async fn target(&self, text: &str) -> anyhow::Result<Target> {
        if text.starts_with("al_") {
            let filter = AlertFilter { limit: u32::MAX, ..AlertFilter::default() };
            let found = self.store.alerts(filter).await?.into_iter().find(|alert| alert.id.as_str() == text);
            let Some(alert) = found else { return Err(UsageError(format!("no alert has the id {text}")).into()) };
            return Ok(Target {
                token: alert.token.clone(),
                resource: alert.resource,
                key: alert.key.as_ref().map(ToString::to_string),
                day: None,
                group: alert.subject.strip_prefix("portfolio/").map(str::to_owned),
                alert: Some(alert),
            });
        }
        if let Some(name) = self.groups.iter().find(|name| *name == text || text.strip_prefix('@') == Some(name)) {
            return Ok(Target { group: Some(name.clone()), ..Target::default() });
        }
        let parts: Vec<&str> = text.splitn(3, '/').collect();
        if let [resource, token, key] = parts.as_slice()
            && let Some(resource) = Resource::parse(resource)
        {
            let token = find(token, false, &self.store).await?;
            return Ok(Target {
                token: Some(token),
                resource: Some(resource),
                key: Some((*key).to_owned()),
                ..Target::default()
            });
        }
        let (name, day) = match text.split_once('@') {
            None => (text, None),
            Some((name, day)) => {
                let at = wire::parse_timestamp(day);
                let Some(at) = at else {
                    return Err(UsageError(format!("{day:?} is no date: write it like {name}@2026-03-16")).into());
                };
                (name, Some(at))
            }
        };
        Ok(Target { token: Some(find(name, false, &self.store).await?), day, ..Target::default() })
    }

    async fn snapshot(&self, token: &TokenId) -> anyhow::Result<Option<TokenSnapshot>> {
        let mut snapshot = self.store.tokens(vec![token.clone()], Resource::ALL.to_vec()).await?.into_iter().next();
        if let Some(snapshot) = &mut snapshot {
            snapshot.token = self.watch.placed(snapshot.token.clone());
        }
        Ok(snapshot)
    }

    /// The answers of one rule about a target: of its event, or of the token's next ones.
    async fn answers(&self, rule: &Rule, target: &Target) -> anyhow::Result<Vec<Answer>> {
        match rule.on {
            On::Portfolio => return self.of_groups(rule, target).await,
            On::Source => return self.of_source(rule, target).await,
            _ => {}
        }
        let Some(token) = &target.token else {
            return Err(UsageError(format!("{} looks at tokens: name one, or an event of it", rule.name)).into());
        };
        let Some(snapshot) = self.snapshot(token).await? else { anyhow::bail!("nothing is known of {token}") };
        let filter =
            AlertFilter { rule: Some(rule.id.clone()), token: Some(token.clone()), limit: MAX_ALERTS, ..AlertFilter::default() };
        let alerts = self.store.alerts(filter).await?;
        match rule.on {
            On::Record(resource) => {
                let records = self.records(&snapshot, resource, target);
                let mut answers = Vec::new();
                for record in records.iter().take(MAX_SHOWN) {
                    let own: Vec<Alert> =
                        alerts.iter().filter(|alert| alert.key.as_ref() == Some(&record.key)).cloned().collect();
                    answers.push(self.of_record(rule, &snapshot, resource, Some(record), None, &own).await?);
                }
                if answers.is_empty() {
                    let of_key = |alert: &&Alert| {
                        target.key.as_deref().is_none_or(|key| alert.key.as_ref().is_some_and(|own| own.as_str() == key))
                    };
                    let own: Vec<Alert> = alerts.iter().filter(of_key).cloned().collect();
                    answers.push(self.of_record(rule, &snapshot, resource, None, None, &own).await?);
                }
                Ok(answers)
            }
            On::Change(resource, kind) => {
                let filter = ChangeFilter {
                    token: Some(token.clone()),
                    resource: Some(resource),
                    kind,
                    limit: 200,
                    ..ChangeFilter::default()
                };
                let changes = self.store.changes(filter).await?;
                let is_meant = |row: &&ChangeRow| {
                    let of_alert = target.alert.as_ref().is_none_or(|alert| alert.starts_at == Some(row.at));
                    let of_day =
                        target.day.is_none_or(|day| row.at.date_naive() == day.date_naive() || is_dated(&row.change, day));
                    let of_key = target.alert.is_some()
                        || target.key.as_deref().is_none_or(|key| row.key.as_ref().is_some_and(|own| own.as_str() == key));
                    of_alert && of_day && of_key
                };
                let most = if target.day.is_some() || target.key.is_some() { MAX_SHOWN } else { 1 };
                let mut answers = Vec::new();
                for row in changes.iter().filter(is_meant).take(most) {
                    let own: Vec<Alert> =
                        alerts.iter().filter(|alert| alert.starts_at == Some(row.at) && alert.key == row.key).cloned().collect();
                    answers.push(self.of_record(rule, &snapshot, resource, None, Some(row), &own).await?);
                }
                if answers.is_empty() {
                    let what = kind
                        .map_or_else(|| format!("change of {resource} records"), |kind| format!("change `{resource}.{kind}`"));
                    answers.push(unheard(rule, &snapshot.token, &what));
                }
                Ok(answers)
            }
            _ => {
                let totals = self.totals(&snapshot).await?;
                Ok(vec![self.of_token(rule, &snapshot, &totals, &alerts).await?])
            }
        }
    }

    async fn of_token(&self, rule: &Rule, snapshot: &TokenSnapshot, totals: &Totals, alerts: &[Alert]) -> anyhow::Result<Answer> {
        let about =
            About { token: Some(&snapshot.token), feeds: snapshot.feeds.clone(), totals: Some(totals), ..About::default() };
        self.answer(rule, &about, alerts).await
    }

    /// A rule on groups: about the group that is named, those that the token is in, or all.
    async fn of_groups(&self, rule: &Rule, target: &Target) -> anyhow::Result<Vec<Answer>> {
        let mut book = self.book(self.store.token_ids(false).await?).await?;
        let filter = AlertFilter { rule: Some(rule.id.clone()), limit: MAX_ALERTS, ..AlertFilter::default() };
        let alerts = self.store.alerts(filter).await?;
        let groups_of_token = match &target.token {
            None => None,
            Some(token) => self.snapshot(token).await?.map(|snapshot| snapshot.token),
        };
        let is_meant = |pool: &Pool| match (&target.group, &groups_of_token, pool) {
            (Some(wanted), ..) => pool.group().unwrap_or("*") == wanted,
            (None, Some(token), Pool::Group(name)) => token.groups.contains(name),
            (None, Some(token), Pool::Watched) => rule.lets_in(token),
            (None, None, _) => true,
        };
        let mut answers = Vec::new();
        for pool in rule.pools.iter().filter(|pool| is_meant(pool)) {
            let totals = match pool {
                Pool::Group(name) => book.group(&format!("@{name}"), Some(name), |_, _| false),
                Pool::Watched => book.group(rule.id.as_str(), None, |id, groups| rule.lets_in_named(id, groups)),
            };
            let Some(totals) = totals else {
                let name = pool.group().map_or_else(|| "all watched tokens".to_owned(), |name| format!("the group {name}"));
                answers.push(nothing(rule, &name, "nothing is known of any token in it"));
                continue;
            };
            let subject = format!("portfolio/{}", pool.group().unwrap_or("*"));
            let own: Vec<Alert> = alerts.iter().filter(|alert| alert.subject == subject).cloned().collect();
            answers.push(self.answer(rule, &About { totals: Some(&totals), ..About::default() }, &own).await?);
        }
        if answers.is_empty() {
            let names: Vec<&str> = rule.pools.iter().map(|pool| pool.group().unwrap_or("all watched tokens")).collect();
            answers.push(nothing(rule, "this", &format!("it looks at {} alone", names.join(", "))));
        }
        Ok(answers)
    }

    /// A rule on the source: about each trouble that lasts, and the latest that are over.
    async fn of_source(&self, rule: &Rule, target: &Target) -> anyhow::Result<Vec<Answer>> {
        let filter = AlertFilter { rule: Some(RuleId::from(SOURCE_TROUBLE)), limit: MAX_ALERTS, ..AlertFilter::default() };
        let mut troubles = self.store.alerts(filter).await?;
        troubles.retain(|alert| target.alert.as_ref().is_none_or(|wanted| wanted.id == alert.id));
        troubles.sort_by_key(|alert| (alert.state != AlertState::Firing, std::cmp::Reverse(alert.starts_at)));
        let mut answers = Vec::new();
        for alert in troubles.iter().take(MAX_TROUBLES) {
            let label = |name: &str| alert.labels.get(name).cloned();
            let facts = SourceFacts {
                kind: label("kind").unwrap_or_default(),
                endpoint: label("endpoint"),
                receiver: label("receiver"),
                message: alert.annotations.get("summary").cloned().unwrap_or_default(),
                count: u32::try_from(alert.members.len().max(1)).unwrap_or(u32::MAX),
                since: alert.starts_at.unwrap_or(alert.active_at),
            };
            let token = match &alert.token {
                Some(id) => self.snapshot(id).await?.map(|snapshot| snapshot.token),
                None => None,
            };
            let about = About { token: token.as_ref(), source: Some(&facts), ..About::default() };
            // It goes out whether a rule takes it or not; the first rule that holds words and routes it.
            let own = if alert.name == rule.name { std::slice::from_ref(alert) } else { &[] };
            let mut answer = self.answer(rule, &about, own).await?;
            if own.is_empty() && !answer.so.starts_with("not fired, because") {
                answer.so =
                    format!("it was told as {}: another rule stands before this one, or this one was not there then", alert.name);
            }
            answers.push(answer);
        }
        if answers.is_empty() {
            answers.push(nothing(rule, "the source", "there was never any trouble with source, receivers or this program"));
        }
        Ok(answers)
    }

    /// What the windows of a token hold now; its shares where rules ask for them.
    async fn totals(&self, snapshot: &TokenSnapshot) -> anyhow::Result<Totals> {
        let has_shares = self.rules.rules.iter().any(|rule| !rule.shares().is_empty());
        let ids = match has_shares && !snapshot.token.groups.is_empty() {
            true => self.store.token_ids(false).await?,
            false => vec![snapshot.token.id.clone()],
        };
        let book = self.book(ids).await?;
        let worked = book.work_out(&snapshot.token, &ledger(snapshot), Rest::Longest, self.now);
        Ok(worked.totals().clone())
    }

    /// The totals of watched tokens, from what the database holds.
    async fn book(&self, ids: Vec<TokenId>) -> anyhow::Result<Book> {
        let has_shares = self.rules.rules.iter().any(|rule| !rule.shares().is_empty());
        let mut book = Book::default();
        book.reset(self.rules.windows.clone(), self.rules.since.clone(), has_shares);
        let watched: Vec<TokenId> = ids.into_iter().filter(|id| self.watch.covers(id)).collect();
        let summed = vec![Resource::Unlock, Resource::Emission, Resource::Burn, Resource::Buyback];
        for ids in watched.chunks(BATCH) {
            for mut snapshot in self.store.tokens(ids.to_vec(), summed.clone()).await? {
                snapshot.token = self.watch.placed(snapshot.token);
                let worked = book.work_out(&snapshot.token, &ledger(&snapshot), Rest::Longest, self.now);
                book.keep(worked);
            }
        }
        book.complete(self.now);
        Ok(book)
    }

    /// The records that a target means: the one that is named; else the next ahead, or the latest that happened.
    fn records(&self, snapshot: &TokenSnapshot, resource: Resource, target: &Target) -> Vec<Tracked> {
        let mut records: Vec<&Tracked> = snapshot.records_of(resource).collect();
        if let Some(key) = target.key.as_deref().filter(|_| target.resource == Some(resource)) {
            records.retain(|record| record.key.as_str() == key);
            return records.into_iter().cloned().collect();
        }
        if let Some(day) = target.day {
            records.retain(|record| {
                let interval = record.record.interval();
                interval.is_some_and(|interval| {
                    interval.start.date_naive() <= day.date_naive() && day.date_naive() <= interval.end.date_naive()
                })
            });
            return records.into_iter().cloned().collect();
        }
        let start = |record: &&Tracked| record.record.interval().map(|interval| interval.start);
        let next = match resource {
            Resource::Unlock => records
                .iter()
                .filter(|record| record.record.interval().is_some_and(|interval| !interval.has_passed(self.now)))
                .min_by_key(|record| start(record))
                .or_else(|| records.iter().max_by_key(|record| start(record))),
            Resource::Allocation => return records.into_iter().cloned().collect(),
            _ => records.iter().max_by_key(|record| start(record)),
        };
        next.map(|record| vec![(*record).clone()]).unwrap_or_default()
    }

    async fn of_record(
        &self,
        rule: &Rule,
        snapshot: &TokenSnapshot,
        resource: Resource,
        record: Option<&Tracked>,
        change: Option<&ChangeRow>,
        alerts: &[Alert],
    ) -> anyhow::Result<Answer> {
        let own = snapshot
            .feeds
            .iter()
            .filter(|(endpoint, _)| endpoint.resource() == Some(resource) && *endpoint != Endpoint::Upcoming)
            .max_by_key(|(_, state)| state.read_at);
        // The record of a change is the one after it; before it, where it is gone.
        let of_change = change.and_then(|row| {
            let record = row.change.new.as_ref().or(row.change.old.as_ref())?;
            Some(Tracked { key: row.key.clone().unwrap_or_else(|| "series".into()), record: record.clone() })
        });
        let about = About {
            token: Some(&snapshot.token),
            feeds: own.cloned().into_iter().collect(),
            record: record.or(of_change.as_ref()),
            change,
            ..About::default()
        };
        self.answer(rule, &about, alerts).await
    }

    async fn answer(&self, rule: &Rule, about: &About<'_>, alerts: &[Alert]) -> anyhow::Result<Answer> {
        let About { token, feeds, record, change, totals, source } = about;
        let mut fates = Vec::new();
        for alert in alerts {
            fates.extend(self.files.fates_of(&self.store, &alert.id).await?);
        }
        fates.sort_by_key(|fate| fate.at);
        let read = self.files.read_for(&self.store, &fates).await?;
        Ok(explain(&Question {
            rule,
            token: *token,
            is_watched: token.is_none_or(|token| self.watch.covers(&token.id)),
            feeds,
            record: *record,
            change: change.map(|row| (&row.change, row.at)),
            totals: *totals,
            source: *source,
            alerts,
            fates: &fates,
            records: self.files.records(&read),
            firing: &self.firing,
            digests: &self.digests,
            routes: &self.routes,
            now: self.now,
        }))
    }

    /// Every rule about one target: a line each.
    async fn why_not(&self, target: &Target, context: &Context) -> anyhow::Result<Exit> {
        let mut rows: Vec<Line> = Vec::new();
        for rule in &self.rules.rules {
            let hears = match (rule.on, target.resource) {
                (On::Record(own) | On::Change(own, _), Some(wanted)) => own == wanted,
                (On::Record(_) | On::Change(..), None) => target.token.is_some(),
                (On::Token, None) => target.token.is_some(),
                (On::Portfolio, None) => true,
                _ => false,
            };
            if !hears {
                continue;
            }
            match self.answers(rule, target).await {
                Ok(answers) => rows.extend(answers.iter().map(|answer| Line::of(rule, answer))),
                Err(error) => rows.push(Line { rule: rule.name.clone(), about: None, fired: false, so: error.to_string() }),
            }
        }
        print_lines(&rows, context, "no rule listens to this")
    }

    /// One rule over all tokens: what it looks at now, and why it does not fire.
    async fn overview(&self, rule: &Rule, context: &Context) -> anyhow::Result<Exit> {
        let last = self.store.rule_matches().await?.into_iter().find(|(id, _)| *id == rule.id).map(|(_, at)| at);
        let mut lines = Vec::new();
        let mut looked = 0_usize;
        match rule.on {
            On::Record(resource) => {
                for id in self.store.token_ids(false).await?.into_iter().filter(|id| self.watch.covers(id)) {
                    let Some(snapshot) = self.snapshot(&id).await? else { continue };
                    let target = Target { token: Some(id), resource: Some(resource), ..Target::default() };
                    for record in self.records(&snapshot, resource, &target) {
                        looked += 1;
                        let own: Vec<Alert> = snapshot
                            .alerts
                            .iter()
                            .filter(|alert| alert.rule == rule.id && alert.key.as_ref() == Some(&record.key))
                            .cloned()
                            .collect();
                        let answer = self.of_record(rule, &snapshot, resource, Some(&record), None, &own).await?;
                        lines.push((record.record.interval().map(|interval| interval.start), Line::of(rule, &answer)));
                    }
                }
            }
            On::Change(resource, kind) => {
                let limit = u32::try_from(MAX_SHOWN).unwrap_or(u32::MAX);
                let filter = ChangeFilter { resource: Some(resource), kind, limit, ..ChangeFilter::default() };
                for row in self.store.changes(filter).await? {
                    let Some(snapshot) = self.snapshot(&row.token).await? else { continue };
                    looked += 1;
                    let filter = AlertFilter {
                        rule: Some(rule.id.clone()),
                        token: Some(row.token.clone()),
                        limit: MAX_ALERTS,
                        ..AlertFilter::default()
                    };
                    let mut own = self.store.alerts(filter).await?;
                    own.retain(|alert| alert.starts_at == Some(row.at) && alert.key == row.key);
                    let answer = self.of_record(rule, &snapshot, resource, None, Some(&row), &own).await?;
                    lines.push((Some(row.at), Line::of(rule, &answer)));
                }
            }
            On::Portfolio | On::Source => {
                let answers = self.answers(rule, &Target::default()).await?;
                return show(&answers, context);
            }
            On::Token => {
                let book = self.book(self.store.token_ids(false).await?).await?;
                for id in self.store.token_ids(false).await?.into_iter().filter(|id| self.watch.covers(id)) {
                    let Some(snapshot) = self.snapshot(&id).await? else { continue };
                    if !rule.lets_in(&snapshot.token) {
                        continue;
                    }
                    looked += 1;
                    let own: Vec<Alert> =
                        snapshot.alerts.iter().filter(|alert| alert.rule == rule.id && alert.key.is_none()).cloned().collect();
                    let worked = book.work_out(&snapshot.token, &ledger(&snapshot), Rest::Longest, self.now);
                    let answer = self.of_token(rule, &snapshot, worked.totals(), &own).await?;
                    lines.push((None, Line::of(rule, &answer)));
                }
            }
        }
        // What fires first, then what is nearest in time.
        lines.sort_by_key(|(at, line)| (!line.fired, at.map(|at| (at - self.now).abs())));
        let fired = lines.iter().filter(|(_, line)| line.fired).count();
        let last =
            last.map_or_else(|| "it never held for anything".to_owned(), |at| format!("it last held {}", format::instant(at)));
        if context.format == Format::Table {
            print::out(&format!(
                "{}: {}; {fired} told; {last}\n\n",
                harmless(&rule.name),
                match rule.on {
                    On::Change(..) => format!("the latest {} of this kind", format::count(looked, "change")),
                    On::Token => format!("{} looked at", format::count(looked, "token")),
                    _ => format!("{} looked at, the nearest of each token", format::count(looked, "record")),
                }
            ))?;
        }
        let lines: Vec<Line> = lines.into_iter().take(MAX_SHOWN).map(|(_, line)| line).collect();
        print_lines(&lines, context, "nothing is known that this rule could look at")
    }

    async fn idle(&self, span: Span, context: &Context) -> anyhow::Result<Exit> {
        let matches = self.store.rule_matches().await?;
        let since = self.now.checked_sub_signed(span.delta()).unwrap_or_default();
        let idle: Vec<Idle> = self
            .rules
            .rules
            .iter()
            .filter_map(|rule| {
                let last = matches.iter().find(|(id, _)| *id == rule.id).map(|(_, at)| *at);
                last.is_none_or(|at| at < since).then(|| Idle {
                    rule: rule.name.clone(),
                    owner: rule.owner.clone(),
                    last_match: last,
                })
            })
            .collect();
        let rows = idle
            .iter()
            .map(|rule| {
                let days = rule.last_match.map(|at| crate::supply::days(self.now - at));
                vec![
                    Cell::text(&rule.rule),
                    Cell::time(rule.last_match),
                    Cell::number(days, |days| format!("{days:.0}")),
                    Cell::maybe(rule.owner.as_deref()),
                ]
            })
            .collect();
        let columns = [
            Column("Rule", "rule", false),
            Column("Last match", "lastMatch", false),
            Column("Days ago", "daysAgo", true),
            Column("Owner", "owner", false),
        ];
        let nothing = format!("every rule held for something within {span}");
        Listing { columns: &columns, rows, json: &idle, nothing: &nothing }.print(context)?;
        Ok(Exit::Done)
    }
}

/// The dated entries of a token.
fn ledger(snapshot: &TokenSnapshot) -> Ledger {
    let TokenSnapshot { token, feeds, records, .. } = snapshot;
    Ledger::of(records, |resource| aggregate::is_known(resource, feeds, &token.item))
}

/// Whether a change is about an event of this day, before or after.
fn is_dated(change: &Change, day: Timestamp) -> bool {
    [&change.old, &change.new]
        .into_iter()
        .flatten()
        .filter_map(crate::supply::Record::interval)
        .any(|interval| interval.start.date_naive() == day.date_naive())
}

/// A rule that matched nothing for long.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Idle {
    rule: String,
    owner: Option<String>,
    last_match: Option<Timestamp>,
}

/// An answer in one line.
#[derive(Serialize)]
struct Line {
    rule: String,
    about: Option<String>,
    fired: bool,
    so: String,
}

impl Line {
    fn of(rule: &Rule, answer: &Answer) -> Self {
        let about = answer.about.split_once(" for ").map_or(answer.about.as_str(), |(_, about)| about).to_owned();
        Self { rule: rule.name.clone(), about: Some(about), fired: answer.fired, so: answer.so.clone() }
    }
}

fn print_lines(lines: &[Line], context: &Context, nothing: &str) -> anyhow::Result<Exit> {
    if context.format == Format::Json {
        print::out(&print::json(&lines)?)?;
        return Ok(Exit::Done);
    }
    if lines.is_empty() {
        anstream::eprintln!("{nothing}");
    }
    let mut text = String::new();
    for line in lines {
        let sign = if line.fired { '✓' } else { '✗' };
        let about = line.about.as_deref().map(|about| format!(" for {about}")).unwrap_or_default();
        let _ = writeln!(text, "{sign} {}{}", harmless(&line.rule), harmless(&about));
        text.push_str(&wrapped("  ", "  ", &format!("so: {}", line.so)));
    }
    print::out(&text)?;
    Ok(Exit::Done)
}

fn show(answers: &[Answer], context: &Context) -> anyhow::Result<Exit> {
    if context.format == Format::Json {
        print::out(&print::json(&json!(answers))?)?;
        return Ok(Exit::Done);
    }
    for (index, answer) in answers.iter().enumerate() {
        let mut text = if index > 0 { "\n".to_owned() } else { String::new() };
        text.push_str(&wrapped("", "  ", &answer.about));
        for step in &answer.steps {
            branch(&mut text, step, 1);
        }
        text.push_str(&wrapped("so: ", "    ", &answer.so));
        print::out(&text)?;
    }
    Ok(Exit::Done)
}

fn branch(text: &mut String, step: &Step, depth: usize) {
    let indent = "  ".repeat(depth);
    text.push_str(&wrapped(&format!("{indent}{} ", step.mark.sign()), &format!("{indent}  "), &step.text));
    for part in &step.parts {
        branch(text, part, depth + 1);
    }
}

/// A text in lines that fit the terminal; as long as it likes in a pipe.
fn wrapped(first: &str, next: &str, text: &str) -> String {
    let most = width().map_or(usize::MAX, |width| usize::from(width.max(40)));
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in harmless(text).split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > most {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = next.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_in_a_pipe_is_one_line_and_carries_no_control_code() {
        let step = Step {
            mark: crate::explain::Mark::No,
            text: "a\u{1b}[31m b\u{202e}".into(),
            parts: vec![Step { mark: crate::explain::Mark::Yes, text: "c".into(), parts: Vec::new() }],
        };
        let mut text = String::new();
        branch(&mut text, &step, 1);
        assert_eq!(text, "  ✗ a\\u{1b}[31m b\\u{202e}\n    ✓ c\n");
    }
}
