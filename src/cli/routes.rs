//! `routes show` and `routes test LABEL=VALUE…`: who is told what, and how.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::invocation::routes_of;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError};
use engine::route::{GroupBy, Grouping, RouteTree};
use model::{Labels, config::Span, text::harmless};

/// `routes`.
#[derive(Debug, Subcommand)]
pub(super) enum RoutesCommand {
    /// Show the tree of routes
    Show,
    /// Show which receivers an alert with these labels would get
    Test(RouteTestArgs),
}

#[derive(Debug, Args)]
pub(super) struct RouteTestArgs {
    /// Labels of the alert, such as severity=critical
    #[arg(value_name = "LABEL=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

/// A receiver that would be told, as JSON has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RoutedReceiver {
    receiver: String,
    route: String,
    group: String,
    wait: String,
    interval: String,
    repeat: Option<String>,
    /// The interval that mutes the route now.
    muted: Option<String>,
}

pub(super) fn run(routes: &RoutesCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let tree = routes_of(&config)?;
    match routes {
        RoutesCommand::Show => show(&tree, invocation),
        RoutesCommand::Test(asked) => test(asked, &tree, invocation),
    }
}

fn test(test: &RouteTestArgs, tree: &RouteTree, invocation: &Invocation) -> anyhow::Result<Exit> {
    let labels: Labels = test.labels.iter().cloned().collect();
    if labels.len() < test.labels.len() {
        return Err(UsageError("a label is given twice".to_owned()).into());
    }
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
                group: by(grouping),
                wait: span(grouping.wait),
                interval: span(grouping.interval),
                repeat: grouping.repeat.map(span),
                muted: tree.muted(grouping, now),
            }
        })
        .collect();
    let listing = Listing::of(&receivers)
        .words("Receiver", "receiver", |row| Cell::text(&row.receiver))
        .words("Route", "route", |row| Cell::text(&row.route))
        .words("Grouped by", "group", |row| Cell::text(&row.group))
        .words("Wait", "wait", |row| Cell::text(&row.wait))
        .words("Interval", "interval", |row| Cell::text(&row.interval))
        .words("Repeat", "repeat", |row| {
            Cell::both(row.repeat.as_deref().unwrap_or("never"), row.repeat.as_deref().unwrap_or_default())
        })
        .words("Muted now", "muted", |row| Cell::maybe(row.muted.as_deref()));
    let nothing = "nobody: no route takes these labels, and [route] names no receivers";
    listing.print(nothing, invocation)?;
    Ok(Exit::Done)
}

/// A route as JSON has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteRow {
    depth: usize,
    matchers: Vec<String>,
    receivers: Vec<String>,
    #[serde(rename = "continue")]
    goes_on: bool,
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
            goes_on: line.goes_on,
            group: by(&line.grouping),
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
            .numbers("Depth", "depth", |line| Cell::text(line.depth))
            .words("Matchers", "matchers", |line| Cell::text(line.matchers.join(", ")))
            .words("Receivers", "receivers", |line| Cell::text(line.receivers.join("; ")))
            .words("Grouped by", "group", |line| Cell::text(&line.group));
        print::out(&listing.csv())?;
        return Ok(Exit::Done);
    }
    print::out(&tree_page(&lines))?;
    Ok(Exit::Done)
}

/// The tree as people read it: what a route takes, who is told, and what differs from the route above.
fn tree_page(lines: &[RouteRow]) -> String {
    let mut page = String::new();
    let mut above: Vec<&RouteRow> = Vec::new();
    for line in lines {
        above.truncate(line.depth);
        let parent = above.last().copied();
        let indent = "  ".repeat(line.depth);
        let what = if line.matchers.is_empty() { "everything".to_owned() } else { line.matchers.join(", ") };
        let who = if line.receivers.is_empty() { "nobody".to_owned() } else { line.receivers.join(", ") };
        let mut notes = Vec::new();
        if parent
            .is_none_or(|parent| (&parent.group, &parent.wait) != (&line.group, &line.wait) || parent.interval != line.interval)
        {
            notes.push(match line.group.as_str() {
                "each alert" if line.wait == "0s" => "each alert by itself, at once".to_owned(),
                "each alert" => format!("each alert by itself, after {}", line.wait),
                group => format!("grouped by {group}: first after {}, then every {}", line.wait, line.interval),
            });
        }
        if let Some(repeat) = line.repeat.as_ref().filter(|_| parent.is_none_or(|parent| parent.repeat != line.repeat)) {
            notes.push(format!("again every {repeat}"));
        }
        if !line.active_time_intervals.is_empty() {
            notes.push(format!("only in {}", line.active_time_intervals.join(", ")));
        }
        if !line.mute_time_intervals.is_empty() {
            notes.push(format!("not in {}", line.mute_time_intervals.join(", ")));
        }
        if line.goes_on {
            notes.push("then on to the next".to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join("; ")) };
        page.push_str(&harmless(&format!("{indent}{what} → {who}{notes}")));
        page.push('\n');
        above.push(line);
    }
    page
}

fn by(grouping: &Grouping) -> String {
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
        _ => Err("write it like severity=critical".to_owned()),
    }
}
