//! `feeds`: the secret links by which other programs subscribe to the calendar and to the feed of changes.

use clap::Args;

use super::print::{Cell, Listing};
use super::{Exit, Invocation, UsageError};
use notify::feed_link;

/// `feeds`.
#[derive(Debug, Args)]
#[command(
    after_help = "A link tells nobody the token, opens nothing else, and ends when [http] token changes. Filters are added to it:\n  \
    …/calendar.ics?group=portfolio&within=90d&alarm=1d&spans=month\n  …/feed.atom?token=arbitrum,optimism"
)]
pub(super) struct FeedsArgs {}

/// A link with what it is.
#[derive(Debug, serde::Serialize)]
struct FeedLink {
    feed: &'static str,
    url: String,
}

pub(super) async fn run(_: &FeedsArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let Some(token) = config.http.bearer().resolve()? else {
        return Err(UsageError("there is no link without a token: write `token_file` below [http]".to_owned()).into());
    };
    let own = || format!("http://{}", config.http.listen);
    let base = config.http.external_url.clone().unwrap_or_else(own);
    let Some([calendar, changes]) = feed_link::links(&base, token.expose()) else {
        return Err(UsageError("nobody knows where the links lead: write `external_url` below [http]".to_owned()).into());
    };
    let links = [FeedLink { feed: "calendar", url: calendar }, FeedLink { feed: "changes", url: changes }];
    Listing::of(&links)
        .words("Feed", "feed", |link| Cell::text(link.feed))
        .words("Link", "url", |link| Cell::text(&link.url))
        .print("", invocation)?;
    Ok(Exit::Done)
}
