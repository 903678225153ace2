-- The database of the data service. Bodies are the API's own JSON, one record per row, so that fields which this program does not know
-- are stored and served. The table names differ from those of the daemon, so that both can share one schema on a server.
--
-- Times are seconds since 1970, UTC.

-- One row. `generation` grows with every change of the data; caches of responses compare it.
CREATE TABLE served_state (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL
) STRICT;
INSERT INTO served_state (one, generation) VALUES (1, 0);

-- Items of the token list, in the widest version. `content` is a hash of the files that were imported for the token: a second import of
-- the same files changes nothing.
CREATE TABLE served_token (
    id      TEXT PRIMARY KEY,
    item    TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- Payload fields beside the records: totals and names of an allocation table, the name of an investor.
CREATE TABLE served_header (
    resource TEXT NOT NULL,
    owner    TEXT NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (resource, owner)
) STRICT;

-- Records: unlock, burn, buyback, emission, and allocation of a token, funding of an investor.
CREATE TABLE served_record (
    resource TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    ordinal  INTEGER NOT NULL, -- the position in the file: keeps records of one instant in order, and equal records apart
    date     INTEGER,          -- null for allocations
    cliff    INTEGER NOT NULL, -- 1 if an unlock event has a cliff unlock
    about    TEXT,             -- the token of a funding round
    body     TEXT    NOT NULL,
    PRIMARY KEY (resource, owner, ordinal)
) STRICT;
CREATE INDEX served_record_by_date ON served_record (resource, owner, date, ordinal);
CREATE INDEX served_record_about ON served_record (about) WHERE about IS NOT NULL;

-- What is unknown because the daemon whose data was imported never polled it: an endpoint of a token (of no token: owner ''), or
-- `rate_changes` if the schedule was read in an API version without rate changes.
CREATE TABLE served_gap (
    owner TEXT NOT NULL,
    what  TEXT NOT NULL,
    PRIMARY KEY (owner, what)
) STRICT, WITHOUT ROWID;

-- API keys. Only the SHA-256 of a key is stored: keys are random and long, so the hash cannot be reversed by guessing.
CREATE TABLE api_key (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL,
    hash          BLOB    NOT NULL UNIQUE,
    monthly_limit INTEGER NOT NULL CHECK (monthly_limit >= 0),
    used          INTEGER NOT NULL CHECK (used >= 0),
    reset_at      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    revoked_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX api_key_name ON api_key (name) WHERE revoked_at IS NULL;
-- A key is found by the start of its hash; the whole hash is then compared in constant time.
CREATE INDEX api_key_prefix ON api_key (substr(hash, 1, 8)) WHERE revoked_at IS NULL;
