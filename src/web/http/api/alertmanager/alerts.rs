//! `/api/v2/alerts` and `/api/v2/alerts/groups`: the firing alerts, with what suppresses them and where they are routed.

use std::collections::{BTreeMap, HashMap};

use axum::Json;
use axum::http::Uri;
use chrono::TimeDelta;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::{filters, query};
use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::parameters::{Parameter, ParameterKind};
use crate::http::query::ListQuery;
use crate::http::request_limits::ReadDeps;
use daemon::current_texts::show_current_texts;
use daemon::live::LiveConfig;
use engine::evaluate::RuleEval as _;
use engine::route::{GroupBy, Inhibitor};
use model::{
    Alert, AlertCursor, AlertFilter, AlertId, AlertState, FiringAlert, Labels, Matcher, ReceiverName, Silence, Timestamp,
    all_match,
};

/// The maximum number of firing alerts that this API lists, because it has no pages.
const MAX_ALERTS: usize = 10_000;

/// The number of alerts that are read at a time.
const ROWS: u32 = 1_000;

/// The time after which a firing alert would end without news. Alertmanager's clients expect an end; the alert has none.
const ASSUMED_END: TimeDelta = TimeDelta::minutes(5);

const fn flag(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: ParameterKind::Boolean, description }
}

const ACTIVE: Parameter = flag("active", "Whether to include alerts that nothing suppresses. The default is `true`.");
const SILENCED: Parameter = flag("silenced", "Whether to include silenced alerts. The default is `true`.");
const INHIBITED: Parameter = flag("inhibited", "Whether to include inhibited alerts. The default is `true`.");
const UNPROCESSED: Parameter = flag("unprocessed", "Without effect: an alert is processed when it fires.");
const RECEIVER: Parameter = Parameter {
    name: "receiver",
    kind: ParameterKind::Text,
    description: "A regular expression that the name of a receiver of the alert must match.",
};

const PARAMETERS: &[Parameter] = &[ACTIVE, SILENCED, INHIBITED, UNPROCESSED, RECEIVER];

/// A firing alert, and what suppresses it now.
struct RoutedAlert {
    alert: Alert,
    receivers: Vec<ReceiverName>,
    silenced_by: Vec<String>,
    inhibited_by: Option<AlertId>,
}

impl RoutedAlert {
    fn json(&self, external_url: Option<&str>, now: Timestamp) -> Value {
        let Self { alert, receivers, silenced_by, inhibited_by } = self;
        let state = if silenced_by.is_empty() && inhibited_by.is_none() { "active" } else { "suppressed" };
        let mut annotations = alert.annotations.clone();
        annotations.insert("alert_id".to_owned(), alert.id.to_string());
        json!({
            "labels": alert.labels,
            "annotations": annotations,
            "startsAt": alert.starts_at.unwrap_or(alert.active_at),
            "updatedAt": alert.updated_at,
            "endsAt": now + ASSUMED_END,
            "fingerprint": fingerprint(&alert.id),
            "generatorURL": external_url.map(|url| format!("{}/alerts/{}", url.trim_end_matches('/'), alert.id)).unwrap_or_default(),
            "receivers": receivers.iter().map(|receiver| json!({"name": receiver})).collect::<Vec<_>>(),
            "status": {
                "state": state,
                "silencedBy": silenced_by,
                "inhibitedBy": inhibited_by.iter().map(fingerprint).collect::<Vec<_>>(),
                "mutedBy": [],
            },
        })
    }
}

/// Returns the fingerprint of an alert. Unlike that of Alertmanager, it is not derived from the labels, which two alerts can share.
fn fingerprint(id: &AlertId) -> String {
    format!("{:016x}", xxh3_64(id.as_str().as_bytes()))
}

/// The filters of a request.
struct AlertSelection {
    matchers: Vec<Matcher>,
    /// A pattern for the names of receivers.
    receiver: Option<Matcher>,
    includes_active: bool,
    includes_silenced: bool,
    includes_inhibited: bool,
}

impl AlertSelection {
    async fn parse(deps: &HttpDeps, query: &ListQuery) -> Result<Self, WebError> {
        let invalid = |_| WebError::invalid_parameter("receiver: expected a regular expression such as `ops|desk`");
        let pattern = |text: &str| Matcher::of(RECEIVER.name, text, true, true).map_err(invalid);
        let flag = |parameter| query.boolean(parameter).unwrap_or(true);
        Ok(Self {
            matchers: filters(deps, query).await?,
            receiver: query.text(RECEIVER).map(pattern).transpose()?,
            includes_active: flag(ACTIVE),
            includes_silenced: flag(SILENCED),
            includes_inhibited: flag(INHIBITED),
        })
    }

