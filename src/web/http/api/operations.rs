//! The operations of the API. The declaration of a list is the only place that names its parameters.

use axum::http::{Method, Uri};

use crate::http::error::WebError;
use crate::http::feeds::{ATOM_PARAMETERS, CALENDAR_PARAMETERS};
use crate::http::parameters::{
    ACKNOWLEDGED, ALERT_SORT, ASSIGNEE, AUDIT_TYPE, AUTHOR, BEFORE, DELIVERY_STATE, EVENT_AFTER, EVENT_LIMIT, EVENT_TYPE, FROM,
    GROUP, KIND, MATCHER, MIN_VALUE, ONE_GROUP, PAGES, PAGING, Parameter, RECEIVER, RESOURCE, RULE, RULES, SEARCH, SEVERITY,
    SINCE, SORT, STATE, TO, TOKEN, TOKENS, UNLOCK_TYPE, WAIT, WITHIN,
};
use crate::http::query::ListQuery;
use model::AccessRole;

/// The beginning of all paths of this version of the API, except for [`DOCUMENT`].
pub(in crate::http) const ROOT: &str = "/api/v1/";

/// The path of the OpenAPI document, which describes all versions.
pub(in crate::http) const DOCUMENT: &str = "/api/openapi.json";

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
    /// A text of this content type.
    Text(&'static str),
    Empty,
}

impl Operation {
    /// Returns the operation of a request. `None` if the path or the method is unknown.
    pub fn of(method: &Method, path: &str) -> Option<&'static Self> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let is_method = |operation: &&Self| method.as_str().eq_ignore_ascii_case(operation.method);
        let exact = OPERATIONS.iter().filter(is_method).find(|operation| operation.path == path);
        exact.or_else(|| OPERATIONS.iter().filter(is_method).find(|operation| operation.covers(path)))
    }

    /// Returns the methods that a path supports.
    pub fn methods_of(path: &str) -> Vec<String> {
        let is_exact = OPERATIONS.iter().any(|operation| operation.path == path);
        let own = OPERATIONS.iter().filter(|operation| if is_exact { operation.path == path } else { operation.covers(path) });
        let mut methods: Vec<String> = own.map(|operation| operation.method.to_uppercase()).collect();
        if methods.iter().any(|method| method == "GET") {
            methods.push("HEAD".to_owned());
        }
        methods
    }

    /// Returns whether a path has the form of the operation's path.
    fn covers(&self, path: &str) -> bool {
        let parts = || self.path.split('/').zip(path.split('/'));
        self.path.split('/').count() == path.split('/').count()
            && parts().all(|(own, given)| own == given || (own.starts_with('{') && !given.is_empty()))
    }

    /// Returns whether the parameters or the body of a request are checked. Reloads ignore both.
    pub fn is_checked(&self) -> bool {
        self.id != "reload"
    }

    /// Returns the role that an access key needs.
    pub fn role(&self) -> AccessRole {
        match (self.id, self.method) {
            ("reload", _) => AccessRole::Admin,
            (_, "get") => AccessRole::View,
            _ => AccessRole::Act,
        }
    }

    /// Returns whether the operation reads the event log.
    pub fn has_events(&self) -> bool {
        self.path == EVENTS.path || self.path == LIVE_EVENTS.path
    }

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

/// An action without a body.
const fn action(path: &'static str, id: &'static str, summary: &'static str, response: &'static str) -> Operation {
    Operation { method: "post", ..get(path, id, summary, DocumentedBody::One(response)) }
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
    "/api/v1/upcoming",
    "listUpcoming",
    "List upcoming cliff and linear unlocks, nearest first",
    "Unlock",
    &[TOKENS, GROUP, WITHIN, MIN_VALUE, RULES, UNLOCK_TYPE],
);
pub(in crate::http) const TOKEN_LIST: Operation =
    list("/api/v1/tokens", "listTokens", "List tokens", "Token", &[SEARCH, GROUP, SORT]);
