-- Bytes that nobody asks for: the keys of unlocks in an index of their own, and schedules around an unlock spelled out in each message.
ALTER TABLE record DROP CONSTRAINT record_scope_no_resource_key_key;
CREATE UNIQUE INDEX record_key ON record (scope_no, resource, key) WHERE body IS NOT NULL;
ALTER TABLE notice ADD COLUMN series BYTEA;
