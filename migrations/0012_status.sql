-- What status and overview count, at hand without reading what is counted: tokens with their items, feeds with their states.

CREATE INDEX token_listed ON token (listed);
CREATE INDEX feed_fares ON feed (
    endpoint, failing_since, read_at, tried_at, held_since, missing,
    CAST(findings ->> 'by_mark' AS BIGINT), CAST(findings ->> 'by_upcoming' AS BIGINT), CAST(findings ->> 'untold' AS BIGINT),
    CAST(findings ->> 'idle_marks' AS BIGINT), CAST(findings ->> 'idle_upcoming' AS BIGINT),
    CAST(findings ->> 'undecided' AS BIGINT), CAST(findings ->> 'undecided_upcoming' AS BIGINT));
