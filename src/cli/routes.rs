//! `routes show` and `routes test LABEL=VALUE…`: shows and tests routes.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::invocation::routes_of;
use super::print::{self, Cell, Listing};
use super::upcoming::find;
use super::{Exit, Invocation, OutputFormat, UsageError};
use daemon::database_url::may_exist;
use engine::route::{GroupBy, Grouping, RouteTree};
use model::config::{Config, Span};
use model::{Labels, TOKEN_LABEL, text::harmless};
use store::Access;

#[derive(Debug, Subcommand)]
pub(super) enum RoutesCommand {
    /// Show the tree of routes
    Show,
    /// Show which receivers an alert with these labels would get
    Test(RouteTestArgs),
}

#[derive(Debug, Args)]
pub(super) struct RouteTestArgs {
    /// Labels of the alert, such as severity=critical or token=arbitrum (slug or ticker)
    #[arg(value_name = "LABEL=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

/// A receiver of a tested alert, in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RoutedReceiver {
    receiver: String,
    route: String,
    group: String,
    wait: String,
    interval: String,
    repeat: Option<String>,
    /// The name of the interval that currently mutes the route.
    muted: Option<String>,
}

pub(super) fn run(routes: &RoutesCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let tree = routes_of(&config)?;
    match routes {
        RoutesCommand::Show => show(&tree, invocation),
        RoutesCommand::Test(requested) => test(requested, &config, &tree, invocation),
    }
}

/// Returns the labels with the slug instead of the ticker of a token, because alerts have the slug. Without known tokens, the text stays.
///
/// # Errors
///
/// Fails with a usage error if the label names no token or several.
fn with_slug(mut labels: Labels, config: &Config, invocation: &Invocation) -> anyhow::Result<Labels> {
    let Some(name) = labels.get(TOKEN_LABEL).filter(|name| !name.is_empty()).cloned() else { return Ok(labels) };
    if !may_exist(&config.store) {
        return Ok(labels);
    }
    let found = super::wait(async {
        let store = match invocation.open(config, Access::Read).await {
            Ok(store) => store,
            Err(error) => {
                // Routes can be tested on a machine that cannot reach the database.
                anstream::eprintln!("warning: the token {} was not looked up: {}", harmless(&name), harmless(&error.to_string()));
                return Ok(None);
            }
        };
        let found = if store.token_names().await?.is_empty() { None } else { Some(find(&name, &store).await?) };
        store.close().await?;
        Ok(found)
    })?;
    if let Some(id) = found {
        labels.insert(TOKEN_LABEL.to_owned(), id.to_string());
    }
    Ok(labels)
}

fn test(test: &RouteTestArgs, config: &Config, tree: &RouteTree, invocation: &Invocation) -> anyhow::Result<Exit> {
    let labels: Labels = test.labels.iter().cloned().collect();
    if labels.len() < test.labels.len() {
        return Err(UsageError("a label is given twice; pass each label once".to_owned()).into());
    }
    let labels = with_slug(labels, config, invocation)?;
    let now = invocation.clock.now();
    let receivers: Vec<RoutedReceiver> = tree
        .route(&labels)
        .iter()
        .map(|receiver| {
            let leaf = tree.leaf(&labels, receiver);
            let grouping = leaf.grouping();
            RoutedReceiver {
                receiver: receiver.as_str().to_owned(),
                route: leaf.key().to_owned(),
                group: grouping_text(grouping),
                wait: span(grouping.wait),
                interval: span(grouping.interval),
                repeat: grouping.repeat.map(span),
                muted: tree.muted(grouping, now),
            }
        })
        .collect();
    let listing = Listing::of(&receivers)
        .left_column("Receiver", "receiver", |row| Cell::text(&row.receiver))
        .left_column("Route", "route", |row| Cell::text(&row.route))
        .left_column("Grouped by", "group", |row| Cell::text(&row.group))
        .left_column("Wait", "wait", |row| Cell::text(&row.wait))
        .left_column("Interval", "interval", |row| Cell::text(&row.interval))
        .left_column("Repeat", "repeat", |row| {
            Cell::both(row.repeat.as_deref().unwrap_or("never"), row.repeat.as_deref().unwrap_or_default())
        })
        .left_column("Muted now", "muted", |row| Cell::maybe(row.muted.as_deref()));
    let empty_reason = "no receivers: no route matches these labels, and [route] has no `receivers`";
    listing.print(empty_reason, invocation)?;
    Ok(Exit::Done)
}

