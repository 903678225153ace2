//! `explain RULE [TOKEN|EVENT]`: explains why a rule notified or did not.

use std::fmt::Write as _;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::alerts::find_alert;
use super::invocation::{routes_of, watch_of};
use super::print::{self, Cell, Listing};
use super::upcoming::find;
use super::{Exit, Invocation, OutputFormat, UsageError, parse_span, width};
use daemon::cycle::ActiveRules;
use daemon::explain::{ExplainError, ExplainReader, target_of};
use engine::explain::{self, ExplainLine, ExplainStep, ExplainTarget, Explanation, MAX_CASES, Overview};
use engine::pipeline::DispatchPolicy;
use model::{Alert, ChangeKind, Resource, Timestamp, closest, config::Span, text::harmless, wire};
use rules::aggregate::{AggregateCache, FlowEntries, Recheck};
use rules::{On, Rule};
use store::Access;

/// Explain clause by clause why a rule notified or did not
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// `alert` name or `id` of a rule, or the id of an alert
    #[arg(value_name = "RULE|ALERT", required_unless_present_any = ["why_not", "idle"])]
    rule: Option<String>,
    /// Token (slug or ticker), event (`arbitrum@2026-03-16`, `unlock/arbitrum/KEY`), group, or alert id
    #[arg(value_name = "TOKEN|EVENT")]
    about: Option<String>,
    /// Explain all rules for one token or event
    #[arg(long, value_name = "TOKEN|EVENT", conflicts_with_all = ["rule", "idle"])]
    why_not: Option<String>,
    /// List rules without a match for this time, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = parse_span, conflicts_with = "rule")]
    idle: Option<Span>,
}

/// The reader of explanations, with the known groups.
struct ExplainCommand {
    reader: ExplainReader,
    groups: Vec<String>,
}

pub(super) async fn run(args: &ExplainArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv && args.idle.is_none() {
        return Err(UsageError("explain does not support --format csv without --idle: use table or json".to_owned()).into());
    }
    let (config, loaded) = invocation.load()?;
    let rules = invocation.rules(rules::read_files(&config.rules.paths, &loaded.base_dir), &config)?;
    let routes = routes_of(&config)?;
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    let store = invocation.open(&config, Access::Read).await?;
    let now = invocation.clock.now();
    let policy =
        DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let active = Arc::new(ActiveRules { rules, routes, stale_price: config.source.stale_price.delta() });
    let reader = ExplainReader::read(store, watch, active, &policy, now).await?;
    let command = ExplainCommand { reader, groups: config.watch.groups.keys().cloned().collect() };
    match (args.idle, &args.why_not, &args.about) {
        (Some(span), ..) => command.list_idle_rules(span, invocation).await,
        (None, Some(about), _) => {
            let target = command.target(about).await?;
            print_lines(&command.explain_rules(&target).await?, invocation, "no rule subscribes to this")
        }
        (None, None, Some(about)) => {
            let rule = command.find_rule(args.rule.as_deref().unwrap_or_default())?;
            let target = command.target(about).await?;
            show(&command.explanations(rule, &target).await?, invocation)
        }
        (None, None, None) => {
            let name = args.rule.as_deref().unwrap_or_default();
            if name.starts_with("al_") {
                let alert = find_alert(name, &command.reader.store).await?;
                let rule = command.find_rule(alert.rule.as_str())?;
                return show(&command.explanations(rule, &target_of(&alert)).await?, invocation);
            }
            command.overview(command.find_rule(name)?, invocation).await
        }
    }
}

impl ExplainCommand {
    /// Returns the enabled rule with this name or id.
    ///
    /// # Errors
    ///
    /// Fails with a usage error that suggests a similar name, or lists all names.
    fn find_rule(&self, name: &str) -> anyhow::Result<&Rule> {
        let is_called = |rule: &&Rule| rule.name == name || rule.id.as_str() == name;
        if let Some(rule) = self.reader.active.rules.rules.iter().find(is_called) {
            return Ok(rule);
        }
        let names = || self.reader.active.rules.rules.iter().map(|rule| rule.name.as_str());
        let within = || names().find(|known| known.to_lowercase().contains(&name.to_lowercase()));
        let help = closest(name, names()).or_else(within).map_or_else(
            || format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean {near:?}?"),
        );
        Err(UsageError(format!("no enabled rule has the name {name:?}: {help}")).into())
    }

