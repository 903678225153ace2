//! Alerts: the list with its filters, and the story of one, where one acts.

use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{Asked, DeskResult, frame, login_to, shown, still_frame};
use crate::http::access::{forms::FormFields, login::see};
use crate::http::page::PageError;
use crate::http::query::ListQuery;
use crate::http::story::{Story, StoryStatus};
use crate::http::{HttpDeps, lists, silences};
use crate::ui::history::{FormerEpisode, HistoryStep};
use crate::ui::page::{Choice, Section, href};
use crate::ui::range::{RangeView, RangeWords};
use crate::ui::template::segment;
use crate::ui::view::AlertView;
use engine::explain::Explanation;
use model::{Ack, AckResult, Alert, AlertId, AlertState, Attempt, Matcher, OutboxRow, SilencePreview, Timestamp, ack_words};

/// Alerts on a page of the list.
const ROWS: u32 = 50;
/// Severities that are offered as filters; others can be asked for by the address.
const SEVERITIES: [&str; 3] = ["critical", "warning", "info"];

/// The filters, as a form sends them: what is empty filters nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct AlertsQuery {
    state: String,
    severity: String,
    rule: String,
    token: String,
    acknowledged: String,
    receiver: String,
    since: String,
    from: String,
    to: String,
    after: String,
    #[serde(skip_serializing)]
    done: String,
    /// Whether all that can be chosen on the page is.
    chosen: String,
}

impl AlertsQuery {
    /// The address of the same list with another state, from its begin.
    fn with_state(&self, state: &str) -> String {
        let of = Self { state: state.to_owned(), after: String::new(), chosen: String::new(), ..self.clone() };
        of.href("/alerts")
    }

    fn href(&self, path: &str) -> String {
        href(
            path,
            &[
                ("state", &self.state),
                ("severity", &self.severity),
                ("rule", &self.rule),
                ("token", &self.token),
                ("acknowledged", &self.acknowledged),
                ("receiver", &self.receiver),
                ("since", &self.since),
                ("from", &self.from),
                ("to", &self.to),
                ("after", &self.after),
                ("chosen", &self.chosen),
            ],
        )
    }

    fn has_filters(&self) -> bool {
        let given = [&self.severity, &self.rule, &self.token, &self.acknowledged, &self.receiver];
        given.iter().any(|text| !text.is_empty()) || self.range().is_bounded()
    }

    fn range(&self) -> RangeWords {
        RangeWords::of(&self.since, &self.from, &self.to)
    }

    /// The same list of another time, from its begin.
    fn with_range(&self, range: &RangeWords) -> Self {
        let RangeWords { since, from, to } = range.clone();
        Self { since, from, to, after: String::new(), chosen: String::new(), ..self.clone() }
    }

    fn list_query(&self) -> ListQuery {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let range = self.range();
        ListQuery {
            state: given(&self.state),
            severity: given(&self.severity),
            rule: given(&self.rule),
            token: given(&self.token),
            acknowledged: match self.acknowledged.as_str() {
                "yes" => Some(true),
                "no" => Some(false),
                _ => None,
            },
            receiver: given(&self.receiver),
            since: given(&range.since),
            from: given(&range.from),
            to: given(&range.to),
            after: given(&self.after),
            limit: Some(ROWS),
            ..ListQuery::default()
        }
    }
}

#[derive(Serialize)]
struct AlertsPage {
    now: Timestamp,
    query: AlertsQuery,
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
    /// Where one comes back to from what is done with those that were chosen.
    here: String,
    /// The same page with all of them chosen; none where none can be.
    choose_all: Option<String>,
}

pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Query(query): Query<AlertsQuery>,
) -> DeskResult {
    let now = deps.clock.now();
    let part = lists::alert_part(&deps, &query.list_query()).await?;
    let counts = deps.store.alert_counts().await?;
    let states = AlertState::ALL.into_iter().map(|state| {
        let count = counts.iter().find(|(of, _)| *of == state).map_or(0, |(_, count)| *count);
        let name = format!(
            "{}{}",
            state.as_str().get(..1).unwrap_or_default().to_uppercase(),
            state.as_str().get(1..).unwrap_or_default()
        );
        Choice { count: Some(count), ..Choice::new(name, query.with_state(state.as_str()), query.state == state.as_str()) }
    });
    let all = Choice::new("All", query.with_state(""), query.state.is_empty());
    let live = deps.live.load_full();
    let mut rules: Vec<String> = live.active.rules.rules.iter().map(|rule| rule.name.clone()).collect();
    // A rule may bear the name that those about the source have without one.
    if !rules.iter().any(|name| name == model::SOURCE_TROUBLE) {
        rules.push(model::SOURCE_TROUBLE.to_owned());
    }
    let has_open = part.rows.iter().any(|row| matches!(row.state, AlertState::Pending | AlertState::Firing));
    let done = query.done.clone();
    let page = AlertsPage {
        now,
        has_filters: query.has_filters(),
        range: query.range().view(|range| query.with_range(range).href("/alerts")),
        states: std::iter::once(all).chain(states).collect(),
        severities: SEVERITIES,
        rules,
        receivers: live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        acknowledged: deps.store.acks().await?.iter().map(|ack| ack.alert.to_string()).collect(),
        rows: part.rows,
        total: part.total,
        first: (!query.after.is_empty()).then(|| query.with_state(&query.state)),
        next: part.next.map(|after| AlertsQuery { after, chosen: String::new(), ..query.clone() }.href("/alerts")),
        here: AlertsQuery { chosen: String::new(), ..query.clone() }.href("/alerts"),
        choose_all: has_open.then(|| AlertsQuery { chosen: "all".to_owned(), ..query.clone() }.href("/alerts")),
        api: AlertsQuery { after: String::new(), acknowledged: String::new(), chosen: String::new(), ..query.clone() }
            .href("/api/alerts"),
        query,
    };
    Ok(shown("alerts.html", &frame(Section::Alerts, &visitor, now, &done), &page))
}

