-- The whole of what Cliffwatch remembers.
--
-- Times are whole milliseconds since 1970, UTC. Bodies are JSON in the API's own field names. Tokens have a short number, so that
-- a million records do not repeat a million slugs.

-- Odds and ends: which program wrote this file, up to when time-relative rules were evaluated.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    no           INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    -- As the token list tells it; null for a token that only the config or a record names.
    item         TEXT CHECK (item IS NULL OR json_valid(item)),
    -- As the list says; before that, as a record said.
    name         TEXT,
    symbol       TEXT,
    last_updated INTEGER,
    has_burn     INTEGER CHECK (has_burn IN (0, 1)),
    has_buyback  INTEGER CHECK (has_buyback IN (0, 1)),
    listed       INTEGER NOT NULL DEFAULT 0 CHECK (listed IN (0, 1)),
    unlisted_at  INTEGER,
    first_seen   INTEGER NOT NULL
) STRICT;

-- What is remembered of each feed between reads. token_no is 0 for feeds that are not asked per token.
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
    cost          INTEGER NOT NULL,
    header        TEXT CHECK (header IS NULL OR json_valid(header)),
    UNIQUE (token_no, endpoint)
) STRICT;

-- The snapshot. scope_no is the token of the feed that keeps the record, 0 for a feed that is not asked per token; token_no is
-- the token that the record is about.
CREATE TABLE record (
    no           INTEGER PRIMARY KEY,
    scope_no     INTEGER NOT NULL,
    token_no     INTEGER REFERENCES token (no),
    resource     TEXT NOT NULL CHECK (resource IN ('unlock', 'burn', 'buyback', 'emission', 'allocation', 'funding')),
    key          TEXT NOT NULL,
    starts_at    INTEGER,
    ends_at      INTEGER,
    first_seen   INTEGER NOT NULL,
    version_at   INTEGER NOT NULL,
    version_poll INTEGER,
    body         TEXT NOT NULL CHECK (json_valid(body)),
    CHECK ((starts_at IS NULL) = (ends_at IS NULL)),
    UNIQUE (scope_no, resource, key)
) STRICT;
CREATE INDEX record_of_token ON record (token_no, resource, starts_at);
CREATE INDEX record_window ON record (starts_at, ends_at, token_no) WHERE resource = 'unlock';

-- Versions that were replaced or removed; the current one is in the snapshot. A row without a body is a removal.
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

-- What the diff told. The digest covers the whole row, so that the same verdict written twice is one row.
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

-- A row for each request, also for those that failed.
CREATE TABLE poll (
    no             INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint       TEXT NOT NULL,
    token_no       INTEGER REFERENCES token (no),
    at             INTEGER NOT NULL,
    took_ms        INTEGER NOT NULL,
    outcome        TEXT NOT NULL,
    status         INTEGER,
    requests       INTEGER NOT NULL,
    credits        INTEGER NOT NULL,
    bytes          INTEGER NOT NULL,
    version        INTEGER,
    records        INTEGER NOT NULL,
    error          TEXT,
    oddities       TEXT CHECK (oddities IS NULL OR json_valid(oddities)),
    oddities_total INTEGER NOT NULL
) STRICT;
CREATE INDEX poll_age ON poll (at);
CREATE INDEX poll_of_endpoint ON poll (endpoint, at);
CREATE INDEX poll_of_token ON poll (token_no, at) WHERE token_no IS NOT NULL;

-- Quota: the state as it is now, and what each poll spent.
CREATE TABLE credit (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    state TEXT NOT NULL CHECK (json_valid(state))
) STRICT;
CREATE TABLE credit_log (
    no       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    endpoint TEXT NOT NULL,
    token_no INTEGER REFERENCES token (no),
    credits  INTEGER NOT NULL
) STRICT;
CREATE INDEX credit_log_age ON credit_log (at);

-- Prices make no version of a record: the last ones of each UTC day are kept here.
CREATE TABLE valuation (
    token_no        INTEGER NOT NULL REFERENCES token (no),
    day             INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    reference_price REAL,
    market_cap      REAL,
    PRIMARY KEY (token_no, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX valuation_age ON valuation (day);

CREATE TABLE alert (
    id          TEXT NOT NULL PRIMARY KEY,
    rule        TEXT NOT NULL,
    name        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    episode     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'firing', 'resolved', 'event')),
    resolution  TEXT CHECK (resolution IN ('passed', 'cleared', 'rescheduled out', 'removed', 'rule gone')),
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
    -- Labels, annotations, who was told, which lead times, the record's time.
    body        TEXT NOT NULL CHECK (json_valid(body)),
    UNIQUE (rule, subject, episode)
) STRICT;
CREATE INDEX alert_open ON alert (token_no) WHERE state IN ('pending', 'firing');
CREATE INDEX alert_recheck ON alert (recheck_at) WHERE state IN ('pending', 'firing') AND recheck_at IS NOT NULL;
CREATE INDEX alert_age ON alert (state, updated_at);
CREATE INDEX alert_moved ON alert (updated_at);

-- Something to tell of an alert.
CREATE TABLE notice (
    id        TEXT NOT NULL PRIMARY KEY,
    alert     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    receivers TEXT NOT NULL CHECK (json_valid(receivers)),
    body      TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE INDEX notice_of_alert ON notice (alert);
CREATE INDEX notice_age ON notice (at);

-- The outbox: one row for each notice and receiver.
CREATE TABLE delivery (
    no              INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id      TEXT NOT NULL UNIQUE,
    receiver        TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('due', 'retrying', 'delivered', 'dead', 'dropped')),
    -- All tries, and those since the retry schedule last began anew.
    attempts        INTEGER NOT NULL,
    tries           INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    next_attempt_at INTEGER,
    delivered_at    INTEGER,
    updated_at      INTEGER NOT NULL,
    last_answer     TEXT,
    CHECK ((state IN ('due', 'retrying')) = (next_attempt_at IS NOT NULL)),
    CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;
CREATE INDEX delivery_due ON delivery (receiver, next_attempt_at) WHERE state IN ('due', 'retrying');
CREATE INDEX delivery_state ON delivery (state, receiver);

CREATE TABLE delivery_notice (
    delivery_no INTEGER NOT NULL REFERENCES delivery (no) ON DELETE CASCADE,
    ordinal     INTEGER NOT NULL,
    notice      TEXT NOT NULL REFERENCES notice (id),
    receiver    TEXT NOT NULL,
    PRIMARY KEY (delivery_no, ordinal),
    UNIQUE (notice, receiver)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
    no          INTEGER PRIMARY KEY,
    delivery_no INTEGER NOT NULL REFERENCES delivery (no) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    took_ms     INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    status      INTEGER,
    answer      TEXT NOT NULL
) STRICT;
CREATE INDEX attempt_of_delivery ON attempt (delivery_no);

-- The last slot for which each scheduled job ran.
CREATE TABLE job (
    name TEXT PRIMARY KEY,
    slot INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rule_match (
    rule TEXT PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE investor (
    id   TEXT PRIMARY KEY,
    item TEXT NOT NULL CHECK (json_valid(item)),
    seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
