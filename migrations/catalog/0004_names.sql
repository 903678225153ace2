-- Names that the daemon's database has none of, so that on a server both may lie in one schema, and a statement is written once.
ALTER TABLE state RENAME TO served_state;
ALTER TABLE token RENAME TO served_token;
ALTER TABLE header RENAME TO served_header;
ALTER TABLE record RENAME TO served_record;
ALTER TABLE gap RENAME TO served_gap;
