-- The day by which sums count an unlock of a month or a week (its begin), beside its time: what a digest counts is told without reading
-- schedules. Of what was written before it is read from the schedule, until it is next written.
ALTER TABLE record ADD COLUMN nominal_at BIGINT;
DROP INDEX record_window;
CREATE INDEX record_window ON record (starts_at, ends_at, token_no, value, share, nominal_at) WHERE resource = 'unlock';

-- The deliveries of a time, of a receiver and in a state or not, by the index alone.
CREATE INDEX delivery_age ON delivery (created_at, state, receiver);

-- What polls of an endpoint cost beside their time, so that what it spent since a period began is told without reading them.
DROP INDEX poll_of_endpoint;
CREATE INDEX poll_of_endpoint ON poll (endpoint, at, credits, oddities_total);
