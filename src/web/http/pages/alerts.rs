//! The list of alerts, and the page of one alert with its actions.

use axum::extract::{Extension, Path, Query, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{ActionResult, RequestVisitor, frame, login_url, render_page, state_choices, static_frame};
use crate::http::HttpDeps;
use crate::http::access::{ActDeps, forms::FormFields, login::redirect};
use crate::http::alert_detail::{AlertDetail, NotificationView, NotifiedText};
use crate::http::api::operations::ALERTS;
use crate::http::api::{lists, silences};
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::group::SelectedGroups;
use crate::http::parameters::{ACKNOWLEDGED, AFTER, ASSIGNEE, CHOSEN, Parameter, RECEIVER, RULE, SEVERITY, TOKEN};
use crate::http::query::ListQuery;
use crate::ui::alerted_unlock::AlertedUnlock;
use crate::ui::history::{FormerEpisode, HistoryStep};
use crate::ui::page::{Choice, Section};
use crate::ui::range::RangeView;
use crate::ui::template::segment;
use daemon::view::AlertView;
use engine::explain::Explanation;
use model::note::{AlertNote, Assignment, checked_assignment, checked_note};
use model::silence::UNKNOWN_AUTHOR;
use model::{
    Ack, AckResult, Alert, AlertId, AlertState, Attempt, Matcher, OutboxRow, Resource, SilencePreview, Timestamp, UserAction,
    checked_ack_texts, phrase, wire::UnlockEvent,
};

/// The number of alerts on a page.
const ROWS: u32 = 50;
/// The severities in the filter form. Others work in the URL.
const SEVERITIES: [&str; 3] = ["critical", "warning", "info"];

/// Returns the parameters of the page: the filters of the API list, the cursor, and the selection.
fn parameters() -> Vec<Parameter> {
    [ALERTS.parameters, &[AFTER, CHOSEN]].concat()
}

#[derive(Serialize)]
struct AlertsPage {
    now: Timestamp,
    query: ListQuery,
    range: RangeView,
    has_filters: bool,
    states: Vec<Choice>,
    severities: [&'static str; 3],
    rules: Vec<String>,
    receivers: Vec<String>,
    rows: Vec<AlertView>,
    acknowledged: Vec<String>,
    total: u64,
    first: Option<String>,
    next: Option<String>,
    api: String,
    /// The URL to return to after a bulk action.
    here: String,
    /// The URL of the same page with all alerts selected. `None` if no alert can be selected.
    choose_all: Option<String>,
}

pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Query(DoneQuery { done }): Query<DoneQuery>,
    uri: Uri,
) -> ActionResult {
    let now = deps.app.clock.now();
    let query = ListQuery::from_page(&parameters(), &uri);
    let acknowledged = match query.value_or_empty(ACKNOWLEDGED) {
        "yes" => "true",
        "no" => "false",
        _ => "",
    };
    let live = deps.app.live.load_full();
    let groups = SelectedGroups::of(&query, &live)?;
    let listed = lists::alert_page(&deps, &query.clone().with(ACKNOWLEDGED, acknowledged), ROWS).await?;
    let counts = deps.app.store.alert_counts(groups.members(&deps).await?).await?;
    let states = AlertState::ALL.map(|state| {
        let count = counts.iter().find(|(counted, _)| *counted == state).map_or(0, |(_, count)| *count);
        (state.as_str(), count)
    });
    let mut rules: Vec<String> = live.active.rules.rules.iter().map(|rule| rule.name.clone()).collect();
    // Source alerts exist without a rule, but a rule can have the same name.
    if !rules.iter().any(|name| name == model::SOURCE_TROUBLE) {
        rules.push(model::SOURCE_TROUBLE.to_owned());
    }
    let has_open = listed.rows.iter().any(|row| matches!(row.state, AlertState::Pending | AlertState::Firing));
    let has_filters =
        [SEVERITY, RULE, TOKEN, ACKNOWLEDGED, ASSIGNEE, RECEIVER].into_iter().any(|parameter| query.text(parameter).is_some());
    let page = AlertsPage {
        now,
        has_filters: has_filters || query.range().is_bounded(),
        range: query.range().view(|range| query.clone().with_range(range).first_page("/alerts")),
        states: state_choices(&query, "/alerts", states),
        severities: SEVERITIES,
        rules,
        receivers: live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        acknowledged: deps.app.store.acks().await?.iter().map(|ack| ack.alert.to_string()).collect(),
        rows: listed.rows,
        total: listed.total,
        first: query.text(AFTER).map(|_| query.first_page("/alerts")),
        next: listed.next.map(|after| query.clone().with(AFTER, &after).with(CHOSEN, "").href("/alerts")),
        here: query.clone().with(CHOSEN, "").href("/alerts"),
        choose_all: has_open.then(|| query.clone().with(CHOSEN, "all").href("/alerts")),
        api: query.clone().with(AFTER, "").with(ACKNOWLEDGED, "").with(CHOSEN, "").href("/api/v1/alerts"),
        query,
    };
    let frame = frame(Section::Alerts, &visitor, now, &done).with_groups(groups.picker(Section::Alerts, &page.query, &live));
    Ok(render_page("alerts.html", &frame, &page))
}

/// The result of the last action, see [`super::flash`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DoneQuery {
    pub(super) done: String,
}

