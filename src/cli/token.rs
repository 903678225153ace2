//! `token TOKEN`: shows what is known about a token.

use std::fmt::Write as _;

use clap::Args;
use serde_json::Value;

use super::invocation::watch_of;
use super::print::{self, Cell, Listing};
use super::upcoming::find;
use super::{Exit, Invocation, OutputFormat, UsageError, width};
use model::{Resource, phrase, text::harmless, wire};
use store::Access;

/// Show what is known about a token: its data in the token list, coming supply, records, and polls
///
/// JSON has the complete records, in the format of `/api/v1/tokens/{id}`, without your position.
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// Slug or ticker of the token
    token: String,
    /// Record types to include, such as unlock, separated by commas; default: all
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    resource: Vec<Resource>,
}

pub(super) async fn run(args: &TokenArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv {
        return Err(UsageError("token does not support --format csv: use table or json".to_owned()).into());
    }
    let (config, _) = invocation.load_sections(&["store", "watch"])?;
    let store = invocation.open(&config, Access::Read).await?;
    let id = find(&args.token, &store).await?;
    let resources = if args.resource.is_empty() { Resource::ALL.to_vec() } else { args.resource.clone() };
    // Without positions: the output of this command is passed on to others.
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?.without_positions();
    let details = web::token_details(&store, &watch, id, &resources, invocation.clock.now()).await?;
    store.close().await?;
    let Some(details) = details else {
        return Err(UsageError(format!("no token has the slug or ticker {:?}", args.token)).into());
    };
    match invocation.format {
        OutputFormat::Json => print::out(&print::json(&details)?)?,
        _ => print::out(&text(&details))?,
    }
    Ok(Exit::Done)
}

/// Formats the summary of a token, and a table of its feeds.
fn text(details: &Value) -> String {
    let word = |name: &str| harmless(details[name].as_str().unwrap_or_default());
    let mut text = format!("{} ({}), slug {}\n", word("name"), word("symbol"), word("id"));
    if let Some(cap) = details["item"]["marketCap"].as_f64() {
        let _ = writeln!(text, "Market cap: {}", phrase::usd(cap));
    }
    let groups: Vec<&str> = details["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !groups.is_empty() {
        let _ = writeln!(text, "Groups: {}", harmless(&groups.join(", ")));
    }
    let count = |rows: &Value| rows.as_array().map_or(0, Vec::len);
    let records = details["records"].as_object().into_iter().flatten().filter(|(_, rows)| count(rows) > 0);
    let records: Vec<String> = records.map(|(resource, rows)| format!("{} {resource}", count(rows))).collect();
    let records = if records.is_empty() { "none".to_owned() } else { records.join(", ") };
    let _ = writeln!(text, "Records: {records}");
    if details["watched"] == false {
        text.push_str("The config does not watch this token.\n");
    }
    let feeds = details["feeds"].as_array().map(Vec::as_slice).unwrap_or_default();
    let time = |feed: &Value, name: &str| Cell::time(feed[name].as_str().and_then(wire::parse_timestamp));
    if !feeds.is_empty() {
        let listing = Listing::of(feeds)
            .left_column("Endpoint", "", |feed| Cell::maybe(feed["endpoint"].as_str()))
            .left_column("Last success", "", move |feed| time(feed, "readAt"))
            .left_column("Failing since", "", move |feed| time(feed, "failingSince"))
            .left_column("Held since", "", move |feed| time(feed, "heldSince"));
        let _ = write!(text, "\n{}", listing.table(width()));
    }
    text
}
