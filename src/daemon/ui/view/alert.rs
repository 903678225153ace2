//! An alert, with where it stands with its receivers.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use model::{Alert, AlertId, AlertState, Labels, NotificationState, ReceiverStatus, Resource, Timestamp, TokenId, format};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertView {
    pub id: String,
    pub rule: String,
    pub state: AlertState,
    /// Why it ended.
    pub reason: Option<&'static str>,
    /// Slug, where it is about a token.
    pub token_id: Option<String>,
    /// Its ticker, where it has one.
    pub symbol: Option<String>,
    pub resource: Option<Resource>,
    /// What it is about, within its rule.
    pub subject: String,
    /// First line of its message.
    pub summary: String,
    pub labels: Labels,
    pub annotations: BTreeMap<String, String>,
    /// Lead times told.
    pub leads: Vec<String>,
    /// Receivers that took a message of it.
    pub told: Vec<String>,
    /// Receivers whose latest message of it did not arrive, and what became of that: `waiting`, `due`, `retrying`, `dead`, `dropped`,
    /// `silenced`, `inhibited`, `acknowledged`.
    pub not_told: BTreeMap<String, String>,
    /// The record's time in words.
    pub when: Option<String>,
    /// When its condition first held.
    pub active_at: Timestamp,
    /// When it began to fire, or happened.
    pub starts_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
    /// Its last step.
    pub updated_at: Timestamp,
}

impl AlertView {
    /// Who was told and who was not, in words: `ops, desk (silenced)`.
    pub fn told_words(&self) -> String {
        let told = self.told.iter().filter(|name| !self.not_told.contains_key(*name)).cloned();
        let not_told = self.not_told.iter().map(|(name, state)| match self.told.contains(name) {
            true => format!("{name} (last: {state})"),
            false => format!("{name} ({state})"),
        });
        told.chain(not_told).collect::<Vec<_>>().join(", ")
    }

    /// The views of alerts, each with where it stands with its receivers and the ticker of its token.
    pub fn all(
        alerts: &[Alert],
        standings: &HashMap<AlertId, Vec<ReceiverStatus>>,
        tickers: &HashMap<TokenId, String>,
    ) -> Vec<Self> {
        let of = |alert: &Alert| Self {
            symbol: alert.token.as_ref().and_then(|token| tickers.get(token)).cloned(),
            ..Self::of(alert, standings.get(&alert.id).map_or(&[][..], Vec::as_slice))
        };
        alerts.iter().map(of).collect()
    }

    /// The view of an alert, its ticker left out.
    pub fn of(alert: &Alert, standings: &[ReceiverStatus]) -> Self {
        let name = |standing: &ReceiverStatus| standing.receiver.as_str().to_owned();
        Self {
            id: alert.id.as_str().to_owned(),
            rule: alert.name.clone(),
            state: alert.state,
            reason: alert.resolution.map(model::alert::Resolution::as_str),
            token_id: alert.token.as_ref().map(|token| token.as_str().to_owned()),
            symbol: None,
            resource: alert.resource,
            subject: alert.subject.clone(),
            summary: alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()),
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            leads: alert.leads.clone(),
            told: standings.iter().filter(|standing| standing.was_told).map(name).collect(),
            not_told: standings
                .iter()
                .filter(|standing| standing.state != NotificationState::Delivered)
                .map(|standing| (name(standing), standing.state.to_string()))
                .collect(),
            when: alert.due.as_ref().map(format::when),
            active_at: alert.active_at,
            starts_at: alert.starts_at,
            ends_at: alert.ends_at,
            updated_at: alert.updated_at,
        }
    }
}
