//! `explain RULE [TOKEN|EVENT]`: why an alert was told, or was not.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::invocation::{routes_of, watch_of};
use super::notification_status::StatusReader;
use super::print::{self, Cell, Listing};
use super::upcoming::find;
use super::{Exit, Invocation, OutputFormat, UsageError, parse_span, width};
use engine::digest_schedule::DigestPlan;
use engine::explain::{
    self, CaseOrNothing, ExplainCase, ExplainLine, ExplainQuery, ExplainStep, ExplainTarget, ExplainWorld, Explanation,
    MAX_CASES, Overview,
};
use engine::pipeline::DispatchPolicy;
use engine::route::RouteTree;
use model::{
    Alert, AlertFilter, AlertState, ChangeFilter, ChangeKind, ChangeRow, FiringAlert, Resource, RuleId, SOURCE_TROUBLE,
    Timestamp, TokenId, TokenSnapshot, Watch, closest, config::Span, text::harmless, wire,
};
use rules::aggregate::{self, AggregateCache, FlowEntries, Recheck};
use rules::{On, Rule, RuleSet};
use store::{Access, Store};

/// Alerts of one rule and token that are looked at.
const MAX_ALERTS: u32 = 5_000;
/// Changes of one rule and token that are looked at.
const MAX_CHANGES: u32 = 200;
/// Tokens that are read at once to add them up.
const BATCH: usize = 256;

/// Show why an alert was told, or was not, clause by clause.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
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

/// Reads what explanations need.
struct ExplainReader {
    store: Store,
    watch: Watch,
    routes: RouteTree,
    rules: RuleSet,
    groups: Vec<String>,
    digests: Vec<DigestPlan>,
    statuses: StatusReader,
    firing: Vec<FiringAlert>,
    now: Timestamp,
}

pub(super) async fn run(args: &ExplainArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv && args.idle.is_none() {
        return Err(UsageError("an explanation is a tree: it is printed as table or json".to_owned()).into());
    }
    let (config, loaded) = invocation.load()?;
    let rules = invocation.rules(rules::read_files(&config.rules.paths, &loaded.base_dir), &config)?;
    let routes = routes_of(&config)?;
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    let store = invocation.open(&config, Access::Read).await?;
    let now = invocation.clock.now();
    let policy = DispatchPolicy::of(&config.receivers, &config.delivery).map_err(anyhow::Error::msg)?;
    let statuses = StatusReader::read(&store, &routes, policy.max_per_hour, now).await?;
    let firing = store.open_alerts().await?.into_iter().filter(|alert| alert.state == AlertState::Firing);
    let firing = firing.map(|alert| FiringAlert { id: alert.id, labels: alert.labels }).collect();
    let groups = config.watch.groups.keys().cloned().collect();
    let reader = ExplainReader { store, watch, routes, rules, groups, digests: policy.digests, statuses, firing, now };
    match (args.idle, &args.why_not, &args.about) {
        (Some(span), ..) => reader.idle(span, invocation).await,
        (None, Some(about), _) => {
            let target = reader.target(about).await?;
            print_lines(&reader.why_not(&target).await?, invocation, "no rule listens to this")
        }
        (None, None, Some(about)) => {
            let rule = reader.rule(args.rule.as_deref().unwrap_or_default())?;
            let target = reader.target(about).await?;
            show(&reader.explanations(rule, &target).await?, invocation)
        }
        (None, None, None) => {
            let rule = reader.rule(args.rule.as_deref().unwrap_or_default())?;
            reader.overview(rule, invocation).await
        }
    }
}

impl ExplainReader {
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
    async fn target(&self, text: &str) -> anyhow::Result<ExplainTarget> {
        if text.starts_with("al_") {
            let filter = AlertFilter { limit: u32::MAX, ..AlertFilter::default() };
            let found = self.store.alerts(filter).await?.into_iter().find(|alert| alert.id.as_str() == text);
            let Some(alert) = found else { return Err(UsageError(format!("no alert has the id {text}")).into()) };
            return Ok(ExplainTarget {
                token: alert.token.clone(),
                resource: alert.resource,
                key: alert.key.as_ref().map(ToString::to_string),
                day: None,
                group: alert.subject.strip_prefix("portfolio/").map(str::to_owned),
                alert: Some(alert),
            });
        }
        if let Some(name) = self.groups.iter().find(|name| *name == text || text.strip_prefix('@') == Some(name)) {
            return Ok(ExplainTarget { group: Some(name.clone()), ..ExplainTarget::default() });
        }
        let parts: Vec<&str> = text.splitn(3, '/').collect();
        if let [resource, token, key] = parts.as_slice()
            && let Some(resource) = Resource::parse(resource)
        {
            let (token, key) = (Some(find(token, false, &self.store).await?), Some((*key).to_owned()));
            return Ok(ExplainTarget { token, resource: Some(resource), key, ..ExplainTarget::default() });
        }
        let (name, day) = match text.split_once('@') {
            None => (text, None),
            Some((name, day)) => match wire::parse_timestamp(day) {
                Some(at) => (name, Some(at)),
                None => return Err(UsageError(format!("{day:?} is no date: write it like {name}@2026-03-16")).into()),
            },
        };
        Ok(ExplainTarget { token: Some(find(name, false, &self.store).await?), day, ..ExplainTarget::default() })
    }

