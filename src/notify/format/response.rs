//! The response of a service. Pure.

use chrono::TimeDelta;
use serde_json::Value;

use crate::retry::Outcome;

/// A response to a request.
#[derive(Clone, Copy, Debug)]
pub struct ServiceResponse<'a> {
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<TimeDelta>,
    /// The beginning of the body.
    pub body: &'a str,
    /// Whether `body` is the whole body.
    pub is_complete: bool,
}

impl ServiceResponse<'_> {
    /// Returns the outcome by the status alone.
    pub(super) fn by_status(&self) -> Outcome {
        Outcome::of_http_status(self.status, self.retry_after)
    }

    /// Parses the body; null if it is not JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(self.body).unwrap_or_default()
    }

    /// Returns whether the body is a web page, such as a maintenance notice or a login form.
    pub(super) fn is_web_page(&self) -> bool {
        let begin: String = self.body.trim_start().chars().take(14).collect::<String>().to_ascii_lowercase();
        begin.starts_with("<!doctype html") || begin.starts_with("<html")
    }

    /// Returns the outcome of a success status whose body does not confirm the message. A body that was cut off may have been a
    /// confirmation. A body that is not JSON is not from the service, which may be under maintenance.
    pub(super) fn unconfirmed(&self, service: &str) -> (Outcome, Option<String>) {
        if !self.is_complete {
            return (Outcome::Uncertain, Some("the response was cut off, so the message may have arrived".to_owned()));
        }
        match self.json() {
            Value::Null => {
                let retry_after = self.retry_after;
                (Outcome::Later { retry_after }, Some(format!("not a response of {service}: if this persists, check `url`")))
            }
            _ => (Outcome::Refused, Some(format!("not a success response of {service}: check `url`"))),
        }
    }
}