#[derive(Serialize)]
struct DeliveryRow<'a> {
    row: &'a OutboxRow,
    attempts: &'a [Attempt],
}

#[derive(Serialize)]
struct AlertPage<'a> {
    now: Timestamp,
    id: &'a str,
    title: String,
    description: Option<&'a str>,
    runbook: Option<&'a str>,
    alert: Option<&'a AlertView>,
    severity: Option<&'a str>,
    is_open: bool,
    /// The effect of its rule in one sentence. `None` if the rule is not active.
    rule_sentence: Option<&'a str>,
    /// The unlock of an alert about a cliff unlock.
    unlock: Option<AlertedUnlock>,
    ack: Option<&'a Ack>,
    assignment: Option<&'a Assignment>,
    notes: &'a [AlertNote],
    history: &'a [HistoryStep],
    former: &'a [FormerEpisode],
    /// Rows of a change: label, old value, new value.
    sides: Option<Vec<(String, String, String)>>,
    change: Option<&'a str>,
    /// The direction of the change with its sign. `None` if it has none.
    direction: Option<String>,
    explanation: Option<&'a Explanation>,
    unexplained: Option<&'a str>,
    notified: &'a [NotificationView],
    deliveries: Vec<DeliveryRow<'a>>,
    record: Option<String>,
    is_record_current: bool,
    /// The text of the latest notification, if the current text differs.
    as_notified: Option<NotifiedText>,
    /// The matchers of the suggested silence, one per line.
    matchers: String,
    hides: Option<SilencePreview>,
    hides_sentence: String,
    login: String,
    path: String,
}

