//! `alerts`: lists firing and past alerts.

use clap::Args;

use super::invocation::watch_of;
use super::print::{Cell, Listing};
use super::upcoming::{empty_reason, find};
use super::{Exit, Invocation, UsageError, group};
use daemon::current_texts::show_current_texts;
use daemon::view::AlertView;
use model::{Alert, AlertFilter, AlertId, AlertState, RuleId, text::harmless};
use store::{Access, Store};

/// List alerts, most recently updated first
#[derive(Debug, Args)]
pub(super) struct AlertsArgs {
    /// States: pending, firing, resolved, event; repeatable
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<AlertState>,
    /// Name of a rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Slug or ticker of a token
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Groups in the config, separated by commas; repeatable
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    group: Vec<String>,
    /// Maximum number of alerts
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

/// Returns the alert with this id.
///
/// # Errors
///
/// Fails with a usage error if there is none.
pub(super) async fn find_alert(id: &str, store: &Store) -> anyhow::Result<Alert> {
    let found = store.alert(AlertId::from(id)).await?;
    found.ok_or_else(|| UsageError(format!("no alert has the id {}: `cliffwatch alerts` lists them", harmless(id))).into())
}

pub(super) async fn run(args: &AlertsArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load_sections(&["store", "watch"])?;
    let store = invocation.open(&config, Access::Read).await?;
    let token = match &args.token {
        Some(name) => Some(find(name, &store).await?),
        None => None,
    };
    let filter = AlertFilter {
        states: args.state.clone(),
        rule: args.rule.as_deref().map(RuleId::from),
        token,
        group: group::members(&args.group, &config, &store).await?,
        limit: args.limit.saturating_add(1),
        ..AlertFilter::default()
    };
    let mut alerts = store.alerts(filter).await?;
    super::print::keep_first(&mut alerts, args.limit, "alerts");
    let receiver_states = store.receiver_statuses(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    let tickers = store.tickers(alerts.iter().filter_map(|alert| alert.token.clone()).collect()).await?;
    let (rules, now) = (invocation.rules_for_texts(&config, &loaded.base_dir), invocation.clock.now());
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    show_current_texts(&mut alerts.iter_mut().collect::<Vec<_>>(), &store, &watch, &rules, now).await?;
    let assignments = store.assignments(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    let alerts = AlertView::all(&alerts, &receiver_states, &tickers, &assignments, now);
    let state = |alert: &AlertView| match alert.outcome.as_deref().or(alert.reason) {
        Some(reason) => format!("{} ({reason})", alert.state),
        None => alert.state.to_string(),
    };
    let listing = Listing::of(&alerts)
        .left_column("Updated", "updatedAt", |alert| Cell::time(Some(alert.updated_at)))
        .left_column("State", "state", |alert| Cell::both(state(alert), alert.state.as_str()))
        .left_column("Severity", "severity", |alert| Cell::maybe(alert.labels.get("severity").map(String::as_str)))
        .left_column("Alert", "rule", |alert| Cell::text(&alert.rule))
        .left_column("Message", "summary", |alert| Cell::text(&alert.summary))
        .left_column("Notified", "notified", |alert| Cell::both(alert.notified_text(), alert.notified.join("; ")))
        .left_column("Id", "id", |alert| Cell::text(&alert.id));
    listing.print(empty_reason(alerts.is_empty(), &store).await?, invocation)?;
    Ok(Exit::Done)
}
