-- The database of the daemon.
--
-- Times are milliseconds since 1970, UTC. JSON bodies use the field names of the API. A token has a short number, so that a million
-- records do not repeat a million slugs.

-- Single values by name: the program that wrote the file, the time up to which rules were evaluated, the saved clock.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    no           INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    -- The item of the token list; null if only the config or a record names the token.
    item         TEXT CHECK (item IS NULL OR json_valid(item)),
    -- From the item, or else from a record.
    name         TEXT,
    symbol       TEXT,
    last_updated INTEGER,
    has_burn     INTEGER CHECK (has_burn IN (0, 1)),
    has_buyback  INTEGER CHECK (has_buyback IN (0, 1)),
    listed       INTEGER NOT NULL DEFAULT 0 CHECK (listed IN (0, 1)),
    unlisted_at  INTEGER,
    first_seen   INTEGER NOT NULL,
    market_cap   REAL GENERATED ALWAYS AS (CAST(item ->> '$.marketCap' AS REAL)) VIRTUAL
) STRICT;
CREATE INDEX token_market_cap ON token (market_cap);
CREATE INDEX token_name ON token (lower(name), symbol, id);
CREATE INDEX token_listed ON token (listed);

-- The state of each feed. token_no is 0 for a feed that belongs to no token.
CREATE TABLE feed (
    no            INTEGER PRIMARY KEY,
    endpoint      TEXT NOT NULL,
    token_no      INTEGER NOT NULL,
    baseline_at   INTEGER,
    read_at       INTEGER,
    tried_at      INTEGER,
    hash          BLOB CHECK (length(hash) = 16),
    mark          INTEGER,
    stale         INTEGER NOT NULL CHECK (stale IN (0, 1)),
    failing_since INTEGER,
    missing       TEXT NOT NULL CHECK (json_valid(missing)),
    held_since    INTEGER,
    -- Whether an operator accepted the removals of a held response. 0 if the feed is not held.
    hold_accepted INTEGER NOT NULL DEFAULT 0 CHECK (hold_accepted IN (0, 1)),
    cost          INTEGER NOT NULL,
    header        TEXT CHECK (header IS NULL OR json_valid(header)),
    -- Counts of what polls of this feed found, from which the planner learns its priority.
    findings      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(findings)),
    UNIQUE (token_no, endpoint)
) STRICT;
-- Covers the counts of the status page.
CREATE INDEX feed_status ON feed (
    endpoint, failing_since, read_at, tried_at, held_since, missing,
    CAST(findings ->> 'by_mark' AS BIGINT), CAST(findings ->> 'by_upcoming' AS BIGINT), CAST(findings ->> 'unreported' AS BIGINT),
    CAST(findings ->> 'idle_marks' AS BIGINT), CAST(findings ->> 'idle_upcoming' AS BIGINT),
    CAST(findings ->> 'undecided' AS BIGINT), CAST(findings ->> 'undecided_upcoming' AS BIGINT));

-- The snapshot. scope_no is the token of the feed that has the record, 0 for a feed that belongs to no token; token_no is the token
-- that the record is about. The body of an unlock is in `schedule`.
CREATE TABLE record (
    no           INTEGER PRIMARY KEY,
    scope_no     INTEGER NOT NULL,
    token_no     INTEGER REFERENCES token (no),
    resource     TEXT NOT NULL CHECK (resource IN ('unlock', 'burn', 'buyback', 'emission', 'allocation', 'funding')),
    key          TEXT NOT NULL,
    starts_at    INTEGER,
    ends_at      INTEGER,
    -- The nominal date of an unlock with the precision of a week or a month: the start of the day under which sums count it.
    nominal_at   INTEGER,
    first_seen   INTEGER NOT NULL,
    version_at   INTEGER NOT NULL,
    version_poll INTEGER,
    -- The value of an upcoming unlock (USD) and its share of market cap (percent), each to be multiplied by the drift of its token.
    value        REAL,
    share        REAL,
    body         TEXT CHECK (body IS NULL OR json_valid(body)),
    CHECK ((resource = 'unlock') = (body IS NULL)),
    CHECK ((starts_at IS NULL) = (ends_at IS NULL))
) STRICT;
-- Unlocks are read by token, never by key.
CREATE UNIQUE INDEX record_key ON record (scope_no, resource, key) WHERE body IS NOT NULL;
CREATE INDEX record_of_token ON record (token_no, resource, starts_at);
CREATE INDEX record_window ON record (starts_at, ends_at, token_no, value, share, nominal_at) WHERE resource = 'unlock';

