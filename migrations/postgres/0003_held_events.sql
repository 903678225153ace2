-- Events of rules with a `limit`, until the end of their cycle decides which of them are the largest. See src/store/commit/held.rs.

CREATE TABLE held_event (
    -- The id of the notification that the event becomes.
    notification TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- The cycle that decides. If it ended without a decision, the next cycle that ends decides.
    cycle        TEXT COLLATE "C" NOT NULL,
    -- Limit, alert, and notification.
    body         TEXT COLLATE "C" NOT NULL
);