    async fn snapshot(&self, token: &TokenId) -> anyhow::Result<Option<TokenSnapshot>> {
        let mut snapshot = self.store.tokens(vec![token.clone()], Resource::ALL.to_vec()).await?.into_iter().next();
        if let Some(snapshot) = &mut snapshot {
            snapshot.token = self.watch.placed(snapshot.token.clone());
        }
        Ok(snapshot)
    }

    /// All alerts that a rule ever raised, of one token or of all.
    async fn alerts(&self, rule: &RuleId, token: Option<&TokenId>) -> anyhow::Result<Vec<Alert>> {
        let filter = AlertFilter { rule: Some(rule.clone()), token: token.cloned(), limit: MAX_ALERTS, ..AlertFilter::default() };
        Ok(self.store.alerts(filter).await?)
    }

    /// Reads what became of the messages of a case, and asks the engine.
    async fn explain(&self, rule: &Rule, case: &ExplainCase<'_>) -> anyhow::Result<Explanation> {
        let mut statuses = Vec::new();
        for alert in &case.alerts {
            statuses.extend(self.statuses.of_alert(&self.store, &alert.id).await?);
        }
        statuses.sort_by_key(|status| status.at);
        let read = self.statuses.records_of(&self.store, &statuses).await?;
        let Self { watch, routes, digests, firing, now, .. } = self;
        let world = ExplainWorld { watch, routes, digests, firing, now: *now };
        let records = self.statuses.records(&read);
        Ok(explain::explain(&ExplainQuery { rule, case, statuses: &statuses, records, world: &world }))
    }

    async fn explain_all(&self, rule: &Rule, cases: Vec<ExplainCase<'_>>) -> anyhow::Result<Vec<Explanation>> {
        let mut explanations = Vec::new();
        for case in &cases {
            explanations.push(self.explain(rule, case).await?);
        }
        Ok(explanations)
    }

    /// One rule about a target: its event, or the token's next ones.
    async fn explanations(&self, rule: &Rule, target: &ExplainTarget) -> anyhow::Result<Vec<Explanation>> {
        match rule.on {
            On::Portfolio => return self.of_groups(rule, target).await,
            On::Source => return self.of_incidents(rule, target).await,
            _ => {}
        }
        let Some(token) = &target.token else {
            return Err(UsageError(format!("{} looks at tokens: name one, or an event of it", rule.name)).into());
        };
        let Some(snapshot) = self.snapshot(token).await? else { anyhow::bail!("nothing is known of {token}") };
        let alerts = self.alerts(&rule.id, Some(token)).await?;
        let own: Vec<&Alert> = alerts.iter().collect();
        let cases = match rule.on {
            On::Record(resource) => {
                let mut cases = explain::record_cases(&snapshot, resource, target, &own, self.now);
                cases.truncate(MAX_CASES);
                if cases.is_empty() {
                    if let Some(absent) = explain::absent_record(rule, &snapshot, resource, target, &own) {
                        return Ok(vec![absent]);
                    }
                    cases.push(explain::missing_record_case(&snapshot, resource, target, &own));
                }
                cases
            }
            On::Change(resource, kind) => {
                let changes = self.changes(Some(token), resource, kind, MAX_CHANGES).await?;
                let cases = explain::change_cases(&snapshot, &changes, target, &alerts);
                if cases.is_empty() {
                    return Ok(vec![explain::unheard(rule, &snapshot.token, resource, kind)]);
                }
                return self.explain_all(rule, cases).await;
            }
            _ => {
                let has_shares = self.has_shares() && !snapshot.token.groups.is_empty();
                let ids = if has_shares { self.store.token_ids(false).await? } else { vec![token.clone()] };
                let cache = self.cache(ids).await?;
                let computed = cache.compute(&snapshot.token, &entries(&snapshot), Recheck::Longest, self.now);
                vec![explain::token_case(&snapshot, computed.totals(), own)]
            }
        };
        self.explain_all(rule, cases).await
    }