-- The vesting schedule of each token, packed into one row because it is read, compared, and written as a whole.
CREATE TABLE schedule (
    scope_no INTEGER PRIMARY KEY,
    -- Keys and events, ordered by time and key; see src/store/schedule.rs.
    body     BLOB NOT NULL
) STRICT;

-- Replaced versions of unlock events, one row per token and commit. A removed event is in `record_version`.
CREATE TABLE schedule_version (
    no          INTEGER PRIMARY KEY,
    scope_no    INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    -- The number of versions in the body.
    versions    INTEGER NOT NULL,
    body        BLOB NOT NULL
) STRICT;
CREATE INDEX schedule_version_of_scope ON schedule_version (scope_no, replaced_at);
CREATE INDEX schedule_version_age ON schedule_version (replaced_at);

-- The factors by which all values and shares of a token have changed since they were written to `record`. A price change updates one
-- row here instead of every row there.
CREATE TABLE drift (
    token_no INTEGER PRIMARY KEY,
    value    REAL NOT NULL,
    share    REAL NOT NULL
) STRICT;

-- Replaced and removed versions of records. A row without a body is a removal.
CREATE TABLE record_version (
    no          INTEGER PRIMARY KEY,
    scope_no    INTEGER NOT NULL,
    token_no    INTEGER REFERENCES token (no),
    resource    TEXT NOT NULL,
    key         TEXT NOT NULL,
    at          INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    poll        INTEGER,
    body        TEXT CHECK (body IS NULL OR json_valid(body))
) STRICT;
CREATE INDEX record_version_of_key ON record_version (token_no, resource, key);
CREATE INDEX record_version_age ON record_version (replaced_at);

-- The number of records of each resource. Every transaction that adds or removes records updates it.
CREATE TABLE tally (
    resource TEXT PRIMARY KEY,
    records  INTEGER NOT NULL CHECK (records >= 0)
) STRICT, WITHOUT ROWID;

-- The digest covers the whole row, so that the same change written twice is one row.
CREATE TABLE change (
    no         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    token_no   INTEGER REFERENCES token (no),
    resource   TEXT,
    kind       TEXT NOT NULL,
    key        TEXT,
    body       TEXT NOT NULL CHECK (json_valid(body)),
    old_record TEXT CHECK (old_record IS NULL OR json_valid(old_record)),
    new_record TEXT CHECK (new_record IS NULL OR json_valid(new_record)),
    digest     BLOB NOT NULL UNIQUE
) STRICT;
CREATE INDEX change_age ON change (at);
CREATE INDEX change_of_token ON change (token_no, at);
CREATE INDEX change_of_kind ON change (kind, at);

-- One row per poll, failed ones included.
CREATE TABLE poll (
    no                   INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint             TEXT NOT NULL,
    token_no             INTEGER REFERENCES token (no),
    at                   INTEGER NOT NULL,
    took_ms              INTEGER NOT NULL,
    outcome              TEXT NOT NULL,
    status               INTEGER,
    requests             INTEGER NOT NULL,
    credits              INTEGER NOT NULL,
    bytes                INTEGER NOT NULL,
    version              INTEGER,
    records              INTEGER NOT NULL,
    error                TEXT,
    parse_warnings       TEXT CHECK (parse_warnings IS NULL OR json_valid(parse_warnings)),
    parse_warnings_total INTEGER NOT NULL
) STRICT;
CREATE INDEX poll_age ON poll (at);
-- Covers the credits of a quota period.
CREATE INDEX poll_of_endpoint ON poll (endpoint, at, credits, parse_warnings_total);
CREATE INDEX poll_of_token ON poll (token_no, at) WHERE token_no IS NOT NULL;
CREATE INDEX poll_failed ON poll (endpoint, at) WHERE outcome NOT IN ('fresh', 'unchanged');

-- The credit ledger.
CREATE TABLE credit (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    state TEXT NOT NULL CHECK (json_valid(state))
) STRICT;

