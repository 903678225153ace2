-- What this data cannot tell, because the daemon that it came from never read it: an endpoint of a token (of none: owner ''), or
-- `rate_changes` where a schedule was read in a version that leaves changes of rate out. What is not here and has no records has none.
CREATE TABLE gap (
    owner TEXT NOT NULL,
    what  TEXT NOT NULL,
    PRIMARY KEY (owner, what)
) STRICT, WITHOUT ROWID;