pub(super) async fn show(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Path(id): Path<String>,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> ActionResult {
    let now = deps.app.clock.now();
    let Some(detail) = AlertDetail::load(&deps, AlertId::from(id.as_str())).await? else { return Err(unknown(&deps)) };
    let matchers = detail.alert.as_ref().map(matchers_of).unwrap_or_default();
    let is_open = detail.alert.as_ref().is_some_and(|alert| matches!(alert.state, AlertState::Pending | AlertState::Firing));
    let hides = match matchers.is_empty() {
        true => None,
        false => Some(silences::preview_matchers(&deps, &matchers).await?),
    };
    let latest = detail.notifications.last();
    let annotation = |name: &str| {
        let current = detail.alert.as_ref().and_then(|alert| alert.annotations.get(name));
        current.or_else(|| latest.and_then(|notification| notification.body.annotations.get(name))).map(String::as_str)
    };
    let labels =
        detail.alert.as_ref().map(|alert| &alert.labels).or_else(|| latest.map(|notification| &notification.body.labels));
    let path = format!("/alerts/{}", segment(&id));
    let page = AlertPage {
        now,
        id: &id,
        title: annotation("summary").and_then(|text| text.lines().next()).unwrap_or(&id).to_owned(),
        description: annotation("description"),
        runbook: annotation("runbook_url").filter(|url| url.starts_with("https://") || url.starts_with("http://")),
        alert: detail.view.as_ref(),
        severity: labels.and_then(|labels| labels.get("severity")).map(String::as_str),
        is_open,
        rule_sentence: detail.rule_sentence.as_deref(),
        unlock: alerted_unlock(&deps, &detail, now).await?,
        ack: detail.ack.as_ref(),
        assignment: detail.assignment.as_ref(),
        notes: &detail.notes,
        history: &detail.history,
        former: &detail.former,
        sides: detail.change.as_ref().map(|row| notify::change_rows(&row.change)),
        change: detail.change.as_ref().map(|row| row.change.summary.as_str()),
        direction: detail.change.as_ref().and_then(|row| phrase::direction(&row.change)),
        explanation: detail.explanation.as_ref(),
        unexplained: detail.unexplained.as_deref(),
        notified: &detail.notified,
        deliveries: detail.deliveries.iter().map(|of| DeliveryRow { row: &of.row, attempts: &of.attempts }).collect(),
        is_record_current: detail.current_record.is_some(),
        as_notified: detail.as_notified(),
        record: detail.record().and_then(|record| serde_json::to_string_pretty(record).ok()),
        matchers: matchers.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        hides_sentence: hides.as_ref().map(SilencePreview::sentence).unwrap_or_default(),
        hides,
        login: login_url(&path),
        path,
    };
    Ok(render_page("alert.html", &static_frame(Section::Alerts, &visitor, now, &done), &page))
}

/// Returns the unlock that an alert is about, with its schedule. `None` if it is about something else.
async fn alerted_unlock(deps: &HttpDeps, detail: &AlertDetail, now: Timestamp) -> Result<Option<AlertedUnlock>, WebError> {
    let Some(alert) = detail.alert.as_ref().filter(|alert| alert.resource == Some(Resource::Unlock)) else { return Ok(None) };
    // A record that an earlier version stored can have another form. The page then lacks this part.
    let event: Option<UnlockEvent> = detail.record().and_then(|record| serde_json::from_value(record.clone()).ok());
    let Some(event) = event.filter(UnlockEvent::has_cliff) else { return Ok(None) };
    let (mut snapshot, mut versions) = (None, Vec::new());
    if let Some(token) = &alert.token {
        snapshot = deps.app.store.tokens(vec![token.clone()], vec![Resource::Unlock]).await?.pop();
        if detail.change.is_some() {
            versions = deps.app.store.versions(token.clone()).await?;
        }
    }
    Ok(AlertedUnlock::of(&event, snapshot.as_ref(), detail.change.as_ref(), &versions, now))
}

/// Returns the error for an unknown alert, which may have been deleted.
fn unknown(deps: &HttpDeps) -> WebError {
    let days = deps.app.live.load().config.store.retention.delta().num_days();
    let message = format!(
        "no alert has this id. Alerts that ended are deleted after {days} days; `[store] retention` in the config sets this period"
    );
    WebError::new(ErrorCode::UnknownAlert, message)
}

/// Returns the matchers of a silence for this alert and similar ones: the same rule and token.
pub(super) fn matchers_of(alert: &Alert) -> Vec<Matcher> {
    let of = |name: &str| alert.labels.get(name).and_then(|value| Matcher::of(name, value, false, true).ok());
    ["alertname", "token", "group", "receiver"].into_iter().filter_map(of).collect()
}

/// `POST /alerts/{id}/acknowledge`.
pub(super) async fn acknowledge(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let Ok((author, comment)) = checked_ack_texts(fields.text("author"), fields.text("comment")) else {
        return Ok(redirect_to_alert(&id, "author"));
    };
    let done = match deps.app.store.acknowledge(id.clone(), author.clone(), comment, deps.app.clock.now()).await? {
        AckResult::Done(alert) => {
            tracing::info!(alert = alert.id.as_str(), author, "alert acknowledged");
            "acknowledged"
        }
        AckResult::Unknown | AckResult::Several(_) => "over",
    };
    Ok(redirect_to_alert(&id, done))
}

/// `POST /alerts/{id}/notes`.
pub(super) async fn add_note(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let Ok(note) = checked_note(AlertId::from(id.as_str()), fields.text("author"), fields.raw("text")) else {
        return Ok(redirect_to_alert(&id, "no-note"));
    };
    let outcome = deps.app.store.perform(UserAction::AddNote(note), deps.app.clock.now()).await?;
    Ok(redirect_to_alert(&id, if outcome.is_done() { "noted" } else { "not-noted" }))
}

/// `POST /alerts/{id}/assign`.
pub(super) async fn assign(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let author = if visitor.name().is_empty() { UNKNOWN_AUTHOR } else { visitor.name() };
    let Ok(new) = checked_assignment(AlertId::from(id.as_str()), author, fields.text("assignee")) else {
        return Ok(redirect_to_alert(&id, "author"));
    };
    let done = if new.assignee.is_some() { "assigned" } else { "unassigned" };
    let outcome = deps.app.store.perform(UserAction::Assign(new), deps.app.clock.now()).await?;
    Ok(redirect_to_alert(&id, if outcome.is_done() { done } else { "not-noted" }))
}

/// `POST /alerts/{id}/unacknowledge`.
pub(super) async fn unacknowledge(ActDeps(deps): ActDeps, Path(id): Path<String>) -> ActionResult {
    let is_done = deps.app.store.unacknowledge(AlertId::from(id.as_str()), deps.app.clock.now()).await?;
    Ok(redirect_to_alert(&id, if is_done { "unacknowledged" } else { "over" }))
}

fn redirect_to_alert(id: &str, done: &str) -> Response {
    redirect(&format!("/alerts/{}?done={done}", segment(id)))
}
