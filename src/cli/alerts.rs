//! `alerts`: what fires, what ended, what happened.

use clap::Args;

use super::print::{Cell, Listing};
use super::upcoming::{find, nothing};
use super::{Exit, Invocation};
use daemon::ui::view::AlertView;
use model::{AlertFilter, AlertState, RuleId};
use store::Access;

/// Show alerts.
#[derive(Debug, Args)]
pub(super) struct AlertsArgs {
    /// In this state (pending, firing, resolved, event); may be given several times
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<AlertState>,
    /// Of this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Of this token (slug or symbol)
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(args: &AlertsArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, Access::Read).await?;
    let token = match &args.token {
        Some(name) => Some(find(name, false, &store).await?),
        None => None,
    };
    let filter = AlertFilter {
        states: args.state.clone(),
        rule: args.rule.as_deref().map(RuleId::from),
        token,
        limit: args.limit.saturating_add(1),
        ..AlertFilter::default()
    };
    let mut alerts = store.alerts(filter).await?;
    super::print::keep_first(&mut alerts, args.limit, "alerts");
    let standings = store.receiver_statuses(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    let tickers = store.tickers(alerts.iter().filter_map(|alert| alert.token.clone()).collect()).await?;
    let alerts = AlertView::all(&alerts, &standings, &tickers);
    let state = |alert: &AlertView| match alert.reason {
        Some(reason) => format!("{} ({reason})", alert.state),
        None => alert.state.to_string(),
    };
    let listing = Listing::of(&alerts)
        .words("Updated", "updatedAt", |alert| Cell::time(Some(alert.updated_at)))
        .words("State", "state", |alert| Cell::both(state(alert), alert.state.as_str()))
        .words("Severity", "severity", |alert| Cell::maybe(alert.labels.get("severity").map(String::as_str)))
        .words("Alert", "rule", |alert| Cell::text(&alert.rule))
        .words("Message", "summary", |alert| Cell::text(&alert.summary))
        .words("Told", "told", |alert| Cell::both(alert.told_words(), alert.told.join("; ")))
        .words("Id", "id", |alert| Cell::text(&alert.id));
    listing.print(nothing(alerts.is_empty(), &store).await?, invocation)?;
    Ok(Exit::Done)
}
