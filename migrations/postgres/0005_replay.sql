-- Replays: deliveries that are sent again because a user requested it, and the number of deliveries that can no longer be.

-- The time of the latest request. NULL without one.
ALTER TABLE delivery ADD COLUMN replayed_at BIGINT;
-- The time at which the receiver first accepted a delivery that is replayed. NULL if it never did.
ALTER TABLE delivery ADD COLUMN first_delivered_at BIGINT;
-- Replays are sent after everything else.
CREATE INDEX delivery_replay ON delivery (receiver, next_attempt_at) WHERE replayed_at IS NOT NULL AND state IN ('due', 'retrying');

-- The number of deliveries that were deleted after their retention, by the hour in which they were queued.
CREATE TABLE deleted_deliveries (
    receiver   TEXT COLLATE "C" NOT NULL,
    -- Hours since 1970, UTC.
    hour       BIGINT NOT NULL,
    deliveries BIGINT NOT NULL CHECK (deliveries > 0),
    PRIMARY KEY (receiver, hour)
);
