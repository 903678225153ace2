-- For programs that use the HTTP API: lists of alerts that are read page by page while alerts are updated, requests that can be repeated,
-- and access keys.

-- The number of the first event of the alert in the event log, so that the alerts are numbered in the order of their commits. Alerts that
-- are older than this column have numbers up to 0.
ALTER TABLE alert ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
WITH ranked AS (SELECT id, row_number() OVER (ORDER BY active_at, id) - count(*) OVER () AS number FROM alert)
UPDATE alert SET number = ranked.number FROM ranked WHERE ranked.id = alert.id;
CREATE UNIQUE INDEX alert_number ON alert (number);

-- The requests with an `Idempotency-Key` that had an effect, and their responses. Written in the transaction of the effect.
CREATE TABLE keyed_request (
    no     INTEGER PRIMARY KEY,
    -- A hash of the client's token or access key.
    client TEXT NOT NULL,
    key    TEXT NOT NULL,
    -- A hash of the method, the path, and the body.
    hash   BLOB NOT NULL,
    at     INTEGER NOT NULL,
    status INTEGER NOT NULL,
    body   TEXT NOT NULL,
    UNIQUE (client, key)
) STRICT;
CREATE INDEX keyed_request_age ON keyed_request (at);

CREATE TABLE access_key (
    name       TEXT NOT NULL PRIMARY KEY,
    role       TEXT NOT NULL CHECK (role IN ('view', 'act', 'admin')),
    -- The SHA-256 hash of the key.
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;