    /// Returns whether an alert is selected, as Alertmanager does.
    fn selects(&self, listed: &RoutedAlert) -> bool {
        let (is_silenced, is_inhibited) = (!listed.silenced_by.is_empty(), listed.inhibited_by.is_some());
        let as_label = |receiver: &ReceiverName| Labels::from([(RECEIVER.name.to_owned(), receiver.to_string())]);
        let has_receiver = |pattern: &Matcher| listed.receivers.iter().any(|receiver| pattern.matches(&as_label(receiver)));
        (self.includes_active || is_silenced || is_inhibited)
            && (self.includes_silenced || !is_silenced)
            && (self.includes_inhibited || !is_inhibited)
            && self.receiver.as_ref().is_none_or(has_receiver)
            && all_match(&self.matchers, &listed.alert.labels)
    }
}

/// `GET /api/v2/alerts`.
pub(super) async fn list(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Json<Vec<Value>>, WebError> {
    let (alerts, now) = (selected(&deps, &uri).await?, deps.app.clock.now());
    let external_url = deps.app.external_url.as_ref().map(url::Url::as_str);
    Ok(Json(alerts.iter().map(|listed| listed.json(external_url, now)).collect()))
}

/// `GET /api/v2/alerts/groups`: a group for each receiver and each set of labels by which its route groups. An alert without a group is
/// alone, with all its labels.
pub(super) async fn groups(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Json<Vec<Value>>, WebError> {
    let (alerts, now) = (selected(&deps, &uri).await?, deps.app.clock.now());
    let (live, external_url) = (deps.app.live.load_full(), deps.app.external_url.as_ref().map(url::Url::as_str));
    let mut groups: BTreeMap<(String, Labels, String), Vec<Value>> = BTreeMap::new();
    for listed in &alerts {
        let json = listed.json(external_url, now);
        for receiver in &listed.receivers {
            let labels = &listed.alert.labels;
            let leaf = live.active.routes.leaf(labels, receiver);
            let (labels, alone) = match &leaf.grouping().by {
                GroupBy::Alert => (labels.clone(), listed.alert.id.to_string()),
                GroupBy::AllLabels => (labels.clone(), String::new()),
                GroupBy::Labels(names) => {
                    let label = |name: &String| Some((name.clone(), labels.get(name)?.clone()));
                    (names.iter().filter_map(label).collect(), String::new())
                }
            };
            let key = (receiver.to_string(), labels, format!("{}{alone}", leaf.key()));
            groups.entry(key).or_default().push(json.clone());
        }
    }
    let group = |((receiver, labels, _), alerts)| json!({"receiver": {"name": receiver}, "labels": labels, "alerts": alerts});
    Ok(Json(groups.into_iter().map(group).collect()))
}

/// Returns the selected firing alerts, with their current texts.
async fn selected(deps: &HttpDeps, uri: &Uri) -> Result<Vec<RoutedAlert>, WebError> {
    let selection = AlertSelection::parse(deps, &query(PARAMETERS, uri)?).await?;
    let (live, now) = (deps.app.live.load_full(), deps.app.clock.now());
    let alerts = firing(deps).await?;
    let silences = deps.app.store.silences(Some(now)).await?;
    let mut selected = listed(alerts, &silences, &live, now);
    selected.retain(|listed| selection.selects(listed));
    let mut texts: Vec<&mut Alert> = selected.iter_mut().map(|listed| &mut listed.alert).collect();
    show_current_texts(&mut texts, &deps.app.store, &live.watch, &live.active, now).await?;
    Ok(selected)
}

/// Reads all firing alerts, most recently updated first.
async fn firing(deps: &HttpDeps) -> Result<Vec<Alert>, WebError> {
    let mut alerts: Vec<Alert> = Vec::new();
    loop {
        let after = alerts.last().map(AlertCursor::of);
        let filter = AlertFilter { states: vec![AlertState::Firing], after, limit: ROWS, ..AlertFilter::default() };
        let page = deps.app.store.alerts(filter).await?;
        if page.is_empty() {
            return Ok(alerts);
        }
        alerts.extend(page);
        if alerts.len() > MAX_ALERTS {
            let message = format!("more than {MAX_ALERTS} alerts fire: use /api/v1/alerts, which has pages");
            return Err(WebError::invalid_parameter(message));
        }
    }
}

fn listed(alerts: Vec<Alert>, silences: &[Silence], live: &LiveConfig, now: Timestamp) -> Vec<RoutedAlert> {
    let firing: Vec<FiringAlert> =
        alerts.iter().map(|alert| FiringAlert { id: alert.id.clone(), labels: alert.labels.clone() }).collect();
    let routes = &live.active.routes;
    let inhibitor = Inhibitor::new(routes.inhibit_rules(), &firing);
    let rules: HashMap<&str, &rules::Rule> = live.active.rules.rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
    let listed = |alert: Alert| {
        let silenced = silences.iter().filter(|silence| silence.suppresses(&alert.labels, now));
        let receivers = match rules.get(alert.rule.as_str()) {
            Some(rule) => rule.terms().receivers_for(routes, &alert.labels),
            // The receivers of an incident depend on what it is about.
            None => alert.notified.clone(),
        };
        RoutedAlert {
            silenced_by: silenced.map(|silence| silence.id.clone()).collect(),
            inhibited_by: inhibitor.of(&alert.id, &alert.labels).cloned(),
            receivers,
            alert,
        }
    };
    alerts.into_iter().map(listed).collect()
}
