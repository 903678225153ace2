//! The operations of `/api/…` and their parameters, as tables.

use super::{Answer, Operation};

const fn read(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [&'static str],
    answer: Answer,
) -> Operation {
    Operation { method: "get", path, id, summary, query, body: None, status: "200", answer }
}

const fn write(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: Option<&'static str>,
    status: &'static str,
    answer: Answer,
) -> Operation {
    Operation { method, path, id, summary, query: &[], body, status, answer }
}

/// Every operation that there is.
pub(in crate::http) const OPERATIONS: &[Operation] = &[
    read("/api/status", "getStatus", "How everything stands", &[], Answer::One("Status")),
    read(
        "/api/upcoming",
        "listUpcoming",
        "Unlocks ahead, the nearest first",
        &["tokens", "group", "within", "min_value", "rules"],
        Answer::List("Unlock"),
    ),
    read("/api/tokens", "listTokens", "Tokens", &["q", "sort"], Answer::List("Token")),
    read("/api/tokens/{id}", "getToken", "A token with every record that is known", &[], Answer::One("TokenDetail")),
    read(
        "/api/changes",
        "listChanges",
        "Changes, the latest first",
        &["token", "kind", "resource", "since", "from", "to"],
        Answer::List("ChangeRow"),
    ),
    read(
        "/api/alerts",
        "listAlerts",
        "Alerts, those that moved last first",
        &["state", "rule", "token", "severity", "acknowledged", "receiver", "since", "from", "to"],
        Answer::List("Alert"),
    ),
    read(
        "/api/alerts/{id}",
        "getAlert",
        "An alert with its story: what was told to whom, and why",
        &[],
        Answer::One("AlertStory"),
    ),
    read("/api/polls", "listPolls", "What each endpoint answered in its last cycles", &[], Answer::Whole("PastPolls")),
    read("/api/rules", "listRules", "The rules at work", &["rule"], Answer::List("Rule")),
    read(
        "/api/outbox",
        "listDeliveries",
        "Deliveries, the newest first",
        &["receiver", "delivery_state", "since", "from", "to"],
        Answer::List("Delivery"),
    ),
    read(
        "/api/outbox/{id}",
        "getDelivery",
        "A delivery with its attempts and everything that it stands for",
        &[],
        Answer::One("DeliveryDetail"),
    ),
    read("/api/silences", "listSilences", "Silences that are not over", &[], Answer::Whole("Silence")),
    write(
        "post",
        "/api/silences",
        "makeSilence",
        "Makes a silence; with `dryRun` says what it would hide",
        Some("NewSilence"),
        "201",
        Answer::One("SilenceMade"),
    ),
    read(
        "/api/silences/preview",
        "previewSilence",
        "What a silence with these matchers would hide",
        &["matcher"],
        Answer::One("SilencePreview"),
    ),
    write("delete", "/api/silences/{id}", "expireSilence", "Ends a silence", None, "204", Answer::Nothing),
    read("/api/acks", "listAcknowledgements", "What is acknowledged", &[], Answer::Whole("Acknowledgement")),
    write(
        "post",
        "/api/acks",
        "acknowledge",
        "Acknowledges an alert",
        Some("NewAcknowledgement"),
        "201",
        Answer::One("AcknowledgementMade"),
    ),
    read("/api/openapi.json", "getDescription", "This description", &[], Answer::One("Description")),
];

/// Parameters: the name under which operations ask for it, its name in the query, its type, what it means.
pub(super) const PARAMETERS: &[(&str, &str, &str, &str)] = &[
    ("token", "token", "string", "Slug of a token."),
    ("tokens", "token", "string", "Slugs of tokens, with commas between."),
    ("group", "group", "string", "Names of `[watch.groups]`, with commas between."),
    ("within", "within", "string", "How far ahead: `30d`."),
    ("min_value", "min_value", "number", "Least value, USD."),
    ("rules", "rule", "string", "Only what these rules would tell, with commas between."),
    ("rule", "rule", "string", "Name or id of a rule."),
    ("q", "q", "string", "Part of a slug, name or ticker."),
    ("sort", "sort", "string", "`value`, `share`, `next`, `market_cap` or `name`."),
    ("kind", "kind", "string", "Kind of change, such as `rescheduled`."),
    ("resource", "resource", "string", "`unlock`, `burn`, `buyback`, `emission`, `allocation` or `funding`."),
    ("since", "since", "string", "How far back: `7d`; not beside `from`."),
    ("from", "from", "string", "From this instant on, or from the begin of this day: `2026-03-09`."),
    ("to", "to", "string", "Up to this instant, or to the end of this day: `2026-03-09`."),
    ("state", "state", "string", "`pending`, `firing`, `resolved`, `event`; several with commas between."),
    ("severity", "severity", "string", "The label `severity`."),
    ("acknowledged", "acknowledged", "boolean", "Only what is acknowledged, or only what is not."),
    ("receiver", "receiver", "string", "Name of a receiver."),
    ("delivery_state", "state", "string", "`due`, `retrying`, `delivered`, `dead`, `dropped`; several with commas between."),
    ("matcher", "matcher", "string", "A matcher such as `token=\"arbitrum\"`; may be given several times, all must hold."),
    ("limit", "limit", "integer", "Most rows, 100 where it is not given, at most 10,000."),
    ("after", "after", "string", "Where the list goes on: from `next` of the part before."),
    (
        "paged",
        "paged",
        "boolean",
        "Whether the answer is an object with `total`, `next` and `items`; else the bare items, as ever.",
    ),
];