CREATE TABLE alert (
    id          TEXT NOT NULL PRIMARY KEY,
    rule        TEXT NOT NULL,
    name        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    episode     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'firing', 'resolved', 'event')),
    resolution  TEXT CHECK (resolution IN ('passed', 'cleared', 'rescheduled out', 'removed', 'rule gone', 'unwatched', 'renamed')),
    token_no    INTEGER REFERENCES token (no),
    resource    TEXT,
    key         TEXT,
    level       INTEGER,
    active_at   INTEGER NOT NULL,
    starts_at   INTEGER,
    ends_at     INTEGER,
    false_since INTEGER,
    recheck_at  INTEGER,
    updated_at  INTEGER NOT NULL,
    -- Labels, annotations, notified receivers, lead times, the time of the record.
    body        TEXT NOT NULL CHECK (json_valid(body)),
    -- From the label: 3 critical, 2 warning, 1 everything else.
    severity    INTEGER GENERATED ALWAYS AS (
        CASE lower(body ->> '$.labels.severity') WHEN 'critical' THEN 3 WHEN 'page' THEN 3 WHEN 'error' THEN 3 WHEN 'warning' THEN 2 ELSE 1 END) VIRTUAL,
    UNIQUE (rule, subject, episode)
) STRICT;
CREATE INDEX alert_open ON alert (token_no) WHERE state IN ('pending', 'firing');
CREATE INDEX alert_recheck ON alert (recheck_at) WHERE state IN ('pending', 'firing') AND recheck_at IS NOT NULL;
CREATE INDEX alert_age ON alert (state, updated_at, body ->> '$.notified');
CREATE INDEX alert_updated ON alert (updated_at);
CREATE INDEX alert_state_severity ON alert (state, severity, updated_at);
CREATE INDEX alert_severity_label ON alert (body ->> '$.labels.severity', updated_at);
CREATE INDEX alert_of_token ON alert (token_no, updated_at) WHERE token_no IS NOT NULL;
CREATE INDEX alert_of_rule ON alert (rule, name);
-- Alerts have few distinct sets of notified receivers, so those with a certain receiver are counted by this index alone.
CREATE INDEX alert_receivers ON alert (body ->> '$.notified', updated_at);

CREATE TABLE notification (
    id        TEXT NOT NULL PRIMARY KEY,
    alert     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    receivers TEXT NOT NULL CHECK (json_valid(receivers)),
    body      TEXT NOT NULL CHECK (json_valid(body)),
    -- The part of the schedule around the unlock, packed; see src/store/series.rs.
    series    BLOB
) STRICT;
CREATE INDEX notification_of_alert ON notification (alert);
-- Covers the preview of a silence.
CREATE INDEX notification_age ON notification (at, receivers, body ->> '$.labels');

-- Notifications that are in no delivery: they wait for their group, or are suppressed. A notification and receiver is either here or in
-- delivery_notification, never in both.
CREATE TABLE pending_notification (
    no            INTEGER PRIMARY KEY AUTOINCREMENT,
    notification  TEXT NOT NULL REFERENCES notification (id) ON DELETE CASCADE,
    receiver      TEXT NOT NULL,
    alert         TEXT NOT NULL,
    kind          TEXT NOT NULL,
    is_end        INTEGER NOT NULL CHECK (is_end IN (0, 1)),
    labels        TEXT NOT NULL CHECK (json_valid(labels)),
    state         TEXT NOT NULL CHECK (state IN ('waiting', 'silenced', 'inhibited', 'acknowledged')),
    -- The time of the last change of state.
    since         INTEGER NOT NULL,
    -- The silence, alert, or acknowledgement that suppresses it.
    suppressed_by TEXT,
    -- Suppressed for good: the alert has ended, or a later notification replaced this one.
    settled       INTEGER NOT NULL DEFAULT 0 CHECK (settled IN (0, 1)),
    -- The precedence among notifications: highest severity first, then highest value (USD), then earliest due date.
    severity      INTEGER NOT NULL DEFAULT 1,
    value         REAL,
    due_at        INTEGER,
    CHECK ((state = 'waiting') = (suppressed_by IS NULL)),
    UNIQUE (notification, receiver)
) STRICT;
CREATE INDEX pending_notification_waiting ON pending_notification (no) WHERE state = 'waiting';
CREATE INDEX pending_notification_suppressed ON pending_notification (alert) WHERE state <> 'waiting' AND settled = 0;
CREATE INDEX pending_notification_of_alert ON pending_notification (alert, receiver);
CREATE INDEX pending_notification_age ON pending_notification (since);

