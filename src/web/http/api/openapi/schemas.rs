//! The schemas of bodies in the OpenAPI document: enumerations, records of the source, and our own objects.

use serde_json::{Map, Value, json};

use crate::http::error_code::ErrorCode;
use model::wire::{Allocation, Burn, Buyback, Described, Emission, FundingRound, JsonShape, ObjectShape, TokenItem, UnlockEvent};
use model::{
    AccessRole, ActorSource, AlertState, AttemptOutcome, BatchKind, ChangeKind, DeliveryState, Endpoint, EventType, KnownSupply,
    NotificationKind, NotificationRole, NotificationState, OptOutSource, PastPollState, Resolution, Resource, SilenceState,
    UnlockKind,
};

/// Enumerations: the name, and the words.
pub(super) const ENUMERATIONS: &[(&str, &[&str])] = &[
    ("AccessRole", &AccessRole::WORDS),
    ("AlertState", &AlertState::WORDS),
    ("AttemptOutcome", &AttemptOutcome::WORDS),
    ("AuthorSource", &ActorSource::WORDS),
    ("BatchKind", &BatchKind::WORDS),
    ("ChangeKind", &ChangeKind::WORDS),
    ("DeliveryState", &DeliveryState::WORDS),
    ("Endpoint", &Endpoint::WORDS),
    ("ErrorCode", &ErrorCode::WORDS),
    ("EventType", &EventType::WORDS),
    ("HistoryState", &["pending", "firing", "acknowledged", "clearing", "resolved", "event"]),
    ("KnownSupply", &KnownSupply::WORDS),
    ("Mark", &["yes", "no", "unknown", "note"]),
    ("NotificationKind", &NotificationKind::WORDS),
    ("NotificationRole", &NotificationRole::WORDS),
    ("NotificationState", &NotificationState::WORDS),
    ("OptOutSource", &OptOutSource::WORDS),
    ("PastPollState", &PastPollState::WORDS),
    ("Precision", &["second", "hour", "day", "week", "month", "to-be-determined"]),
    ("Resolution", &Resolution::WORDS),
    ("Resource", &Resource::WORDS),
    ("SilenceState", &SilenceState::WORDS),
    ("SourceState", &["not asked yet", "up", "no key", "key unusable", "key refused", "credits spent", "could not ask", "empty"]),
    ("UnlockType", &UnlockKind::WORDS),
];

/// Returns the enumerations, and the records in the format of the source.
pub(super) fn generated() -> Map<String, Value> {
    let enumeration = |(name, words): &(&str, &[&str])| ((*name).to_owned(), json!({"type": "string", "enum": words}));
    let mut schemas: Map<String, Value> = ENUMERATIONS.iter().map(enumeration).collect();
    let shapes = [
        UnlockEvent::SHAPE,
        Burn::SHAPE,
        Buyback::SHAPE,
        Emission::SHAPE,
        Allocation::SHAPE,
        FundingRound::SHAPE,
        TokenItem::SHAPE,
    ];
    for shape in shapes {
        add_shape(shape, &mut schemas);
    }
    let list = |name: &str| json!({"type": "array", "items": {"$ref": format!("#/components/schemas/{name}")}});
    let records = json!({
        "type": "object",
        "properties": {
            "unlock": list("UnlockEvent"), "burn": list("Burn"), "buyback": list("Buyback"), "emission": list("Emission"),
            "allocation": list("Allocation"), "funding": list("FundingRound"),
        },
    });
    schemas.insert("Records".to_owned(), records);
    let any = ["UnlockEvent", "Burn", "Buyback", "Emission", "Allocation", "FundingRound"];
    let any = any.map(|name| json!({"$ref": format!("#/components/schemas/{name}")}));
    let description = "A record in the format of the source. `resource` or the kind of the list has its type.";
    schemas.insert("Record".to_owned(), json!({"anyOf": any, "description": description}));
    let matcher = json!({
        "type": "object",
        "description": "A matcher as in the API of Alertmanager.",
        "required": ["name", "value"],
        "properties": {
            "name": {"type": "string"}, "value": {"type": "string"},
            "isRegex": {"type": "boolean", "default": false}, "isEqual": {"type": "boolean", "default": true},
        },
    });
    schemas.insert("MatcherObject".to_owned(), matcher);
    schemas.extend(event_schemas());
    let text = json!({"type": "string", "description": "A matcher such as `token=\"arbitrum\"`."});
    let matcher = json!({"oneOf": [text, {"$ref": "#/components/schemas/MatcherObject"}]});
    schemas.insert("NewMatcher".to_owned(), matcher);
    schemas
}

