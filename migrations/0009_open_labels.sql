-- The labels of open alerts, latest first, without reading the alerts: for previews of silences.
CREATE INDEX alert_open_labels ON alert (updated_at, id, state, body ->> '$.labels') WHERE state IN ('pending', 'firing');
