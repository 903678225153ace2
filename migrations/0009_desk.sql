-- What the list of alerts is filtered by, at hand however many there are.
CREATE INDEX alert_severity ON alert (body ->> '$.labels.severity', updated_at);
CREATE INDEX alert_of_rule ON alert (rule, updated_at);
CREATE INDEX alert_of_name ON alert (name, updated_at);
