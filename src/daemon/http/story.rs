//! The story of one alert: what it is about, what was told of it to whom and what became of that, and why, clause by clause.
//!
//! What is decided is asked of the engine ([`ExplainReader`]), never decided again here. A message that is about no alert, such as a
//! digest or a test, has a story too: that of its deliveries.

use serde::Serialize;
use serde_json::{Value, json};

use super::{HttpDeps, HttpError};
use crate::explain::{ExplainReader, target_of};
use crate::live::LiveConfig;
use crate::ui::history::{self, FormerEpisode, HistoryStep};
use crate::ui::view::AlertView;
use engine::explain::{Explanation, status};
use model::{
    Ack, Alert, AlertId, AlertState, ChangeFilter, ChangeRow, Notification, NotificationStatus, OutboxDetail, Resource,
    SOURCE_TROUBLE, TokenId,
};
use rules::{On, Rule};

/// Deliveries of one alert whose attempts are read.
const MAX_DELIVERIES: usize = 50;
/// Changes that one alert may be about.
const MAX_CHANGES: u32 = 50;
/// Times that the same fired which are read.
const MAX_EPISODES: u32 = 20;

/// All that is known of one alert.
pub(super) struct Story {
    /// None where it is the story of a message without an alert.
    pub alert: Option<Alert>,
    pub view: Option<AlertView>,
    pub ack: Option<Ack>,
    /// What it went through, the first first.
    pub history: Vec<HistoryStep>,
    /// The times that the same fired before.
    pub former: Vec<FormerEpisode>,
    /// What was decided to be told, the first first.
    pub notifications: Vec<Notification>,
    /// What became of each, for each receiver.
    pub told: Vec<StoryStatus>,
    /// The deliveries, with their attempts.
    pub deliveries: Vec<OutboxDetail>,
    /// The change that it tells, where it tells one.
    pub change: Option<ChangeRow>,
    /// Why; none where that cannot be told any more.
    pub explanation: Option<Explanation>,
    /// Why there is no explanation.
    pub unexplained: Option<String>,
    /// Whether a rule at work would raise it.
    pub has_rule: bool,
}

/// What became of one message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoryStatus {
    #[serde(flatten)]
    pub status: NotificationStatus,
    /// In words: `delivered to ops at …`, `held back from ops: silence …`.
    pub text: String,
}

impl Story {
    /// Reads the story of an alert; none where nothing of this id is known, or no longer.
    pub async fn read(deps: &HttpDeps, id: AlertId) -> Result<Option<Self>, HttpError> {
        let (store, now, live) = (&deps.store, deps.clock.now(), deps.live.load_full());
        let alert = store.alert(id.clone()).await?;
        let notifications = store.notifications_of(id.clone()).await?;
        if alert.is_none() && notifications.is_empty() {
            return Ok(None);
        }
        let reader = ExplainReader::read(store.clone(), live.watch.clone(), live.active.clone(), &live.policy, now).await?;
        let statuses = reader.statuses.of_alert(store, &id).await?;
        let read = reader.statuses.records_of(store, &statuses).await?;
        let evidence = reader.statuses.records(&read);
        let told =
            statuses.into_iter().map(|of| StoryStatus { text: status::told(&of, &evidence, now).text, status: of }).collect();
        let mut deliveries = Vec::new();
        for row in store.deliveries_of(vec![id.clone()]).await?.into_iter().rev().take(MAX_DELIVERIES) {
            deliveries.extend(store.outbox_one(row.id).await?);
        }
        let mut story = Self {
            view: None,
            ack: store.ack_of(id.clone()).await?,
            history: Vec::new(),
            former: Vec::new(),
            notifications,
            told,
            deliveries,
            change: None,
            explanation: None,
            unexplained: None,
            has_rule: false,
            alert,
        };
        if let Some(alert) = story.alert.clone() {
            story.history = history::history(&alert, story.ack.as_ref(), now);
            story.former = history::former(&alert, &store.episodes_of(&alert, MAX_EPISODES).await?);
            // What is over is acknowledged no more.
            story.ack = story.ack.filter(|_| matches!(alert.state, AlertState::Pending | AlertState::Firing));
            story.view = super::lists::alert_views(deps, std::slice::from_ref(&alert)).await?.pop();
            story.change = change_of(deps, &alert).await?;
            story.explain(&reader, &live, &alert).await;
        }
        Ok(Some(story))
    }

    async fn explain(&mut self, reader: &ExplainReader, live: &LiveConfig, alert: &Alert) {
        let Some(rule) = rule_of(live, alert) else {
            self.unexplained = Some(match alert.rule.as_str() {
                SOURCE_TROUBLE => "Trouble with the source, a receiver or this program is told without any rule.".to_owned(),
                _ => format!("The rule {} is not at work any more.", model::text::harmless(&alert.name)),
            });
            return;
        };
        self.has_rule = true;
        match reader.explanations(rule, &target_of(alert)).await {
            Ok(explanations) => self.explanation = explanations.into_iter().next(),
            Err(error) => self.unexplained = Some(format!("It cannot be explained: {error}.")),
        }
    }

    /// The record that it is about, as it was last told.
    pub fn record(&self) -> Option<&Value> {
        self.notifications.iter().rev().find_map(|told| told.body.record.as_ref())
    }

    /// As `/api/alerts/{id}` shows it.
    pub fn json(&self) -> Value {
        let mut value = json!(self.view);
        if !value.is_object() {
            value = json!({});
        }
        value["acknowledgement"] = json!(self.ack);
        value["history"] = json!(self.history);
        value["former"] = json!(self.former);
        value["record"] = json!(self.record());
        value["change"] = json!(self.change);
        value["messages"] = json!(self.told);
        value["deliveries"] = self.deliveries.iter().map(OutboxDetail::json).collect();
        value["explanation"] = json!(self.explanation);
        value["unexplained"] = json!(self.unexplained);
        value
    }
}

/// The rule at work that raised an alert; of trouble, the one that words it.
fn rule_of<'a>(live: &'a LiveConfig, alert: &Alert) -> Option<&'a Rule> {
    let rules = &live.active.rules.rules;
    if alert.rule.as_str() == SOURCE_TROUBLE {
        return rules.iter().find(|rule| rule.on == On::Source && rule.name == alert.name);
    }
    rules.iter().find(|rule| rule.id == alert.rule)
}

/// The change that an alert tells: it happened when the change was seen.
async fn change_of(deps: &HttpDeps, alert: &Alert) -> Result<Option<ChangeRow>, HttpError> {
    let (Some(token), Some(at)) = (&alert.token, alert.starts_at) else { return Ok(None) };
    let live = deps.live.load_full();
    let told_change = |rule: &Rule| matches!(rule.on, On::Change(..));
    if !rule_of(&live, alert).map_or(alert.state == AlertState::Event, told_change) {
        return Ok(None);
    }
    let filter = ChangeFilter {
        token: Some(TokenId::from(token.as_str())),
        resource: alert.resource.filter(|resource| *resource != Resource::Emission),
        since: Some(at),
        until: Some(at + chrono::TimeDelta::milliseconds(1)),
        limit: MAX_CHANGES,
        ..ChangeFilter::default()
    };
    let changes = deps.store.changes(filter).await?;
    let own = changes.iter().position(|row| row.key == alert.key).or_else(|| (changes.len() == 1).then_some(0));
    Ok(own.and_then(|own| changes.into_iter().nth(own)))
}
