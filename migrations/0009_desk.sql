-- What the list of alerts is filtered by, at hand however many there are. Rules are only counted by theirs: most alerts are of a few rules,
-- and going through the latest is quicker than sorting all of one.
CREATE INDEX alert_severity ON alert (body ->> '$.labels.severity', updated_at);
CREATE INDEX alert_of_rule ON alert (rule, name);
