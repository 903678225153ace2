-- Schedules in few bytes. A schedule is read, compared and written whole: so it is one row, packed, and each time that some of its events
-- became others, those that they were are one row. `record` has what is asked of all tokens at once: when, how much.
--
-- A database with schedules is brought here by src/store/rebuild.rs, which packs them; this step alone refuses one that has any.

CREATE TABLE schedule (
    -- The token whose schedule it is.
    scope_no INTEGER PRIMARY KEY,
    -- Keys and events, in the order of time and key: src/store/schedule.rs.
    body     BLOB NOT NULL
) STRICT;

-- Events that were replaced by others. One that was removed is in `record_version`, as records of other resources are.
CREATE TABLE schedule_version (
    no          INTEGER PRIMARY KEY,
    scope_no    INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    -- How many there are in the body.
    versions    INTEGER NOT NULL,
    body        BLOB NOT NULL
) STRICT;
CREATE INDEX schedule_version_of_scope ON schedule_version (scope_no, replaced_at);
CREATE INDEX schedule_version_age ON schedule_version (replaced_at);

-- Prices move all of a schedule at once: by how much since the sizes in `record` were written.
CREATE TABLE drift (
    token_no INTEGER PRIMARY KEY,
    value    REAL NOT NULL,
    share    REAL NOT NULL
) STRICT;

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
    CHECK ((starts_at IS NULL) = (ends_at IS NULL)),
    UNIQUE (scope_no, resource, key)
) STRICT;
INSERT INTO record (no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, value, share, body)
    SELECT no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, value, share, body FROM record_before;
DROP TABLE record_before;
CREATE INDEX record_of_token ON record (token_no, resource, starts_at);
CREATE INDEX record_window ON record (starts_at, ends_at, token_no, value, share) WHERE resource = 'unlock';