pub(super) const SUPPLY: Operation = Operation {
    parameters: &[ONE_GROUP],
    ..get(
        "/api/v1/supply",
        "getSupply",
        "Get the coming supply of all watched tokens or of a group",
        DocumentedBody::One("Supply"),
    )
};
pub(in crate::http) const CHANGES: Operation = list(
    "/api/v1/changes",
    "listChanges",
    "List changes, newest first",
    "ChangeRow",
    &[TOKEN, GROUP, KIND, RESOURCE, SINCE, FROM, TO, BEFORE],
);
pub(in crate::http) const ALERTS: Operation = list(
    "/api/v1/alerts",
    "listAlerts",
    "List alerts, newest first",
    "Alert",
    &[STATE, RULE, TOKEN, GROUP, SEVERITY, ACKNOWLEDGED, ASSIGNEE, RECEIVER, SINCE, FROM, TO, ALERT_SORT, BEFORE],
);
pub(in crate::http) const AUDIT: Operation = list(
    "/api/v1/audit",
    "listActions",
    "List the actions of users, newest first",
    "AuditRow",
    &[AUTHOR, AUDIT_TYPE, SINCE, FROM, TO, BEFORE],
);
pub(super) const EVENTS: Operation = Operation {
    parameters: &[EVENT_AFTER, EVENT_TYPE, EVENT_LIMIT, WAIT],
    ..get(
        "/api/v1/events",
        "listEvents",
        "List what happened, oldest first, or wait until something happens",
        DocumentedBody::One("EventPage"),
    )
};
pub(in crate::http) const LIVE_EVENTS: Operation = Operation {
    parameters: &[EVENT_AFTER, EVENT_TYPE, PAGES],
    ..get(
        "/events",
        "streamEvents",
        "Get events as they are committed. The stream does not end",
        DocumentedBody::Text("text/event-stream"),
    )
};
pub(super) const RULE_LIST: Operation = list("/api/v1/rules", "listRules", "List active rules, by id", "Rule", &[RULE]);
pub(in crate::http) const DELIVERIES: Operation = list(
    "/api/v1/outbox",
    "listDeliveries",
    "List deliveries, newest first",
    "Delivery",
    &[RECEIVER, DELIVERY_STATE, SINCE, FROM, TO, BEFORE],
);
pub(super) const SILENCE_PREVIEW: Operation = Operation {
    parameters: &[MATCHER],
    ..get(
        "/api/v1/silences/preview",
        "previewSilence",
        "Preview the alerts that a silence would suppress",
        DocumentedBody::One("SilencePreview"),
    )
};

pub(in crate::http) const OPERATIONS: &[Operation] = &[
    get("/api/v1/status", "getStatus", "Get the status of the daemon", DocumentedBody::One("Status")),
    UPCOMING,
    SUPPLY,
    TOKEN_LIST,
    get("/api/v1/tokens/{id}", "getToken", "Get a token with all its records", DocumentedBody::One("TokenDetail")),
    action("/api/v1/tokens/{id}/accept", "acceptHeld", "Accept the held response of a token", "HeldAccepted"),
    CHANGES,
    ALERTS,
    EVENTS,
    get(
        "/api/v1/alerts/{id}",
        "getAlert",
        "Get an alert with its history, notifications, and explanation",
        DocumentedBody::One("AlertStory"),
    ),
    get("/api/v1/polls", "listPolls", "List the latest polls of each endpoint", DocumentedBody::All("PastPolls")),
    RULE_LIST,
    AUDIT,
    DELIVERIES,
    get(
        "/api/v1/outbox/{id}",
        "getDelivery",
        "Get a delivery with its attempts and notifications",
        DocumentedBody::One("DeliveryDetail"),
    ),
    action("/api/v1/outbox/{id}/retry", "retryDelivery", "Retry a delivery now", "DeliveryActed"),
    action("/api/v1/outbox/{id}/drop", "dropDelivery", "Drop a delivery without sending it", "DeliveryActed"),
    get("/api/v1/silences", "listSilences", "List pending and active silences", DocumentedBody::All("Silence")),
    post("/api/v1/silences", "makeSilence", "Create a silence, or preview it with `dryRun`", "NewSilence", "SilenceMade"),
    SILENCE_PREVIEW,
    get("/api/v1/silences/{id}", "getSilence", "Get a pending or active silence", DocumentedBody::One("Silence")),
    Operation {
        method: "delete",
        status: "204",
        ..get("/api/v1/silences/{id}", "expireSilence", "Expire a silence", DocumentedBody::Empty)
    },
    post(
        "/api/v1/replays",
        "replay",
        "Send the messages of a time range to a receiver again, or count them with `dryRun`",
        "NewReplay",
        "Replayed",
    ),
    Operation {
        method: "put",
        body: Some("NewSilence"),
        ..get("/api/v1/silences/{id}", "updateSilence", "Replace the values of a silence", DocumentedBody::One("SilenceMade"))
    },
    get("/api/v1/acks", "listAcknowledgements", "List acknowledgements", DocumentedBody::All("Acknowledgement")),
    post("/api/v1/alerts/{id}/notes", "addNote", "Add a note to an alert", "NewAlertNote", "AlertActed"),
    Operation {
        status: "200",
        ..post(
            "/api/v1/alerts/{id}/assign",
            "assignAlert",
            "Assign an alert to a person, or remove its assignee",
            "NewAssignment",
            "AlertActed",
        )
    },
    post("/api/v1/acks", "acknowledge", "Acknowledge an alert", "NewAcknowledgement", "AcknowledgementMade"),
    Operation {
        method: "delete",
        status: "204",
        ..get("/api/v1/acks/{id}", "removeAcknowledgement", "Remove the acknowledgement of an alert", DocumentedBody::Empty)
    },
    get(DOCUMENT, "getDescription", "Get this document", DocumentedBody::One("Description")),
    LIVE_EVENTS,
    Operation {
        parameters: CALENDAR_PARAMETERS,
        ..get("/calendar.ics", "getCalendar", "Get the calendar of unlocks", DocumentedBody::Text("text/calendar"))
    },
    Operation {
        parameters: ATOM_PARAMETERS,
        ..get("/feed.atom", "getFeed", "Get the feed of changes, newest first", DocumentedBody::Text("application/atom+xml"))
    },
    Operation {
        method: "post",
        ..get("/-/reload", "reload", "Reload the config and the rule files", DocumentedBody::Text("text/plain"))
    },
];
