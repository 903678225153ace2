-- Receivers with `types`: a notification can also be left out because its receiver does not want its message type.

ALTER TABLE pending_notification DROP CONSTRAINT pending_notification_state_check;
ALTER TABLE pending_notification ADD CONSTRAINT pending_notification_state_check
    CHECK (state IN ('waiting', 'silenced', 'inhibited', 'acknowledged', 'unwanted'));
