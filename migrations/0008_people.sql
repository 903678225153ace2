-- For people who share alerts: an audit log, notes, and assignees.

-- The actions of users, with their authors. A row repeats the event of the action, because it is kept longer than the event log.
CREATE TABLE audit (
    no       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    -- The name of the author. Empty for the shared token.
    actor    TEXT NOT NULL,
    -- How the author was identified: the token, an access key, a reverse proxy, a command, or a link in a mail.
    via      TEXT NOT NULL CHECK (via IN ('token', 'key', 'proxy', 'command', 'link')),
    -- The type of the event.
    type     TEXT NOT NULL,
    token_no INTEGER REFERENCES token (no),
    -- The id of the alert, silence, or delivery, or the name of the receiver, rule, or access key.
    subject  TEXT NOT NULL,
    body     TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE INDEX audit_age ON audit (at);
CREATE INDEX audit_actor ON audit (actor, no);

-- Notes of users on alerts. Deleted with the alert.
CREATE TABLE note (
    no     INTEGER PRIMARY KEY,
    alert  TEXT NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
    at     INTEGER NOT NULL,
    author TEXT NOT NULL,
    text   TEXT NOT NULL
) STRICT;
CREATE INDEX note_of_alert ON note (alert, no);

-- The person who takes care of an alert. Deleted with the alert.
CREATE TABLE assignee (
    alert  TEXT NOT NULL PRIMARY KEY REFERENCES alert (id) ON DELETE CASCADE,
    name   TEXT NOT NULL,
    -- The user that assigned it.
    author TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT;
CREATE INDEX assignee_name ON assignee (name);