    /// A rule on groups: about the group that is named, those that the token is in, or all.
    async fn of_groups(&self, rule: &Rule, target: &ExplainTarget) -> anyhow::Result<Vec<Explanation>> {
        let mut cache = self.cache(self.store.token_ids(false).await?).await?;
        let alerts = self.alerts(&rule.id, None).await?;
        let token = match &target.token {
            None => None,
            Some(token) => self.snapshot(token).await?.map(|snapshot| snapshot.token),
        };
        let mut explanations = Vec::new();
        for case in explain::group_cases(rule, target, token.as_ref(), &mut cache, &alerts) {
            explanations.push(match case {
                CaseOrNothing::Case(case) => self.explain(rule, &case).await?,
                CaseOrNothing::Nothing(explanation) => explanation,
            });
        }
        Ok(explanations)
    }

    /// A rule on the source: about each incident that lasts, and the latest that are over.
    async fn of_incidents(&self, rule: &Rule, target: &ExplainTarget) -> anyhow::Result<Vec<Explanation>> {
        let alerts = self.alerts(&RuleId::from(SOURCE_TROUBLE), None).await?;
        let mut explanations = Vec::new();
        for alert in explain::incidents(alerts, target) {
            let token = match &alert.token {
                Some(id) => self.snapshot(id).await?.map(|snapshot| snapshot.token),
                None => None,
            };
            let explanation = self.explain(rule, &explain::incident_case(rule, &alert, token.as_ref())).await?;
            explanations.push(explain::of_incident(explanation, rule, &alert));
        }
        if explanations.is_empty() {
            let because = "there was never any trouble with source, receivers or this program";
            explanations.push(explain::nothing(rule, "the source", because));
        }
        Ok(explanations)
    }

    async fn changes(
        &self,
        token: Option<&TokenId>,
        resource: Resource,
        kind: Option<ChangeKind>,
        limit: u32,
    ) -> anyhow::Result<Vec<ChangeRow>> {
        let filter = ChangeFilter { token: token.cloned(), resource: Some(resource), kind, limit, ..ChangeFilter::default() };
        Ok(self.store.changes(filter).await?)
    }

    /// Whether a rule asks for a token's share of its group.
    fn has_shares(&self) -> bool {
        self.rules.rules.iter().any(|rule| !rule.shares().is_empty())
    }

    /// The totals of watched tokens, from what the database holds.
    async fn cache(&self, ids: Vec<TokenId>) -> anyhow::Result<AggregateCache> {
        let mut cache = AggregateCache::default();
        cache.reset(self.rules.windows.clone(), self.rules.since.clone(), self.has_shares());
        let watched: Vec<TokenId> = ids.into_iter().filter(|id| self.watch.covers(id)).collect();
        let summed = vec![Resource::Unlock, Resource::Emission, Resource::Burn, Resource::Buyback];
        for ids in watched.chunks(BATCH) {
            for mut snapshot in self.store.tokens(ids.to_vec(), summed.clone()).await? {
                snapshot.token = self.watch.placed(snapshot.token);
                let computed = cache.compute(&snapshot.token, &entries(&snapshot), Recheck::Longest, self.now);
                cache.keep(computed);
            }
        }
        cache.complete(self.now);
        Ok(cache)
    }

    /// Every rule about one target: a line each.
    async fn why_not(&self, target: &ExplainTarget) -> anyhow::Result<Vec<ExplainLine>> {
        let mut lines = Vec::new();
        for rule in self.rules.rules.iter().filter(|rule| target.is_heard_by(rule)) {
            match self.explanations(rule, target).await {
                Ok(explanations) => lines.extend(explanations.iter().map(|explanation| ExplainLine::of(rule, explanation))),
                Err(error) => lines.push(ExplainLine::failed(rule, error.to_string())),
            }
        }
        Ok(lines)
    }

    /// One rule over all tokens: what it looks at now, and why it does not fire.
    async fn overview(&self, rule: &Rule, invocation: &Invocation) -> anyhow::Result<Exit> {
        let overview = match rule.on {
            On::Portfolio | On::Source => {
                return show(&self.explanations(rule, &ExplainTarget::default()).await?, invocation);
            }
            On::Change(resource, kind) => self.changes_overview(rule, resource, kind).await?,
            On::Record(_) | On::Token => self.tokens_overview(rule).await?,
        };
        if invocation.format == OutputFormat::Table {
            let last = self.store.rule_matches().await?.into_iter().find(|(id, _)| *id == rule.id).map(|(_, at)| at);
            print::out(&format!("{}\n\n", harmless(&overview.head(rule, last))))?;
        }
        print_lines(&overview.lines(self.now, MAX_CASES), invocation, "nothing is known that this rule could look at")
    }