/// Returns the schema of the body of an event.
const fn event_body(kind: EventType) -> &'static str {
    match kind {
        EventType::Change => "ChangeRow",
        EventType::AlertPending
        | EventType::AlertFiring
        | EventType::AlertResolved
        | EventType::AlertEvent
        | EventType::IncidentFiring
        | EventType::IncidentResolved => "LoggedAlert",
        EventType::Notification => "DecidedNotification",
        EventType::DeliveryDelivered | EventType::DeliveryDead | EventType::DeliveryDropped | EventType::DeliveryRetried => {
            "EndedDelivery"
        }
        EventType::ReplayRequested => "RequestedReplay",
        EventType::AcknowledgementAdded | EventType::AcknowledgementRemoved => "AcknowledgedAlert",
        EventType::NoteAdded => "LoggedNote",
        EventType::AlertAssigned => "LoggedAssignment",
        EventType::SilenceCreated | EventType::SilenceUpdated | EventType::SilenceExpired => "LoggedSilence",
        EventType::ResponseAccepted
        | EventType::DigestStopped
        | EventType::DigestResumed
        | EventType::TestRequested
        | EventType::RuleSaved
        | EventType::AccessKeyAdded
        | EventType::AccessKeyRevoked
        | EventType::ReloadRequested => "LoggedAction",
        EventType::ReloadSucceeded | EventType::ReloadFailed => "LoggedReload",
    }
}

/// Returns the schemas of events: `Event`, and one with the words of `type` for each form of `body`.
fn event_schemas() -> Map<String, Value> {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let mut bodies: Vec<&str> = Vec::new();
    for body in EventType::ALL.map(event_body) {
        if !bodies.contains(&body) {
            bodies.push(body);
        }
    }
    let name = |body: &str| format!("{body}Event");
    let schema = |body: &str| {
        let words: Vec<&str> =
            EventType::ALL.into_iter().filter(|kind| event_body(*kind) == body).map(EventType::as_str).collect();
        let own = json!({
            "type": "object", "required": ["id", "type", "at", "token", "rule", "body"],
            "properties": {
                "id": {"type": "integer", "description": "The number of the event. Numbers have no gaps."},
                "type": {"type": "string", "enum": words},
                "at": {"type": "string", "format": "date-time"},
                "token": {"type": "string", "nullable": true},
                "rule": {"type": "string", "nullable": true},
                "body": {
                    "allOf": [reference(body)], "nullable": true,
                    "description": "Null if the record of the event was deleted since, or is damaged.",
                },
            },
        });
        (name(body), own)
    };
    let mut schemas: Map<String, Value> = bodies.iter().map(|body| schema(body)).collect();
    let all: Vec<Value> = bodies.iter().map(|body| reference(&name(body))).collect();
    let mapping: Map<String, Value> = EventType::ALL
        .into_iter()
        .map(|kind| (kind.to_string(), format!("#/components/schemas/{}", name(event_body(kind))).into()))
        .collect();
    let event = json!({"oneOf": all, "discriminator": {"propertyName": "type", "mapping": mapping}});
    schemas.insert("Event".to_owned(), event);
    schemas
}

/// Adds the schema of a record. Each of its fields can be absent or null, and a record can have unknown fields.
fn add_shape(shape: JsonShape, schemas: &mut Map<String, Value>) -> Value {
    match shape {
        JsonShape::Number => json!({"type": "number"}),
        JsonShape::Whole => json!({"type": "integer"}),
        JsonShape::Truth => json!({"type": "boolean"}),
        JsonShape::Text => json!({"type": "string"}),
        JsonShape::Time => json!({"type": "string", "format": "date-time"}),
        JsonShape::List(item) => json!({"type": "array", "items": add_shape(*item, schemas)}),
        JsonShape::NameOr(item) => json!({"oneOf": [{"type": "string"}, add_shape(*item, schemas)]}),
        JsonShape::Object(object) => add_object(object, schemas),
    }
}

