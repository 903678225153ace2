-- Receivers with `types`: a notification can also be left out because its receiver does not want its message type. SQLite cannot change
-- the check of a column, so the table is built again.

CREATE TABLE new_pending_notification (
    no            INTEGER PRIMARY KEY AUTOINCREMENT,
    notification  TEXT NOT NULL REFERENCES notification (id) ON DELETE CASCADE,
    receiver      TEXT NOT NULL,
    alert         TEXT NOT NULL,
    kind          TEXT NOT NULL,
    is_end        INTEGER NOT NULL CHECK (is_end IN (0, 1)),
    labels        TEXT NOT NULL CHECK (json_valid(labels)),
    state         TEXT NOT NULL CHECK (state IN ('waiting', 'silenced', 'inhibited', 'acknowledged', 'unwanted')),
    -- The time of the last change of state.
    since         INTEGER NOT NULL,
    -- The silence, alert, acknowledgement, or message type that suppresses it.
    suppressed_by TEXT,
    -- Suppressed for good: the alert has ended, a later notification replaced this one, or the receiver does not want it.
    settled       INTEGER NOT NULL DEFAULT 0 CHECK (settled IN (0, 1)),
    -- The precedence among notifications: highest severity first, then highest value (USD), then earliest due date.
    severity      INTEGER NOT NULL DEFAULT 1,
    value         REAL,
    due_at        INTEGER,
    CHECK ((state = 'waiting') = (suppressed_by IS NULL)),
    UNIQUE (notification, receiver)
) STRICT;
-- Numbers are never used again.
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_pending_notification', seq FROM sqlite_sequence WHERE name = 'pending_notification';
INSERT INTO new_pending_notification (no, notification, receiver, alert, kind, is_end, labels, state, since, suppressed_by, settled, severity, value, due_at)
    SELECT no, notification, receiver, alert, kind, is_end, labels, state, since, suppressed_by, settled, severity, value, due_at FROM pending_notification;
-- Copying no row leaves a last number of 0, which no other table without rows has.
DELETE FROM sqlite_sequence WHERE name = 'new_pending_notification' AND seq = 0;
DROP TABLE pending_notification;
ALTER TABLE new_pending_notification RENAME TO pending_notification;
CREATE INDEX pending_notification_waiting ON pending_notification (no) WHERE state = 'waiting';
CREATE INDEX pending_notification_suppressed ON pending_notification (alert) WHERE state <> 'waiting' AND settled = 0;
CREATE INDEX pending_notification_of_alert ON pending_notification (alert, receiver);
CREATE INDEX pending_notification_age ON pending_notification (since);