/// What was just done.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DoneQuery {
    pub(super) done: String,
}

/// A delivery with what the receiver answered.
#[derive(Serialize)]
struct StoryDelivery<'a> {
    row: &'a OutboxRow,
    attempts: &'a [Attempt],
}

#[derive(Serialize)]
struct StoryPage<'a> {
    now: Timestamp,
    id: &'a str,
    title: String,
    description: Option<&'a str>,
    runbook: Option<&'a str>,
    alert: Option<&'a AlertView>,
    severity: Option<&'a str>,
    is_open: bool,
    has_rule: bool,
    ack: Option<&'a Ack>,
    history: &'a [HistoryStep],
    former: &'a [FormerEpisode],
    /// What, before, after.
    sides: Option<Vec<(String, String, String)>>,
    change: Option<&'a str>,
    explanation: Option<&'a Explanation>,
    unexplained: Option<&'a str>,
    told: &'a [StoryStatus],
    deliveries: Vec<StoryDelivery<'a>>,
    record: Option<String>,
    /// Matchers of the silence that is offered, a line each.
    matchers: String,
    hides: Option<SilencePreview>,
    hides_sentence: String,
    login: String,
    path: String,
}

pub(super) async fn story(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Path(id): Path<String>,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> DeskResult {
    let now = deps.clock.now();
    let Some(story) = Story::read(&deps, AlertId::from(id.as_str())).await? else { return Err(unknown(&deps)) };
    let matchers = story.alert.as_ref().map(matchers_of).unwrap_or_default();
    let is_open = story.alert.as_ref().is_some_and(|alert| matches!(alert.state, AlertState::Pending | AlertState::Firing));
    let hides = match matchers.is_empty() {
        true => None,
        false => Some(silences::hidden_by(&deps, &matchers).await?),
    };
    let last = story.notifications.last();
    let annotation = |name: &str| {
        let own = story.alert.as_ref().and_then(|alert| alert.annotations.get(name));
        own.or_else(|| last.and_then(|told| told.body.annotations.get(name))).map(String::as_str)
    };
    let labels = story.alert.as_ref().map(|alert| &alert.labels).or_else(|| last.map(|told| &told.body.labels));
    let path = format!("/alerts/{}", segment(&id));
    let page = StoryPage {
        now,
        id: &id,
        title: annotation("summary").and_then(|text| text.lines().next()).unwrap_or(&id).to_owned(),
        description: annotation("description"),
        runbook: annotation("runbook_url").filter(|url| url.starts_with("https://") || url.starts_with("http://")),
        alert: story.view.as_ref(),
        severity: labels.and_then(|labels| labels.get("severity")).map(String::as_str),
        is_open,
        has_rule: story.has_rule,
        ack: story.ack.as_ref(),
        history: &story.history,
        former: &story.former,
        sides: story.change.as_ref().map(|row| notify::change_rows(&row.change)),
        change: story.change.as_ref().map(|row| row.change.summary.as_str()),
        explanation: story.explanation.as_ref(),
        unexplained: story.unexplained.as_deref(),
        told: &story.told,
        deliveries: story.deliveries.iter().map(|of| StoryDelivery { row: &of.row, attempts: &of.attempts }).collect(),
        record: story.record().and_then(|record| serde_json::to_string_pretty(record).ok()),
        matchers: matchers.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        hides_sentence: hides.as_ref().map(SilencePreview::sentence).unwrap_or_default(),
        hides,
        login: login_to(&path),
        path,
    };
    Ok(shown("alert.html", &still_frame(Section::Alerts, &visitor, now, &done), &page))
}

/// Why there is no page for an alert: perhaps it was forgotten.
fn unknown(deps: &HttpDeps) -> PageError {
    let days = deps.live.load().config.store.retention.delta().num_days();
    PageError::NotFound {
        title: "No such alert".to_owned(),
        text: format!(
            "Nothing is known of an alert with this id. What has ended is forgotten after {days} days ([store] retention in the config), \
             and its page with it."
        ),
        search: None,
    }
}

/// The matchers of a silence that takes this alert and what is alike: its rule, for its token.
pub(super) fn matchers_of(alert: &Alert) -> Vec<Matcher> {
    let of = |name: &str| alert.labels.get(name).and_then(|value| Matcher::of(name, value, false, true).ok());
    ["alertname", "token", "group", "receiver"].into_iter().filter_map(of).collect()
}

/// `POST /alerts/{id}/acknowledge`.
pub(super) async fn acknowledge(
    State(deps): State<HttpDeps>,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let Ok((author, comment)) = ack_words(fields.text("author"), fields.text("comment")) else { return Ok(back(&id, "author")) };
    let done = match deps.store.acknowledge(id.clone(), author.clone(), comment, deps.clock.now()).await? {
        AckResult::Done(alert) => {
            tracing::info!(alert = alert.id.as_str(), author, "an alert was acknowledged on its page");
            "acknowledged"
        }
        AckResult::Unknown | AckResult::Several(_) => "over",
    };
    Ok(back(&id, done))
}

/// `POST /alerts/{id}/unacknowledge`.
pub(super) async fn unacknowledge(State(deps): State<HttpDeps>, Path(id): Path<String>) -> DeskResult {
    let is_done = deps.store.unacknowledge(AlertId::from(id.as_str())).await?;
    Ok(back(&id, if is_done { "unacknowledged" } else { "over" }))
}

fn back(id: &str, done: &str) -> Response {
    see(&format!("/alerts/{}?done={done}", segment(id)))
}
