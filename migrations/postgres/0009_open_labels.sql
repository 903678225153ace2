-- The same as migrations/0009_open_labels.sql. The server cannot read an expression from an index, so the labels are columns.
ALTER TABLE alert ADD COLUMN labels TEXT COLLATE "C" GENERATED ALWAYS AS (json_text(body, '$.labels')) STORED;
ALTER TABLE notification ADD COLUMN labels TEXT COLLATE "C" GENERATED ALWAYS AS (json_text(body, '$.labels')) STORED;
