//! The operations of the API. The declaration of a list is the only place that names its parameters.

use axum::http::Uri;

use crate::http::error::WebError;
use crate::http::parameters::{
    ACKNOWLEDGED, DELIVERY_STATE, FROM, GROUP, KIND, MATCHER, MIN_VALUE, ONE_GROUP, PAGING, Parameter, RECEIVER, RESOURCE, RULE,
    RULES, SEARCH, SEVERITY, SINCE, SORT, STATE, TO, TOKEN, TOKENS, UNLOCK_TYPE, WITHIN,
};
use crate::http::query::ListQuery;

#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    /// The `operationId`.
    pub id: &'static str,
    pub summary: &'static str,
    /// The parameters of the query string without [`PAGING`].
    pub parameters: &'static [Parameter],
    /// The schema of the request body.
    pub body: Option<&'static str>,
    pub status: &'static str,
    pub response: DocumentedBody,
}

/// The response body of an operation. The texts are names of schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum DocumentedBody {
    One(&'static str),
    /// A list with pages.
    List(&'static str),
    /// A list without pages.
    All(&'static str),
    Empty,
}

impl Operation {
    /// Returns the parameters of the query string, including [`PAGING`].
    pub fn query_parameters(&self) -> Vec<Parameter> {
        let paging = matches!(self.response, DocumentedBody::List(_)).then_some(PAGING);
        self.parameters.iter().copied().chain(paging.into_iter().flatten()).collect()
    }

    /// Parses the query string of a request.
    pub fn query(&self, uri: &Uri) -> Result<ListQuery, WebError> {
        ListQuery::parse(&self.query_parameters(), uri)
    }
}

const fn get(path: &'static str, id: &'static str, summary: &'static str, response: DocumentedBody) -> Operation {
    Operation { method: "get", path, id, summary, parameters: &[], body: None, status: "200", response }
}

/// A list with pages of `row`.
const fn list(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    row: &'static str,
    parameters: &'static [Parameter],
) -> Operation {
    Operation { parameters, ..get(path, id, summary, DocumentedBody::List(row)) }
}

const fn post(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: &'static str,
    response: &'static str,
) -> Operation {
    Operation { method: "post", body: Some(body), status: "201", ..get(path, id, summary, DocumentedBody::One(response)) }
}

pub(super) const UPCOMING: Operation = list(
    "/api/upcoming",
    "listUpcoming",
    "List upcoming cliff and linear unlocks, nearest first",
    "Unlock",
    &[TOKENS, GROUP, WITHIN, MIN_VALUE, RULES, UNLOCK_TYPE],
);
pub(in crate::http) const TOKEN_LIST: Operation = list("/api/tokens", "listTokens", "List tokens", "Token", &[SEARCH, SORT]);
pub(super) const SUPPLY: Operation = Operation {
    parameters: &[ONE_GROUP],
    ..get("/api/supply", "getSupply", "Get the coming supply of all watched tokens or of a group", DocumentedBody::One("Supply"))
};
pub(in crate::http) const CHANGES: Operation =
    list("/api/changes", "listChanges", "List changes, newest first", "ChangeRow", &[TOKEN, KIND, RESOURCE, SINCE, FROM, TO]);
pub(in crate::http) const ALERTS: Operation = list(
    "/api/alerts",
    "listAlerts",
    "List alerts, most recently updated first",
    "Alert",
    &[STATE, RULE, TOKEN, SEVERITY, ACKNOWLEDGED, RECEIVER, SINCE, FROM, TO],
);
pub(super) const RULE_LIST: Operation = list("/api/rules", "listRules", "List active rules", "Rule", &[RULE]);
pub(in crate::http) const DELIVERIES: Operation = list(
    "/api/outbox",
    "listDeliveries",
    "List deliveries, newest first",
    "Delivery",
    &[RECEIVER, DELIVERY_STATE, SINCE, FROM, TO],
);
pub(super) const SILENCE_PREVIEW: Operation = Operation {
    parameters: &[MATCHER],
    ..get(
        "/api/silences/preview",
        "previewSilence",
        "Preview the alerts that a silence would suppress",
        DocumentedBody::One("SilencePreview"),
    )
};

pub(in crate::http) const OPERATIONS: &[Operation] = &[
    get("/api/status", "getStatus", "Get the status of the daemon", DocumentedBody::One("Status")),
    UPCOMING,
    SUPPLY,
    TOKEN_LIST,
    get("/api/tokens/{id}", "getToken", "Get a token with all its records", DocumentedBody::One("TokenDetail")),
    CHANGES,
    ALERTS,
    get(
        "/api/alerts/{id}",
        "getAlert",
        "Get an alert with its history, notifications, and explanation",
        DocumentedBody::One("AlertStory"),
    ),
    get("/api/polls", "listPolls", "List the latest polls of each endpoint", DocumentedBody::All("PastPolls")),
    RULE_LIST,
    DELIVERIES,
    get(
        "/api/outbox/{id}",
        "getDelivery",
        "Get a delivery with its attempts and notifications",
        DocumentedBody::One("DeliveryDetail"),
    ),
    get("/api/silences", "listSilences", "List pending and active silences", DocumentedBody::All("Silence")),
    post("/api/silences", "makeSilence", "Create a silence, or preview it with `dryRun`", "NewSilence", "SilenceMade"),
    SILENCE_PREVIEW,
    Operation {
        method: "delete",
        status: "204",
        ..get("/api/silences/{id}", "expireSilence", "Expire a silence", DocumentedBody::Empty)
    },
    get("/api/acks", "listAcknowledgements", "List acknowledgements", DocumentedBody::All("Acknowledgement")),
    post("/api/acks", "acknowledge", "Acknowledge an alert", "NewAcknowledgement", "AcknowledgementMade"),
    get("/api/openapi.json", "getDescription", "Get this document", DocumentedBody::One("Description")),
];
