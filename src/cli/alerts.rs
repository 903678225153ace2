//! `alerts`: what fires, what ended, what happened.

use clap::Args;

use super::print::{Cell, Column, Listing};
use super::upcoming::{find, nothing};
use super::{Exit, Invocation, parse_word};
use daemon::ui::view::AlertView;
use model::{AlertFilter, AlertState, RuleId};
use store::Access;

/// Show alerts.
#[derive(Debug, Args)]
pub(super) struct AlertsArgs {
    /// In this state (pending, firing, resolved, event); may be given several times
    #[arg(long, value_name = "STATE", value_parser = parse_state, value_delimiter = ',')]
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

const COLUMNS: &[Column] = &[
    Column("Updated", "updatedAt", false),
    Column("State", "state", false),
    Column("Severity", "severity", false),
    Column("Alert", "rule", false),
    Column("Message", "summary", false),
    Column("Told", "told", false),
    Column("Id", "id", false),
];

pub(super) async fn run(args: &AlertsArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, Access::Read).await?;
    let token = match &args.token {
        Some(name) => Some(find(name, false, &store).await?),
        None => None,
    };
    let filter =
        AlertFilter { states: args.state.clone(), rule: args.rule.as_deref().map(RuleId::from), token, limit: args.limit };
    let alerts = store.alerts(filter).await?;
    let standings = store.receiver_statuses(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    let alerts = AlertView::all(&alerts, &standings);
    let rows = alerts
        .iter()
        .map(|alert| {
            let state = match alert.reason {
                Some(reason) => format!("{} ({reason})", alert.state.as_str()),
                None => alert.state.as_str().to_owned(),
            };
            vec![
                Cell::time(Some(alert.updated_at)),
                Cell::both(state, alert.state.as_str()),
                Cell::maybe(alert.labels.get("severity").map(String::as_str)),
                Cell::text(&alert.rule),
                Cell::text(&alert.summary),
                Cell::both(alert.told_words(), alert.told.join("; ")),
                Cell::text(&alert.id),
            ]
        })
        .collect();
    Listing { columns: COLUMNS, rows, json: &alerts, nothing: nothing(alerts.is_empty(), &store).await? }.print(invocation)?;
    Ok(Exit::Done)
}

fn parse_state(word: &str) -> Result<AlertState, String> {
    parse_word(word, &AlertState::ALL.map(AlertState::as_str), AlertState::parse)
}
