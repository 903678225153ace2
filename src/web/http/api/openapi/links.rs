//! The links between operations: which value of a response another operation takes.

use serde_json::{Map, Value, json};

/// A link from the successful response of an operation.
pub(super) struct OperationLink {
    /// The `operationId` of the operation with the response.
    pub from: &'static str,
    /// The `operationId` of the operation that takes the value.
    pub to: &'static str,
    pub target: LinkTarget,
    /// The JSON pointer of the value in the response.
    pub pointer: &'static str,
}

/// The place of the value in the request.
#[derive(Clone, Copy)]
pub(super) enum LinkTarget {
    /// The parameter of this name.
    Parameter(&'static str),
    /// This field of the request body, next to an `author`.
    BodyWithAuthor(&'static str),
}

const fn link(from: &'static str, to: &'static str, parameter: &'static str, pointer: &'static str) -> OperationLink {
    OperationLink { from, to, target: LinkTarget::Parameter(parameter), pointer }
}

const FIRST_ID: &str = "/0/id";

/// The links, by the operation with the response. A pointer into a list selects its first row.
pub(super) const LINKS: &[OperationLink] = &[
    link("listUpcoming", "getToken", "id", "/0/tokenId"),
    link("listTokens", "getToken", "id", FIRST_ID),
    link("listTokens", "acceptHeld", "id", FIRST_ID),
    link("listTokens", "listChanges", "token", FIRST_ID),
    link("listChanges", "getToken", "id", "/0/token"),
    link("listAlerts", "getAlert", "id", FIRST_ID),
    OperationLink { from: "listAlerts", to: "acknowledge", target: LinkTarget::BodyWithAuthor("alert"), pointer: FIRST_ID },
    link("acknowledge", "getAlert", "id", "/alert"),
    link("acknowledge", "removeAcknowledgement", "id", "/alert"),
    link("listAcknowledgements", "removeAcknowledgement", "id", "/0/alert"),
    link("listEvents", "listEvents", "after", "/next"),
    link("listRules", "listAlerts", "rule", "/0/name"),
    link("listDeliveries", "getDelivery", "id", FIRST_ID),
    link("listDeliveries", "retryDelivery", "id", FIRST_ID),
    link("listDeliveries", "dropDelivery", "id", FIRST_ID),
    link("retryDelivery", "getDelivery", "id", "/delivery"),
    link("dropDelivery", "getDelivery", "id", "/delivery"),
    link("makeSilence", "getSilence", "id", "/id"),
    link("makeSilence", "updateSilence", "id", "/id"),
    link("makeSilence", "expireSilence", "id", "/id"),
    link("listSilences", "getSilence", "id", FIRST_ID),
    link("listSilences", "expireSilence", "id", FIRST_ID),
    link("updateSilence", "getSilence", "id", "/id"),
    link("updateSilence", "expireSilence", "id", "/id"),
];

/// Returns the `links` of the successful response of an operation. `None` if it has none.
pub(super) fn links_of(operation: &str) -> Option<Value> {
    let own = LINKS.iter().filter(|link| link.from == operation);
    let links: Map<String, Value> = own.map(|link| (link.to.to_owned(), link_json(link))).collect();
    (!links.is_empty()).then(|| links.into())
}

fn link_json(link: &OperationLink) -> Value {
    let value = format!("$response.body#{}", link.pointer);
    match link.target {
        LinkTarget::Parameter(name) => json!({"operationId": link.to, "parameters": {name: value}}),
        LinkTarget::BodyWithAuthor(field) => {
            json!({"operationId": link.to, "requestBody": {field: value, "author": "an API client"}})
        }
    }
}
