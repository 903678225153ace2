//! An alert with its state at each receiver.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use model::note::Assignment;
use model::{Alert, AlertId, AlertState, Labels, NotificationState, ReceiverStatus, Resource, Timestamp, TokenId, phrase};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertView {
    pub id: String,
    pub rule: String,
    pub state: AlertState,
    /// The resolution, if the alert is resolved.
    pub reason: Option<&'static str>,
    /// The outcome of a resolved alert: `moved to 12 Mar 2027`.
    pub outcome: Option<String>,
    /// The slug of the token, if the alert is about one.
    pub token_id: Option<String>,
    /// The ticker of the token, if known.
    pub symbol: Option<String>,
    pub resource: Option<Resource>,
    /// The subject, unique within the rule.
    pub subject: String,
    /// The first line of the message.
    pub summary: String,
    pub labels: Labels,
    pub annotations: BTreeMap<String, String>,
    /// The lead times that were notified.
    pub leads: Vec<String>,
    /// The receivers that accepted a message about the alert.
    pub notified: Vec<String>,
    /// The receivers that did not get the latest message, with its state: `waiting`, `due`, `retrying`, `dead`, `dropped`, `silenced`,
    /// `inhibited`, `acknowledged`.
    pub undelivered: BTreeMap<String, String>,
    /// The person who takes care of the alert. Null if there is none.
    pub assignee: Option<String>,
    /// The time of the record as text.
    pub when: Option<String>,
    /// The time of the first match.
    pub active_at: Timestamp,
    /// The time when the alert began to fire, or of the change that it reports.
    pub starts_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
    /// The time of the last transition.
    pub updated_at: Timestamp,
}

impl AlertView {
    /// Formats the receivers, with the state of undelivered messages: `ops, desk (silenced)`.
    pub fn notified_text(&self) -> String {
        let notified = self.notified.iter().filter(|name| !self.undelivered.contains_key(*name)).cloned();
        let undelivered = self.undelivered.iter().map(|(name, state)| match self.notified.contains(name) {
            true => format!("{name} (last: {state})"),
            false => format!("{name} ({state})"),
        });
        notified.chain(undelivered).collect::<Vec<_>>().join(", ")
    }

    /// Returns the views of alerts, with tickers and assignees.
    pub fn all(
        alerts: &[Alert],
        receiver_states: &HashMap<AlertId, Vec<ReceiverStatus>>,
        tickers: &HashMap<TokenId, String>,
        assignments: &HashMap<AlertId, Assignment>,
        now: Timestamp,
    ) -> Vec<Self> {
        let of = |alert: &Alert| Self {
            symbol: alert.token.as_ref().and_then(|token| tickers.get(token)).cloned(),
            assignee: assignments.get(&alert.id).map(|assignment| assignment.assignee.clone()),
            ..Self::of(alert, receiver_states.get(&alert.id).map_or(&[][..], Vec::as_slice), now)
        };
        alerts.iter().map(of).collect()
    }

    /// Returns the view of an alert at `now`, without ticker and assignee.
    pub fn of(alert: &Alert, receiver_states: &[ReceiverStatus], now: Timestamp) -> Self {
        let name = |status: &ReceiverStatus| status.receiver.as_str().to_owned();
        Self {
            id: alert.id.as_str().to_owned(),
            rule: alert.name.clone(),
            state: alert.state,
            reason: alert.resolution.map(model::alert::Resolution::as_str),
            outcome: alert.resolution.and_then(|_| alert.annotations.get(model::OUTCOME).cloned()),
            token_id: alert.token.as_ref().map(|token| token.as_str().to_owned()),
            symbol: None,
            resource: alert.resource,
            subject: alert.subject.clone(),
            summary: alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()),
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            leads: alert.leads.clone(),
            notified: receiver_states.iter().filter(|status| status.was_notified).map(name).collect(),
            undelivered: receiver_states
                .iter()
                .filter(|status| status.state != NotificationState::Delivered)
                .map(|status| (name(status), status.state.to_string()))
                .collect(),
            assignee: None,
            when: alert.due.as_ref().map(|due| phrase::when_at(due, now)),
            active_at: alert.active_at,
            starts_at: alert.starts_at,
            ends_at: alert.ends_at,
            updated_at: alert.updated_at,
        }
    }
}
