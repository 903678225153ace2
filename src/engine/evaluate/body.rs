//! Constructors for alerts and notification bodies.

use std::collections::BTreeMap;

use chrono::SecondsFormat;

use model::{Alert, AlertBody, AlertId, AlertState, AlertStatus, Labels, RuleId, Timestamp, Token, TokenBody};

/// Returns an alert with only its identity, state, and time.
pub fn blank(rule: RuleId, name: &str, subject: String, state: AlertState, now: Timestamp) -> Alert {
    Alert {
        id: AlertId::from(""),
        rule,
        name: name.to_owned(),
        subject,
        episode: 0,
        state,
        resolution: None,
        token: None,
        resource: None,
        key: None,
        level: None,
        labels: Labels::new(),
        former_labels: Vec::new(),
        annotations: BTreeMap::new(),
        notified: Vec::new(),
        leads: Vec::new(),
        members: Vec::new(),
        active_at: now,
        starts_at: None,
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        text_at: None,
        updated_at: now,
    }
}

/// Returns the body of a notification without a record.
pub fn plain_body(alert: &Alert, status: AlertStatus, reason: &str, now: Timestamp) -> AlertBody {
    AlertBody {
        status,
        labels: alert.labels.clone(),
        former_labels: alert.former_labels.clone(),
        annotations: alert.annotations.clone(),
        ends_at: alert.ends_at,
        ..AlertBody::firing(alert.id.clone(), &alert.name, reason, alert.starts_at.unwrap_or(now))
    }
}

pub fn token_body(token: &Token) -> TokenBody {
    TokenBody { id: token.id.as_str().to_owned(), name: token.name().to_owned(), symbol: token.symbol().to_owned() }
}

/// Formats an instant for subjects and transitions, like `2026-03-16T01:00:00Z`.
pub(super) fn iso(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
