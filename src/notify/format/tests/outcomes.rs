//! Outcomes of responses.

use super::*;

fn outcome_of(
    format: &str,
    status: u16,
    retry_after: Option<TimeDelta>,
    body: &str,
    is_complete: bool,
) -> (Outcome, Option<String>) {
    spec(format).outcome(&ServiceResponse { status, retry_after, body, is_complete })
}

#[test]
fn response_of_each_service_has_the_right_outcome() {
    let later = |seconds: Option<f64>| Outcome::Later { retry_after: seconds.and_then(requested_wait) };
    let table: &[(&str, u16, &str, Outcome)] = &[
        ("slack", 200, "ok", Outcome::Accepted),
        ("slack", 200, "{\"ok\":true}", Outcome::Accepted),
        ("slack", 200, "{\"success\":true}", Outcome::Accepted),
        ("slack", 200, "{\"ok\":false,\"error\":\"ratelimited\"}", later(None)),
        ("slack", 200, "{\"ok\":false,\"error\":\"channel_not_found\"}", Outcome::Refused),
        ("slack", 200, "no_service", Outcome::Refused),
        ("slack", 200, "<html>please log in</html>", later(None)),
        ("slack", 400, "invalid_payload", Outcome::Refused),
        ("slack", 404, "no_team", Outcome::Refused),
        ("slack", 410, "channel_is_archived", Outcome::Gone),
        ("slack", 429, "rate_limited", later(None)),
        ("slack", 500, "rollup_error", later(None)),
        ("discord", 204, "", Outcome::Accepted),
        ("discord", 200, "{\"id\":\"1\"}", Outcome::Accepted),
        ("discord", 429, "{\"message\":\"…\",\"retry_after\":64.57,\"global\":false}", later(Some(64.57))),
        ("discord", 404, "{\"message\":\"Unknown Webhook\",\"code\":10015}", Outcome::Gone),
        ("discord", 404, "{\"message\":\"404: Not Found\",\"code\":0}", Outcome::Refused),
        ("discord", 400, "{\"code\":50035,\"message\":\"Invalid Form Body\"}", Outcome::Refused),
        ("telegram", 200, "{\"ok\":true,\"result\":{}}", Outcome::Accepted),
        ("telegram", 200, "{\"ok\":true,\"result\":{\"text\":\"cut", Outcome::Accepted),
        ("telegram", 200, "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request\"}", Outcome::Refused),
        ("telegram", 200, "{\"ok\":false,\"error_code\":502}", later(None)),
        ("telegram", 200, "{\"ok\":false}", Outcome::Refused),
        ("telegram", 200, "<html>", later(None)),
        ("telegram", 200, "", later(None)),
        ("telegram", 200, "[]", Outcome::Refused),
        ("telegram", 403, "{\"ok\":false,\"error_code\":403,\"description\":\"Forbidden\"}", Outcome::Refused),
        ("telegram", 429, "{\"ok\":false,\"error_code\":429,\"parameters\":{\"retry_after\":5}}", later(Some(5.0))),
        ("teams", 202, "", Outcome::Accepted),
        ("teams", 200, "1", Outcome::Accepted),
        (
            "teams",
            200,
            "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId …",
            later(None),
        ),
        ("teams", 200, "… Microsoft Teams endpoint returned HTTP error 413 with ContextId …", Outcome::Refused),
        ("teams", 200, "Webhook message delivery failed with error: …", later(None)),
        ("teams", 400, "…", Outcome::Refused),
        ("pagerduty", 202, "{\"status\":\"success\"}", Outcome::Accepted),
        ("pagerduty", 400, "{\"status\":\"invalid event\"}", Outcome::Refused),
        ("pagerduty", 429, "", later(None)),
        ("opsgenie", 202, "{\"result\":\"Request will be processed\"}", Outcome::Accepted),
        ("opsgenie", 422, "{\"message\":\"Request body is not processable\"}", Outcome::Refused),
        ("opsgenie", 429, "", later(None)),
        ("ntfy", 200, "{\"id\":\"x\"}", Outcome::Accepted),
        ("ntfy", 429, "{\"code\":42901,\"http\":429}", later(None)),
        ("ntfy", 403, "{\"code\":40301,\"http\":403,\"error\":\"forbidden\"}", Outcome::Refused),
        ("mattermost", 200, "ok", Outcome::Accepted),
        ("mattermost", 400, "{\"id\":\"web.incoming_webhook.invalid.app_error\"}", Outcome::Refused),
        ("rocketchat", 200, "{\"success\":true}", Outcome::Accepted),
        ("rocketchat", 200, "{\"success\":false,\"error\":\"Invalid integration\"}", Outcome::Refused),
        ("googlechat", 200, "{\"name\":\"spaces/x/messages/y\"}", Outcome::Accepted),
        ("googlechat", 429, "{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}", later(None)),
        ("matrix", 200, "{\"event_id\":\"$x\"}", Outcome::Accepted),
        ("matrix", 429, "{\"errcode\":\"M_LIMIT_EXCEEDED\",\"retry_after_ms\":2500}", later(Some(2.5))),
        ("matrix", 403, "{\"errcode\":\"M_FORBIDDEN\"}", Outcome::Refused),
        ("zulip", 200, "{\"result\":\"success\",\"id\":42}", Outcome::Accepted),
        ("zulip", 200, "<!DOCTYPE html><title>Maintenance</title>", later(None)),
        ("zulip", 200, "be right back", later(None)),
        ("zulip", 200, "{\"status\":\"ok\"}", Outcome::Refused),
        ("zulip", 429, "{\"result\":\"error\",\"code\":\"RATE_LIMIT_HIT\",\"retry-after\":28.7}", later(Some(28.7))),
        ("zulip", 400, "{\"result\":\"error\",\"code\":\"STREAM_DOES_NOT_EXIST\"}", Outcome::Refused),
        ("gotify", 200, "{\"id\":25}", Outcome::Accepted),
        ("gotify", 200, "<html>Maintenance</html>", later(None)),
        ("gotify", 401, "{\"error\":\"Unauthorized\"}", Outcome::Refused),
        ("pushover", 200, "{\"status\":1,\"request\":\"x\"}", Outcome::Accepted),
        ("pushover", 200, "{\"status\":0}", Outcome::Refused),
        ("pushover", 200, "<html>", later(None)),
        ("pushover", 429, "{\"status\":0,\"errors\":[\"limit\"]}", later(None)),
        ("pushover", 400, "{\"user\":\"invalid\",\"status\":0}", Outcome::Refused),
        ("twilio", 201, "{\"sid\":\"SM1\",\"status\":\"queued\"}", Outcome::Accepted),
        ("twilio", 400, "{\"code\":21211,\"message\":\"Invalid 'To' Phone Number\"}", Outcome::Refused),
        ("twilio", 429, "{\"code\":20429}", later(None)),
        ("apprise", 200, "Sent", Outcome::Accepted),
        ("apprise", 204, "", Outcome::Refused),
        ("apprise", 200, "", Outcome::Accepted),
        ("apprise", 200, "<html>Maintenance</html>", later(None)),
        ("cliffwatch", 200, "<html>thanks</html>", Outcome::Accepted),
        ("apprise", 500, "", later(None)),
        ("alertmanager-api", 200, "", Outcome::Accepted),
        ("alertmanager-api", 400, "\"start time must be before end time\"", Outcome::Refused),
    ];
    for (format, status, body, expected) in table {
        assert_eq!(outcome_of(format, *status, None, body, true).0, *expected, "{format:?} {status} {body}");
    }
    // The body was cut off, or came too late.
    for (format, body, expected) in [
        ("slack", "", Outcome::Uncertain),
        ("slack", "{\"ok\":tr", Outcome::Uncertain),
        ("slack", "ok", Outcome::Accepted),
        ("telegram", "", Outcome::Uncertain),
        ("telegram", "{\"ok\"", Outcome::Uncertain),
        ("telegram", "{\"ok\":true,\"result\":{\"text\":\"cut", Outcome::Accepted),
        ("zulip", "", Outcome::Uncertain),
        ("zulip", "{\"result\":\"succ", Outcome::Uncertain),
        ("zulip", "<html><title>Maint", later(None)),
        ("pushover", "{\"status\":", Outcome::Uncertain),
        ("apprise", "", Outcome::Uncertain),
        ("rocketchat", "{\"succ", Outcome::Uncertain),
        ("teams", "", Outcome::Uncertain),
        ("discord", "", Outcome::Accepted),
    ] {
        assert_eq!(outcome_of(format, 200, None, body, false).0, expected, "{format} {body}");
    }
    // The header takes precedence over the body, and the note contains the new chat id.
    let (outcome, _) = outcome_of("discord", 429, requested_wait(3.0), "{\"retry_after\":64.57}", true);
    assert_eq!(outcome, later(Some(3.0)));
    let moved = "{\"ok\":false,\"error_code\":400,\"parameters\":{\"migrate_to_chat_id\":-100777}}";
    let (outcome, note) = outcome_of("telegram", 400, None, moved, true);
    assert_eq!(outcome, Outcome::Refused);
    assert!(note.is_some_and(|note| note.contains("-100777")));
    assert_eq!(requested_wait(f64::NAN), None);
    assert_eq!(requested_wait(1e300), Some(TimeDelta::days(1)));
}
