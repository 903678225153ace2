-- The log of everything that happened, in the order of the commits. See src/store/event_log.rs.

CREATE TABLE event_log (
    -- 1 for the first event, then without gaps. The newest event is never deleted, so that the numbers go on.
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    type      TEXT NOT NULL,
    token_no  INTEGER REFERENCES token (no),
    rule      TEXT,
    -- The id of the record that the event is about: a change, an alert, a notification, a delivery, or a silence.
    record_id TEXT NOT NULL,
    -- Facts of the record that change later. NULL if the record itself is shown.
    body      TEXT CHECK (json_valid(body))
) STRICT;