fn add_object(object: &ObjectShape, schemas: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for field in object.fields {
        let mut property = add_shape(field.shape, schemas);
        if property.get("$ref").is_some() {
            // OpenAPI 3.0 ignores all siblings of `$ref`.
            property = json!({"allOf": [property]});
        }
        property["nullable"] = true.into();
        if !field.doc.trim().is_empty() {
            property["description"] = field.doc.trim().into();
        }
        properties.insert(field.name.to_owned(), property);
    }
    let schema = json!({
        "type": "object", "description": object.doc.trim(), "properties": properties, "additionalProperties": {},
    });
    schemas.insert(object.name.to_owned(), schema);
    json!({"$ref": format!("#/components/schemas/{}", object.name)})
}

/// Schemas: the name, and the fields with their types. A field `name*` is optional. A type `x?` is nullable, `[x]` is an array of `x`,
/// `strings` is an object of strings, `{x}` an object with values of `x`, `any` is any JSON, and a capitalized type is another schema.
/// `...Schema` includes all fields of another schema, and `...Schema*` includes them as optional fields.
pub(super) const SCHEMAS: &[(&str, &str)] = &[
    (
        "Status",
        "at: time, version: string, sourceUp: boolean?, source: SourceState, incidents: [string], endpoints: [EndpointStatus], \
         credits: CreditStatus, removalsHeld: integer, removalsAwaitingProof: integer, feedsFailing: integer, tokens: integer, \
         tokensListed: integer, records: {integer}, alerts: {integer}, outbox: [ReceiverStatus], silences: [Silence], \
         acknowledged: integer, digests: [DigestStatus], database: DatabaseStatus, rules: RuleStatus, daemon: DaemonStatus?",
    ),
    (
        "EndpointStatus",
        "endpoint: Endpoint, lastSuccess: time?, ageSeconds: integer?, lastTry: time?, feeds: integer, failing: integer, \
         failingSince: time?, lastError: string?, parseWarnings: integer, polls: integer, credits: integer, found: FoundCorrections",
    ),
    ("FoundCorrections", "byMark: integer, byUpcoming: integer, untold: integer, toldForNothing: integer"),
    ("CreditStatus", "used: integer?, limit: integer?, resetAt: time?, spent: integer, spentToday: integer, exhausted: boolean"),
    (
        "ReceiverStatus",
        "receiver: string, pending: integer, retrying: integer, oldestSeconds: integer?, dead: integer, delivered: integer, \
         waiting: integer, silenced: integer, inhibited: integer, suppressedLastDay: integer",
    ),
    (
        "DigestStatus",
        "receiver: string, when: string, lastAt: time?, sentAt: time?, nextAt: time?, recipients: integer, stopped: [StoppedRecipient]",
    ),
    ("StoppedRecipient", "address: string, at: time, via: OptOutSource"),
    ("DatabaseStatus", "path: string, bytes: integer"),
    ("RuleStatus", "count: integer?, problem: string?"),
    (
        "DaemonStatus",
        "ready: boolean, reason: string?, startedAt: time, lastCycleAt: time?, lastCycle: string?, lastReloadAt: time?, standing*: string",
    ),
    ("PastPolls", "endpoint: Endpoint, cycles: [PastPoll]"),
    ("PastPoll", "at: time, state: PastPollState, polls: integer, failed: integer, token: string?, error: string?"),
    (
        "Unlock",
        "type: UnlockType, tokenId: string, symbol: string, name: string, precision: Precision, when: string, valueToMarketCap: number?, \
         daysUntil: number?, allocations: [string], polledAt: time?, unlockDate*: time?, cliffAmount*: number?, \
         cliffValue*: number?, counted*: boolean, listedMethod*: string?, record*: UnlockEvent, start*: time, end*: time, \
         endKnown*: boolean, perDay*: number?, perDayValue*: number?, amountInWindow*: number?, valueInWindow*: number?, \
         priceAsOf*: time?, position*: Position",
    ),
    (
        "Token",
        "id: string, name: string, symbol: string, marketCap: number?, groups: [string], watched: boolean, listed: boolean, \
         nextUnlockDate: time?, nextUnlockValue: number?, aheadCount: integer, aheadValue: number, possibleCount: integer, \
         possibleValue: number, weeks: [number], ahead: Ahead, linearPerDay: number?, position*: Position",
    ),
    ("Position", "amount: number, value: number?, percentOfCirculatingSupply: number?, unlockMultiple: number?"),
    ("Ahead", "7d: AheadWindow, 30d: AheadWindow, 90d: AheadWindow, known: KnownSupply, linearUntil: time?, priceAsOf: time?"),
    ("AheadWindow", "cliff: AheadSum, linear: AheadFlow, inexact: AheadSum, total: AheadTotal"),
    ("AheadSum", "amount: number?, value: number?, count: integer?"),
    ("AheadFlow", "amount: number?, value: number?, perDay: number?, perDayValue: number?"),
    ("AheadTotal", "amount: number?, value: number?, percentOfMarketCap: number?"),
    (
        "Supply",
        "group: string?, ahead: SupplyWindows, linearPerDayValue: number?, tokens: integer, unread: integer, cliffsOnly: integer, \
         withoutPrice: integer, stalePrices: integer, oldestPrice: time?, linearUntil: time?",
    ),
    ("SupplyWindows", "7d: SupplyWindow, 30d: SupplyWindow, 90d: SupplyWindow"),
    ("SupplyWindow", "cliff: SupplyCount, linear: SupplyFlow, inexact: SupplyCount, total: SupplyTotal"),
    ("SupplyCount", "value: number?, count: integer?"),
    ("SupplyFlow", "value: number?, perDayValue: number?"),
    ("SupplyTotal", "value: number?"),
    (
        "TokenDetail",
        "id: string, name: string, symbol: string, groups: [string], watched: boolean, item: TokenItem, feeds: [Feed], \
         records: Records, ahead: Ahead, linearPerDay: number?, position*: Position",
    ),
    ("Feed", "endpoint: Endpoint, readAt: time?, triedAt: time?, failingSince: time?, heldSince: time?"),
    ("ChangeRow", "id: integer, at: time, token: string, symbol: string?, resource: Resource, key: string?, change: Change"),
    (
        "Change",
        "kind: ChangeKind, resource*: Resource?, token*: string?, key*: string?, from*: any, to*: any, shiftDays*: number?, \
         shiftDaysMin*: number?, shiftDaysMax*: number?, ratio*: number?, amount*: number?, count*: integer, \
         allocations*: [AllocationChange], fields*: [FieldChange], before*: ScheduleBrief?, after*: ScheduleBrief?, summary: string, \
         old*: Record?, new*: Record?",
    ),
    (
        "AllocationChange",
        "name: string, from*: any, to*: any, shiftDays*: number, ratio*: number, count: integer, before*: AllocationSchedule, \
         after*: AllocationSchedule",
    ),
    (
        "AllocationSchedule",
        "total*: number, begin*: time, end*: time, count*: integer, each*: number, least*: number, most*: number, period*: string, \
         linear*: LinearSchedule, precision*: Precision",
    ),
    ("LinearSchedule", "count: integer, total*: number, perDay*: number"),
    ("FieldChange", "field: string, from: any, to: any"),
    ("ScheduleBrief", "total: number, events: integer, tranches: integer, next: [[any]], begin*: time, end: time?"),
    (
        "Alert",
        "id: string, rule: string, state: AlertState, reason: Resolution?, outcome: string?, tokenId: string?, symbol: string?, \
         resource: Resource?, subject: string, summary: string, labels: strings, annotations: strings, leads: [string], \
         notified: [string], undelivered: {NotificationState}, assignee: string?, when: string?, activeAt: time, startsAt: time?, \
         endsAt: time?, updatedAt: time",
    ),
    ("AlertNote", "at: time, author: string, text: string"),
    ("NewAlertNote", "author: string, text: string"),
    ("Assignment", "assignee: string, author: string, at: time"),
    ("NewAssignment", "author: string, assignee*: string?"),
    ("AlertActed", "alert: string"),
    ("NotifiedText", "at: time, summary: string"),
    ("HistoryStep", "state: HistoryState, at: time, text: string, lasted: string?"),
    ("FormerEpisode", "id: string, from: time, until: time?, reason: string?"),
    (
        "AlertStory",
        "...Alert*, acknowledgement: Acknowledgement?, assignment: Assignment?, notes: [AlertNote], history: [HistoryStep], \
         former: [FormerEpisode], record: Record?, asNotified: NotifiedText?, change: ChangeRow?, messages: [Message], deliveries: [DeliveryDetail], \
         explanation: Explanation?, unexplained: string?",
    ),
    (
        "Message",
        "notice: string, alert: string, type: NotificationKind, at: time, rule: string, summary: string, receiver: string?, \
         state: NotificationState, role: NotificationRole?, delivery: integer?, holder: string?, text: string",
    ),
    ("Explanation", "about: string, steps: [Step], fired: boolean, so: string"),
    ("Step", "mark: Mark, text: string, parts*: [Step]"),
    (
        "Rule",
        "id: string, name: string, on: string, sentence: string, file: string, line: integer?, within: [string], receivers: [string], \
         owner: string?, expires: time?, isExpired: boolean, lastMatch: time?, pending: integer, firing: integer",
    ),
    (
        "Delivery",
        "id: integer, webhookId: string, receiver: string, state: DeliveryState, attempts: integer, nextAttemptAt: time?, \
         lastAnswer: string?, createdAt: time, deliveredAt: time?, replay: Replay?, shape: BatchKind, truncatedAlerts: integer, \
         alerts: [DeliveryAlert]",
    ),
    ("DeliveryDetail", "...Delivery, attemptLog: [Attempt], messages: [{any}], counted: [DeliveryAlert]"),
    ("DeliveryAlert", "id: string, notice: string, type: NotificationKind, rule: string, token: string?, summary: string"),
    ("Attempt", "at: time, tookMs: integer, outcome: AttemptOutcome, status: integer?, answer: string"),
    (
        "Silence",
        "state: SilenceState, id: string, matchers: [string], author: string, comment: string, startsAt: time, endsAt: time, \
         createdAt: time",
    ),
    (
        "NewSilence",
        "matchers: [NewMatcher], author: string, comment: string, startsAt*: time, endsAt*: time, duration*: string, dryRun*: boolean",
    ),
    ("SilenceMade", "id*: string, silenceID*: string, silence: Silence, hides: SilencePreview"),
    ("SilencePreview", "alerts: [SilencedAlert], open: integer, lastWeek: integer, lastWeekAll: integer"),
    ("SilencedAlert", "id: string, rule: string, state: AlertState, summary: string"),
    ("Acknowledgement", "alert: string, author: string, comment: string, at: time, fact: any"),
    ("NewAcknowledgement", "alert: string, author: string, comment*: string"),
    ("AcknowledgementMade", "alert: string"),
    ("DeliveryActed", "delivery: integer, state: DeliveryState"),
    ("HeldAccepted", "token: string"),
    ("EventPage", "events: [Event], next: integer, first: integer, last: integer"),
    (
        "LoggedAlert",
        "alert: string, name: string, subject: string, state: AlertState, resolution: Resolution?, severity: string?",
    ),
    ("DecidedNotification", "notification: string, alert: string, kind: NotificationKind"),
    ("EndedDelivery", "delivery: integer, webhookId: string, receiver: string, state: DeliveryState, replay*: Replay"),
    ("Replay", "requestedAt: time, firstDeliveredAt: time?"),
    ("RequestedReplay", "receiver: string, since: time, until: time, deliveries: integer"),
    ("NewReplay", "receiver: string, since: time, until*: time, again*: boolean, dryRun*: boolean"),
    (
        "Replayed",
        "receiver: string, since: time, until: time, deliveries: integer, pending: integer, recentlyReplayed: integer, \
         dropped: integer, deleted: integer",
    ),
    ("AcknowledgedAlert", "alert: string, author: string?, comment: string?"),
    ("LoggedSilence", "silence: string, author: string, comment: string, startsAt: time, endsAt: time"),
    ("LoggedNote", "alert: string, author: string, text: string"),
    ("LoggedAssignment", "alert: string, author: string, assignee: string?"),
    ("LoggedAction", "subject: string, detail: string?"),
    (
        "AuditRow",
        "id: integer, at: time, author: string, via: AuthorSource, type: EventType, token: string?, subject: string, facts: any",
    ),
    ("LoggedReload", "rules: integer?, problem: string?"),
    ("Description", "openapi: string, info: {any}, paths: {any}, components: {any}, security: [{any}]"),
    (
        "Problem",
        "type: string, title: string, status: integer, code: ErrorCode, detail: string, suggestions: [string], error: string, \
         requiredRole*: AccessRole",
    ),
];
