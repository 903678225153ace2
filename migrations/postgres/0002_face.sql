-- What lists of alerts ask, at hand however many there are: alerts by whom they were told to.
CREATE INDEX alert_told ON alert ((body ->> '$.told'), updated_at);
