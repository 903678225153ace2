-- Coming supply without unpacking schedules: the amounts of upcoming cliff unlocks, and the linear unlocks and price of each token.
-- The next start of the daemon fills them from the stored schedules; see src/store/supply_index.rs.

-- Tokens of an upcoming cliff unlock.
ALTER TABLE record ADD COLUMN amount REAL;
DROP INDEX record_window;
CREATE INDEX record_window ON record (starts_at, ends_at, token_no, value, share, nominal_at, amount) WHERE resource = 'unlock';

CREATE TABLE token_supply (
    token_no     INTEGER PRIMARY KEY,
    -- The latest reference price in the schedule (USD), and its time.
    price        REAL,
    price_at     INTEGER,
    -- How much of the coming supply is known, and the time up to which linear unlocks are known; null if there is no such limit.
    known        TEXT NOT NULL CHECK (known IN ('all', 'cliffs', 'none')),
    linear_until INTEGER,
    -- Linear unlocks that have not ended, or ended in the last 32 days, packed: from the schedule, and from daily emission ahead.
    linear       BLOB NOT NULL,
    emission     BLOB NOT NULL
) STRICT;
