//! The codes of errors. A code is part of the API: it is never renamed, and programs decide by it.

use axum::http::StatusCode;

model::words! {
    /// The reason why a request failed.
    #[derive(PartialOrd, Ord)]
    ErrorCode {
        InvalidRequest = "invalid_request",
        UnknownParameter = "unknown_parameter",
        InvalidParameter = "invalid_parameter",
        InvalidBody = "invalid_body",
        Unauthorized = "unauthorized",
        WrongHost = "wrong_host",
        FormRejected = "form_rejected",
        InsufficientRole = "insufficient_role",
        NotFound = "not_found",
        UnknownToken = "unknown_token",
        UnknownGroup = "unknown_group",
        UnknownRule = "unknown_rule",
        UnknownReceiver = "unknown_receiver",
        UnknownAlert = "unknown_alert",
        UnknownDelivery = "unknown_delivery",
        UnknownSilence = "unknown_silence",
        UnknownAcknowledgement = "unknown_acknowledgement",
        UnknownEvent = "unknown_event",
        MethodNotAllowed = "method_not_allowed",
        AmbiguousToken = "ambiguous_token",
        AmbiguousAlert = "ambiguous_alert",
        WrongState = "wrong_state",
        NothingHeld = "nothing_held",
        EventsExpired = "events_expired",
        BodyTooLarge = "body_too_large",
        UnsupportedMediaType = "unsupported_media_type",
        InvalidConfig = "invalid_config",
        KeyReused = "idempotency_key_reused",
        TooManyFailedLogins = "too_many_failed_logins",
        InternalError = "internal_error",
        Busy = "busy",
        NotReady = "not_ready",
    }
}

