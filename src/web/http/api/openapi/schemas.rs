//! The schemas of bodies in the OpenAPI document.

/// Schemas: the name, and the fields with their types. A field `name*` is optional. A type `x?` is nullable, `[x]` is an array of `x`,
/// `strings` is an object of strings, `any` is any JSON, and a capitalized type is another schema. `...Schema` includes all fields of
/// another schema, and `...Schema*` includes them as optional fields.
pub(super) const SCHEMAS: &[(&str, &str)] = &[
    (
        "Status",
        "at: time, version: string, sourceUp: boolean?, source: string, incidents: [string], endpoints: [object], \
         credits: object, removalsHeld: integer, removalsAwaitingProof: integer, feedsFailing: integer, tokens: integer, \
         tokensListed: integer, records: object, alerts: object, outbox: [object], silences: [Silence], acknowledged: integer, \
         digests: [object], database: object, rules: object, daemon: object?",
    ),
    ("PastPolls", "endpoint: string, cycles: [PastPoll]"),
    ("PastPoll", "at: time, state: string, polls: integer, failed: integer, token: string?, error: string?"),
    (
        "Unlock",
        "type: string, tokenId: string, symbol: string, name: string, precision: string, when: string, valueToMarketCap: number?, \
         daysUntil: number?, allocations: [string], polledAt: time?, unlockDate*: time?, cliffAmount*: number?, \
         cliffValue*: number?, counted*: boolean, listedMethod*: string?, record*: any, start*: time, end*: time, \
         endKnown*: boolean, perDay*: number?, perDayValue*: number?, amountInWindow*: number?, valueInWindow*: number?, \
         priceAsOf*: time?",
    ),
    (
        "Token",
        "id: string, name: string, symbol: string, marketCap: number?, groups: [string], watched: boolean, listed: boolean, \
         nextUnlockDate: time?, nextUnlockValue: number?, aheadCount: integer, aheadValue: number, possibleCount: integer, \
         possibleValue: number, weeks: [number], ahead: Ahead, linearPerDay: number?",
    ),
    ("Ahead", "7d: AheadWindow, 30d: AheadWindow, 90d: AheadWindow, known: string, linearUntil: time?, priceAsOf: time?"),
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
        "id: string, name: string, symbol: string, groups: [string], watched: boolean, item: object, feeds: [Feed], \
         records: object, ahead: Ahead, linearPerDay: number?",
    ),
    ("Feed", "endpoint: string, readAt: time?, triedAt: time?, failingSince: time?, heldSince: time?"),
    ("ChangeRow", "id: integer, at: time, token: string, symbol: string?, resource: string, key: string?, change: Change"),
    (
        "Change",
        "kind: string, resource*: string?, token*: string?, key*: string?, from*: any, to*: any, shiftDays*: number?, \
         shiftDaysMin*: number?, shiftDaysMax*: number?, ratio*: number?, amount*: number?, count*: integer, \
         allocations*: [object], fields*: [object], before*: object?, after*: object?, summary: string, old*: any, new*: any",
    ),
    (
        "Alert",
        "id: string, rule: string, state: string, reason: string?, outcome: string?, tokenId: string?, symbol: string?, \
         resource: string?, subject: string, summary: string, labels: strings, annotations: strings, leads: [string], \
         notified: [string], undelivered: strings, when: string?, activeAt: time, startsAt: time?, endsAt: time?, updatedAt: time",
    ),
    ("NotifiedText", "at: time, summary: string"),
    ("HistoryStep", "state: string, at: time, text: string, lasted: string?"),
    ("FormerEpisode", "id: string, from: time, until: time?, reason: string?"),
    (
        "AlertStory",
        "...Alert*, acknowledgement: Acknowledgement?, history: [HistoryStep], former: [FormerEpisode], record: any, \
         asNotified: NotifiedText?, change: ChangeRow?, messages: [Message], deliveries: [DeliveryDetail], \
         explanation: Explanation?, unexplained: string?",
    ),
    (
        "Message",
        "notice: string, alert: string, type: string, at: time, rule: string, summary: string, receiver: string?, state: string, \
         role: string?, delivery: integer?, holder: string?, text: string",
    ),
    ("Explanation", "about: string, steps: [Step], fired: boolean, so: string"),
    ("Step", "mark: string, text: string, parts*: [Step]"),
    (
        "Rule",
        "id: string, name: string, on: string, file: string, line: integer?, within: [string], receivers: [string], \
         owner: string?, expires: time?, isExpired: boolean, lastMatch: time?, pending: integer, firing: integer",
    ),
    (
        "Delivery",
        "id: integer, webhookId: string, receiver: string, state: string, attempts: integer, nextAttemptAt: time?, \
         lastAnswer: string?, createdAt: time, deliveredAt: time?, shape: string, truncatedAlerts: integer, \
         alerts: [DeliveryAlert]",
    ),
    ("DeliveryDetail", "...Delivery, attemptLog: [Attempt], messages: [object], counted: [DeliveryAlert]"),
    ("DeliveryAlert", "id: string, notice: string, type: string, rule: string, token: string?, summary: string"),
    ("Attempt", "at: time, tookMs: integer, outcome: string, status: integer?, answer: string"),
    (
        "Silence",
        "state: string, id: string, matchers: [string], author: string, comment: string, startsAt: time, endsAt: time, \
         createdAt: time",
    ),
    (
        "NewSilence",
        "matchers: [any], author: string, comment: string, startsAt*: time, endsAt*: time, duration*: string, dryRun*: boolean",
    ),
    ("SilenceMade", "id*: string, silenceID*: string, silence: Silence, hides: SilencePreview"),
    ("SilencePreview", "alerts: [SilencedAlert], open: integer, lastWeek: integer, lastWeekAll: integer"),
    ("SilencedAlert", "id: string, rule: string, state: string, summary: string"),
    ("Acknowledgement", "alert: string, author: string, comment: string, at: time, fact: any"),
    ("NewAcknowledgement", "alert: string, author: string, comment*: string"),
    ("AcknowledgementMade", "alert: string"),
    ("Description", "openapi: string, info: object, paths: object, components: object, security: [object]"),
    ("Problem", "error: string"),
];
