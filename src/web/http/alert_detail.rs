//! The details of one alert: its history, its notifications and deliveries, and the explanation of its rule.
//!
//! The engine makes the explanation ([`ExplainReader`]). Messages without an alert, such as digests and tests, have details too: their
//! notifications and deliveries.

use serde::Serialize;
use serde_json::{Value, json};

use super::HttpDeps;
use super::error::WebError;
use crate::ui::history::{self, FormerEpisode, HistoryStep};
use daemon::current_texts::show_current_texts;
use daemon::explain::{ExplainReader, target_of};
use daemon::live::LiveConfig;
use daemon::view::AlertView;
use engine::explain::{Explanation, status};
use engine::pipeline;
use model::note::{AlertNote, Assignment};
use model::{
    Ack, Alert, AlertBody, AlertId, AlertState, ChangeFilter, ChangeRow, Notification, NotificationKind, NotificationStatus,
    OutboxDetail, Resource, SOURCE_TROUBLE, Timestamp, TokenId,
};
use rules::{On, Rule};

/// The maximum number of deliveries that are shown with their attempts, newest first.
const MAX_DELIVERIES: usize = 50;
/// The maximum number of changes at one instant that are searched for the change of an alert.
const MAX_CHANGES: u32 = 50;
/// The maximum number of former episodes that are shown.
const MAX_EPISODES: u32 = 20;

pub(super) struct AlertDetail {
    /// `None` for a message without an alert.
    pub alert: Option<Alert>,
    pub view: Option<AlertView>,
    pub ack: Option<Ack>,
    pub assignment: Option<Assignment>,
    /// Oldest first.
    pub notes: Vec<AlertNote>,
    /// In the order of time, oldest first.
    pub history: Vec<HistoryStep>,
    /// Earlier episodes of the same subject.
    pub former: Vec<FormerEpisode>,
    /// In the order of time, oldest first.
    pub notifications: Vec<Notification>,
    /// The status of each notification for each receiver.
    pub notified: Vec<NotificationView>,
    pub deliveries: Vec<OutboxDetail>,
    /// The record as it is now. `None` if the alert has ended, or is not about a record.
    pub current_record: Option<Value>,
    /// The change that an alert of a change rule reports.
    pub change: Option<ChangeRow>,
    /// `None` if the explanation is not available. `unexplained` then contains the reason.
    pub explanation: Option<Explanation>,
    pub unexplained: Option<String>,
    /// The effect of the alert's rule in one sentence. `None` if the rule is not active.
    pub rule_sentence: Option<String>,
}

/// The text of the latest notification.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NotifiedText {
    pub at: Timestamp,
    pub summary: String,
}

/// The status of a notification, with a text.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotificationView {
    #[serde(flatten)]
    pub status: NotificationStatus,
    /// For example `delivered to ops at …`.
    pub text: String,
}

impl AlertDetail {
    /// Loads the details of an alert. `None` if the id is unknown or the alert was deleted.
    pub async fn load(deps: &HttpDeps, id: AlertId) -> Result<Option<Self>, WebError> {
        let (store, now, live) = (&deps.app.store, deps.app.clock.now(), deps.app.live.load_full());
        let alert = store.alert(id.clone()).await?;
        let notifications = store.notifications_of(id.clone()).await?;
        if alert.is_none() && notifications.is_empty() {
            return Ok(None);
        }
        let reader = ExplainReader::read(store.clone(), live.watch.clone(), live.active.clone(), &live.policy, now).await?;
        let statuses = reader.statuses.of_alert(store, &id).await?;
        let read = reader.statuses.records_of(store, &statuses).await?;
        let evidence = reader.statuses.records(&read);
        let notified = statuses
            .into_iter()
            .map(|of| NotificationView { text: status::describe(&of, &evidence, now).text, status: of })
            .collect();
        let mut deliveries = Vec::new();
        for row in store.deliveries_of(vec![id.clone()]).await?.into_iter().rev().take(MAX_DELIVERIES) {
            deliveries.extend(store.outbox_one(row.id).await?);
        }
        let mut detail = Self {
            view: None,
            ack: store.ack_of(id.clone()).await?,
            assignment: store.assignments(vec![id.clone()]).await?.remove(&id),
            notes: store.notes(id.clone()).await?,
            history: Vec::new(),
            former: Vec::new(),
            notifications,
            notified,
            deliveries,
            current_record: None,
            change: None,
            explanation: None,
            unexplained: None,
            rule_sentence: None,
            alert,
        };
        if let Some(alert) = &mut detail.alert {
            detail.current_record = current_body(deps, &live, alert).await?.and_then(|current| current.record);
            show_current_texts(&mut [alert], store, &live.watch, &live.active, now).await?;
        }
        if let Some(alert) = detail.alert.clone() {
            detail.history = history::history(&alert, detail.ack.as_ref(), now);
            detail.former = history::former(&alert, &store.episodes_of(&alert, MAX_EPISODES).await?);
            // An acknowledgement ends with the alert.
            detail.ack = detail.ack.filter(|_| matches!(alert.state, AlertState::Pending | AlertState::Firing));
            detail.view = super::api::lists::alert_views(deps, std::slice::from_ref(&alert)).await?.pop();
            detail.change = change_of(deps, &alert).await?;
            detail.explain(&reader, &live, &alert).await;
        }
        Ok(Some(detail))
    }

