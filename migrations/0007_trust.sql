-- How soon what waits is to be told beside others: the gravest first, then the most valuable (USD), then the nearest (milliseconds).
ALTER TABLE telling ADD COLUMN tone INTEGER NOT NULL DEFAULT 1;
ALTER TABLE telling ADD COLUMN value REAL;
ALTER TABLE telling ADD COLUMN due_at INTEGER;

-- What is critical is sent before everything else.
CREATE INDEX delivery_critical ON delivery (receiver, next_attempt_at) WHERE bundle ->> '$.tone' = 'critical' AND state IN ('due', 'retrying');

-- An alert may also end because its token is not watched any more, or because the source lists it under another slug.
ALTER TABLE alert ADD COLUMN ended TEXT
    CHECK (ended IN ('passed', 'cleared', 'rescheduled out', 'removed', 'rule gone', 'not watched any more',
                     'renamed'));
UPDATE alert SET ended = resolution WHERE resolution IS NOT NULL;
ALTER TABLE alert DROP COLUMN resolution;
ALTER TABLE alert RENAME COLUMN ended TO resolution;