impl ErrorCode {
    /// Returns the only status of responses with this code.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::UnknownParameter | Self::InvalidParameter | Self::InvalidBody => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::WrongHost | Self::FormRejected | Self::InsufficientRole => StatusCode::FORBIDDEN,
            Self::NotFound
            | Self::UnknownToken
            | Self::UnknownGroup
            | Self::UnknownRule
            | Self::UnknownReceiver
            | Self::UnknownAlert
            | Self::UnknownDelivery
            | Self::UnknownSilence
            | Self::UnknownAcknowledgement
            | Self::UnknownEvent => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::AmbiguousToken | Self::AmbiguousAlert | Self::WrongState | Self::NothingHeld => StatusCode::CONFLICT,
            Self::EventsExpired => StatusCode::GONE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidConfig | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyFailedLogins => StatusCode::TOO_MANY_REQUESTS,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Busy | Self::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the heading of the error, the same for all errors with this code.
    pub const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::UnknownParameter | Self::InvalidParameter | Self::InvalidBody => "Invalid request",
            Self::Unauthorized => "Token required",
            Self::WrongHost => "Wrong host",
            Self::FormRejected => "Action rejected",
            Self::InsufficientRole => "Role not sufficient",
            Self::NotFound => "Not found",
            Self::UnknownToken => "No such token",
            Self::UnknownGroup => "No such group",
            Self::UnknownRule => "No such rule",
            Self::UnknownReceiver => "No such receiver",
            Self::UnknownAlert => "No such alert",
            Self::UnknownDelivery => "No such delivery",
            Self::UnknownSilence => "No such silence",
            Self::UnknownAcknowledgement => "No such acknowledgement",
            Self::UnknownEvent => "No such event",
            Self::MethodNotAllowed => "Method not allowed",
            Self::AmbiguousToken => "Ambiguous token",
            Self::AmbiguousAlert => "Ambiguous alert",
            Self::WrongState => "Wrong state",
            Self::NothingHeld => "Nothing held",
            Self::EventsExpired => "Events deleted",
            Self::BodyTooLarge => "Request too large",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::InvalidConfig => "Invalid config",
            Self::KeyReused => "Key used before",
            Self::TooManyFailedLogins => "Too many failed logins",
            Self::InternalError => "Internal error",
            Self::Busy => "Server busy",
            Self::NotReady => "Not ready",
        }
    }

    /// Returns when the code occurs and what a client can do, for the table in `docs/operation.md`.
    #[cfg(test)]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::InvalidRequest => "the path or another part of the request is not valid",
            Self::UnknownParameter => {
                "the query has a parameter that this path does not have; `suggestions` may have the right one"
            }
            Self::InvalidParameter => "a parameter is empty, is given twice, or has a value that is not valid or out of range",
            Self::InvalidBody => "the body is not valid JSON, lacks a field, or has a field that is unknown or not valid",
            Self::Unauthorized => "the token or access key is missing or wrong",
            Self::WrongHost => "on loopback: the `Host` header does not name this server; set `external_url`",
            Self::FormRejected => "only on pages: the form did not come from a page of this server, or has expired",
            Self::NotFound => "the path does not exist; `suggestions` may have the right one",
            Self::InsufficientRole => "the role of the access key does not allow this; `requiredRole` has the one that does",
            Self::UnknownToken => "no token has this slug or ticker; `suggestions` has similar slugs",
            Self::UnknownGroup => "`[watch.groups]` has no such group; `suggestions` may have the right one",
            Self::UnknownRule => "no active rule has this name or id; `suggestions` may have the right one",
            Self::UnknownReceiver => "the config has no such receiver; `suggestions` may have the right one",
            Self::UnknownAlert => "no alert has this id, or it was deleted after `[store] retention`",
            Self::UnknownDelivery => "no delivery has this id, or it was deleted after `[store] retention`",
            Self::UnknownSilence => "no active or pending silence has this id",
            Self::UnknownAcknowledgement => "the alert is not acknowledged",
            Self::UnknownEvent => {
                "the event log ends before the number in `after`, such as after a backup was restored; read the lists again, then \
                 continue after the number in `suggestions`"
            }
            Self::MethodNotAllowed => "the path does not support this method; the header `Allow` has those that it supports",
            Self::AmbiguousToken => "several tokens have this ticker; `suggestions` has their slugs",
            Self::AmbiguousAlert => "several alerts have an id with this beginning; `suggestions` has their ids",
            Self::WrongState => {
                "the state of the delivery does not allow the action: a delivery that was sent cannot be retried or dropped"
            }
            Self::NothingHeld => "no response of the token is held",
            Self::EventsExpired => {
                "events after the number in `after` were deleted after `[store] retention`; read the lists again, then continue after \
                 the number in `suggestions`"
            }
            Self::BodyTooLarge => "the request body is larger than 128 KiB",
            Self::UnsupportedMediaType => "the body is not declared as JSON; send `Content-Type: application/json`",
            Self::InvalidConfig => "a reload found errors in the config or in rule files; the last valid ones stay active",
            Self::KeyReused => "another request had this `Idempotency-Key`; use a new key for each request",
            Self::TooManyFailedLogins => "too many wrong tokens came from this address; wait for the seconds in `Retry-After`",
            Self::InternalError => "the daemon failed to process the request; its log has the reason",
            Self::Busy => "too many requests run, or this one took too long; try again after the seconds in `Retry-After`",
            Self::NotReady => "the daemon starts, stops, or waits for its database; try again after the seconds in `Retry-After`",
        }
    }

    /// Returns the code of a failure that has none, such as one of the framework.
    pub fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::SERVICE_UNAVAILABLE => Self::Busy,
            status if status.is_server_error() => Self::InternalError,
            _ => Self::InvalidRequest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the table of codes for `docs/operation.md`.
    fn table() -> String {
        let row = |code: ErrorCode| format!("| {} | `{code}` | {} |\n", code.status().as_u16(), code.meaning());
        format!("| Status | `code` | Meaning |\n|---|---|---|\n{}", ErrorCode::ALL.map(row).concat())
    }

    #[test]
    fn documentation_has_the_table_of_codes() {
        let docs = include_str!("../../../docs/operation.md");
        assert!(docs.contains(&table()), "docs/operation.md must contain:\n{}", table());
    }

    #[test]
    fn statuses_without_a_code_keep_their_status() {
        for status in [400, 401, 404, 405, 413, 415, 500, 503] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(ErrorCode::of_status(status).status(), status);
        }
    }

    #[test]
    fn codes_are_grouped_by_status() {
        assert!(ErrorCode::ALL.is_sorted_by_key(|code| code.status().as_u16()));
    }
}