    async fn explain(&mut self, reader: &ExplainReader, live: &LiveConfig, alert: &Alert) {
        let Some(rule) = rule_of(live, alert) else {
            self.unexplained = Some(match alert.rule.as_str() {
                SOURCE_TROUBLE => "Incidents of the source, a receiver, or the daemon need no rule.".to_owned(),
                _ => format!("The rule {} is no longer active.", model::text::harmless(&alert.name)),
            });
            return;
        };
        self.rule_sentence = Some(rule.sentence());
        match reader.explanations(rule, &target_of(alert)).await {
            Ok(explanations) => self.explanation = explanations.into_iter().next(),
            Err(error) => self.unexplained = Some(format!("The explanation failed: {error}.")),
        }
    }

    /// Returns the current record of an open alert, else the record of the latest notification that has one.
    pub fn record(&self) -> Option<&Value> {
        let notified = || self.notifications.iter().rev().find_map(|notification| notification.body.record.as_ref());
        self.current_record.as_ref().or_else(notified)
    }

    /// Returns the summary of the latest notification that the alert fires, if the current summary differs.
    pub fn as_notified(&self) -> Option<NotifiedText> {
        let current = self.alert.as_ref()?.annotations.get("summary")?;
        let is_sent =
            |notification: &&Notification| notification.kind != NotificationKind::Resolved && !notification.receivers.is_empty();
        let last = self.notifications.iter().rev().find(is_sent)?;
        let summary = last.body.annotations.get("summary").filter(|summary| *summary != current)?;
        Some(NotifiedText { at: last.at, summary: summary.clone() })
    }

    /// Returns the response of `/api/v1/alerts/{id}`.
    pub fn json(&self) -> Value {
        let mut value = json!(self.view);
        if !value.is_object() {
            value = json!({});
        }
        value["acknowledgement"] = json!(self.ack);
        value["assignment"] = json!(self.assignment);
        value["notes"] = json!(self.notes);
        value["history"] = json!(self.history);
        value["former"] = json!(self.former);
        value["record"] = json!(self.record());
        value["asNotified"] = json!(self.as_notified());
        value["change"] = json!(self.change);
        value["messages"] = json!(self.notified);
        value["deliveries"] = self.deliveries.iter().map(OutboxDetail::json).collect();
        value["explanation"] = json!(self.explanation);
        value["unexplained"] = json!(self.unexplained);
        value
    }
}

/// Returns the current record of an open alert, with its message. `None` if it is not about a record.
async fn current_body(deps: &HttpDeps, live: &LiveConfig, alert: &Alert) -> Result<Option<AlertBody>, WebError> {
    let Some((token, resource)) = pipeline::about(alert) else { return Ok(None) };
    if !matches!(alert.state, AlertState::Pending | AlertState::Firing) {
        return Ok(None);
    }
    let Some(mut known) = deps.app.store.tokens(vec![token.clone()], vec![resource]).await?.pop() else { return Ok(None) };
    live.watch.place(&mut known.token);
    Ok(pipeline::current_body(alert, &known, &live.active.context(deps.app.clock.now())))
}

/// Returns the active rule of an alert. For an incident, this is the rule that customizes its text.
fn rule_of<'a>(live: &'a LiveConfig, alert: &Alert) -> Option<&'a Rule> {
    let rules = &live.active.rules.rules;
    if alert.rule.as_str() == SOURCE_TROUBLE {
        return rules.iter().find(|rule| rule.on == On::Source && rule.name == alert.name);
    }
    rules.iter().find(|rule| rule.id == alert.rule)
}

/// Returns the change that an alert of a change rule reports. The alert starts at the time of the change.
async fn change_of(deps: &HttpDeps, alert: &Alert) -> Result<Option<ChangeRow>, WebError> {
    let (Some(token), Some(at)) = (&alert.token, alert.starts_at) else { return Ok(None) };
    let live = deps.app.live.load_full();
    let is_change_rule = |rule: &Rule| matches!(rule.on, On::Change(..));
    if !rule_of(&live, alert).map_or(alert.state == AlertState::Event, is_change_rule) {
        return Ok(None);
    }
    let filter = ChangeFilter {
        tokens: Some(vec![TokenId::from(token.as_str())]),
        resources: alert.resource.into_iter().filter(|resource| *resource != Resource::Emission).collect(),
        since: Some(at),
        until: Some(at + chrono::TimeDelta::milliseconds(1)),
        limit: MAX_CHANGES,
        ..ChangeFilter::default()
    };
    let changes = deps.app.store.changes(filter).await?;
    let own = changes.iter().position(|row| row.key == alert.key).or_else(|| (changes.len() == 1).then_some(0));
    Ok(own.and_then(|own| changes.into_iter().nth(own)))
}
