-- The data that the service answers from. Bodies are the API's own JSON, one record a row, so that fields which this program does
-- not know are kept and served.

-- One row. `generation` grows with every change of the data: whoever caches answers looks here.
CREATE TABLE state (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL
) STRICT;
INSERT INTO state (one, generation) VALUES (1, 0);

-- Items of the token list, in the widest version. `content` is a hash of what the import read for the token: a second import of the
-- same files changes nothing.
CREATE TABLE token (
    id      TEXT PRIMARY KEY,
    item    TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- Payload fields beside the records: totals and names of an allocation table, an investor's name.
CREATE TABLE header (
    resource TEXT NOT NULL,
    owner    TEXT NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (resource, owner)
) STRICT;

-- Records: unlock, burn, buyback, emission, allocation of a token, funding of an investor.
CREATE TABLE record (
    resource TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    ordinal  INTEGER NOT NULL, -- place in the file: keeps records of one instant in order, and equal records apart
    date     INTEGER,          -- unix seconds; null for allocations
    cliff    INTEGER NOT NULL, -- 1 where an unlock event releases something at once
    about    TEXT,             -- the token of a funding round
    body     TEXT    NOT NULL,
    PRIMARY KEY (resource, owner, ordinal)
) STRICT;
CREATE INDEX record_by_date ON record (resource, owner, date, ordinal);
CREATE INDEX record_about ON record (about) WHERE about IS NOT NULL;

-- Keys. Only the SHA-256 of a key is kept: it is random and long, so that nothing shorter than the key itself finds it.
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
