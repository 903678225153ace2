-- What waits between a decision and its delivery, and what became of it: groups, silences, acknowledgements.

-- One row for each notice and receiver that is in no delivery: it waits for its group, or was held back. A notice and receiver is
-- either here or in delivery_notice, never in both.
CREATE TABLE telling (
    no       INTEGER PRIMARY KEY AUTOINCREMENT,
    notice   TEXT NOT NULL REFERENCES notice (id) ON DELETE CASCADE,
    receiver TEXT NOT NULL,
    alert    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    is_end   INTEGER NOT NULL CHECK (is_end IN (0, 1)),
    labels   TEXT NOT NULL CHECK (json_valid(labels)),
    state    TEXT NOT NULL CHECK (state IN ('waiting', 'silenced', 'inhibited', 'acknowledged')),
    -- Since when it is in this state.
    since    INTEGER NOT NULL,
    -- The silence or alert that holds it back.
    holder   TEXT,
    -- Held back for good: its alert is over, or something later was told of it.
    settled  INTEGER NOT NULL DEFAULT 0 CHECK (settled IN (0, 1)),
    CHECK ((state = 'waiting') = (holder IS NULL)),
    UNIQUE (notice, receiver)
) STRICT;
CREATE INDEX telling_waiting ON telling (no) WHERE state = 'waiting';
CREATE INDEX telling_held ON telling (alert) WHERE state <> 'waiting' AND settled = 0;
CREATE INDEX telling_of_alert ON telling (alert, receiver);
CREATE INDEX telling_age ON telling (since);

-- What a delivery stands for beside its notices.
ALTER TABLE delivery ADD COLUMN shape TEXT NOT NULL DEFAULT 'single' CHECK (shape IN ('single', 'group', 'fold', 'summary', 'digest'));
ALTER TABLE delivery ADD COLUMN bundle TEXT CHECK (bundle IS NULL OR json_valid(bundle));
CREATE INDEX delivery_made ON delivery (receiver, created_at, shape);

-- Whether a notice is told in its delivery, only counted there, or stood for by a later one of the same alert.
ALTER TABLE delivery_notice ADD COLUMN role TEXT NOT NULL DEFAULT 'told' CHECK (role IN ('told', 'counted', 'merged'));

-- When a group was last told, and when what still fires in it is told again.
CREATE TABLE told_group (
    receiver  TEXT NOT NULL,
    key       TEXT NOT NULL,
    told_at   INTEGER NOT NULL,
    repeat_at INTEGER,
    PRIMARY KEY (receiver, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX told_group_repeat ON told_group (repeat_at) WHERE repeat_at IS NOT NULL;
CREATE INDEX told_group_age ON told_group (told_at);

-- Alerts that were told in a group and have not been told to be over.
CREATE TABLE group_alert (
    receiver TEXT NOT NULL,
    key      TEXT NOT NULL,
    alert    TEXT NOT NULL,
    PRIMARY KEY (receiver, key, alert),
    FOREIGN KEY (receiver, key) REFERENCES told_group (receiver, key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX group_of_alert ON group_alert (alert);

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

-- Who knows of an alert; it holds until the fact changes or the alert ends.
CREATE TABLE ack (
    alert   TEXT PRIMARY KEY,
    author  TEXT NOT NULL,
    comment TEXT NOT NULL,
    at      INTEGER NOT NULL,
    fact    TEXT NOT NULL CHECK (json_valid(fact))
) STRICT;
