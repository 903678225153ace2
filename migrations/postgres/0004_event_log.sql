-- The log of everything that happened, in the order of the commits. See src/store/event_log.rs.

CREATE TABLE event_log (
    -- 1 for the first event, then without gaps. The newest event is never deleted, so that the numbers go on. Not an identity column:
    -- a sequence leaves gaps, and its numbers are not in the order of the commits.
    seq       BIGINT PRIMARY KEY,
    at        BIGINT NOT NULL,
    type      TEXT COLLATE "C" NOT NULL,
    token_no  BIGINT REFERENCES token (no),
    rule      TEXT COLLATE "C",
    -- The id of the record that the event is about: a change, an alert, a notification, a delivery, or a silence.
    record_id TEXT COLLATE "C" NOT NULL,
    -- Facts of the record that change later. NULL if the record itself is shown.
    body      TEXT COLLATE "C"
);