    /// Parses the name of a token, event, group, or alert.
    async fn target(&self, text: &str) -> anyhow::Result<ExplainTarget> {
        if text.starts_with("al_") {
            return Ok(target_of(&find_alert(text, &self.reader.store).await?));
        }
        if let Some(name) = self.groups.iter().find(|name| *name == text || text.strip_prefix('@') == Some(name)) {
            return Ok(ExplainTarget { group: Some(name.clone()), ..ExplainTarget::default() });
        }
        let parts: Vec<&str> = text.splitn(3, '/').collect();
        if let [resource, token, key] = parts.as_slice()
            && let Some(resource) = Resource::parse(resource)
        {
            let (token, key) = (Some(find(token, &self.reader.store).await?), Some((*key).to_owned()));
            return Ok(ExplainTarget { token, resource: Some(resource), key, ..ExplainTarget::default() });
        }
        let (name, day) = match text.split_once('@') {
            None => (text, None),
            Some((name, day)) => match wire::parse_timestamp(day) {
                Some(at) => (name, Some(at)),
                None => return Err(UsageError(format!("{day:?} is not a valid date; example: {name}@2026-03-16")).into()),
            },
        };
        Ok(ExplainTarget { token: Some(find(name, &self.reader.store).await?), day, ..ExplainTarget::default() })
    }

    /// Explains a rule for an event, or for the next events of a token.
    async fn explanations(&self, rule: &Rule, target: &ExplainTarget) -> anyhow::Result<Vec<Explanation>> {
        self.reader.explanations(rule, target).await.map_err(|error| match error {
            ExplainError::NoToken(_) => UsageError(error.to_string()).into(),
            ExplainError::Unknown(_) | ExplainError::Store(_) => error.into(),
        })
    }

    /// Explains each rule for a target on one line.
    async fn explain_rules(&self, target: &ExplainTarget) -> anyhow::Result<Vec<ExplainLine>> {
        let mut lines = Vec::new();
        for rule in self.reader.active.rules.rules.iter().filter(|rule| target.is_subscribed_by(rule)) {
            match self.explanations(rule, target).await {
                Ok(explanations) => lines.extend(explanations.iter().map(|explanation| ExplainLine::of(rule, explanation))),
                Err(error) => lines.push(ExplainLine::failed(rule, error.to_string())),
            }
        }
        Ok(lines)
    }

    /// Explains a rule for all tokens.
    async fn overview(&self, rule: &Rule, invocation: &Invocation) -> anyhow::Result<Exit> {
        if invocation.format == OutputFormat::Table {
            print::out(&wrapped("", "", &rule.sentence()))?;
        }
        let overview = match rule.on {
            On::Portfolio | On::Source => {
                return show(&self.explanations(rule, &ExplainTarget::default()).await?, invocation);
            }
            On::Change(resource, kind) => self.changes_overview(rule, resource, kind).await?,
            On::Record(_) | On::Token => self.tokens_overview(rule).await?,
        };
        if invocation.format == OutputFormat::Table {
            let last = self.reader.store.rule_matches().await?.into_iter().find(|(id, _)| *id == rule.id).map(|(_, at)| at);
            print::out(&format!("{}\n\n", harmless(&overview.head(rule, last))))?;
        }
        print_lines(&overview.lines(self.reader.now, MAX_CASES), invocation, "no data that this rule could match")
    }

    async fn tokens_overview(&self, rule: &Rule) -> anyhow::Result<Overview> {
        let ids = self.reader.store.token_ids(false).await?;
        let cache = match rule.on {
            On::Token => self.reader.cache(ids.clone()).await?,
            _ => AggregateCache::default(),
        };
        let mut overview = Overview::default();
        for id in ids.into_iter().filter(|id| self.reader.watch.covers(id)) {
            let Some(snapshot) = self.reader.snapshot(&id).await? else { continue };
            let own: Vec<&Alert> = snapshot.alerts.iter().filter(|alert| alert.rule == rule.id).collect();
            let cases = match rule.on {
                On::Record(resource) => {
                    explain::record_cases(rule, &snapshot, resource, &ExplainTarget::default(), &own, self.reader.now)
                }
                _ if rule.selects_token(&snapshot.token) => {
                    let computed =
                        cache.compute(&snapshot.token, &FlowEntries::of_snapshot(&snapshot), Recheck::Longest, self.reader.now);
                    let own = own.into_iter().filter(|alert| alert.key.is_none()).collect();
                    vec![explain::token_case(&snapshot, computed.totals(), own)]
                }
                _ => continue,
            };
            for case in &cases {
                overview.add(rule, case, &self.reader.explain(rule, case).await?);
            }
        }
        Ok(overview)
    }

