//! `feeds`: shows the secret links of the calendar and the feed of changes.

use clap::Args;

use super::print::{Cell, Listing};
use super::{Exit, Invocation, UsageError};
use notify::feed_link;

#[derive(Debug, Args)]
#[command(
    after_help = "A link does not reveal the token, gives access to nothing else, and becomes invalid when the [http] token changes. Add filters as a query:\n  \
    …/calendar.ics?group=portfolio&within=90d&alarm=1d&spans=month\n  …/feed.atom?token=arbitrum,optimism"
)]
pub(super) struct FeedsArgs {}

/// The link of a feed.
#[derive(Debug, serde::Serialize)]
struct FeedLink {
    feed: &'static str,
    url: String,
}

pub(super) async fn run(_: &FeedsArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let Some(token) = config.http.bearer().resolve()? else {
        return Err(UsageError("links require a token: set `token_file` in [http]".to_owned()).into());
    };
    let own = || format!("http://{}", config.http.listen);
    let base = config.http.external_url.clone().unwrap_or_else(own);
    let Some([calendar, changes]) = feed_link::links(&base, token.expose()) else {
        return Err(UsageError("the address of the links is unknown: set `external_url` in [http]".to_owned()).into());
    };
    let links = [FeedLink { feed: "calendar", url: calendar }, FeedLink { feed: "changes", url: changes }];
    Listing::of(&links)
        .left_column("Feed", "feed", |link| Cell::text(link.feed))
        .left_column("Link", "url", |link| Cell::text(&link.url))
        .print("", invocation)?;
    Ok(Exit::Done)
}