/// A route in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteRow {
    depth: usize,
    matchers: Vec<String>,
    receivers: Vec<String>,
    #[serde(rename = "continue")]
    continues: bool,
    group: String,
    wait: String,
    interval: String,
    repeat: Option<String>,
    active_time_intervals: Vec<String>,
    mute_time_intervals: Vec<String>,
}

fn show(tree: &RouteTree, invocation: &Invocation) -> anyhow::Result<Exit> {
    let lines: Vec<RouteRow> = tree
        .lines()
        .into_iter()
        .map(|line| RouteRow {
            depth: line.depth,
            matchers: line.matchers,
            receivers: line.receivers.iter().map(|name| name.as_str().to_owned()).collect(),
            continues: line.continues,
            group: grouping_text(&line.grouping),
            wait: span(line.grouping.wait),
            interval: span(line.grouping.interval),
            repeat: line.grouping.repeat.map(span),
            active_time_intervals: line.active,
            mute_time_intervals: line.mute,
        })
        .collect();
    if invocation.format == OutputFormat::Json {
        print::out(&print::json(&lines)?)?;
        return Ok(Exit::Done);
    }
    if invocation.format == OutputFormat::Csv {
        let listing = Listing::of(&lines)
            .right_column("Depth", "depth", |line| Cell::text(line.depth))
            .left_column("Matchers", "matchers", |line| Cell::text(line.matchers.join(", ")))
            .left_column("Receivers", "receivers", |line| Cell::text(line.receivers.join("; ")))
            .left_column("Grouped by", "group", |line| Cell::text(&line.group));
        print::out(&listing.csv())?;
        return Ok(Exit::Done);
    }
    print::out(&tree_page(&lines))?;
    Ok(Exit::Done)
}

/// Formats the tree: matchers, receivers, and the settings that differ from the parent route.
fn tree_page(lines: &[RouteRow]) -> String {
    let mut page = String::new();
    let mut above: Vec<&RouteRow> = Vec::new();
    for line in lines {
        above.truncate(line.depth);
        let parent = above.last().copied();
        let indent = "  ".repeat(line.depth);
        let what = if line.matchers.is_empty() { "all alerts".to_owned() } else { line.matchers.join(", ") };
        let who = if line.receivers.is_empty() { "no receivers".to_owned() } else { line.receivers.join(", ") };
        let mut notes = Vec::new();
        if parent
            .is_none_or(|parent| (&parent.group, &parent.wait) != (&line.group, &line.wait) || parent.interval != line.interval)
        {
            notes.push(match line.group.as_str() {
                "each alert" if line.wait == "0s" => "not grouped, no wait".to_owned(),
                "each alert" => format!("not grouped, wait {}", line.wait),
                group => format!("grouped by {group}: wait {}, then every {}", line.wait, line.interval),
            });
        }
        if let Some(repeat) = line.repeat.as_ref().filter(|_| parent.is_none_or(|parent| parent.repeat != line.repeat)) {
            notes.push(format!("repeated every {repeat}"));
        }
        if !line.active_time_intervals.is_empty() {
            notes.push(format!("only in {}", line.active_time_intervals.join(", ")));
        }
        if !line.mute_time_intervals.is_empty() {
            notes.push(format!("not in {}", line.mute_time_intervals.join(", ")));
        }
        if line.continues {
            notes.push("continues with the next route".to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join("; ")) };
        page.push_str(&harmless(&format!("{indent}{what} → {who}{notes}")));
        page.push('\n');
        above.push(line);
    }
    page
}

fn grouping_text(grouping: &Grouping) -> String {
    match &grouping.by {
        GroupBy::Alert => "each alert".to_owned(),
        GroupBy::AllLabels => "all labels".to_owned(),
        GroupBy::Labels(names) if names.is_empty() => "nothing (one group)".to_owned(),
        GroupBy::Labels(names) => names.join(", "),
    }
}

fn span(span: chrono::TimeDelta) -> String {
    Span(span.to_std().unwrap_or_default()).to_string()
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((label, value)) if !label.trim().is_empty() => {
            Ok((label.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
        }
        _ => Err("example: severity=critical".to_owned()),
    }
}
