-- Whom an alert was told to, as a digest of the set: the names of a hundred receivers are longer than an entry of an index may be, and
-- an alert that was told to them could not be written.
DROP INDEX alert_told;
ALTER TABLE alert ADD COLUMN told_set TEXT COLLATE "C" GENERATED ALWAYS AS (md5(json_text(body, '$.told'))) STORED;
CREATE INDEX alert_told ON alert (told_set, updated_at);
-- Lists that questions carry are short: a plan that expects a thousand rows of each goes through the table instead of its index.
ALTER FUNCTION json_each(text) ROWS 10;
ALTER FUNCTION json_each(text, text) ROWS 10;
