-- Bytes that nobody asks for: the keys of unlocks in an index of their own, and schedules around an unlock spelled out in each message.

-- The keys of a schedule are in its body, and its rows are read by their token: only records with a body of their own are found by key.
ALTER TABLE record RENAME TO record_before;
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
    -- What an unlock ahead is worth (USD) and what of the market cap (percent), each to be multiplied with the drift of its token.
    value        REAL,
    share        REAL,
    -- An unlock is in its schedule.
    body         TEXT CHECK (body IS NULL OR json_valid(body)),
    CHECK ((resource = 'unlock') = (body IS NULL)),
    CHECK ((starts_at IS NULL) = (ends_at IS NULL))
) STRICT;
INSERT INTO record (no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, value, share, body)
    SELECT no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, value, share, body FROM record_before;
DROP TABLE record_before;
CREATE UNIQUE INDEX record_key ON record (scope_no, resource, key) WHERE body IS NOT NULL;
CREATE INDEX record_of_token ON record (token_no, resource, starts_at);
CREATE INDEX record_window ON record (starts_at, ends_at, token_no, value, share) WHERE resource = 'unlock';

-- The schedule around the unlock that a message tells of, packed (src/store/series.rs). Where it is null, it is in the body.
ALTER TABLE notice ADD COLUMN series BLOB;
