-- What a page that refreshes itself asks for, at hand: nobody counts a million records or goes through a long log for it.

-- How many records the snapshot holds of each resource. Every transaction that adds records or takes some out changes it along.
CREATE TABLE tally (
    resource TEXT PRIMARY KEY,
    records  INTEGER NOT NULL CHECK (records >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO tally (resource, records) SELECT resource, count(*) FROM record GROUP BY resource;

-- Polls that failed: few among many.
CREATE INDEX poll_failed ON poll (endpoint, at) WHERE outcome NOT IN ('fresh', 'unchanged');