    async fn tokens_overview(&self, rule: &Rule) -> anyhow::Result<Overview> {
        let ids = self.store.token_ids(false).await?;
        let cache = match rule.on {
            On::Token => self.cache(ids.clone()).await?,
            _ => AggregateCache::default(),
        };
        let mut overview = Overview::default();
        for id in ids.into_iter().filter(|id| self.watch.covers(id)) {
            let Some(snapshot) = self.snapshot(&id).await? else { continue };
            let own: Vec<&Alert> = snapshot.alerts.iter().filter(|alert| alert.rule == rule.id).collect();
            let cases = match rule.on {
                On::Record(resource) => explain::record_cases(&snapshot, resource, &ExplainTarget::default(), &own, self.now),
                _ if rule.lets_in(&snapshot.token) => {
                    let computed = cache.compute(&snapshot.token, &entries(&snapshot), Recheck::Longest, self.now);
                    let own = own.into_iter().filter(|alert| alert.key.is_none()).collect();
                    vec![explain::token_case(&snapshot, computed.totals(), own)]
                }
                _ => continue,
            };
            for case in &cases {
                overview.add(rule, case, &self.explain(rule, case).await?);
            }
        }
        Ok(overview)
    }

    async fn changes_overview(&self, rule: &Rule, resource: Resource, kind: Option<ChangeKind>) -> anyhow::Result<Overview> {
        let mut overview = Overview::default();
        let limit = u32::try_from(MAX_CASES).unwrap_or(u32::MAX);
        for row in self.changes(None, resource, kind, limit).await? {
            let Some(snapshot) = self.snapshot(&row.token).await? else { continue };
            let alerts = self.alerts(&rule.id, Some(&row.token)).await?;
            let case = explain::change_case(&snapshot, &row, &alerts);
            overview.add(rule, &case, &self.explain(rule, &case).await?);
        }
        Ok(overview)
    }

    async fn idle(&self, span: Span, invocation: &Invocation) -> anyhow::Result<Exit> {
        let matches = self.store.rule_matches().await?;
        let since = self.now.checked_sub_signed(span.delta()).unwrap_or_default();
        let idle = self.rules.rules.iter().filter_map(|rule| {
            let last_match = matches.iter().find(|(id, _)| *id == rule.id).map(|(_, at)| *at);
            let is_idle = last_match.is_none_or(|at| at < since);
            is_idle.then(|| IdleRule { rule: rule.name.clone(), owner: rule.owner.clone(), last_match })
        });
        let idle: Vec<IdleRule> = idle.collect();
        let days_ago = |rule: &IdleRule| rule.last_match.map(|at| model::days(self.now - at));
        let listing = Listing::of(&idle)
            .words("Rule", "rule", |rule| Cell::text(&rule.rule))
            .words("Last match", "lastMatch", |rule| Cell::time(rule.last_match))
            .numbers("Days ago", "daysAgo", |rule| Cell::number(days_ago(rule), |days| format!("{days:.0}")))
            .words("Owner", "owner", |rule| Cell::maybe(rule.owner.as_deref()));
        let nothing = format!("every rule held for something within {span}");
        listing.print(&nothing, invocation)?;
        Ok(Exit::Done)
    }
}

/// A rule that matched nothing for long.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdleRule {
    rule: String,
    owner: Option<String>,
    last_match: Option<Timestamp>,
}

/// The dated entries of a token.
fn entries(snapshot: &TokenSnapshot) -> FlowEntries {
    let TokenSnapshot { token, feeds, records, .. } = snapshot;
    FlowEntries::of(records, |resource| aggregate::is_known(resource, feeds, &token.item))
}

fn print_lines(lines: &[ExplainLine], invocation: &Invocation, nothing: &str) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Json {
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

fn show(explanations: &[Explanation], invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Json {
        print::out(&print::json(&json!(explanations))?)?;
        return Ok(Exit::Done);
    }
    for (index, explanation) in explanations.iter().enumerate() {
        let mut text = if index > 0 { "\n".to_owned() } else { String::new() };
        text.push_str(&wrapped("", "  ", &explanation.about));
        for step in &explanation.steps {
            branch(&mut text, step, 1);
        }
        text.push_str(&wrapped("so: ", "    ", &explanation.so));
        print::out(&text)?;
    }
    Ok(Exit::Done)
}

fn branch(text: &mut String, step: &ExplainStep, depth: usize) {
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
mod tests;
