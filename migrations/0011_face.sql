-- What lists of alerts and previews of silences ask, at hand however many there are.

-- Alerts by whom they were told to: sets of receivers are few, so that those with a certain receiver are counted by the index alone.
CREATE INDEX alert_told ON alert (body ->> '$.told', updated_at);

-- The labels of a week's messages beside their times, so that what a silence would have hidden is told without reading the messages.
DROP INDEX notice_age;
CREATE INDEX notice_age ON notice (at, receivers, body ->> '$.labels');
