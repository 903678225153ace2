-- An alert ends as renamed where the source lists its token under another slug.
ALTER TABLE alert ADD COLUMN why TEXT
    CHECK (why IN ('passed', 'cleared', 'rescheduled out', 'removed', 'rule gone', 'renamed'));
UPDATE alert SET why = resolution WHERE resolution IS NOT NULL;
ALTER TABLE alert DROP COLUMN resolution;
ALTER TABLE alert RENAME COLUMN why TO resolution;
