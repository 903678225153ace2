//! `/api/v2/…`: the API of Alertmanager, so that its clients show our alerts and manage our silences.
//!
//! `alerts` lists alerts, `silences` maps silences onto ours, and this file has the rest. A silence that ours cannot express is rejected,
//! so that none is wider or narrower than requested. Errors are JSON texts, as clients of Alertmanager expect; see
//! `http::error`.

mod alerts;
mod silences;

use axum::extract::State;
use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::parameters::{Parameter, ParameterKind};
use crate::http::query::ListQuery;
use daemon::token_names::{FindTokenError, resolve_matchers};
use model::{Matcher, Silence, SilenceState, Timestamp, program, read_matchers};

/// The beginning of all paths of this API.
pub(in crate::http) const ROOT: &str = "/api/v2/";

/// The path of the alerts, and the beginning of that of their groups.
pub(in crate::http) const ALERTS: &str = "/api/v2/alerts";

/// The version of Alertmanager whose API this is. Clients read it to select what they can request.
const API_OF: &str = "0.25.0";

/// The text in place of the config of Alertmanager.
const CONFIG: &str = "# Cliffwatch has no config of Alertmanager. `cliffwatch routes show` prints its routes.\n";

const FILTER: Parameter = Parameter {
    name: "filter",
    kind: ParameterKind::Texts,
    description: "A matcher such as `token=\"arbitrum\"`. Can be repeated; all must match.",
};

pub(super) fn routes() -> Router<HttpDeps> {
    Router::new()
        .route("/api/v2/status", get(status))
        .route("/api/v2/receivers", get(receivers))
        .route(ALERTS, get(alerts::list))
        .route("/api/v2/alerts/groups", get(alerts::groups))
        .route("/api/v2/silences", get(silences::list).post(silences::create))
        .route("/api/v2/silence/{id}", get(silences::show).delete(silences::expire))
}

async fn status(State(deps): State<HttpDeps>) -> Result<Json<Value>, WebError> {
    Ok(Json(json!({
        "cluster": {"status": "disabled", "peers": []},
        "versionInfo": {
            "version": API_OF, "branch": "cliffwatch", "revision": program::VERSION, "buildUser": "", "buildDate": "", "goVersion": "",
        },
        "config": {"original": CONFIG},
        "uptime": deps.app.readiness.view().started_at,
    })))
}

async fn receivers(State(deps): State<HttpDeps>) -> Json<Vec<Value>> {
    let live = deps.app.live.load_full();
    Json(live.config.receivers.iter().map(|receiver| json!({"name": receiver.name})).collect())
}

/// Returns the matchers of the parameter `filter`. A ticker names its token, as in a silence.
async fn filters(deps: &HttpDeps, query: &ListQuery) -> Result<Vec<Matcher>, WebError> {
    let matchers = read_matchers(query.all(FILTER)).map_err(|error| WebError::invalid_parameter(error.to_string()))?;
    resolved(deps, matchers).await
}

/// Resolves the tokens in matchers. An unknown one is a bad request.
async fn resolved(deps: &HttpDeps, matchers: Vec<Matcher>) -> Result<Vec<Matcher>, WebError> {
    resolve_matchers(&deps.app.store, matchers).await.map_err(|error| match error {
        FindTokenError::Name(error) => WebError::invalid_parameter(error.to_string()),
        FindTokenError::Store(error) => error.into(),
    })
}

/// Parses the query string of a list that has these parameters and `filter`.
fn query(parameters: &[Parameter], uri: &Uri) -> Result<ListQuery, WebError> {
    let declared: Vec<Parameter> = parameters.iter().copied().chain([FILTER]).collect();
    ListQuery::parse(&declared, uri)
}

/// Returns a silence in the form of Alertmanager.
fn silence_json(silence: &Silence, now: Timestamp) -> Value {
    let state = silence.state(now);
    let matcher = |matcher: &Matcher| {
        let (value, is_regex, is_equal) = matcher.parts();
        json!({"name": matcher.label(), "value": value, "isRegex": is_regex, "isEqual": is_equal})
    };
    json!({
        "id": silence.id,
        "matchers": silence.matchers.iter().map(matcher).collect::<Vec<_>>(),
        "startsAt": silence.starts_at,
        "endsAt": silence.ends_at,
        // The time of an update is not stored.
        "updatedAt": if state == SilenceState::Expired { silence.ends_at } else { silence.created_at },
        "createdBy": silence.author,
        "comment": silence.comment,
        "status": {"state": state},
    })
}

#[cfg(test)]
mod tests;
