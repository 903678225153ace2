-- Who wants no digests any more: by the link in a digest, or by hand. Alerts are not stopped by it.
CREATE TABLE opt_out (
    receiver TEXT NOT NULL,
    -- In lower case, without a name.
    address  TEXT NOT NULL,
    at       INTEGER NOT NULL,
    via      TEXT NOT NULL CHECK (via IN ('link', 'hand')),
    PRIMARY KEY (receiver, address)
) STRICT, WITHOUT ROWID;