-- When a notification group was last sent, and when its firing alerts are repeated.
CREATE TABLE notification_group (
    receiver    TEXT NOT NULL,
    key         TEXT NOT NULL,
    notified_at INTEGER NOT NULL,
    repeat_at   INTEGER,
    PRIMARY KEY (receiver, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_group_repeat ON notification_group (repeat_at) WHERE repeat_at IS NOT NULL;
CREATE INDEX notification_group_age ON notification_group (notified_at);

-- Alerts that were sent in a group, until their resolved notification is sent.
CREATE TABLE group_alert (
    receiver TEXT NOT NULL,
    key      TEXT NOT NULL,
    alert    TEXT NOT NULL,
    PRIMARY KEY (receiver, key, alert),
    FOREIGN KEY (receiver, key) REFERENCES notification_group (receiver, key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX group_of_alert ON group_alert (alert);

-- The outbox.
CREATE TABLE delivery (
    no              INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id      TEXT NOT NULL UNIQUE,
    receiver        TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('due', 'retrying', 'delivered', 'dead', 'dropped')),
    -- All attempts, and the attempts since the retry schedule was last restarted.
    attempts        INTEGER NOT NULL,
    tries           INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    next_attempt_at INTEGER,
    delivered_at    INTEGER,
    updated_at      INTEGER NOT NULL,
    last_response   TEXT,
    shape           TEXT NOT NULL DEFAULT 'single' CHECK (shape IN ('single', 'group', 'batch', 'summary', 'digest')),
    -- The content of the delivery in addition to its notifications.
    batch           TEXT CHECK (batch IS NULL OR json_valid(batch)),
    CHECK ((state IN ('due', 'retrying')) = (next_attempt_at IS NOT NULL)),
    CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;
CREATE INDEX delivery_due ON delivery (receiver, next_attempt_at) WHERE state IN ('due', 'retrying');
-- Critical deliveries are sent before all others.
CREATE INDEX delivery_critical ON delivery (receiver, next_attempt_at) WHERE batch ->> '$.severity' = 'critical' AND state IN ('due', 'retrying');
CREATE INDEX delivery_state ON delivery (state, receiver);
CREATE INDEX delivery_made ON delivery (receiver, created_at, shape);
CREATE INDEX delivery_age ON delivery (created_at, state, receiver);

CREATE TABLE delivery_notification (
    delivery_no  INTEGER NOT NULL REFERENCES delivery (no) ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,
    notification TEXT NOT NULL REFERENCES notification (id),
    receiver     TEXT NOT NULL,
    -- Whether the message shows the notification, only counts it, or shows a later one of the same alert instead.
    role         TEXT NOT NULL CHECK (role IN ('notified', 'counted', 'merged')),
    PRIMARY KEY (delivery_no, ordinal),
    UNIQUE (notification, receiver)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
    no          INTEGER PRIMARY KEY,
    delivery_no INTEGER NOT NULL REFERENCES delivery (no) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    took_ms     INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    status      INTEGER,
    response    TEXT NOT NULL
) STRICT;
CREATE INDEX attempt_of_delivery ON attempt (delivery_no);

CREATE TABLE silence (
    id         TEXT PRIMARY KEY,
    matchers   TEXT NOT NULL CHECK (json_valid(matchers)),
    author     TEXT NOT NULL,
    comment    TEXT NOT NULL,
    starts_at  INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX silence_end ON silence (ends_at);

-- Acknowledgements. Each is valid until its fact changes or its alert ends.
CREATE TABLE ack (
    alert   TEXT PRIMARY KEY,
    author  TEXT NOT NULL,
    comment TEXT NOT NULL,
    at      INTEGER NOT NULL,
    fact    TEXT NOT NULL CHECK (json_valid(fact))
) STRICT;

-- Addresses that no longer receive digests, opted out by the link in a digest or by an operator. They still receive alerts.
CREATE TABLE opt_out (
    receiver TEXT NOT NULL,
    -- In lower case, without a display name.
    address  TEXT NOT NULL,
    at       INTEGER NOT NULL,
    via      TEXT NOT NULL CHECK (via IN ('link', 'hand')),
    PRIMARY KEY (receiver, address)
) STRICT, WITHOUT ROWID;

-- The last slot for which each scheduled job ran.
CREATE TABLE job (
    name TEXT PRIMARY KEY,
    slot INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last time that each rule matched.
CREATE TABLE rule_match (
    rule TEXT PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE investor (
    id   TEXT PRIMARY KEY,
    item TEXT NOT NULL CHECK (json_valid(item)),
    seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