    async fn changes_overview(&self, rule: &Rule, resource: Resource, kind: Option<ChangeKind>) -> anyhow::Result<Overview> {
        let mut overview = Overview::default();
        let limit = u32::try_from(MAX_CASES).unwrap_or(u32::MAX);
        let rows = self.reader.changes(None, resource, kind, limit).await?;
        for (next, row) in (1..).zip(&rows) {
            let Some(snapshot) = self.reader.snapshot(&row.token).await? else { continue };
            let alerts = self.reader.alerts(&rule.id, Some(&row.token)).await?;
            let case = explain::change_case(&snapshot, row, rows.get(next..).unwrap_or_default(), &alerts);
            overview.add(rule, &case, &self.reader.explain(rule, &case).await?);
        }
        Ok(overview)
    }

    async fn list_idle_rules(&self, span: Span, invocation: &Invocation) -> anyhow::Result<Exit> {
        let matches = self.reader.store.rule_matches().await?;
        let since = self.reader.now.checked_sub_signed(span.delta()).unwrap_or_default();
        let idle = self.reader.active.rules.rules.iter().filter_map(|rule| {
            let last_match = matches.iter().find(|(id, _)| *id == rule.id).map(|(_, at)| *at);
            let is_idle = last_match.is_none_or(|at| at < since);
            is_idle.then(|| IdleRule { rule: rule.name.clone(), owner: rule.owner.clone(), last_match })
        });
        let idle: Vec<IdleRule> = idle.collect();
        let days_ago = |rule: &IdleRule| rule.last_match.map(|at| model::days(self.reader.now - at));
        let listing = Listing::of(&idle)
            .left_column("Rule", "rule", |rule| Cell::text(&rule.rule))
            .left_column("Last match", "lastMatch", |rule| Cell::time(rule.last_match))
            .right_column("Days ago", "daysAgo", |rule| Cell::number(days_ago(rule), |days| format!("{days:.0}")))
            .left_column("Owner", "owner", |rule| Cell::maybe(rule.owner.as_deref()));
        let empty_reason = format!("all rules matched within {span}");
        listing.print(&empty_reason, invocation)?;
        Ok(Exit::Done)
    }
}

/// A rule without a recent match.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdleRule {
    rule: String,
    owner: Option<String>,
    last_match: Option<Timestamp>,
}

fn print_lines(lines: &[ExplainLine], invocation: &Invocation, empty_reason: &str) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Json {
        print::out(&print::json(&lines)?)?;
        return Ok(Exit::Done);
    }
    if lines.is_empty() {
        anstream::eprintln!("{empty_reason}");
    }
    let mut text = String::new();
    for line in lines {
        let sign = if line.fired { '✓' } else { '✗' };
        let about = line.about.as_deref().map(|about| format!(" for {about}")).unwrap_or_default();
        let _ = writeln!(text, "{sign} {}{}", harmless(&line.rule), harmless(&about));
        text.push_str(&wrapped("  ", "  ", &format!("result: {}", line.so)));
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
            step_lines(&mut text, step, 1);
        }
        text.push_str(&wrapped("result: ", "    ", &explanation.so));
        print::out(&text)?;
    }
    Ok(Exit::Done)
}

fn step_lines(text: &mut String, step: &ExplainStep, depth: usize) {
    let indent = "  ".repeat(depth);
    text.push_str(&wrapped(&format!("{indent}{} ", step.mark.sign()), &format!("{indent}  "), &step.text));
    for part in &step.parts {
        step_lines(text, part, depth + 1);
    }
}

/// Wraps text to the width of the terminal. In a pipe, lines are not wrapped.
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
